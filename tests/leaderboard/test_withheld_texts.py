"""Results that are handed in with hashes in place of their texts, and what they are compared with."""

from __future__ import annotations

import datetime
import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import typer

from evaluators.benchmark import load_benchmark
from evaluators.commands.texts import texts_command
from evaluators.runs.rescore import rescore
from leaderboard.checking.complete_runs import CompleteRuns
from leaderboard.checking.entries import TEXTS_ELSEWHERE, Entry, Root
from leaderboard.checking.keys import KeyBook
from leaderboard.checking.loading import load
from leaderboard.checking.rerunning import _agree
from leaderboard.checking.submissions import Statement, prepare, write_prepared
from leaderboard.checking.verdicts import UNCOMPARED, Verdict, judge
from leaderboard.commands.accept import accept
from leaderboard.commands.verify import compared, verdicts_as_json
from leaderboard.ranking.boards import assemble
from schemas import contract, strict_json, tables
from schemas.cluster_sums import ClusterSums
from schemas.errors import DataError
from schemas.files import sha256_file
from schemas.memory import Memory
from schemas.record_columns import RecordColumns
from schemas.record_files import read_records, write_records
from schemas.result import Result
from schemas.run_folder import find_runs, read_result, read_sums
from schemas.validate import problems
from tests.leaderboard.gifi_results import write_gifi_model
from tests.leaderboard.known import write_keys

STATEMENT = Statement("bot@example.org", "https://example.org/card", None)
SKILLS = {"acme/strong": 0.95, "acme/fair": 0.8}


class World(NamedTuple):
    """Complete runs, answer keys, and the same results without their texts."""

    runs: Path
    keys: Path
    results: Path

    @property
    def book(self) -> KeyBook:
        return KeyBook(self.keys)

    def complete(self) -> CompleteRuns:
        return CompleteRuns(self.runs, self.book, Memory(None))

    def verdicts(self) -> list[Verdict]:
        return list(judge([self.results], self.book, Memory(None), advance=lambda n_done, n: None))

    def entries(self, folder: Path) -> dict[tuple[str, str], Entry]:
        loaded = load([Root(folder, "accepted")], self.book, Memory(None))
        assert loaded.left_out == ()
        return {(one.result.model.id, one.result.signature.task): one for one in loaded.entries}

    def result(self, model: str, task: str) -> Path:
        (found,) = (
            run
            for run in find_runs(self.results)
            if (read_result(run).model.id, read_result(run).signature.task) == (model, task)
        )
        return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> World:
    tmp_path = tmp_path_factory.mktemp("withheld")
    runs = tmp_path / "runs"
    for model, skill in SKILLS.items():
        write_gifi_model(runs, model, skill, scorer="stored")
    keys = write_keys(tmp_path / "keys", runs)
    results = tmp_path / "results"
    for run in find_runs(runs):
        made = prepare(run, STATEMENT, tmp_path, today=datetime.date(2026, 1, 1), version="1", withhold=True)
        write_prepared(made, results)
    return World(runs, keys, results)


@pytest.fixture
def world(made: World, tmp_path: Path) -> World:
    """The same world with results that a test may change."""
    return made._replace(results=Path(shutil.copytree(made.results, tmp_path / "results")))


def test_where_the_benchmark_asks_for_it_prompts_stay_behind_too(made: World, tmp_path: Path) -> None:
    (run,) = (run for run in find_runs(made.runs) if run.parts[-2:] == ("acme__fair", "recognition"))
    copy = Path(shutil.copytree(run, tmp_path / "run"))
    result = read_result(copy)
    (dataset,) = load_benchmark("gifi").withheld
    signature = replace(result.signature, dataset=dataset)
    changed = replace(result, signature=signature, signature_sha256=signature.sha256())
    strict_json.write(copy / "result.json", contract.dump(changed))
    prepared = prepare(copy, STATEMENT, tmp_path, today=datetime.date(2026, 1, 1), version="1")
    assert prepared.withheld == load_benchmark("gifi").withheld[dataset]
    target = write_prepared(prepared, tmp_path / "results")
    complete = read_records(copy / "records.parquet")
    for stored, record in zip(read_records(target / "records.parquet"), complete, strict=True):
        for one, other in zip(stored.exchanges, record.exchanges, strict=True):
            assert other.prompt is not None
            assert one.prompt is None
            assert one.text == f"sha256:{hashlib.sha256(str(other.text).encode()).hexdigest()}"


