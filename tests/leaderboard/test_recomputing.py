"""Metrics of a result against the ones of its records."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evaluators.runs.measure.measuring import compute_metrics
from leaderboard.verify.verification import differences, earlier_metrics
from schemas.documents.result import Metric
from tests.leaderboard.synthetic import TASK, leaning, make_records


@pytest.fixture(scope="module")
def computed() -> tuple[Metric, ...]:
    return compute_metrics(make_records(leaning(1.0, 0.5)), TASK)


def changed(metrics: tuple[Metric, ...], name: str, **fields: object) -> list[Metric]:
    """The metrics, the one of all items of this name with other fields."""
    return [
        replace(metric, **fields) if metric.name == name and not metric.group else metric  # type: ignore[arg-type]
        for metric in metrics
    ]


def test_equal_metrics_do_not_differ(computed: tuple[Metric, ...]) -> None:
    assert list(differences(computed, computed)) == []
    assert earlier_metrics(computed, computed) == ()


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"value": 0.5}, "metric accuracy is 0.5, the records give"),
        ({"value": None, "reason": "hidden"}, "metric accuracy is None, the records give"),
        ({"n": 3}, "metric accuracy: n is 3, the records give 100"),
        ({"n_excluded": 7}, "metric accuracy: n_excluded is 7, the records give 0"),
        ({"ideal": 0.0}, "metric accuracy: ideal is 0.0, the records give 1.0"),
        ({"interval": None, "interval_reason": "hidden"}, "metric accuracy: interval is null, the records give ["),
    ],
)
def test_every_changed_field_is_named(computed: tuple[Metric, ...], fields: dict[str, object], said: str) -> None:
    found = list(differences(changed(computed, "accuracy", **fields), computed))
    assert len(found) == 1
    assert found[0].startswith(said)
    assert found[0].endswith("; rescore the run")


def test_a_shifted_interval_is_seen(computed: tuple[Metric, ...]) -> None:
    metric = next(metric for metric in computed if metric.name == "accuracy" and not metric.group)
    assert metric.interval is not None
    narrower = replace(metric.interval, low=metric.interval.low + 1e-6)
    assert len(list(differences(changed(computed, "accuracy", interval=narrower), computed))) == 1
    rounding = replace(metric.interval, low=metric.interval.low + 1e-12)
    assert list(differences(changed(computed, "accuracy", interval=rounding), computed)) == []


def test_a_slice_that_was_taken_out_is_missed(computed: tuple[Metric, ...]) -> None:
    without = [metric for metric in computed if metric.group != {"stereotype": "anti"}]
    assert list(differences(without, computed)) == [
        "metric accuracy (stereotype=anti) follows from the records but is not in the result; rescore the run"
    ]


def test_a_metric_that_nobody_computes_is_refused(computed: tuple[Metric, ...]) -> None:
    invented = replace(computed[0], name="goodness")
    assert list(differences([*computed, invented], computed)) == [
        "metric goodness cannot be computed from the records; rescore the run; if a plug-in defines it, install its "
        "package or name its folder in BIASBOARD_PLUGINS"
    ]


def test_another_version_stays_beside_the_computed_one(computed: tuple[Metric, ...]) -> None:
    older = [replace(metric, version="0.9", value=0.123) if metric.name == "ucerf" else metric for metric in computed]
    assert list(differences(older, computed)) == []
    kept = earlier_metrics(older, computed)
    assert {(metric.name, metric.version, metric.value) for metric in kept} == {("ucerf", "0.9", 0.123)}
    assert len(kept) == sum(metric.name == "ucerf" for metric in computed)


def test_a_metric_that_the_result_lacks_is_no_difference(computed: tuple[Metric, ...]) -> None:
    without = [metric for metric in computed if metric.name != "ucerf_macro"]
    assert list(differences(without, computed)) == []
    assert earlier_metrics(without, computed) == ()
