"""Which results share a table, which one of several is shown, who is ranked by what, and why others are not."""

from __future__ import annotations

import html
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from leaderboard.pages.publishing import generate, make_view, parquet_files
from leaderboard.ranking.boards import Board, assemble, missing_bounds, table_title, why_all_shut
from leaderboard.ranking.rank_ranges import BY_INDEX, RankRange, why_unranked
from leaderboard.ranking.rows import Row, Table
from leaderboard.verify.entries import Entry, Match, Root
from schemas.documents.result import Counts, Signature, SplitCounts
from tests.leaderboard.made_keys import load_known
from tests.leaderboard.synthetic import (
    Gender,
    Probability,
    is_pro,
    leaning,
    make_records,
    make_result,
    present,
    stereotyped,
    uniform,
    write_model,
    write_result,
)
from tests.test_docs import complaint

LIMITED = "a limited run, of 40 of 100 items: ask all of them"
COIN = "accuracy 0.500 is no better than the baseline uniform (0.500)"


def board_of(root: Path) -> Board:
    loaded = load_known(Root(root / "accepted", "accepted"), Root(root / "local", "local"))
    assert loaded.left_out == ()
    return assemble(loaded.entries)


def rows_of(table: Table) -> dict[str, Row]:
    return {row.model.id: row for row in table.rows}


def refusing(n: int) -> Probability:
    """A model that refuses so many of ten pairs, and is right in all others."""
    return lambda reference, other, gender, pair: None if pair % 10 < n else 0.9


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Board:
    root = tmp_path_factory.mktemp("results")
    local = root / "local"
    for ambiguous in (False, True):
        write_model(local, "baseline/uniform", uniform, ambiguous=ambiguous, endpoint="baseline")
        write_model(local, "baseline/stereotype", stereotyped(1.0), ambiguous=ambiguous, endpoint="baseline")
        write_model(local, "acme/even", leaning(2.0, 0.1), ambiguous=ambiguous)
        write_model(local, "acme/leaning", leaning(2.0, 1.0), ambiguous=ambiguous)
    write_model(local, "acme/silent", refusing(1))
    write_model(local, "acme/mute", refusing(6))
    return board_of(root)


def test_missing_answers_widen_a_rank_and_few_answers_end_it(board: Board) -> None:
    rows = rows_of(board.tables[1])
    some, few = rows["acme/silent"], rows["acme/mute"]
    # All that it answers is right, like all answers of the others.
    assert (some.rank, some.rank_of_answers) == (RankRange(1, 3, 3), RankRange(1, 3, 3))
    bounds = present(some.bounds)
    assert (bounds.worst, bounds.best) == pytest.approx((0.9, 1.0))
    assert few.rank is None
    assert few.unranked == "40 of 100 items scored; a rank needs at least half"
    assert present(few.entry.primary).value is not None
    entry = board.tables[1].ranked[0].entry
    counts = Counts(items=1, scored=1, refused=0, unparsed=0, failed=0, truncated=0)
    signature = replace(entry.result.signature, parts=("a", "b", "c", "d"), splits=("test", "bias"))
    result = replace(entry.result, signature=signature)
    for n, why in ((2, None), (3, "part d has no items of split bias, which most parts have; a rank needs every part")):
        places = [*((part, "test") for part in "abcd"), *((part, "bias") for part in "abcd"[:n])]
        coverage = tuple(SplitCounts(part=part, split=split, counts=counts) for part, split in places)
        assert why_unranked(replace(entry, result=result, coverage=coverage)) == why


def test_configs_are_apart_baselines_have_no_rank_and_a_metric_without_a_value_a_reason(board: Board) -> None:
    assert [(table.signature.config, len(table.rows)) for table in board.tables] == [("type1", 4), ("type2", 6)]
    assert [(row.model.id, row.rank) for row in board.tables[1].rows] == [
        *((f"acme/{name}", RankRange(1, 3, 3)) for name in ("even", "leaning", "silent")),
        ("baseline/uniform", None),
        ("baseline/stereotype", None),
        ("acme/mute", None),
    ]
    assert board.tables[1].rows[3].unranked == "baselines are shown for comparison and never ranked"
    entries: list[Entry] = [row.entry for table in board.tables for row in table.rows]
    assert assemble(entries[::-1]) == assemble(entries)
    lacking, other = (table.undefined for table in board.tables)
    accuracy = present(board.tables[0].rows[0].entry.metric("accuracy"))
    assert lacking["accuracy"] == accuracy.reason != ""
    assert "accuracy" not in other


