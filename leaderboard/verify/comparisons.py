"""Compares results with what only a maintainer has: the model, its scorers, and the complete runs."""

from __future__ import annotations

import datetime
import random
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from pathlib import Path

import numpy as np

from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.memory import Memory
from evaluators.backend import Backend, Request
from evaluators.models.parity import answers, differing, rounded_again, tolerance_for
from evaluators.runs.measure.measuring import retired_names, under_present_names
from evaluators.runs.measure.recording import exchange_of, storable
from evaluators.runs.measure.stored_results import sums_of, write_without_texts
from evaluators.runs.plan.plan import Plan, select
from evaluators.scorer import TextScorer
from evaluators.statistics.leaning import find_lean
from evaluators.task import Prompt, ReadsScores, load_task, prompt_of
from evaluators.text_scores import read_scores
from leaderboard.verify.entries import Root
from leaderboard.verify.intake import FAULTS, StoppedWork, isolated, read_untrusted, results_in
from leaderboard.verify.keys import KeyBook, dataset_of
from leaderboard.verify.submissions import hides_prompts, place_for
from leaderboard.verify.verification import differences, scored_again, verified_entry
from schemas.documents.board import Rerun
from schemas.documents.record import Record, exchange_sha256
from schemas.documents.result import TOLERANCE, Result, Signature
from schemas.folders.run_folder import RESULT, SUBMIT_AGAIN, StoredParts, read_parts, read_result


def rerun(path: Path, backend: Backend, datasets: Path, n: int, *, seed: int) -> tuple[Rerun, tuple[str, ...]]:
    """Ask a model some items of a result again.

    Log-probabilities agree within the tolerance of the less exact of the two precisions, if they lean to no side. What
    no rounding changes must be equal, and so must texts.

    Args:
        path: Path of the ``result.json``.
        backend: The model, opened by the caller.
        datasets: Folder of built datasets, which holds that of the result.
        n: Number of items to draw at random; all of them if there are fewer.
        seed: Seed of the draw, which must not be known before the result is submitted.

    Returns:
        How many answers agree, and the ids of the items whose answers differ, with the side to which they lean.

    Raises:
        ConfigError: the opened model is not that of the result, or the dataset is not built.
        DataError: the result or the dataset is damaged, or the items are not those of the dataset.
        RunError: the model cannot be asked.
    """
    result = read_result(path.parent)
    opened = backend.model.opened_as
    for name, theirs in result.model.opened_as.items():
        if theirs != (ours := opened.get(name)):
            raise ConfigError(
                f"the result is of {result.model.id} with {name} {theirs}, the opened model has {ours}; open the same "
                "one with the options of its run"
            )
    requests = _requests(result.signature, datasets, backend)
    # Items without an answer are drawn too, which the opened model may answer. The value of a suite is a mean over its
    # parts: as many are drawn from a small one as from a large one.
    rng = random.Random(seed)
    parts = [rng.sample(list(part), len(part)) for part in StoredParts(path.parent, result)]
    drawn = [one for turn in zip_longest(*rng.sample(parts, len(parts))) for one in turn if one is not None][:n]
    task = load_task(result.signature.task)
    prompt = prompt_of(task, result.signature.prompt)
    if result.withheld is not None and prompt.follow_up is not None:
        raise DataError(f"{path}: its options were scored after texts that are kept elsewhere; name the complete run")
    asked = [_requests_of(record, requests, prompt) for record in drawn]
    responses = iter(answers(backend, [request for of_item in asked for request in of_item]))  # type: ignore[misc]
    says = {"chat": result.model.chat_template_sha256 is not None, "is_continued": prompt.follow_up is not None}
    again = [
        [exchange_of(one, storable(next(responses)), show_prompt=True, **says) for one in of_item] for of_item in asked
    ]
    tolerance = max(tolerance_for(result.model.precision), tolerance_for(backend.model.precision))
    others = {row: drawn[row].item_id for row in differing([one.exchanges for one in drawn], again, tolerance)}
    rounds = [again, *([rounded_again(ours, tolerance, rng) for ours in again] for _ in range(10))]
    read = partial(task.reading, normalisation=result.signature.normalisation, prompt_id=prompt.id)
    if (lean := find_lean(drawn, *([read(ours).reading for ours in round_] for round_ in rounds))) is not None:
        others |= {row: f"{drawn[row].item_id} ({lean.how})" for row in sorted(lean.rows)}
    n_agreeing, today = len(drawn) - len(others), datetime.date.today().isoformat()
    made = Rerun(date=today, n_items=len(drawn), n_agreeing=n_agreeing, tolerance=tolerance)
    return made, tuple(others.values())


def _requests(signature: Signature, datasets: Path, backend: Backend) -> dict[tuple[str, str], Sequence[Request]]:
    """Return the requests for every item, in the form that the backend is asked, by config and id of the item."""
    if (dataset := dataset_of(signature, datasets)) is None:
        raise ConfigError(
            f"{datasets}: holds no dataset {signature.dataset} {signature.dataset_version}, whose texts are asked "
            "again; build it, or name its folder with --datasets"
        )
    task = load_task(signature.task)
    selection = select(*dataset, signature.config, parts=signature.parts)
    plan = Plan(selection, task, prompt_of(task, signature.prompt)).for_backend(backend)
    return {
        (part.config, item.item_id): requests
        for part in plan.parts
        for (_, item), requests in zip(part.items, part.requests, strict=True)
    }


def _requests_of(
    record: Record, requests: dict[tuple[str, str], Sequence[Request]], prompt: Prompt
) -> Sequence[Request]:
    asked = requests.get((record.config, record.item_id), ())
    # Options are scored after the stored texts again, so that a text that differs is not counted twice.
    asked = [*asked, *prompt.follow_ups(asked, record.exchanges[: len(asked)])]
    if not asked or [request.sha256 for request in asked] != list(map(exchange_sha256, record.exchanges)):
        raise DataError(f"item '{record.item_id[:60]}' is not asked as in the dataset; verify the result first")
    return asked


