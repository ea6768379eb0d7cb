"""The files beside the tables: the same numbers, safe to open."""

from __future__ import annotations

import csv
import io

import pytest

from leaderboard.pages.exports import to_csv
from leaderboard.pages.table_files import audit_table, pair_tables, result_tables, view_table
from leaderboard.pages.tables import make_sections
from leaderboard.ranking.boards import Board, assemble
from leaderboard.ranking.frames import frames_of
from leaderboard.verify.entries import LeftOut, Root
from tests.leaderboard.made_keys import load_known
from tests.leaderboard.synthetic import leaning, uniform, write_model


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Board:
    root = tmp_path_factory.mktemp("runs")
    write_model(root, "=cmd|' /C calc'!A0", leaning(1.0, 0.9))
    write_model(root, "acme/small", leaning(1.0, 0.2))
    write_model(root, "baseline/uniform", uniform, endpoint="baseline")
    return assemble(load_known(Root(root, "local"), any_name=True).entries)


def test_cells_that_a_spreadsheet_would_run_are_defused() -> None:
    texts = ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "plain", ""]
    lines = list(csv.reader(io.StringIO(to_csv([{"text": text} for text in texts]))))
    assert [line[0] if line else "" for line in lines[1:]] == ["'=1+1", "'+1", "'-1", "'@SUM(A1)", "'\tx", "plain", ""]


def test_negative_numbers_stay_numbers() -> None:
    assert to_csv([{"gap": -0.25, "known": True, "rank": None}]) == "gap,known,rank\n-0.25,true,\n"


def test_csv_and_lines_hold_the_numbers_of_the_results(board: Board) -> None:
    table = view_table(make_sections(board)[0], {})
    from_csv = list(csv.DictReader(io.StringIO(table.csv)))
    assert len(from_csv) == len(table.lines) == 3
    for row, csv_line, line in zip(board.tables[0].rows, from_csv, table.lines, strict=True):
        metric = row.entry.metric("accuracy", {"stereotype": "anti"})
        assert metric is not None
        assert metric.interval is not None
        assert float(csv_line["accuracy_anti"]) == line["accuracy_anti"] == metric.value
        assert float(csv_line["accuracy_anti_low"]) == line["accuracy_anti_low"] == metric.interval.low
        assert int(csv_line["n_scored"]) == line["n_scored"] == 100
        assert line["unranked_reason"] == row.unranked
        assert line["model"] == row.entry.result.model.id
    assert {line["model"] for line in from_csv} == {"'=cmd|' /C calc'!A0", "acme/small", "baseline/uniform"}


def test_every_metric_of_a_result_is_exported(board: Board) -> None:
    entry = board.tables[0].rows[0].entry
    of_results = result_tables(make_sections(board), frames_of(board).values)
    lines = next(table.lines for table in of_results if entry.result.signature_sha256[:8] in table.files.stem)
    assert len(lines) == len(entry.result.metrics)
    reasons = {line["metric"]: line["reason"] for line in lines if line["value"] is None}
    sampled = {reason for name, reason in reasons.items() if name != "undetermined_rate"}
    # What follows from sampled answers has one reason, and the third option another.
    assert len(sampled) == 1
    assert {*sampled, reasons["undetermined_rate"]} > {*sampled}
    assert all(reasons.values())


def test_comparisons_name_the_models(board: Board) -> None:
    compared = next(pair_tables(make_sections(board), frames_of(board).pairs))
    lines = [line for line in compared.lines if line["metric"] == board.tables[0].primary]
    assert len(lines) == 1
    assert str(lines[0]["first"]).split(" (")[0] in ("acme/small", "=cmd|' /C calc'!A0")
    assert lines[0]["outcome"] in ("first", "second")
    assert lines[0]["both_ranked"] is True


def test_the_audit_lists_what_was_left_out(board: Board) -> None:
    left_out = [LeftOut(place="x/y", origin="accepted", reason="x/y/result.json: not strict JSON")]
    lines = audit_table(board, left_out).lines
    assert len(lines) == 4
    assert lines[0]["state"] == "left out"
    assert lines[0]["reason"] == "x/y/result.json: not strict JSON"
    assert {frozenset(line) for line in lines} == {frozenset(lines[0])}