def test_items_without_right_answers_rank_nobody_and_are_sorted_by_the_lean(tmp_path: Path) -> None:
    # How probable the reference is; in the made items it is stereotyped for one of the two genders.
    for name, answers in (("little", leaning(2.0, 0.1)), ("much", stereotyped(0.9)), ("against", stereotyped(0.1))):
        write_model(tmp_path / "local", f"acme/{name}", answers, ambiguous=True)
    (table,) = board_of(tmp_path).tables
    assert (table.primary, table.sorted_by) == (None, "pro_rate")
    assert [row.model.id for row in table.rows] == ["acme/much", "acme/little", "acme/against"]
    assert {(row.rank, row.unranked, row.shut) for row in table.rows} == {
        (None, "the items have no right answer", None)
    }


@pytest.mark.slow
def test_what_was_asked_otherwise_is_another_table(tmp_path: Path) -> None:
    asked = [("9.0.0", "mcq2-v1", 100), *((version, "intrinsic-v1", 100) for version in ("9.1.0", "9.10.0", "9.0.0"))]
    for number, (version, prompt, n) in enumerate([*asked, ("9.0.0", "intrinsic-v1", 60)]):
        records = make_records(leaning(1.0, 0.5))[:n]
        result = make_result(records, "acme/small", dataset_version=version, prompt=prompt)
        write_result(tmp_path / "local" / str(number), result, records)
    board = board_of(tmp_path)
    assert [table_title(table, board.tables) for table in board.tables] == [
        "synthbias 9.10.0, type2, intrinsic-v1",
        "synthbias 9.1.0, type2, intrinsic-v1",
        "synthbias 9.0.0, type2, intrinsic-v1, 100 items",
        "synthbias 9.0.0, type2, intrinsic-v1, 60 items",
        "synthbias 9.0.0, type2, mcq2-v1",
    ]
    assert all(len(table.rows) == 1 for table in board.tables)


@pytest.mark.slow
def test_of_two_results_of_one_model_the_accepted_one_is_shown_and_another_revision_is_a_row(tmp_path: Path) -> None:
    records = make_records(leaning(1.0, 0.5))
    for place, revision in (("accepted/a", "a" * 40), ("local/a", "a" * 40), ("local/b", "b" * 40)):
        write_result(tmp_path / place, make_result(records, "acme/small", revision=revision), records)
    board = board_of(tmp_path)
    assert sorted(row.entry.origin for row in board.tables[0].rows) == ["accepted", "local"]
    assert [(one.entry.origin, one.shown.origin) for one in board.duplicates] == [("local", "accepted")]
    # Both are first of one: a revision counts in no other's rank, and not in that of its own model.
    assert [row.rank for row in board.tables[0].rows] == [RankRange(1, 1, 1), RankRange(1, 1, 1)]


def test_the_chance_to_be_first_takes_missing_answers_at_their_worst(tmp_path: Path) -> None:
    known = leaning(2.0, 0.1)
    write_model(tmp_path / "local", "acme/whole", known)
    write_model(tmp_path / "local", "acme/shy", lambda *of_side: None if of_side[3] % 25 == 0 else known(*of_side))
    chances = {row.model.id: row.chance for row in board_of(tmp_path).tables[0].rows}
    assert chances == {"acme/whole": 1.0, "acme/shy": 0.0}


def test_a_result_with_an_older_metric_is_scored_again_and_ranked(tmp_path: Path) -> None:
    write_model(tmp_path / "local", "acme/new", leaning(1.0, 0.5))
    records = make_records(leaning(2.0, 0.1))
    result = make_result(records, "acme/old")
    older = [replace(one, version="0.9") if one.name == "worst_group_accuracy" else one for one in result.metrics]
    write_result(tmp_path / "local" / "old", replace(result, metrics=tuple(older)), records)
    rows = rows_of(board_of(tmp_path).tables[0])
    assert {name: row.rank for name, row in rows.items()} == dict.fromkeys(("acme/old", "acme/new"), RankRange(1, 2, 2))
    entry = rows["acme/old"].entry
    assert {(metric.name, metric.version) for metric in entry.earlier} == {("worst_group_accuracy", "0.9")}
    assert present(entry.primary).version == "1.0"


def test_a_benchmark_without_a_plug_in_has_no_table(tmp_path: Path) -> None:
    records = make_records(leaning(1.0, 0.5))
    result = make_result(records, "acme/small")
    signature = replace(result.signature, benchmark="winning")
    moved = replace(result, signature=signature, signature_sha256=signature.sha256())
    write_result(tmp_path / "local" / "a", moved, records)
    board = board_of(tmp_path)
    assert board.tables == ()
    (apart,) = board.apart
    assert "no benchmark 'winning' is known here; have: gifi, " in (apart.match.reason or "")


