"""How fast records are written, read, verified and rescored, and a board is built again.

Run it with ``make bench ARGS='-k bench_records'``. With ``BEFORE=DIR``, another checkout of the repository (``git
worktree add DIR COMMIT``), everything is timed there too, in turns with this one, and the ratios are printed. CPU
seconds count, since machines are shared.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
ROUNDS = int(os.environ.get("RECORDS_ROUNDS", "3"))
WORK = Path(__file__).with_name("record_work.py")


def folders() -> list[Path]:
    before = os.environ.get("BEFORE")
    return [*([Path(before).resolve()] if before else []), REPOSITORY]


def called(folder: Path, *command: object, memory: Path | str = "off") -> tuple[float, str]:
    """Run Python in a checkout, and return the CPU seconds of the process and its children, and what it printed."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "BIASBOARD_MEMORY": str(memory)}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, *map(str, command)], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def report(label: str, taken: Sequence[Sequence[float]], n: int | None = None) -> None:
    """Print the medians of each checkout, and how many times faster this one is."""
    medians = [statistics.median(each) for each in taken]
    shown = ", ".join(f"{median:.3f} s" + (f" ({n / median:,.0f}/s)" if n else "") for median in medians)
    ratio = f"; {medians[0] / medians[-1]:.1f} times" if len(medians) > 1 else ""
    print(f"\n{label}: {shown} of CPU{ratio}", end="")


def in_turns(call: Callable[[Path], float]) -> list[list[float]]:
    places = folders()
    rounds = [[call(folder) for folder in places] for _ in range(ROUNDS)]
    return [list(taken) for taken in zip(*rounds, strict=True)]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, shared_data: Path) -> Path:
    """Runs on the embedded pairs of synthbias, and published answers of gifi, made by this checkout."""
    root = tmp_path_factory.mktemp("records")
    for benchmark in ("synthbias", "gifi"):
        called(REPOSITORY, "-m", f"builders.{benchmark}", "--out", root / "data" / benchmark)
    asked = ("--backend", "baseline", "--model", "stereotype-0.7", "--out", root / "runs")
    called(REPOSITORY, "-m", "evaluators", "run", "--dataset", root / "data" / "synthbias", *asked)
    published = root / "data" / "published"
    made_from = ("--source", "gifi", "--input", shared_data / "gifi" / "template", "--compat", "gifi-repo")
    called(REPOSITORY, "-m", "builders.gifi", *made_from, "--out", published)
    called(REPOSITORY, "-m", "evaluators", *imported(root, shared_data), "--out", root / "runs")
    return root


def imported(root: Path, shared_data: Path) -> tuple[object, ...]:
    answers = ("--input", shared_data / "gifi" / "model-generation", "--model", "gpt-4o")
    return ("import", "gifi", *answers, "--dataset", root / "data" / "published")


def runs_of(root: Path, name: str) -> list[Path]:
    return sorted(path.parent for path in (root / "runs").rglob("result.json") if name in str(path.parent))


@pytest.mark.parametrize("name", ["type1", "type2", "recognition", "math"])
def bench_records(runs: Path, name: str) -> None:
    """Records of one run in one process: written, read and verified."""
    (run,) = runs_of(runs, f"/{name}-")
    found = [[json.loads(called(folder, WORK, run, 5)[1]) for folder in folders()] for _ in range(ROUNDS)]
    for work in found[0][0]["seconds"]:
        taken = [[each["seconds"][work] for each in one] for one in zip(*found, strict=True)]
        report(f"{name}, {work}", taken, found[0][0]["n"])


@pytest.mark.parametrize("remembers", [False, True], ids=["fresh", "remembered"])
@pytest.mark.parametrize("name", ["stereotype", "gpt-4o"])
def bench_rescore(runs: Path, tmp_path: Path, name: str, remembers: bool) -> None:
    """The command ``rescore`` on all runs of a model, as a whole process: the first on a machine, and a later one."""
    model = runs_of(runs, name)[0].parent

    def once(folder: Path) -> float:
        copy = tmp_path / "runs" / model.parent.name / model.name
        shutil.rmtree(tmp_path / "runs", ignore_errors=True)
        shutil.copytree(model, copy)
        return called(folder, "-m", "evaluators", "rescore", copy, memory=memory)[0]

    memory = tmp_path / "memory" if remembers else "off"
    if remembers:
        once(REPOSITORY)
    report(f"rescore {name}{', remembered' if remembers else ''}", in_turns(once))


@pytest.mark.parametrize("remembers", [False, True], ids=["fresh", "remembered"])
def bench_import(runs: Path, shared_data: Path, tmp_path: Path, remembers: bool) -> None:
    """The command ``import gifi``, as a whole process: the first on a machine, and a later one."""

    def once(folder: Path) -> float:
        shutil.rmtree(tmp_path / "runs", ignore_errors=True)
        return called(
            folder, "-m", "evaluators", *imported(runs, shared_data), "--out", tmp_path / "runs", memory=memory
        )[0]

    memory = tmp_path / "memory" if remembers else "off"
    if remembers:
        once(REPOSITORY)
    report(f"import gifi{', remembered' if remembers else ''}", in_turns(once))


def bench_second_board(runs: Path, tmp_path: Path) -> None:
    """A second ``leaderboard build`` over unchanged results, as a whole process."""

    def build(folder: Path) -> float:
        out = tmp_path / ("before" if folder != REPOSITORY else "now")
        where = ("--runs", runs / "runs", "--results", tmp_path / "none", "--datasets", runs / "data", "--out", out)
        return called(folder, "-m", "leaderboard", "build", *where, memory=tmp_path / "memory")[0]

    report("first board", [[build(folder)] for folder in folders()])
    report("second board", in_turns(build))
