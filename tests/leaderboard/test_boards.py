"""Which results share a table, which one of several is shown, and who is ranked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from leaderboard.ranking.boards import Board, assemble, table_title
from leaderboard.ranking.rank_ranges import RankRange
from leaderboard.ranking.unranked import why_unranked
from leaderboard.verify.entries import Entry, Root
from schemas.documents.result import Counts, SplitCounts
from tests.leaderboard.made_keys import load_known
from tests.leaderboard.synthetic import (
    leaning,
    make_records,
    make_result,
    stereotyped,
    uniform,
    write_model,
    write_result,
)


def board_of(root: Path) -> Board:
    loaded = load_known(Root(root / "accepted", "accepted"), Root(root / "local", "local"))
    assert loaded.left_out == ()
    return assemble(loaded.entries)


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Board:
    root = tmp_path_factory.mktemp("results")
    local = root / "local"
    for ambiguous in (False, True):
        write_model(local, "baseline/uniform", uniform, ambiguous=ambiguous, endpoint="baseline")
        write_model(local, "baseline/stereotype", stereotyped(1.0), ambiguous=ambiguous, endpoint="baseline")
        write_model(local, "acme/even", leaning(2.0, 0.1), ambiguous=ambiguous)
        write_model(local, "acme/leaning", leaning(2.0, 1.0), ambiguous=ambiguous)
    write_model(local, "acme/silent", lambda reference, other, gender, pair: None if pair % 10 == 0 else 0.9)
    write_model(local, "acme/mute", lambda reference, other, gender, pair: None if pair % 10 < 6 else 0.9)
    return board_of(root)


@pytest.mark.slow
def test_configs_are_apart(board: Board) -> None:
    assert [table.signature.config for table in board.tables] == ["type1", "type2"]
    assert [len(table.rows) for table in board.tables] == [4, 6]


@pytest.mark.slow
def test_baselines_stand_in_place_without_a_rank(board: Board) -> None:
    rows = [(row.entry.result.model.id, row.rank) for row in board.tables[1].rows]
    assert rows == [
        ("acme/even", RankRange(1, 3, 3)),
        ("acme/leaning", RankRange(1, 3, 3)),
        ("acme/silent", RankRange(1, 3, 3)),
        ("baseline/uniform", None),
        ("baseline/stereotype", None),
        ("acme/mute", None),
    ]
    assert board.tables[1].rows[3].unranked == "baselines are shown for comparison and never ranked"


def test_missing_answers_widen_a_rank_and_few_answers_end_it(board: Board) -> None:
    rows = {row.entry.result.model.id: row for row in board.tables[1].rows}
    some, few = rows["acme/silent"], rows["acme/mute"]
    # All that it answers is right, like all answers of the others.
    assert (some.rank, some.rank_of_answers) == (RankRange(1, 3, 3), RankRange(1, 3, 3))
    assert some.bounds is not None
    assert (some.bounds.worst, some.bounds.best) == pytest.approx((0.9, 1.0))
    assert few.rank is None
    assert few.unranked == "40 of 100 items scored; a rank needs at least half"
    assert few.entry.primary is not None
    assert few.entry.primary.value is not None
    entry = board.tables[1].ranked[0].entry
    counts = Counts(items=1, scored=1, refused=0, unparsed=0, failed=0, truncated=0)
    signature = replace(entry.result.signature, parts=("a", "b", "c", "d"), splits=("test", "bias"))
    result = replace(entry.result, signature=signature)
    for n, why in ((2, None), (3, "part d has no items of split bias, which most parts have; a rank needs every part")):
        places = [*((part, "test") for part in "abcd"), *((part, "bias") for part in "abcd"[:n])]
        coverage = tuple(SplitCounts(part=part, split=split, counts=counts) for part, split in places)
        assert why_unranked(replace(entry, result=result, coverage=coverage)) == why


def test_ambiguous_items_have_other_columns(board: Board) -> None:
    ambiguous, with_referent = board.tables
    assert [column.key for column in ambiguous.columns] == [
        "ucerf",
        "pro_rate",
        "pro_rate_masculine",
        "pro_rate_feminine",
        "certainty",
    ]
    assert [column.key for column in with_referent.columns][:4] == [
        "worst_group_accuracy",
        "accuracy",
        "ucerf",
        "accuracy_pro",
    ]
    reasons = {undefined.metric: undefined.reason for undefined in ambiguous.undefined}
    accuracy = ambiguous.rows[0].entry.metric("accuracy")
    assert accuracy is not None
    assert reasons["accuracy"] == accuracy.reason != ""
    assert "accuracy" not in {undefined.metric for undefined in with_referent.undefined}


@pytest.mark.slow
def test_another_prompt_or_version_is_another_table(tmp_path: Path) -> None:
    records = make_records(leaning(1.0, 0.5))
    for name, change in (
        ("a", {}),
        ("b", {"prompt": "mcq2-v1"}),
        ("c", {"dataset_version": "9.1.0"}),
        ("d", {"dataset_version": "9.10.0"}),
    ):
        write_result(tmp_path / "local" / name, make_result(records, "acme/small", **change), records)  # type: ignore[arg-type]
    board = board_of(tmp_path)
    assert [table_title(table, board.tables) for table in board.tables] == [
        "synthbias 9.10.0, type2, intrinsic-v1",
        "synthbias 9.1.0, type2, intrinsic-v1",
        "synthbias 9.0.0, type2, intrinsic-v1",
        "synthbias 9.0.0, type2, mcq2-v1",
    ]
    assert all(len(table.rows) == 1 for table in board.tables)


def test_a_slice_of_the_items_is_another_table_with_its_size_in_the_title(tmp_path: Path) -> None:
    for n_items in (100, 60):
        records = make_records(leaning(1.0, 0.5))[:n_items]
        write_result(tmp_path / "local" / str(n_items), make_result(records, "acme/small"), records)
    board = board_of(tmp_path)
    assert [table_title(table, board.tables) for table in board.tables] == [
        "synthbias 9.0.0, type2, intrinsic-v1, 100 items",
        "synthbias 9.0.0, type2, intrinsic-v1, 60 items",
    ]


@pytest.mark.slow
def test_of_two_results_of_one_model_the_accepted_one_is_shown(tmp_path: Path) -> None:
    write_model(tmp_path / "local", "acme/small", leaning(1.0, 0.5))
    write_model(tmp_path / "accepted", "acme/small", leaning(1.0, 0.5))
    board = board_of(tmp_path)
    assert [row.entry.origin for row in board.tables[0].rows] == ["accepted"]
    assert [(duplicate.entry.origin, duplicate.shown.origin) for duplicate in board.duplicates] == [
        ("local", "accepted")
    ]


def test_another_revision_is_another_row(tmp_path: Path) -> None:
    records = make_records(leaning(1.0, 0.5))
    for revision in ("a" * 40, "b" * 40):
        result = make_result(records, "acme/small", revision=revision)
        write_result(tmp_path / "local" / revision, result, records)
    board = board_of(tmp_path)
    assert len(board.tables[0].rows) == 2
    assert board.duplicates == ()
    # Both are first of one: a revision counts in no other's rank, and not in that of its own model.
    assert [row.rank for row in board.tables[0].rows] == [RankRange(1, 1, 1), RankRange(1, 1, 1)]
    known = leaning(2.0, 0.1)
    write_model(tmp_path / "few" / "local", "acme/whole", known)
    write_model(
        tmp_path / "few" / "local", "acme/shy", lambda *of_side: None if of_side[3] % 25 == 0 else known(*of_side)
    )
    chances = {row.entry.result.model.id: row.chance for row in board_of(tmp_path / "few").tables[0].rows}
    assert chances == {"acme/whole": 1.0, "acme/shy": 0.0}


def test_a_result_with_an_older_metric_is_scored_again_and_ranked(tmp_path: Path) -> None:
    write_model(tmp_path / "local", "acme/new", leaning(1.0, 0.5))
    records = make_records(leaning(2.0, 0.1))
    result = make_result(records, "acme/old")
    older = [
        replace(metric, version="0.9") if metric.name == "worst_group_accuracy" else metric for metric in result.metrics
    ]
    write_result(tmp_path / "local" / "old", replace(result, metrics=tuple(older)), records)
    rows = board_of(tmp_path).tables[0].rows
    ranks = {row.entry.result.model.id: row.rank for row in rows}
    assert ranks == dict.fromkeys(("acme/old", "acme/new"), RankRange(1, 2, 2))
    (old,) = (row for row in rows if row.entry.result.model.id == "acme/old")
    assert {(metric.name, metric.version) for metric in old.entry.earlier} == {("worst_group_accuracy", "0.9")}
    assert old.entry.primary is not None
    assert old.entry.primary.version == "1.0"


def test_a_metric_that_a_result_leaves_out_is_computed(tmp_path: Path) -> None:
    write_model(tmp_path / "local", "acme/other", leaning(1.0, 0.5))
    records = make_records(stereotyped(0.9))
    result = make_result(records, "acme/hides-it")
    without = tuple(metric for metric in result.metrics if metric.name != "accuracy")
    write_result(tmp_path / "local" / "hides", replace(result, metrics=without), records)
    (table,) = board_of(tmp_path).tables
    shown = {row.entry.result.model.id: row.entry.metric("accuracy") for row in table.rows}
    assert shown["acme/hides-it"] == next(one for one in result.metrics if one.name == "accuracy" and not one.group)


def test_a_benchmark_without_a_plug_in_has_no_table(tmp_path: Path) -> None:
    records = make_records(leaning(1.0, 0.5))
    result = make_result(records, "acme/small")
    signature = replace(result.signature, benchmark="winning")
    moved = replace(result, signature=signature, signature_sha256=signature.sha256())
    write_result(tmp_path / "local" / "a", moved, records)
    board = board_of(tmp_path)
    assert board.tables == ()
    assert [entry.match.reason for entry in board.apart] == [
        "no benchmark 'winning' is known here; have: gifi, image_labels, labelled_text, own_questions, superni, "
        "synthbias; if a "
        "plug-in defines it, install its package or name its folder in BIASBOARD_PLUGINS"
    ]


def test_the_order_of_results_changes_nothing(board: Board) -> None:
    entries: list[Entry] = [row.entry for table in board.tables for row in table.rows]
    assert assemble(entries[::-1]) == assemble(entries)


@pytest.mark.slow
def test_replayed_answers_are_shown_without_a_rank(tmp_path: Path) -> None:
    write_model(tmp_path, "acme/small", leaning(1.0, 0.5))
    write_model(tmp_path, "acme/echo", leaning(1.0, 0.5), endpoint="replay")
    loaded = load_known(Root(tmp_path, "local"))
    assert loaded.left_out == ()
    (table,) = assemble(loaded.entries).tables
    found = {row.entry.result.model.id: (row.rank is not None, row.unranked) for row in table.rows}
    assert found["acme/small"] == (True, None)
    assert found["acme/echo"][0] is False
    assert str(found["acme/echo"][1]).startswith("replayed: ")