def signed(**fields: Any) -> Callable[[Entry], Entry]:
    def change(entry: Entry) -> Entry:
        signature: Signature = replace(entry.result.signature, **fields)
        return replace(entry, result=replace(entry.result, signature=signature, signature_sha256=signature.sha256()))

    return change


def same(entry: Entry) -> Entry:
    return entry


def limited(entry: Entry) -> Entry:
    command = "python -m evaluators run --limit 40 --dataset d --backend hf"
    return replace(entry, match=Match("slice", LIMITED), result=replace(entry.result, command=command))


CASES: dict[str, tuple[str, Callable[[Entry], Entry], tuple[str, ...]]] = {
    "a rank": ("acme/good", same, ()),
    "a limited run": ("acme/good", limited, (LIMITED,)),
    "no more than a useless predictor": ("acme/coin", same, (COIN,)),
    "a limited run that shows no more": ("acme/coin", limited, (LIMITED,)),
    "no answers": (
        "acme/silent",
        same,
        ("0 of 100 items scored; a rank needs at least half", "accuracy has no value: no items to compute it from"),
    ),
    "no useless predictor to compare with": (
        "acme/good",
        lambda entry: replace(entry, standing=replace(present(entry.standing), leads=())),
        ("no baseline of the benchmark can answer such items, so accuracy has nothing to be compared with",),
    ),
    "a retired version": (
        "acme/good",
        signed(dataset_version="1.0.0"),
        ("synthbias 1.0.0 is retired: the length of a sentence alone predicts its referent in 0.749; use 4.0.0",),
    ),
    "a baseline": ("baseline/uniform", same, ()),
}


@pytest.fixture(scope="module")
def entries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Entry]:
    root = tmp_path_factory.mktemp("runs")
    write_model(root, "acme/good", leaning(2.0, 0.1))
    write_model(root, "acme/coin", uniform)
    write_model(root, "acme/silent", refusing(10))
    write_model(root, "baseline/uniform", uniform, endpoint="baseline")
    return {entry.result.model.id: entry for entry in load_known(Root(root, "local")).entries}


def page(*entries: Entry) -> str:
    return generate(make_view(assemble(entries), (), ()), {})["benchmarks/synthbias.md"]


@pytest.mark.parametrize("name", CASES)
def test_a_row_says_why_it_has_no_rank(name: str, entries: dict[str, Entry]) -> None:
    model, change, reasons = CASES[name]
    ((row,),) = (table.rows for table in assemble([change(entries[model])]).tables)
    assert row.reasons == reasons
    assert (row.rank is None) == (name != "a rank")


@pytest.mark.slow
def test_reasons_name_one_of_several_prompts_and_advice_repeats_the_conditions(entries: dict[str, Entry]) -> None:
    coin = entries["acme/coin"]
    config, other = coin.result.signature.config, signed(prompt="another-v1")(coin)
    assert why_all_shut([(coin, None), (other, None)]) is None
    assert why_all_shut([(coin, COIN)]) == f"{config}: {COIN}"
    of_two = f"{config}: {COIN} (with another-v1; 1 of 2 prompts fall short)"
    assert why_all_shut([(coin, None), (other, COIN)]) == of_two
    # That an index ranks is no reason of a row.
    ((row,),) = (table.rows for table in assemble([coin]).tables)
    assert [replace(row, unranked=BY_INDEX, shut=shut).reasons for shut in (None, COIN)] == [(), (COIN,)]
    command = "biasboard run --dataset out/datasets/synthbias --config type2 --prompt intrinsic-v1 "
    command += "--backend baseline --model all"
    text = html.unescape(page(entries["acme/good"]))
    assert f"With synthbias 9.0.0 in out/datasets, this does it: {command}" in text
    assert complaint(command) is None
    assert "this does it" not in page(entries["acme/good"], entries["baseline/uniform"])


CHOICES = ("worst_group_accuracy", "accuracy", "equalized_odds", "ucerf")


def skilled(right: float, *, anti: float, refuses: int = 0) -> Probability:
    """A model that is right in some of the pairs, fewer of the anti-stereotypical items, and refuses what is hard."""

    def probability(reference: str, other: str, gender: Gender, pair: int) -> float | None:
        share = right if is_pro(reference, gender) else anti
        if not is_pro(reference, gender) and pair % 10 < refuses:
            return None
        return 0.9 if (7 * pair + (gender == "feminine")) % 50 < 50 * share else 0.1

    return probability