def rewritten(folder: Path, change: Callable[[Result], Result]) -> None:
    """Write a result again after a change, with the hashes of the files beside it as they are now."""
    result = change(read_result(folder))
    assert result.withheld is not None
    sums = replace(result.withheld.sums, sha256=sha256_file(folder / "sums.parquet"))
    result = replace(
        result,
        records=replace(result.records, sha256=sha256_file(folder / "records.parquet")),
        withheld=replace(result.withheld, sums=sums),
    )
    strict_json.write(folder / "result.json", contract.dump(result))
    statement = json.loads((folder / "submission.json").read_text())
    statement["result_sha256"] = sha256_file(folder / "result.json")
    strict_json.write(folder / "submission.json", statement)


def change_sums(folder: Path, change: Callable[[ClusterSums], ClusterSums]) -> None:
    result = read_result(folder)
    assert result.withheld is not None
    rows = [change(row) for row in read_sums(folder, result.withheld.sums)]
    tables.write_rows(folder / "sums.parquet", rows, ClusterSums)


def test_no_text_is_left_and_each_is_there_by_its_hash(world: World) -> None:
    for run in find_runs(world.runs):
        texts = {exchange.text for record in read_records(run / "records.parquet") for exchange in record.exchanges}
        result = read_result(run)
        folder = world.result(result.model.id, result.signature.task)
        stored = read_records(folder / "records.parquet")
        contents = b"".join(path.read_bytes() for path in folder.iterdir())
        assert not [text for text in texts if text and len(text) > 12 and text.encode() in contents]
        shown = {exchange.text for record in stored for exchange in record.exchanges}
        assert shown.isdisjoint(texts)
        assert len(shown) == len(texts)
        assert {path.name for path in folder.iterdir()} == {
            "result.json",
            "records.parquet",
            "sums.parquet",
            "submission.json",
        }
        assert list(problems(folder)) == []


def test_all_numbers_are_those_of_the_complete_runs(world: World) -> None:
    complete, withheld = world.entries(world.runs), world.entries(world.results)
    assert complete.keys() == withheld.keys()
    for name, theirs in complete.items():
        ours = withheld[name]
        assert dict(ours.metrics) == dict(theirs.metrics)
        assert ours.standing == theirs.standing
        assert ours.answers_sha256 == theirs.answers_sha256
        assert ours.index_resamples.keys() == theirs.index_resamples.keys()
        for metric, resamples in theirs.index_resamples.items():
            np.testing.assert_array_equal(ours.index_resamples[metric], resamples)


def test_without_a_comparison_there_is_no_rank_and_with_it_the_same(world: World, tmp_path: Path) -> None:
    def ranks(folder: Path) -> dict[str, Any]:
        (table,) = assemble(list(world.entries(folder).values())).indices.tables
        return {row.entries[0].result.model.id: (row.rank, row.unranked) for row in table.rows}

    expected = ranks(world.runs)
    assert expected["acme/strong"][0] is not None
    before = ranks(world.results)
    assert {rank for rank, _ in before.values()} == {None}
    assert all(TEXTS_ELSEWHERE in str(reason) for _, reason in before.values())
    verdicts = world.verdicts()
    assert {verdict.state for verdict in verdicts} == {"accepted with warnings"}
    assert all(UNCOMPARED in verdict.warnings for verdict in verdicts)
    verdicts = list(compared(verdicts, world.complete()))
    assert all(verdict.texts_compared and verdict.reason is None for verdict in verdicts)
    report = tmp_path / "verdicts.json"
    report.write_text(verdicts_as_json(verdicts))
    places = [run.relative_to(world.results).as_posix() for run in find_runs(world.results)]
    accept(places, owner="acme-bot", report=report, results=world.results)
    assert ranks(world.results) == expected


