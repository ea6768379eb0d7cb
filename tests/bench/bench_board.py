"""What the first and the second board of many results cost: ``make bench ARGS='-k bench_board'``.

A quarter of the results each are answers to sentences with crossed clusters under two prompts, which are ranked, and to
two tasks that are answered in text. Another checkout builds boards of the same results. ``RESULTS`` is their number,
1,000 by default. The third board has one more model, with four results.
"""

from __future__ import annotations

import ctypes
import math
import os
import resource
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from biasboard.ground import strict_json
from evaluators.backend import Capability, ChoiceRequest, Request, Response
from evaluators.runs.ask.pipeline import RunOptions, run
from evaluators.runs.plan.plan import Plan, select
from evaluators.task import load_task, prompt_of
from schemas.files import contract, row_files
from schemas.folders.dataset_folder import read_manifest
from schemas.lexicon import pronoun_families
from tests.bench.checkouts import CHECKOUTS, ROUNDS, report, taken
from tests.commands import REPOSITORY
from tests.evaluators.logging_backend import LoggingBackend
from tests.evaluators.made_data import made_items, write_dataset
from tests.evaluators.pronoun_records import problems, sentences
from tests.leaderboard.gifi_results import TEMPLATES, chance
from tests.worlds import copy_site

ASKED = (
    ("made", "type2", "coreference", "intrinsic-v1"),
    ("made", "type2", "coreference", "mcq2-v1"),
    ("gifi", "recognition", "recognition", "sampled-v1"),
    ("gifi", "math", "word_problem", "zero-shot-sampled-v1"),
)
"""Dataset, config, task and prompt."""


@dataclass
class SkilledBackend(LoggingBackend):
    """A model that is right as often as its skill says."""

    skill: float = 0.5
    capabilities: frozenset[Capability] = frozenset({"option_logprobs", "generation"})

    def _answer(self, request: Request) -> Response:
        drawn, facts = chance(self.name, request.sha256), request.facts
        if isinstance(request, ChoiceRequest):
            likely = 0.5 + 0.49 * chance(request.sha256, self.name) * (1 if drawn < self.skill else -1)
            chances = [likely if outcome == facts["referent"] else 1 - likely for outcome in request.outcomes]
            return replace(super()._answer(request), option_logprobs=tuple(map(math.log, chances)))
        family = facts.get("family", "he") if drawn < self.skill else "he"
        pronoun = pronoun_families()[family].forms["nominative"]
        return Response(status="answered", text=f" {pronoun} said so; the answer is {12 if drawn < self.skill else 9}.")


def write_datasets(folder: Path) -> None:
    """Write 200 sentences, of 20 occupation pairs and 10 frames, and the data of two tasks that texts answer."""
    made = [replace(item, template_id=f"frame-{number // 2 % 10}") for number, item in enumerate(made_items(100))]
    write_dataset(folder / "made", {"type2": made})
    manifest = read_manifest(folder / "made")
    splits = []
    rows: dict[str, Sequence[Any]] = {"recognition": sentences(*TEMPLATES[:10]), "math": problems(10)}
    for (config, items), shape in zip(rows.items(), ("pronoun_text", "word_problem"), strict=True):
        path = f"data/{config}/test-00000-of-00001.parquet"
        row_files.write_rows(folder / "gifi" / path, list(items), type(items[0]))
        digest = row_files.content_sha256(items)
        split = replace(manifest.splits[0], config=config, item_shape=shape, path=path)
        splits.append(replace(split, n_items=len(items), content_sha256=digest))
    told = replace(manifest, name="gifi", benchmark="gifi", splits=tuple(splits))
    told = replace(told, content_sha256=strict_json.sha256([split.content_sha256 for split in splits]))
    strict_json.write(folder / "gifi" / "dataset.json", contract.dump(told))


def make_results(folder: Path, first_model: int, n_models: int) -> None:
    """Ask models from a first number on, each for one result of every kind."""
    if not first_model:
        write_datasets(folder / "datasets")
    for number in range(first_model, n_models):
        skill = 0.4 + 0.55 * number / n_models
        backend = SkilledBackend(folder / "log", name=f"made/model-{number:03d}", batch=1_000, skill=skill)
        for dataset, config, task, prompt in ASKED:
            of_dataset = folder / "datasets" / dataset
            selection = select(of_dataset, read_manifest(of_dataset), config)
            plan = Plan(selection, load_task(task), prompt_of(load_task(task), prompt))
            finished = run(plan, backend, RunOptions(root=folder / "runs", command="tests"))
            (finished.folder / "responses.sqlite").unlink()


def seconds(checkout: Path, *words: object, memory: str | Path = "off") -> float:
    """Return the CPU seconds of a command and of every process that it started, also of those that outlive it."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    taken(checkout, *words, BIASBOARD_MEMORY=memory, OMP_NUM_THREADS="1")
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def bench_board(tmp_path: Path) -> None:
    adopt_orphans = 36  # PR_SET_CHILD_SUBREAPER: a server of processes ends after the build that started it.
    ctypes.CDLL(None).prctl(adopt_orphans, 1, 0, 0, 0)
    n_models = int(os.environ.get("RESULTS", "1000")) // len(ASKED)
    made = seconds(REPOSITORY, __file__, tmp_path, 0, n_models)
    print(f"\n{n_models * len(ASKED)} results took {made:.0f} s to make", end="")
    folders = ("--runs", tmp_path / "runs", "--results", tmp_path / "none", "--datasets", tmp_path / "datasets")
    rounds: dict[str, list[list[float]]] = {"first": [], "second": [], "third": []}
    for number in range(ROUNDS):
        for kind, of_kind in rounds.items():
            if kind == "third":
                seconds(REPOSITORY, __file__, tmp_path, n_models + number, n_models + number + 1)
            of_round = []
            for place, checkout in enumerate(CHECKOUTS):
                folder = tmp_path / f"round-{number}-{place}"
                site = copy_site(folder, checkout) if kind == "first" else folder / "site"
                words = ("-m", "leaderboard", "build", *folders, "--keys", tmp_path / "none", "--site", site)
                of_round.append(seconds(checkout, *words, memory=folder / "memory"))
            of_kind.append(of_round)
    for kind, of_kind in rounds.items():
        report(f"{kind} board, seconds of CPU", of_kind)


if __name__ == "__main__":
    make_results(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
