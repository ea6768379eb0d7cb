"""The summary of a model says what the board says, to the digit."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from biasboard.ground import strict_json
from biasboard.ground.errors import ConfigError
from biasboard.ground.memory import Memory
from evaluators.benchmark import load_benchmark
from leaderboard.pages.model_summary import summarise
from leaderboard.pages.profile import best_useless_of
from leaderboard.pages.summary_forms import frame, markdown, summary_lines
from leaderboard.ranking.boards import Board, assemble
from leaderboard.ranking.profiles import Profile, profile_of
from leaderboard.verify.entries import Root
from schemas.documents.model_summary import ModelSummary
from schemas.documents.result import Model
from schemas.files import contract
from tests.leaderboard.gifi_results import write_gifi_model
from tests.leaderboard.made_keys import load_known
from tests.leaderboard.synthetic import leaning, stereotyped, uniform, write_model

BENCHMARK = "synthbias"


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Board:
    root = tmp_path_factory.mktemp("summaries")
    for name, answers in (("even", leaning(3.0, 0.1)), ("biased", leaning(0.2, 0.1)), ("worse", leaning(1.0, 1.6))):
        write_model(root, f"acme/{name}", answers)
    write_model(root, "acme/stereotyped", stereotyped(1.0))
    write_model(root, "baseline/uniform", uniform, endpoint="baseline")
    write_gifi_model(root, "acme/even", 0.5, n_templates=8)
    return assemble(load_known(Root(root, "local")).entries)


@pytest.fixture(scope="module")
def profile(board: Board) -> Profile:
    found = profile_of(board, BENCHMARK)
    assert found is not None
    return found


def model(board: Board, name: str) -> Model:
    models = (row.entry.result.model for table in board.tables for row in table.rows)
    return next(one for one in models if one.id == name)


def summary(board: Board, name: str, against: str | None = None) -> ModelSummary:
    return summarise(board, model(board, name), Memory(None), against=against)


@pytest.mark.slow
def test_every_number_is_the_boards(board: Board, profile: Profile) -> None:
    identity = model(board, "acme/even").identity_sha256
    (of_benchmark,) = [one for one in summary(board, "acme/even").benchmarks if one.benchmark == BENCHMARK]
    assert [measure.name for measure in of_benchmark.measures] == [
        column.headline.name for column in profile.columns if identity in column.cells
    ]
    for measure in of_benchmark.measures:
        (column,) = [one for one in profile.columns if one.headline.name == measure.name]
        metric = column.cells[identity].metric
        assert metric is not None
        assert (measure.value, measure.interval, measure.ideal) == (metric.value, metric.interval, metric.ideal)
        useless = best_useless_of(column, load_benchmark(BENCHMARK))
        assert (useless is None) == (measure.useless is None)
        if useless is not None and measure.useless is not None:
            assert (measure.useless.name, measure.useless.value) == (useless.name, useless.metric.value)
    rank = profile.rows[identity].rank
    assert rank is not None
    assert of_benchmark.rank is not None
    assert (of_benchmark.rank.best, of_benchmark.rank.worst, of_benchmark.rank.n_ranked) == tuple(rank)
    assert not list(of_benchmark.problems())


@pytest.mark.slow
def test_a_difference_is_that_of_both_values_and_turns_its_sign_with_the_models(board: Board) -> None:
    names = ("acme/even", "acme/worse")
    one, other = (
        {measure.name: measure for of in summary(board, first, second).benchmarks for measure in of.measures}
        for first, second in itertools.permutations(names)
    )
    shared = [name for name in one if one[name].difference is not None]
    assert len(shared) > 2
    outcomes = set()
    for name in shared:
        first, second = one[name], other[name]
        assert first.difference is not None
        assert second.difference is not None
        assert first.value is not None
        assert first.ideal is not None
        assert first.difference.value == second.value
        lead = abs((second.value or 0.0) - first.ideal) - abs(first.value - first.ideal)
        assert first.difference.lead == pytest.approx(lead, abs=1e-12)
        assert second.difference.lead == -first.difference.lead
        opposite = {"better": "worse", "worse": "better"}
        assert second.difference.outcome == opposite.get(first.difference.outcome, first.difference.outcome)
        if first.difference.low is not None and second.difference.high is not None:
            assert first.difference.low == pytest.approx(-second.difference.high)
        outcomes.add(first.difference.outcome)
    assert "better" in outcomes


@pytest.mark.slow
def test_models_that_were_not_asked_the_same_are_not_compared(board: Board) -> None:
    found = {one.benchmark: one for one in summary(board, "acme/even", "acme/worse").benchmarks}
    assert found[BENCHMARK].why_not_compared is None
    (other,) = [one for name, one in found.items() if name != BENCHMARK]
    assert other.why_not_compared == "acme/worse has no result on this benchmark"
    assert all(measure.difference is None for measure in other.measures)
    with pytest.raises(ConfigError, match="--against acme/none: no such model on the board; have: acme/biased, acme"):
        summary(board, "acme/even", "acme/none")


@pytest.mark.slow
def test_all_forms_hold_the_same_numbers(board: Board, tmp_path: Path) -> None:
    whole = summary(board, "acme/even", "acme/worse")
    lines, table, data = list(summary_lines(whole)), markdown(whole), frame(whole)
    measures = [measure for of in whole.benchmarks for measure in of.measures]
    assert len(data) == len(measures)
    assert len(lines) <= 25
    for measure, (_, row) in zip(measures, data.iterrows(), strict=True):
        assert row["value"] == measure.value or measure.value is None
        (line,) = [line for line in lines if line.strip().startswith(measure.label)]
        (cells,) = [line for line in table.splitlines() if line.startswith(f"| {measure.label} |")]
        shown = line.split(measure.label, 1)[1].split()[0]
        assert cells.split("|")[2].strip() == shown
        assert measure.value is not None
        assert float(shown.replace("\N{MINUS SIGN}", "-")) == pytest.approx(measure.value, abs=5.1e-4)
    strict_json.write(tmp_path / "summary.json", contract.dump(whole))
    assert contract.read(tmp_path / "summary.json", ModelSummary) == whole


@pytest.mark.slow
def test_a_missing_rank_has_its_reason(board: Board) -> None:
    (of_benchmark, *_) = summary(board, "acme/stereotyped").benchmarks
    assert of_benchmark.rank is None
    assert of_benchmark.why_unranked is not None
    assert "is not separably above the baseline" in of_benchmark.why_unranked