def test_a_result_that_changed_since_it_was_compared_counts_as_not_compared(world: World, tmp_path: Path) -> None:
    report = tmp_path / "verdicts.json"
    report.write_text(verdicts_as_json(list(compared(world.verdicts(), world.complete()))))
    folder = world.result("acme/fair", "recognition")
    rewritten(folder, lambda result: replace(result, command=f"{result.command} --seed 2"))
    place = folder.relative_to(world.results).as_posix()
    accept([place], owner="acme-bot", report=report, results=world.results)
    assert not world.entries(world.results)["acme/fair", "recognition"].has_compared_texts


def better(row: ClusterSums) -> ClusterSums:
    """The row with as many right answers as there are answers."""
    if row.metric != "recognition_accuracy" or row.baseline is not None:
        return row
    half = len(row.sums) // 2
    return replace(row, sums=(*row.sums[half:], *row.sums[half:]))


def test_changed_sums_are_rejected_by_their_metrics(world: World) -> None:
    folder = world.result("acme/fair", "recognition")
    change_sums(folder, better)
    (verdict,) = (one for one in world.verdicts() if one.place == str(folder))
    assert "the file was changed after the result was written" in str(verdict.reason)
    rewritten(folder, lambda result: result)
    (verdict,) = (one for one in world.verdicts() if one.place == str(folder))
    assert "metric recognition_accuracy" in str(verdict.reason)


def test_a_consistent_lie_has_no_rank_and_is_found_by_the_texts(world: World) -> None:
    folder = world.result("acme/fair", "recognition")
    change_sums(folder, better)
    rewritten(folder, lambda result: replace(result, metrics=result.metrics[:1]))
    entry = world.entries(world.results)["acme/fair", "recognition"]
    metrics = [entry.metrics[key] for key in entry.metrics]
    rewritten(folder, lambda result: replace(result, metrics=tuple(metrics)))
    (verdict,) = (one for one in world.verdicts() if one.place == str(folder))
    assert verdict.state == "accepted with warnings"
    (verdict,) = compared([verdict], world.complete())
    assert verdict.state == "rejected"
    assert "in the complete run" in str(verdict.reason)


@pytest.mark.parametrize("field", ["counts", "record", "sums"])
def test_any_difference_from_the_complete_run_is_found(world: World, field: str) -> None:
    folder = world.result("acme/strong", "word_problem")
    if field == "counts":
        run = next(run for run in find_runs(world.runs) if read_result(run).signature.task == "assignment")
        with pytest.raises(DataError, match="holds no complete run"):
            CompleteRuns(run, world.book, Memory(None)).compare(folder)
        return
    if field == "record":
        records = list(read_records(folder / "records.parquet"))
        first = records[0].exchanges[0]
        changed = replace(first, n_completion_tokens=(first.n_completion_tokens or 0) + 1)
        records[0] = replace(records[0], exchanges=(changed, *records[0].exchanges[1:]))
        write_records(folder / "records.parquet", records)
        rewritten(folder, lambda result: result)
        told = "row 1 of the records is another one"
    else:
        change_sums(folder, lambda row: replace(row, n_excluded=row.n_excluded + 1) if row.baseline else row)
        rewritten(folder, lambda result: result)
        told = "sums of answer_accuracy are others"
    world.complete().compare(world.result("acme/strong", "recognition"))
    with pytest.raises(DataError, match=told):
        world.complete().compare(folder)


def _with_a_text(folder: Path) -> None:
    records = list(read_records(folder / "records.parquet"))
    exchange = replace(records[3].exchanges[0], text="A text that nobody should read.")
    records[3] = replace(records[3], exchanges=(exchange, *records[3].exchanges[1:]))
    write_records(folder / "records.parquet", records)


def _renamed(folder: Path) -> None:
    change_sums(folder, lambda row: replace(row, metric="fairness") if row.metric == "recognition_accuracy" else row)


def _over_more_clusters(folder: Path) -> None:
    change_sums(folder, lambda row: replace(row, sums=row.sums * 20))


