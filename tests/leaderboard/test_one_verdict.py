"""Every page, file, card and line of the terminal says of two models what the table of a measure says of them."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest

from leaderboard.model_facts import display_name
from leaderboard.pages.choice_keys import model_key
from leaderboard.pages.markup import source_markdown
from leaderboard.pages.model_cards import comparisons, short_lines
from leaderboard.pages.model_summary import summarise
from leaderboard.pages.profile import front_parts
from leaderboard.pages.rendering import View, generate, make_view, parquet_files
from leaderboard.pages.summary_forms import summary_lines
from leaderboard.ranking.boards import assemble
from leaderboard.ranking.frames import table_name
from leaderboard.ranking.rank_ranges import Comparison
from leaderboard.ranking.rows import Row, Table
from leaderboard.verify.entries import Root
from tests.leaderboard.made_keys import load_known
from tests.leaderboard.synthetic import Probability, leaning, stereotyped, uniform, write_model

WORDS = {"first": "better", "second": "worse", "tied": "tied", "unknown": "unknown"}
BLOCKS = ("profile", "leaders")


def refusing(answer: Probability, share: int) -> Probability:
    """Leave out every pair of which the number is a multiple of ``share``."""
    return lambda reference, other, gender, pair: None if pair % share == 0 else answer(reference, other, gender, pair)


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> View:
    root = tmp_path_factory.mktemp("verdicts")
    strong = {
        "even": leaning(3.0, 0.1),
        "biased": leaning(0.2, 0.1),
        "worse": leaning(1.0, 1.6),
        "silent": refusing(leaning(2.0, 0.4), 7),
        "other": leaning(2.5, 0.3),
    }
    for name, answers in strong.items():
        write_model(root, f"acme/{name}", answers)
        write_model(root, f"acme/{name}", answers, ambiguous=True)
    write_model(root, "acme/stereotyped", stereotyped(1.0))
    write_model(root, "baseline/uniform", uniform, endpoint="baseline")
    return make_view(assemble(load_known(Root(root, "local"), any_name=True).entries), (), ())


@pytest.fixture(scope="module")
def texts(view: View) -> dict[str, str]:
    return generate(view, {"index.md": "\n".join(f"<!-- generated: {name} -->" for name in BLOCKS)})


class Pair(NamedTuple):
    table: Table
    metric: str
    pair: Comparison


@pytest.fixture(scope="module")
def pairs(view: View) -> list[Pair]:
    tables = (one.table for one in view.tables)
    found = [Pair(table, metric, pair) for table in tables for metric, of in table.pairs.items() for pair in of]
    outcomes = [one.pair.outcome for one in found]
    # All verdicts that a test below could miss, and a model that has no rank.
    assert {*outcomes} >= {"first", "second", "tied"}
    assert any(not one.pair.is_ranked for one in found)
    assert any(one.pair.lead_at_worst < one.pair.lead < one.pair.lead_at_best for one in found)
    return found


def rows_of(table: Table) -> dict[str, Row]:
    return {row.identity: row for row in table.rows}


def test_files_of_tables_and_of_the_board(view: View, texts: dict[str, str], pairs: list[Pair], tmp_path: Path) -> None:
    (tmp_path / "pairs.parquet").write_bytes(parquet_files(view)["files/pairs.parquet"])
    whole = {
        (row["table"], row["metric"], row["first_identity_sha256"], row["second_identity_sha256"]): row
        for row in pq.read_table(tmp_path / "pairs.parquet").to_pylist()
    }
    assert len(whole) == len(pairs)
    lines: dict[tuple[str, str, str, str], dict[str, str]] = {}
    for one in view.tables:
        for line in csv.DictReader(io.StringIO(texts[one.comparisons.csv])):
            key = table_name(one.table), line["metric"], line["first_identity_sha256"], line["second_identity_sha256"]
            lines[key] = line
    for table, metric, pair in pairs:
        key = table_name(table), metric, pair.first, pair.second
        assert whole[key]["outcome"] == lines[key]["outcome"] == pair.outcome
        assert whole[key]["lead"] == float(lines[key]["lead"]) == pair.lead
        assert whole[key]["both_ranked"] == (lines[key]["both_ranked"] == "true") == pair.is_ranked
        ends = (pair.lead_at_worst, pair.lead_at_best)
        assert (whole[key]["lead_at_worst"], whole[key]["lead_at_best"]) == ends


def test_compare(view: View, texts: dict[str, str], pairs: list[Pair]) -> None:
    measures = json.loads(texts["files/compare/models.json"])["measures"]
    columns = [column for part in front_parts(view.board) for column in part.columns]
    assert [measure["label"] for measure in measures] == [column.headline.label for column in columns]
    n_found = 0
    for place, column in enumerate(columns):
        for table, metric, pair in pairs:
            if table is column.table and metric == column.headline.name:
                file: Any = json.loads(texts[f"files/compare/pairs/{model_key(pair.first)}.json"])
                (found,) = [one for one in file[model_key(pair.second)] if one[0] == place]
                assert found[-1] == pair.outcome
                assert found[1] == pytest.approx(pair.lead, abs=1e-6)
                n_found += 1
    assert n_found > 20


def tint_of(identity: str, pairs: list[Comparison]) -> str | None:
    """The tint that the pairs of a model give it by themselves."""
    seen = [one.seen_from(identity) for one in pairs if identity in (one.first, one.second)]
    if any(one.outcome == "second" for one in seen):
        return "worse"
    if any(one.high is not None and one.high < 0 <= one.lead_at_best for one in seen):
        return "open"
    return "best" if seen else None


def test_tints_of_the_front_page(view: View, texts: dict[str, str]) -> None:
    (part,) = front_parts(view.board)
    shown = {
        re.findall(r'data-bb-model="([^"]+)"', row)[0]: [
            next((name.removeprefix("bb-tint-") for name in classes.split() if name.startswith("bb-tint-")), None)
            for classes in re.findall(r'<td data-g="1" data-sort="[^"]*"(?: class="([^"]*)")?>', row)
        ]
        for row in texts["index.md"].split("<tr ")
        if "data-bb-model" in row
    }
    for place, column in enumerate(part.columns):
        rows = {row.identity: row for row in column.table.rows}
        ranked = [one for one in column.table.pairs[column.headline.name] if one.is_ranked]
        cells = {row.model.id: row for row in rows.values() if row.model.id in shown}
        expected = {model_id: tint_of(row.identity, ranked) for model_id, row in cells.items()}
        far = {
            model_id: abs((metric.value or 0.0) - (metric.ideal or 0.0))
            for model_id, row in cells.items()
            if (metric := row.metric(column.headline.name)) is not None
        }
        beaten = [far[model_id] for model_id, tint in expected.items() if tint == "worse"]
        for model_id, tint in expected.items():
            # The colours of a column agree with its order.
            if tint == "best" and any(far[model_id] > distance for distance in beaten):
                expected[model_id] = "open"
            if cells[model_id].identity in part.below:
                expected[model_id] = "useless"
        assert {model_id: shown[model_id][place] for model_id in expected} == expected
    assert {tint for tints in shown.values() for tint in tints} >= {"best", "worse", "useless"}


def test_sentences_above_tables_and_on_the_front_page(view: View, texts: dict[str, str]) -> None:
    for one in view.sections:
        ranked = [pair for pair in one.table.pairs.get(one.table.primary or "", ()) if pair.is_ranked]
        if not ranked:
            continue
        n_apart = sum(pair.outcome in ("first", "second") for pair in ranked)
        page = texts[one.page.replace(".html", ".md")]
        assert f"{n_apart} of {len(ranked)} pairs of ranked models can be told apart" in page
        if one.is_default:
            assert f"{n_apart} of {len(ranked)} pairs can be told apart" in texts["index.md"]
            losers = {pair.second if pair.outcome == "first" else pair.first for pair in ranked if pair.separable}
            top = [display_name(row.model.id) for row in one.table.ranked if row.identity not in losers]
            said = re.findall(r"(?:not beaten|alone at the top): ([^(]+) \(no other ranked", texts["index.md"])
            assert said == [", ".join(top)]


def test_sentences_on_pages_of_models(view: View, texts: dict[str, str]) -> None:
    table = next(one.table for one in view.sections if one.is_default)
    ranked = [pair for pair in table.pairs[table.primary or ""] if pair.is_ranked]
    n_said = 0
    for row in table.ranked:
        seen = [pair.seen_from(row.identity).outcome for pair in ranked if row.identity in (pair.first, pair.second)]
        page = next(one.page for one in view.models if one.id == row.model.id)
        words = " ".join(texts[page.replace(".html", ".md")].split())
        if set(seen) <= {"tied", "unknown"}:
            assert "It cannot be told apart from any of them." in words
            continue
        better, worse = seen.count("first") or "none", seen.count("second") or "none"
        assert f"It is separably better than {better} of them and separably worse than {worse}." in words
        n_said += 1
    assert n_said > 1


def test_summaries_lines_of_the_terminal_and_cards(view: View, pairs: list[Pair]) -> None:
    rows = {row.model.id: row for row in view.sections[0].table.rows if not row.is_baseline}
    n_compared = 0
    for (first, row), (second, other) in itertools.permutations(rows.items(), 2):
        found = summarise(view.board, row.model, against=second)
        (benchmark,) = found.benchmarks
        lines = "\n".join(summary_lines(found))
        sentences = "\n".join(comparisons(found))
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
            assert {measure.difference.outcome} == {WORDS[outcome] for outcome in same}
            outcome = measure.difference.outcome
            (line,) = [one for one in lines.splitlines() if one.strip().startswith(measure.label)]
            said = {"better": "better", "worse": "worse", "tied": "not separable", "unknown": "no interval"}[outcome]
            assert said in line
            assert not any(word in line for word in {"better", "worse", "not separable"} - {said})
            (sentence,) = [one for one in sentences.splitlines() if f"“{source_markdown(measure.label)}”" in one]
            begins = {
                "better": ("**Better than", "Nearer to the ideal than"),
                "worse": ("**Worse than", "Farther from the ideal than"),
                "tied": ("Cannot be told apart from",),
                "unknown": ("No interval of the difference",),
            }[outcome]
            assert sentence.startswith(begins)
            n_compared += 1
        outcomes = [one.difference.outcome for one in benchmark.measures if one.difference is not None]
        (short,) = short_lines(found)
        for outcome, word in (("better", "better"), ("worse", "worse"), ("tied", "not separable")):
            assert (f"{word} in {outcomes.count(outcome)}" in short) == (outcome in outcomes)
        assert first != second
    assert n_compared > 50