@pytest.fixture(scope="module")
def choices(tmp_path_factory: pytest.TempPathFactory) -> Board:
    """Results that each metric by which readers may rank a table orders in its own way."""
    root = tmp_path_factory.mktemp("choices")
    write_model(root, "acme/biased", skilled(1.0, anti=0.7))
    write_model(root, "acme/even", skilled(0.8, anti=0.8))
    write_model(root, "acme/shy", skilled(1.0, anti=0.7, refuses=4))
    write_model(root, "acme/coin", lambda *of_side: 0.9 if of_side[3] % 2 else 0.1)
    write_model(root, "baseline/uniform", uniform, endpoint="baseline")
    write_model(root, "acme/even", leaning(1.0, 0.1), ambiguous=True)
    return assemble(load_known(Root(root, "local")).entries)


def by_choice(board: Board) -> dict[str, Table]:
    """The table by the metric that ranks it."""
    table = next(table for table in board.tables if table.signature.config == "type2")
    return {str(one.primary): one for one in (table, *table.others)}


def test_each_metric_that_ranks_has_an_order_of_its_own_and_ranks_no_model_that_knows_nothing(choices: Board) -> None:
    tables = by_choice(choices)
    assert tuple(tables) == CHOICES
    first = {name: next(row.model.id for row in table.rows if not row.is_baseline) for name, table in tables.items()}
    assert first == dict.fromkeys(CHOICES, "acme/even") | {"accuracy": "acme/biased"}
    # There is nothing to choose where nothing ranks.
    (unranked,) = (one for one in choices.tables if one.signature.config == "type1")
    assert unranked.others == ()
    for table in tables.values():
        coin = rows_of(table)["acme/coin"]
        assert (coin.rank, coin.is_below) == (None, True)
        assert table.rows[-1] is coin
    evenness = [coin.entry.metric(name) for name in ("equalized_odds", "ucerf")]
    assert [metric.value for metric in evenness if metric is not None] == [1.0, 1.0]


def test_refusing_what_is_hard_costs_by_every_choice(choices: Board) -> None:
    """Occupations are counted however few of their items were answered, so that they cannot say what is missing."""
    for name, table in by_choice(choices).items():
        rows = rows_of(table)
        shy = rows["acme/shy"]
        values = [rows[model].entry.metric(name) for model in ("acme/shy", "acme/biased")]
        assert present(shy.bounds).worst < min(metric.value or 0 for metric in values if metric is not None)
        assert str(shy.rank) == "1\N{EN DASH}3"
        assert rows["acme/even"].bounds is None
    # Four in ten of the harder half are refused, and two of ten occupations lost.
    shy = rows_of(by_choice(choices)["equalized_odds"])["acme/shy"]
    equalized = present(shy.entry.metric("equalized_odds"))
    assert (equalized.n, equalized.n_excluded) == (8, 2)
    bounds = present(shy.bounds)
    assert bounds.best - bounds.worst == pytest.approx(1 - 0.8 * 0.6)


def test_files_and_pages_hold_the_ranks_by_every_choice(choices: Board) -> None:
    view, tables = make_view(choices, (), ()), by_choice(choices)
    (section,) = (one for one in view.sections if one.table is tables[CHOICES[0]])
    texts = generate(view, {})
    stored = pq.read_table(io.BytesIO(parquet_files(view)[section.files.parquet]))
    assert stored.column_names == texts[section.files.csv].splitlines()[0].split(",")
    for name, table in tables.items():
        ending = "" if name == CHOICES[0] else f"_by_{name}"
        for line in stored.to_pylist():
            row = rows_of(table)[line["model"]]
            assert line["ranked_by"] == CHOICES[0]
            for how, rank in (("", row.rank), ("_of_answers", row.rank_of_answers)):
                ends = [line[f"rank_{end}{how}{ending}"] for end in ("best", "worst")]
                assert ends == ([None, None] if rank is None else [rank.best, rank.worst])
            assert line[f"unranked_reason{ending}"] == row.unranked
            assert line[f"ranked_by_worst{ending}"] == (None if row.bounds is None else row.bounds.worst)


def test_missing_answers_count_in_measures_of_units_that_hold_several(tmp_path: Path) -> None:
    write_model(tmp_path, "acme/good", leaning(2.0, 0.1))
    (entry,) = load_known(Root(tmp_path, "local")).entries
    gap, accuracy = (present(entry.metric(name)) for name in ("eo_gap", "accuracy"))
    assert missing_bounds(entry, gap) is None
    counts = replace(entry.result.counts, scored=80, refused=20)
    lacking = replace(entry, result=replace(entry.result, counts=counts))
    # Occupations have a value however many of their items lack one, so that none is excluded.
    assert (gap.unit, gap.n_excluded) == ("occupations", 0)
    assert present(missing_bounds(lacking, gap)).worst == pytest.approx(0.8 * present(gap.value) + 0.2)
    excluding = replace(accuracy, n=80, n_excluded=20)
    assert present(missing_bounds(lacking, excluding)).worst == pytest.approx(0.8 * present(accuracy.value))