def _over_other_clusters(folder: Path) -> None:
    change_sums(folder, lambda row: replace(row, sums=(*row.sums, *row.sums)) if row.metric == "gdr" else row)


def _with_infinity(folder: Path) -> None:
    path = folder / "sums.parquet"
    rows = tables.read_rows(path, ClusterSums)
    values = [contract.as_python(replace(row, sums=(float("inf"), *row.sums[1:]))) for row in rows]
    from schemas import arrow_files

    arrow_files.write(path, values, ClusterSums)


def _twice(folder: Path) -> None:
    rows = tables.read_rows(folder / "sums.parquet", ClusterSums)
    tables.write_rows(folder / "sums.parquet", [*rows, rows[0]], ClusterSums)
    result = read_result(folder)
    assert result.withheld is not None
    sums = replace(result.withheld.sums, n_rows=len(rows) + 1)
    strict_json.write(
        folder / "result.json", contract.dump(replace(result, withheld=replace(result.withheld, sums=sums)))
    )


def _missing(folder: Path) -> None:
    change_sums(folder, lambda row: replace(row, group={"family": "nobody"}) if row.metric == "gdr" else row)


@pytest.mark.parametrize(
    ("forge", "told"),
    [
        (_with_a_text, "row 4: holds a text"),
        (_renamed, "has sums of 'fairness', which is no metric of recognition"),
        (_over_more_clusters, "clusters of"),
        (_over_other_clusters, "has sums over"),
        (_with_infinity, "row 1: holds NaN or"),
        (_twice, "has sums twice for one slice"),
        (_missing, "metric gdr"),
    ],
)
def test_forged_files_are_rejected_with_a_reason(world: World, forge: Callable[[Path], None], told: str) -> None:
    folder = world.result("acme/fair", "recognition")
    forge(folder)
    rewritten(folder, lambda result: result)
    (verdict,) = (one for one in world.verdicts() if one.place == str(folder))
    assert verdict.state == "rejected"
    assert told in str(verdict.reason)


def test_sums_of_another_version_give_a_null_with_a_reason(world: World) -> None:
    folder = world.result("acme/fair", "recognition")
    change_sums(folder, lambda row: replace(row, version="0.1") if row.metric == "gdr" else row)
    rewritten(folder, lambda result: replace(result, metrics=tuple(m for m in result.metrics if m.name != "gdr")))
    metric = world.entries(world.results)["acme/fair", "recognition"].metric("gdr")
    assert metric is not None
    assert metric.value is None
    assert str(metric.reason).startswith("its sums are of version 0.1")


def test_what_needs_texts_asks_for_the_complete_run(world: World, tmp_path: Path) -> None:
    folder = world.result("acme/fair", "continuation")
    with pytest.raises(DataError, match="name the folder of the complete run"):
        rescore(folder)
    with pytest.raises(typer.Exit):
        texts_command(folder, tmp_path / "texts.csv")
    assert not (tmp_path / "texts.csv").exists()
    with pytest.raises(DataError, match="name the folder of the complete run"):
        prepare(folder, STATEMENT, tmp_path, today=datetime.date(2026, 1, 1), version="1", withhold=True)


def test_answers_that_are_asked_again_are_compared_by_their_hashes(world: World) -> None:
    folder = world.result("acme/fair", "recognition")
    (run,) = (
        run
        for run in find_runs(world.runs)
        if (read_result(run).model.id, read_result(run).signature.task) == ("acme/fair", "recognition")
    )
    stored, complete = (RecordColumns.of(read_records(one / "records.parquet"))[0] for one in (folder, run))
    from evaluators.backend import GenerateRequest, Response

    request = GenerateRequest(prompt="", max_tokens=1, temperature=0.0, top_p=1.0)
    same = [Response(status="answered", text=exchange.text) for exchange in complete.exchanges]
    assert _agree(stored.exchanges, [request] * len(same), same, 1e-3)
    other = [replace(response, text=f"{response.text}!") for response in same]
    assert not _agree(stored.exchanges, [request] * len(same), other, 1e-3)
