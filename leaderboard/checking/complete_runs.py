"""Compares results whose texts are kept elsewhere with the complete runs that they were made from."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from evaluators.runs.withholding import write_without_texts
from leaderboard.checking.entries import Root
from leaderboard.checking.keys import KeyBook
from leaderboard.checking.recomputing import differences
from leaderboard.checking.submissions import hides_prompts, place_for
from leaderboard.checking.verification import verified_entry
from schemas.cluster_sums import ClusterSums
from schemas.errors import DataError
from schemas.memory import Memory
from schemas.metric_comparison import TOLERANCE
from schemas.result import Result
from schemas.run_folder import RESULT, StoredParts, finished_runs, read_result, read_sums


class CompleteRuns:
    """The complete runs in a folder, by the place that their results have on the board."""

    def __init__(self, folder: Path, keys: KeyBook, memory: Memory) -> None:
        """Find the runs.

        Args:
            folder: Folder that holds them at any depth.
            keys: The answer keys of the datasets that the board knows.
            memory: Memory that may know the values of the baselines.

        Raises:
            DataError: there is no finished run.
        """
        self._folder, self._keys, self._memory = folder, keys, memory
        results = {run: read_result(run) for run in finished_runs(folder)}
        self._runs: Mapping[Path, Path] = {
            place_for(result): run for run, result in results.items() if result.withheld is None
        }

    def compare(self, place: Path) -> None:
        """Make a result again from its complete run, and compare both.

        Args:
            place: Folder of a verified result whose texts are kept elsewhere.

        Raises:
            DataError: there is no complete run, it is rejected itself, or something else follows from it.
        """
        said = read_result(place)
        run = self._runs.get(place_for(said))
        if run is None:
            raise DataError(f"{place}: {self._folder} holds no complete run of this model with this signature")
        verified_entry(run / RESULT, Root(run, "local"), self._memory, self._keys)
        with tempfile.TemporaryDirectory() as scratch:
            made = write_without_texts(run, Path(scratch), with_prompts=not hides_prompts(said.signature))
            for difference in _differences(place, said, Path(scratch), made):
                raise DataError(f"{place}: {difference} in the complete run {run}; submit that run again")


def _differences(place: Path, said: Result, scratch: Path, made: Result) -> Iterator[str]:
    """Yield every difference between a result and the one that was made again."""
    for name in ("model", "signature", "counts", "coverage"):
        if getattr(said, name) != getattr(made, name):
            yield f"{name} is another one"
    yield from differences(said.metrics, made.metrics)
    for stored, ours in zip(StoredParts(place, said), StoredParts(scratch, made), strict=True):
        if not stored.table.equals(ours.table):
            rows = (number for number in range(len(stored)) if stored[number] != ours[number])
            yield f"row {stored.first_row + next(rows, 0)} of the records is another one"
    if said.withheld is not None and made.withheld is not None:
        yield from _other_sums(read_sums(place, said.withheld.sums), read_sums(scratch, made.withheld.sums))


def _other_sums(stored: list[ClusterSums], made: list[ClusterSums]) -> Iterator[str]:
    theirs, ours = ({_key(row): row for row in rows} for rows in (stored, made))
    for key in sorted(theirs.keys() ^ ours.keys()):
        yield f"sums of {key[0]} are there on one side only, and are not"
    for key in theirs.keys() & ours.keys():
        if not _are_close(theirs[key], ours[key]):
            yield f"sums of {key[0]} are others"


def _key(row: ClusterSums) -> tuple[str, ...]:
    return (row.metric, row.baseline or "", *(text for pair in sorted(row.group.items()) for text in pair))


def _are_close(one: ClusterSums, other: ClusterSums) -> bool:
    if replace(one, sums=()) != replace(other, sums=()) or len(one.sums) != len(other.sums):
        return False
    return bool(np.allclose(one.sums, other.sums, rtol=TOLERANCE, atol=TOLERANCE))
