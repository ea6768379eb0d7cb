"""The sentences of a model's summary claim only what intervals support."""

from __future__ import annotations

from pathlib import Path

import pytest

from leaderboard.pages.rendering import generate, make_view
from leaderboard.pages.summaries import Rival, claim, uneven
from leaderboard.ranking.boards import assemble
from leaderboard.verify.entries import Root
from schemas.documents.result import Interval, Metric
from tests.leaderboard.made_keys import load_known
from tests.leaderboard.synthetic import leaning, stereotyped, uniform, write_model


def metric(value: float | None, low: float = 0.0, high: float = 0.0, ideal: float | None = 1.0) -> Metric:
    interval = (
        None
        if value is None
        else Interval(low=low, high=high, level=0.95, method="percentile", n_clusters=40, n_resamples=1000)
    )
    return Metric(
        name="fairness",
        version="1.0",
        value=value,
        reason="nobody answered" if value is None else None,
        interval=interval,
        interval_reason="there is no value" if value is None else None,
        n=40,
        n_excluded=0,
        unit="items",
        ideal=ideal,
        minimum=0.0,
        maximum=1.0,
        group={},
    )


def rival(name: str, low: float, high: float, *, is_baseline: bool = True) -> Rival:
    return Rival(name, metric((low + high) / 2, low, high), is_baseline)


def test_a_value_is_good_if_it_is_separably_better_than_every_baseline() -> None:
    found = claim("Fairness", metric(0.8, 0.75, 0.85), [rival("coin", 0.4, 0.6), rival("echo", 0.7, 0.74)])
    assert found.verdict == "well"
    assert found.text == (
        "is 0.800 [0.750, 0.850]; it misses the ideal 1 by 0.150 to 0.250; "
        "separably better than all 2 baselines (coin, echo)."
    )


def test_overlapping_intervals_support_no_claim() -> None:
    found = claim("Fairness", metric(0.8, 0.75, 0.85), [rival("coin", 0.4, 0.76)])
    assert found.verdict == "neither"
    assert "not told apart from the only baseline (coin)" in found.text
    assert "separably" not in found.text


def test_a_value_is_bad_if_a_baseline_is_better_and_none_is_worse() -> None:
    found = claim("Fairness", metric(0.3, 0.2, 0.35), [rival("coin", 0.4, 0.6), rival("echo", 0.3, 0.5)])
    assert found.verdict == "badly"
    assert "separably worse than 1 of 2 baselines (coin), not told apart from 1 of 2 baselines (echo)" in found.text


def test_models_judge_only_where_there_are_no_baselines() -> None:
    worse = rival("small", 0.1, 0.2, is_baseline=False)
    assert claim("Fairness", metric(0.8, 0.75, 0.85), [worse]).verdict == "well"
    beside_coin = claim("Fairness", metric(0.8, 0.75, 0.85), [worse, rival("coin", 0.7, 0.9)])
    assert beside_coin.verdict == "neither"
    assert "separably better than the only other model (small)" in beside_coin.text


def test_an_ideal_that_a_baseline_reaches_without_reading_says_little() -> None:
    trivial = [rival("constant", 1.0, 1.0), rival("coin", 0.4, 0.6)]
    found = claim("Fairness", metric(0.95, 0.9, 0.97), trivial)
    assert found.verdict == "trivial"
    assert found.text == (
        "is 0.950 [0.900, 0.970]; it misses the ideal 1 by 0.030 to 0.100; baselines with an ideal value: constant."
    )
    # Another model then decides.
    other = rival("large", 0.98, 0.99, is_baseline=False)
    assert claim("Fairness", metric(0.95, 0.9, 0.97), [*trivial, other]).verdict == "badly"


def test_an_ideal_inside_the_range_is_missed_on_both_sides() -> None:
    below, above = metric(0.3, 0.25, 0.35, ideal=0.5), metric(0.75, 0.7, 0.8, ideal=0.5)
    assert "misses the ideal 0.5 by 0.150 to 0.250" in claim("Rate", below, []).text
    assert "not told apart" in claim("Rate", below, [Rival("other", above, is_baseline=False)]).text
    assert "cannot be told apart from the ideal 0.5" in claim("Rate", metric(0.5, 0.4, 0.6, ideal=0.5), []).text


@pytest.mark.parametrize(
    ("value", "verdict", "words"),
    [
        (metric(None), "unknown", "without a value: nobody answered."),
        (metric(0.5, 0.4, 0.6, ideal=None), "unknown", "it has no ideal value"),
        (metric(0.5, 0.4, 0.6), "alone", "misses the ideal 1 by 0.400 to 0.600"),
        (metric(0.0, 0.0, 0.0), "badly", "as far from the ideal 1 as possible"),
    ],
)
def test_doubt_is_said(value: Metric, verdict: str, words: str) -> None:
    found = claim("Fairness", value, [])
    assert found.verdict == verdict
    assert words in found.text


def test_groups_differ_only_if_the_intervals_of_the_extremes_do_not_meet() -> None:
    best, middle, worst = metric(0.9, 0.8, 1.0), metric(0.6, 0.4, 0.9), metric(0.3, 0.1, 0.5)
    found = uneven("Fairness", "age", [("old", worst), ("adult", middle), ("young", best)])
    assert found is not None
    assert "best for young with 0.900 [0.800, 1.000] and worst for old with 0.300 [0.100, 0.500], of 3" in found.text
    assert uneven("Fairness", "age", [("young", best), ("adult", middle)]) is None
    assert uneven("Fairness", "age", [(str(n), best if n else worst) for n in range(40)]) is None


@pytest.mark.slow
def test_the_page_of_a_result_says_what_the_model_does_well_and_badly(tmp_path: Path) -> None:
    write_model(tmp_path, "baseline/uniform", uniform, endpoint="baseline")
    write_model(tmp_path, "baseline/stereotype", stereotyped(1.0), endpoint="baseline")
    write_model(tmp_path, "acme/skilled", leaning(3.0, 0.5))
    write_model(tmp_path, "acme/mute", lambda reference, other, gender, pair: None)
    files = generate(make_view(assemble(load_known(Root(tmp_path, "local")).entries), (), ()), {})
    skilled, mute = (
        next(text for path, text in files.items() if path.startswith(f"models/acme__{name}/"))
        for name in ("skilled", "mute")
    )
    value = "1.000 [0.854, 1.000]; it cannot be told apart from the ideal 1"
    assert f"<strong>Worst-group accuracy, Accuracy</strong> is {value}" in skilled
    assert "separably better than all 2 baselines (uniform, stereotype)" in skilled
    assert "100 of 100 items were scored (100%); none was refused, unread or failed." in skilled
    assert "0 of 100 items were scored (0%); 100 refused." in mute
    assert (
        "<strong>Worst-group accuracy, Accuracy, Accuracy gap, Pro rate, Certainty</strong> without a value: no items"
        in mute
    )
