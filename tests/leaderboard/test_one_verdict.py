"""Every file, page, card and line of the terminal says of two models what the table of a measure says of them."""

from __future__ import annotations

import io
import itertools
from typing import NamedTuple

import pyarrow.parquet as pq
import pytest

from leaderboard.pages.compare import model_key
from leaderboard.pages.markup import source_markdown
from leaderboard.pages.model_cards import card_markdown, short_lines
from leaderboard.pages.model_summary import summarise
from leaderboard.pages.profile import front_parts
from leaderboard.pages.summary_forms import summary_lines
from leaderboard.ranking.frames import table_name
from leaderboard.ranking.rank_ranges import Comparison
from leaderboard.ranking.rows import Table
from tests.worlds import MadeBoard

SAYS = {
    "first": ("better", "better"),
    "second": ("worse", "worse"),
    "tied": ("tied", "not separable"),
    "unknown": ("unknown", "no interval"),
}
"""What a summary, and a line of the terminal or of a card, say of an outcome."""
OF_USELESS = {
    "better": "nearer, but not shown to beat a useless predictor",
    "worse": "farther, but the other is not shown to beat a useless predictor",
}


class Pair(NamedTuple):
    table: Table
    metric: str
    pair: Comparison


@pytest.fixture(scope="module")
def made(models: MadeBoard) -> MadeBoard:
    """The board of one benchmark."""
    return MadeBoard(*(one for one in models.entries if one.result.signature.benchmark == "synthbias"))


@pytest.fixture(scope="module")
def pairs(made: MadeBoard) -> list[Pair]:
    tables = (one.table for one in made.view.tables)
    found = [Pair(table, metric, pair) for table in tables for metric, of in table.pairs.items() for pair in of]
    # All verdicts that a test below could miss, and a model that has no rank.
    assert {one.pair.outcome for one in found} >= {"first", "second", "tied"}
    assert any(not one.pair.is_ranked for one in found)
    assert any(one.pair.lead_at_worst < one.pair.lead < one.pair.lead_at_best for one in found)
    return found


def test_files_of_tables_of_the_board_and_of_the_comparison(made: MadeBoard, pairs: list[Pair]) -> None:
    identities = ("first_identity_sha256", "second_identity_sha256")
    of_board = pq.read_table(io.BytesIO(made.parquet["files/pairs.parquet"])).to_pylist()
    whole = {(row["table"], row["metric"], *(row[name] for name in identities)): row for row in of_board}
    assert len(whole) == len(pairs)
    lines = {
        (table_name(one.table), line["metric"], *(line[name] for name in identities)): line
        for one in made.view.tables
        for line in made.csv(one.comparisons.csv)
    }
    for table, metric, pair in pairs:
        key = table_name(table), metric, pair.first, pair.second
        row, line = whole[key], lines[key]
        assert row["outcome"] == line["outcome"] == pair.outcome
        assert row["lead"] == float(line["lead"]) == pair.lead
        assert row["both_ranked"] == (line["both_ranked"] == "true") == pair.is_ranked
        assert (row["lead_at_worst"], row["lead_at_best"]) == (pair.lead_at_worst, pair.lead_at_best)
    files = made.json("files/compare/")
    columns = [column for part in front_parts(made.board) for column in part.columns]
    assert [measure["label"] for measure in files["models.json"]["measures"]] == [one.headline.label for one in columns]
    n_found = 0
    for (place, column), (table, metric, pair) in itertools.product(enumerate(columns), pairs):
        if table is column.table and metric == column.headline.name:
            of_first = files[f"pairs/{model_key(pair.first)}.json"]
            (found,) = [one for one in of_first[model_key(pair.second)] if one[0] == place]
            assert found[-1] == pair.outcome
            assert found[1] == pytest.approx(pair.lead, abs=1e-6)
            n_found += 1
    assert n_found > 20


def test_summaries_lines_of_the_terminal_and_cards(made: MadeBoard, pairs: list[Pair]) -> None:
    (section,) = (one for one in made.view.sections if one.is_default)
    rows = {row.model.id: row for row in section.table.rows if not row.is_baseline}
    n_compared = 0
    for row, other in itertools.permutations(rows.values(), 2):
        found = summarise(made.board, row.model, against=other.model.id)
        (benchmark,) = found.benchmarks
        lines = list(summary_lines(found))
        cards = card_markdown(found).splitlines()
        for measure in benchmark.measures:
            same = {
                pair.seen_from(row.identity).outcome
                for table, metric, pair in pairs
                if metric == measure.name
                and {pair.first, pair.second} == {row.identity, other.identity}
                and (measure.config is None or table.signature.config == measure.config)
            }
            if measure.difference is None:
                assert same == set()
                continue
            (outcome,) = same
            word, said = SAYS[outcome]
            assert measure.difference.outcome == word
            (line,) = [one for one in lines if one.strip().startswith(measure.label)]
            (cells,) = [one for one in cards if one.startswith(f"| {source_markdown(measure.label)} |")]
            for one in (line, cells):
                assert said in one or OF_USELESS.get(word, said) in one
                assert not [other for _, other in SAYS.values() if other in one and other != said]
            n_compared += 1
        outcomes: list[str] = [one.difference.outcome for one in benchmark.measures if one.difference is not None]
        (short,) = short_lines(found)
        for word, said in SAYS.values():
            assert word == "unknown" or (f"{said} in {outcomes.count(word)}" in short) == (word in outcomes)
    assert n_compared > 50
