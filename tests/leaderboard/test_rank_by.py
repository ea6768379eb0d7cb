"""Readers may rank a table by another metric: the same rules give the ranks, and pages and files show them."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from evaluators.benchmark import load_benchmark
from leaderboard.pages.rendering import generate, make_view, parquet_files
from leaderboard.ranking import boards
from leaderboard.ranking.boards import Board, assemble
from leaderboard.ranking.rows import Table
from leaderboard.verify.entries import Root
from tests.leaderboard.made_keys import load_known
from tests.leaderboard.synthetic import Gender, Probability, is_pro, leaning, uniform, write_model

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
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("results")
    write_model(root, "acme/biased", skilled(1.0, anti=0.7))
    write_model(root, "acme/even", skilled(0.8, anti=0.8))
    write_model(root, "acme/shy", skilled(1.0, anti=0.7, refuses=4))
    write_model(root, "acme/coin", lambda *of_side: 0.9 if of_side[3] % 2 else 0.1)
    write_model(root, "baseline/uniform", uniform, endpoint="baseline")
    write_model(root, "acme/even", leaning(1.0, 0.1), ambiguous=True)
    return root


@pytest.fixture(scope="module")
def board(root: Path) -> Board:
    return assemble(load_known(Root(root, "local")).entries)


def table_of(board: Board) -> Table:
    return next(table for table in board.tables if table.signature.config == "type2")


def ranks(table: Table) -> dict[str, str]:
    return {row.entry.result.model.id: str(row.rank) for row in table.rows}


def test_the_benchmark_says_which_metrics_rank_and_each_has_an_order_of_its_own(board: Board) -> None:
    table = table_of(board)
    tables = {str(one.primary): [*ranks(one)] for one in (table, *table.others)}
    assert tuple(tables) == CHOICES
    first = {name: next(model for model in order if model.startswith("acme/")) for name, order in tables.items()}
    assert first == dict.fromkeys(CHOICES, "acme/even") | {"accuracy": "acme/biased"}
    # There is nothing to choose where nothing ranks.
    (unranked,) = (one for one in board.tables if one.signature.config == "type1")
    assert unranked.others == ()


@pytest.mark.parametrize("metric", ["accuracy", "ucerf"])
def test_a_choice_ranks_as_the_headline_would(root: Path, metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = load_known(Root(root, "local")).entries
    chosen = next(other for other in table_of(assemble(entries)).others if other.primary == metric)
    changed = replace(load_benchmark("synthbias"), primary_metric=metric, other_rankings=())
    monkeypatch.setattr(boards, "load_benchmark", lambda name: changed)
    headline = table_of(assemble(entries))
    assert headline.others == ()
    assert [(row.rank, row.rank_of_answers, row.bounds, row.chance) for row in headline.rows] == [
        (row.rank, row.rank_of_answers, row.bounds, row.chance) for row in chosen.rows
    ]
    assert (headline.comparisons, headline.detectable) == (chosen.comparisons, chosen.detectable)


def test_a_perfect_value_of_evenness_ranks_no_model_that_knows_nothing(board: Board) -> None:
    table = table_of(board)
    for one in (table, *table.others):
        (coin,) = (row for row in one.rows if row.entry.result.model.id == "acme/coin")
        assert (coin.rank, coin.is_below) == (None, True)
        assert one.rows[-1] is coin
    evenness = [coin.entry.metric(name) for name in ("equalized_odds", "ucerf")]
    assert [metric.value for metric in evenness if metric is not None] == [1.0, 1.0]


def test_refusing_what_is_hard_costs_by_every_choice(board: Board) -> None:
    """Occupations are counted however few of their items were answered, so that they cannot say what is missing."""
    table = table_of(board)
    for one in (table, *table.others):
        rows = {row.entry.result.model.id: row for row in one.rows}
        shy = rows["acme/shy"]
        assert shy.bounds is not None
        values = [row.entry.metric(str(one.primary)) for row in (shy, rows["acme/biased"])]
        assert shy.bounds.worst < min(metric.value or 0 for metric in values if metric is not None)
        assert str(shy.rank) == "1\N{EN DASH}3"
        assert rows["acme/even"].bounds is None
    # Four in ten of the harder half are refused, and two of ten occupations lost.
    equalized = shy.entry.metric("equalized_odds")
    (bounds,) = (row.bounds for row in table.others[1].rows if row.entry is shy.entry)
    assert equalized is not None
    assert (equalized.n, equalized.n_excluded) == (8, 2)
    assert bounds is not None
    assert bounds.best - bounds.worst == pytest.approx(1 - 0.8 * 0.6)


def test_files_hold_the_ranks_by_every_choice(board: Board) -> None:
    view = make_view(board, (), ())
    table = table_of(board)
    (section,) = (one for one in view.sections if one.table is table)
    texts = generate(view, {})
    stored = pq.read_table(io.BytesIO(parquet_files(view)[section.files.parquet]))
    rows = stored.to_pylist()
    assert stored.column_names == texts[section.files.csv].splitlines()[0].split(",")
    assert {row["ranked_by"] for row in rows} == {"worst_group_accuracy"}
    for one in (table, *table.others):
        ending = "" if one is table else f"_by_{one.primary}"
        by_name = {row.entry.result.model.id: row for row in one.rows}
        for line in rows:
            row = by_name[line["model"]]
            of_answers = row.rank_of_answers
            assert [line[f"rank_{end}{ending}"] for end in ("best", "worst")] == (
                [None, None] if row.rank is None else [row.rank.best, row.rank.worst]
            )
            assert [line[f"rank_{end}_of_answers{ending}"] for end in ("best", "worst")] == (
                [None, None] if of_answers is None else [of_answers.best, of_answers.worst]
            )
            assert line[f"unranked_reason{ending}"] == row.unranked
            assert line[f"ranked_by_worst{ending}"] == (None if row.bounds is None else row.bounds.worst)


def test_a_page_shows_the_headline_and_hides_the_other_choices(board: Board) -> None:
    page = generate(make_view(board, (), ()), {})["benchmarks/synthbias.md"]
    assert page.count("data-bb-rank-by") == 1
    parts = re.findall('data-bb-by="([a-z_]+)"( hidden)?', page)
    assert {name for name, hidden in parts if not hidden} == {"worst_group_accuracy"}
    assert {name for name, hidden in parts if hidden} == {*CHOICES} - {"worst_group_accuracy"}
    for name in CHOICES:
        # The sentences, the caption and the rank of each of five rows.
        assert sum(part == name for part, _ in parts) == 7