N_TEXTS = 100
"""Number of texts to score again: they find a share of 3 % of invented scores with a probability of 95 %."""
_SCORE_TOLERANCE = 1e-3
"""Largest difference of two values: trained scorers differ in the fourth digit between processors."""


def compare_scores(folder: Path, scorers: Sequence[TextScorer], *, seed: int) -> tuple[str, ...]:
    """Score some texts of a verified result again, and compare the scores with the stored ones.

    Args:
        folder: Folder of the result, which holds its texts.
        scorers: The scorers that are installed here.
        seed: Seed of the draw of the texts, which must not be known before the result is submitted.

    Returns:
        Labels of the scorers of the result that scored again; those that are not installed here are left out.

    Raises:
        DataError: a stored score is missing or differs.
    """
    result = read_result(folder)
    task = load_task(result.signature.task)
    parts = read_parts(folder, result, recount=False)
    texts = sorted({text for records in parts for text in task.texts(records)}) if isinstance(task, ReadsScores) else []
    drawn = random.Random(seed).sample(texts, min(N_TEXTS, len(texts)))
    return scored_again(folder, scorers, drawn, read_scores(folder, result.scores), _SCORE_TOLERANCE)


_COMPARED_APART = ("records", "scores", "metrics", "withheld")
"""Fields that are not compared for equality: they differ between both forms, or in the last digits of numbers."""


class CompleteRuns:
    """The complete runs in a folder, by the folder that their results have on the board."""

    def __init__(self, folder: Path, keys: KeyBook, memory: Memory) -> None:
        """Find the runs; unreadable ones are skipped, and the first one is named if a run is missing.

        Raises:
            DataError: there is no such folder.
        """
        if not folder.is_dir():
            raise DataError(f"{folder}: no such folder; name the one with the complete runs")
        self._folder, self._keys, self._memory = folder, keys, memory
        self._runs: dict[Path, list[Path]] = {}
        self._unreadable = ""
        for searched in results_in(folder):
            try:
                if searched.problem is not None:
                    raise DataError(searched.problem)
                result = read_untrusted(searched.path)
            except FAULTS as error:
                self._unreadable = self._unreadable or f"; {error}"
                continue
            if result.withheld is None:
                self._runs.setdefault(place_for(result), []).append(searched.path.parent)

    def problems(self, folders: Sequence[Path]) -> Iterator[str | None]:
        """Yield what is wrong with each result; None if it follows from a complete run.

        Each comparison runs within the limits of work on untrusted files.
        """
        for folder, outcome in zip(folders, isolated(self.problem, folders), strict=True):
            yield f"{folder}: {outcome.reason}" if isinstance(outcome, StoppedWork) else outcome

    def problem(self, folder: Path) -> str | None:
        """Make a verified result again from its complete run, and return how both differ; None if they do not."""
        claimed = under_present_names(read_result(folder))
        problem = f"{folder}: {self._folder} holds no complete run of this model with this signature{self._unreadable}"
        for run in self._runs.get(place_for(claimed), []):
            try:
                verified_entry(run / RESULT, Root(run, "accepted"), self._memory, self._keys)
                with tempfile.TemporaryDirectory() as scratch:
                    show = not hides_prompts(claimed.signature)
                    made = under_present_names(write_without_texts(run, Path(scratch), with_prompts=show))
                    difference = next(_differences(folder, claimed, Path(scratch), made), None)
            except FAULTS as error:
                problem = str(error)
                continue
            if difference is None:
                return None
            problem = f"{folder}: does not follow from the complete run {run}: {difference}; {SUBMIT_AGAIN}"
        return problem


def _differences(folder: Path, claimed: Result, scratch: Path, made: Result) -> Iterator[str]:
    """Yield every difference between a result and the one that was made again."""
    assert claimed.withheld is not None
    assert made.withheld is not None
    for name in Result.__dataclass_fields__:
        if name not in _COMPARED_APART and getattr(claimed, name) != getattr(made, name):
            yield f"{name} differs"
    for name in ("records", "scores"):
        if getattr(claimed.withheld, name) != getattr(made.withheld, name):
            yield f"withheld.{name} is another file"
    for difference in differences(claimed.metrics, made.metrics, retired_names(made.signature.task)):
        yield difference.partition(";")[0]
    for stored, ours in zip(StoredParts(folder, claimed), StoredParts(scratch, made), strict=True):
        if not stored.table.equals(ours.table):
            rows = (number for number in range(len(stored)) if stored[number] != ours[number])
            yield f"row {stored.first_row + next(rows, 0)} of the records differs"
    of_result, of_run = (
        {(row.metric, row.baseline or "", *sorted(row.group.items())): row for row in rows}
        for rows in (sums_of(folder, claimed), sums_of(scratch, made))
    )
    # A metric that was added after the result is missing completely.
    stored_metrics = {key[0] for key in of_result}
    for key in sorted({*of_result, *of_run}, key=str):
        if key not in of_run:
            yield f"sums of {key[0]} are on a slice that it does not have"
        elif key not in of_result:
            if key[0] in stored_metrics:
                yield f"sums of {key[0]} are missing on a slice"
        else:
            (row, sums), (own, expected) = ((replace(one, sums=()), one.sums) for one in (of_result[key], of_run[key]))
            is_alike = row == own and len(sums) == len(expected)
            if not (is_alike and np.allclose(sums, expected, rtol=TOLERANCE, atol=TOLERANCE)):
                yield f"sums of {key[0]} differ"
