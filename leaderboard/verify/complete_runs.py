"""Compares results whose texts are kept elsewhere with the complete runs that they were made from."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from biasboard.ground.errors import BiasboardError, DataError
from biasboard.ground.memory import Memory
from evaluators.runs.measure.stored_results import write_without_texts
from leaderboard.verify.entries import Root
from leaderboard.verify.intake import MOST_RESULT_BYTES, check_own_file, results_in
from leaderboard.verify.isolation import Stopped, end_for_lack_of_memory, isolated
from leaderboard.verify.keys import KeyBook
from leaderboard.verify.recomputing import differences
from leaderboard.verify.submissions import hides_prompts, place_for
from leaderboard.verify.verification import verified_entry
from schemas.documents.result import TOLERANCE, Result
from schemas.documents.run_files import ClusterSums
from schemas.folders.run_folder import RESULT, SUBMIT_AGAIN, StoredParts, read_result, read_sums

_COMPARED_APART = ("records", "scores", "metrics", "withheld")
"""Fields that are not compared for equality: they differ between both forms, or in the last digits of numbers."""


class CompleteRuns:
    """The complete runs in a folder, by the folder that their results have on the board."""

    def __init__(self, folder: Path, keys: KeyBook, memory: Memory) -> None:
        """Find the runs; unreadable ones are skipped, and named if a run is missing.

        Args:
            folder: Folder that holds them at any depth.
            keys: The answer keys of the datasets that the board knows.
            memory: Memory that may know the values of the baselines.

        Raises:
            DataError: there is no such folder.
        """
        if not folder.is_dir():
            raise DataError(f"{folder}: no such folder; name the one with the complete runs")
        self._folder, self._keys, self._memory = folder, keys, memory
        self._runs: dict[Path, list[Path]] = {}
        self._unread: list[str] = []
        for searched in results_in(folder):
            try:
                if searched.problem is not None:
                    raise DataError(searched.problem)
                check_own_file(searched.path, MOST_RESULT_BYTES)
                result = read_result(searched.path.parent)
            except (BiasboardError, OSError, ValueError, RecursionError) as error:
                self._unread.append(str(error))
                continue
            if result.withheld is None:
                self._runs.setdefault(place_for(result), []).append(searched.path.parent)

    def problems(self, folders: Sequence[Path]) -> Iterator[str | None]:
        """Yield what is wrong with each result; None if it follows from a complete run.

        Each comparison runs within the limits of work on untrusted files.

        Args:
            folders: Folders of verified results whose texts are kept elsewhere.
        """
        for folder, outcome in zip(folders, isolated(partial(_problem, complete=self), folders), strict=True):
            yield f"{folder}: {outcome.reason}" if isinstance(outcome, Stopped) else outcome

    def compare(self, folder: Path) -> None:
        """Make a result again from its complete run, and compare both.

        Args:
            folder: Folder of a verified result whose texts are kept elsewhere.

        Raises:
            DataError: there is no complete run, it is invalid itself, or the result does not follow from it.
        """
        claimed = read_result(folder)
        runs = self._runs.get(place_for(claimed), [])
        unreadable = f"; {self._unread[0]}" if self._unread else ""
        problem = f"{folder}: {self._folder} holds no complete run of this model with this signature{unreadable}"
        for run in runs:
            try:
                self._compare_with(run, folder, claimed)
                return
            except (BiasboardError, OSError, ValueError, ArithmeticError, LookupError) as error:
                problem = str(error)
        raise DataError(problem)

    def _compare_with(self, run: Path, folder: Path, claimed: Result) -> None:
        verified_entry(run / RESULT, Root(run, "accepted"), self._memory, self._keys)
        with tempfile.TemporaryDirectory() as scratch:
            made = write_without_texts(run, Path(scratch), with_prompts=not hides_prompts(claimed.signature))
            for difference in _differences(folder, claimed, Path(scratch), made):
                raise DataError(f"{folder}: does not follow from the complete run {run}: {difference}; {SUBMIT_AGAIN}")


def _problem(folder: Path, complete: CompleteRuns) -> str | None:
    try:
        complete.compare(folder)
    except DataError as error:
        return str(error)
    except MemoryError:
        end_for_lack_of_memory()
        return f"{folder}: comparing it takes more memory than there is"
    return None


def _differences(folder: Path, claimed: Result, scratch: Path, made: Result) -> Iterator[str]:
    """Yield every difference between a result and the one that was made again."""
    for name in Result.__dataclass_fields__:
        if name not in _COMPARED_APART and getattr(claimed, name) != getattr(made, name):
            yield f"{name} differs"
    if claimed.withheld is None or made.withheld is None:
        raise ValueError("both results must be without their texts")
    for name in ("records", "scores"):
        if getattr(claimed.withheld, name) != getattr(made.withheld, name):
            yield f"withheld.{name} is another file"
    for difference in differences(claimed.metrics, made.metrics):
        yield difference.partition(";")[0]
    for stored, ours in zip(StoredParts(folder, claimed), StoredParts(scratch, made), strict=True):
        if not stored.table.equals(ours.table):
            rows = (number for number in range(len(stored)) if stored[number] != ours[number])
            yield f"row {stored.first_row + next(rows, 0)} of the records differs"
    yield from _other_sums(read_sums(folder, claimed.withheld.sums), read_sums(scratch, made.withheld.sums))


def _other_sums(stored: list[ClusterSums], made: list[ClusterSums]) -> Iterator[str]:
    theirs, ours = ({_key(row): row for row in rows} for rows in (stored, made))
    for key in sorted(theirs.keys() - ours.keys()):
        yield f"sums of {key[0]} are on a slice that it does not have"
    for key in sorted(ours.keys() - theirs.keys()):
        yield f"sums of {key[0]} are missing on a slice"
    for key in sorted(theirs.keys() & ours.keys()):
        if not _are_close(theirs[key], ours[key]):
            yield f"sums of {key[0]} differ"


def _key(row: ClusterSums) -> tuple[str, ...]:
    return (row.metric, row.baseline or "", *(text for pair in sorted(row.group.items()) for text in pair))


def _are_close(one: ClusterSums, other: ClusterSums) -> bool:
    if replace(one, sums=()) != replace(other, sums=()) or len(one.sums) != len(other.sums):
        return False
    return bool(np.allclose(one.sums, other.sums, rtol=TOLERANCE, atol=TOLERANCE))
