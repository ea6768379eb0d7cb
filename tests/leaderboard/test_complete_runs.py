"""Results without their texts, compared with the complete runs that they were made from."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer

from biasboard.ground import strict_json
from biasboard.ground.memory import Memory
from leaderboard.commands.accept import accept
from leaderboard.commands.verify import compared
from leaderboard.ranking.boards import assemble
from leaderboard.verify.comparisons import CompleteRuns
from leaderboard.verify.entries import TEXTS_ELSEWHERE, Origin
from leaderboard.verify.verdicts import UNCOMPARED
from schemas.documents.result import Result, Withheld
from schemas.documents.run_files import ClusterSums
from schemas.files import contract, row_files
from schemas.folders.run_folder import find_runs, read_result
from schemas.outputs.documents import Verdicts, as_json
from tests.leaderboard.synthetic import present
from tests.leaderboard.withheld_world import World, better, change_exchange, change_sums, rewritten

pytestmark = pytest.mark.slow


def test_without_a_comparison_there_is_no_rank_and_with_it_the_same(world: World, tmp_path: Path) -> None:
    def ranks(folder: Path, origin: Origin = "accepted") -> dict[str, Any]:
        tables = assemble(list(world.entries(folder, origin).values())).indices.tables
        return {row.entries[0].result.model.id: (row.rank, row.unranked) for table in tables for row in table.rows}

    # Nobody has to confirm the scores of own runs.
    expected = ranks(world.runs, "local")
    assert expected["acme/strong"][0] is not None
    assert ranks(world.results) == {}
    board = assemble(list(world.entries(world.results).values()))
    assert board.tables == ()
    assert {entry.match.reason for entry in board.apart} == {TEXTS_ELSEWHERE}
    verdicts = world.verdicts()
    assert {verdict.state for verdict in verdicts} == {"accepted with warnings"}
    assert all(UNCOMPARED in verdict.warnings for verdict in verdicts)
    verdicts = list(compared(verdicts, world.complete()))
    assert all(verdict.texts_compared and verdict.reason is None for verdict in verdicts)
    report = tmp_path / "verdicts.json"
    report.write_text(as_json(Verdicts(verdicts=tuple(verdicts))))
    places = [run.relative_to(world.results).as_posix() for run in find_runs(world.results)]
    accept(places, owner="acme-bot", report=report, results=world.results)
    assert ranks(world.results) == expected


def test_a_result_that_changed_since_it_was_compared_counts_as_not_compared(world: World, tmp_path: Path) -> None:
    report, folder = tmp_path / "verdicts.json", world.result("acme/fair", "recognition")
    verdicts = [one for one in world.verdicts() if one.place == str(folder)]
    (verdict,) = compared(verdicts, world.complete())
    place = folder.relative_to(world.results).as_posix()
    # What was compared and rejected is not entered either.
    report.write_text(as_json(Verdicts(verdicts=(replace(verdict, reason="no"),))))
    with pytest.raises(typer.Exit):
        accept([place], owner="acme-bot", report=report, results=world.results)
    report.write_text(as_json(Verdicts(verdicts=(verdict,))))
    rewritten(folder, lambda result: replace(result, command=f"{result.command} --seed 2"))
    with pytest.raises(typer.Exit):
        accept([place], owner="acme-bot", report=report, results=world.results)
    accept([place], owner="acme-bot", results=world.results)
    assert not world.entries(world.results)["acme/fair", "recognition"].has_compared_texts


def test_a_consistent_lie_has_no_rank_and_is_found_by_the_texts(world: World) -> None:
    folder = world.result("acme/fair", "recognition")
    change_sums(folder, better)
    rewritten(folder, lambda result: replace(result, metrics=result.metrics[:1]))
    entry = world.entries(world.results)["acme/fair", "recognition"]
    rewritten(folder, lambda result: replace(result, metrics=tuple(entry.metrics.values())))
    (verdict,) = (one for one in world.verdicts() if one.place == str(folder))
    assert verdict.state == "accepted with warnings"
    (verdict,) = compared([verdict], world.complete())
    assert verdict.state == "rejected"
    assert "does not follow from the complete run" in str(verdict.reason)


def change_baselines(folder: Path) -> None:
    change_sums(folder, lambda row: replace(row, n_excluded=row.n_excluded + 1) if row.baseline else row)


def withholding(change: Callable[[Withheld], Withheld]) -> Callable[[Path], None]:
    """What changes what a result says of its withheld files."""
    return lambda folder: rewritten(folder, lambda one: replace(one, withheld=change(present(one.withheld))))


@pytest.mark.parametrize(
    ("task", "change", "told"),
    [
        (
            "word_problem",
            lambda at: change_exchange(at, 0, lambda one: replace(one, n_completion_tokens=10**4)),
            "row 1 of the records differs",
        ),
        ("word_problem", change_baselines, "sums of answer_accuracy differ"),
        # No number depends on these.
        ("continuation", withholding(lambda one: replace(one, scores=None)), "withheld.scores is another"),
        (
            "continuation",
            withholding(lambda one: replace(one, records=replace(one.records, sha256="0" * 64))),
            "withheld.records is another",
        ),
        ("continuation", lambda at: rewritten(at, lambda one: replace(one, command="another")), "command differs"),
    ],
)
def test_any_difference_is_found(world: World, task: str, change: Callable[[Path], None], told: str) -> None:
    folder = world.result("acme/strong", task)
    change(folder)
    rewritten(folder, lambda result: result)
    complete = world.complete()
    assert complete.problem(world.result("acme/strong", "recognition")) is None
    assert told in str(complete.problem(folder))


def test_a_result_from_before_a_metric_has_it_from_other_sums_and_agrees_with_its_run(world: World) -> None:
    folder = world.result("acme/fair", "word_problem")
    run = world.runs / "acme__fair" / "word_problem"
    added = {metric.name: metric for metric in read_result(run).metrics if metric.name.startswith("solved_")}
    assert len(added) == 4

    def older(result: Result) -> Result:
        return replace(result, metrics=tuple(one for one in result.metrics if one.name not in added))

    strict_json.write(run / "result.json", contract.dump(older(read_result(run))))
    sums = row_files.read_rows(folder / "sums.parquet", ClusterSums)
    row_files.write_rows(folder / "sums.parquet", [row for row in sums if row.metric not in added], ClusterSums)
    withheld = present(read_result(folder).withheld)
    n_rows = sum(row.metric not in added for row in sums)
    rewritten(
        folder, lambda one: replace(older(one), withheld=replace(withheld, sums=replace(withheld.sums, n_rows=n_rows)))
    )
    entry = world.entries(world.results)["acme/fair", "word_problem"]
    assert {name: entry.metric(name) for name in added} == added
    assert world.complete().problem(folder) is None


def test_bad_runs_beside_the_complete_one_harm_nothing(world: World, tmp_path: Path) -> None:
    texts = Path(shutil.copytree(world.runs, tmp_path / "texts"))
    for name, content in (("a", b"{"), ("b", b"\xff\xfe"), ("c", b"[" * 100_000)):
        (texts / name).mkdir()
        (texts / name / "result.json").write_bytes(content)
    os.mkfifo(texts / "a" / "pipe")
    (texts / "d").mkdir()
    os.mkfifo(texts / "d" / "result.json")
    damaged = Path(shutil.copytree(texts / "acme__fair" / "recognition", texts / "z"))
    (damaged / "records.parquet").write_bytes(b"PAR1")
    places = [world.result("acme/fair", "recognition"), world.result("acme/strong", "word_problem")]
    assert list(CompleteRuns(texts, world.book, Memory(None)).problems(places)) == [None, None]
    shutil.rmtree(texts / "acme__strong")
    first, second = CompleteRuns(texts, world.book, Memory(None)).problems(places)
    assert first is None
    assert "holds no complete run of this model" in str(second)
