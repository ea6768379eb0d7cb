"""Results with hashes in place of their texts, the complete runs behind them, and changes of both."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from biasboard.ground import strict_json
from biasboard.ground.files import sha256_file
from biasboard.ground.memory import Memory
from leaderboard.verify.comparisons import CompleteRuns
from leaderboard.verify.entries import Entry, Origin, Root
from leaderboard.verify.keys import KeyBook
from leaderboard.verify.verdicts import judge, load
from schemas.documents.record import Exchange
from schemas.documents.result import Result
from schemas.documents.run_files import ClusterSums
from schemas.files import contract, row_files
from schemas.folders.run_folder import find_runs, read_result, read_sums
from schemas.outputs.documents import Verdict
from tests.leaderboard.gifi_results import write_gifi_model
from tests.leaderboard.handed_in import hand_in
from tests.leaderboard.made_keys import write_keys
from tests.leaderboard.synthetic import present
from tests.record_files import read_records, write_records

SKILLS = {"acme/strong": 0.95, "acme/fair": 0.8}


class World(NamedTuple):
    """Complete runs, answer keys, and the same results without their texts."""

    runs: Path
    keys: Path
    results: Path

    def copied(self, folder: Path) -> World:
        """The same world with files that a test may change."""
        runs, results = (Path(shutil.copytree(one, folder / one.name)) for one in (self.runs, self.results))
        return self._replace(runs=runs, results=results)

    @property
    def book(self) -> KeyBook:
        return KeyBook(self.keys)

    def complete(self) -> CompleteRuns:
        return CompleteRuns(self.runs, self.book, Memory(None))

    def verdicts(self) -> list[Verdict]:
        return list(judge([self.results], self.book, Memory(None)))

    def entries(self, folder: Path, origin: Origin = "accepted") -> dict[tuple[str, str], Entry]:
        loaded = load([Root(folder, origin)], self.book, Memory(None))
        assert loaded.left_out == ()
        return {(one.result.model.id, one.result.signature.task): one for one in loaded.entries}

    def result(self, model: str, task: str) -> Path:
        (found,) = (
            run
            for run in find_runs(self.results)
            if (read_result(run).model.id, read_result(run).signature.task) == (model, task)
        )
        return found


def make_world(tmp_path: Path) -> World:
    """Write two models, their keys, and their results without texts."""
    runs = tmp_path / "runs"
    for model, skill in SKILLS.items():
        write_gifi_model(runs, model, skill, scorer="stored")
    keys = write_keys(tmp_path / "keys", runs)
    results = tmp_path / "results"
    for run in find_runs(runs):
        hand_in(run, results, withhold=True)
    return World(runs, keys, results)


def rewritten(folder: Path, change: Callable[[Result], Result]) -> None:
    """Write a result again after a change, with the hashes of the files beside it as they are now."""
    result = change(read_result(folder))
    withheld = present(result.withheld)
    sums = replace(withheld.sums, sha256=sha256_file(folder / "sums.parquet"))
    records = replace(result.records, sha256=sha256_file(folder / "records.parquet"))
    result = replace(result, records=records, withheld=replace(withheld, sums=sums))
    strict_json.write(folder / "result.json", contract.dump(result))
    statement = json.loads((folder / "submission.json").read_text())
    statement["result_sha256"] = sha256_file(folder / "result.json")
    strict_json.write(folder / "submission.json", statement)


def change_sums(folder: Path, change: Callable[[ClusterSums], ClusterSums]) -> None:
    rows = [change(row) for row in read_sums(folder, present(read_result(folder).withheld).sums)]
    row_files.write_rows(folder / "sums.parquet", rows, ClusterSums)


def change_exchange(folder: Path, place: int, change: Callable[[Exchange], Exchange]) -> None:
    """Write the records again after a change of the first exchange of one of them."""
    records = list(read_records(folder / "records.parquet"))
    first, *others = records[place].exchanges
    records[place] = replace(records[place], exchanges=(change(first), *others))
    write_records(folder / "records.parquet", records)


def better(row: ClusterSums) -> ClusterSums:
    """The row with as many right answers as there are answers."""
    if row.metric != "recognition_accuracy" or row.baseline is not None:
        return row
    half = len(row.sums) // 2
    return replace(row, sums=(*row.sums[half:], *row.sums[half:]))
