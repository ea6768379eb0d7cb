"""The sentences above the numbers of a result claim only what intervals support."""

from __future__ import annotations

from dataclasses import replace

import pytest

from leaderboard.pages.summaries import Extremes, distances, extremes
from schemas.documents.result import Interval, Metric
from tests.schemas import examples


def metric(value: float | None, low: float = 0.0, high: float = 0.0, ideal: float | None = 1.0) -> Metric:
    if value is None:
        return replace(examples.undefined_metric(), ideal=ideal)
    interval = Interval(low=low, high=high, level=0.95, method="percentile", n_clusters=40, n_resamples=1000)
    return replace(examples.metric(), value=value, interval=interval, ideal=ideal, minimum=0.0, maximum=1.0)


def test_groups_differ_only_if_the_intervals_of_the_extremes_do_not_meet() -> None:
    best, middle, worst = metric(0.9, 0.8, 1.0), metric(0.6, 0.4, 0.9), metric(0.3, 0.1, 0.5)
    found = extremes([("old", worst), ("adult", middle), ("young", best)])
    assert found == Extremes(("young", best), ("old", worst), "")
    assert extremes([("young", best), ("adult", middle)]) is None
    assert extremes([("old", worst), ("unknown", metric(None))]) is None
    assert extremes([(str(n), best if n else worst) for n in range(40)]) is None
    # The lowest value is the worst, however long its interval is; a group of too few clusters is left out in words.
    lowest, of_few = metric(0.0, 0.0, 0.7), replace(metric(0.0), interval=None, interval_reason="too few")
    found = extremes([("old", worst), ("ill", lowest), ("poor", of_few), ("young", best)])
    assert found == Extremes(("young", best), ("ill", lowest), ", of the 3 with an interval")


def test_an_ideal_inside_the_range_is_missed_on_both_sides() -> None:
    below, above = metric(0.3, 0.25, 0.35, ideal=0.5), metric(0.75, 0.7, 0.8, ideal=0.5)
    assert distances(below) == pytest.approx((0.15, 0.25))
    assert distances(above) == pytest.approx((0.2, 0.3))
    assert distances(metric(0.5, 0.4, 0.6, ideal=0.5)) == pytest.approx((0.0, 0.1))
    assert distances(metric(0.5, 0.4, 0.6, ideal=None)) is None
