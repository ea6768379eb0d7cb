"""Intervals: against scipy, and what clustering may and may not change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from evaluators.runs.measure.measuring import Measurement, compute_metrics
from evaluators.statistics.bootstrap import N_RESAMPLES, NORMAL, PERCENTILE, cluster_draws, interval_of, resample
from evaluators.statistics.record_tables import mean
from schemas.documents.record import Record
from schemas.documents.result import Interval
from schemas.files.record_columns import RecordColumns
from tests.evaluators.made_data import made_records, pairs_of_occupations


def noisy_records(seed: int, n: int = 300) -> list[Record]:
    rng = np.random.default_rng(seed)
    rows = []
    for male, female in pairs_of_occupations(n):
        rows += [(male, female, gender, float(rng.uniform(0.2, 1))) for gender in ("masculine", "feminine")]
    return made_records(rows)


def interval_in(records: list[Record], name: str) -> Interval:
    found = next(one for one in compute_metrics(records, "coreference") if one.name == name and not one.group)
    assert found.interval is not None
    return found.interval


@pytest.mark.slow
def test_interval_agrees_with_scipy_on_resampled_clusters() -> None:
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 9, size=200).astype(float)
    sums = np.column_stack([rng.binomial(sizes.astype(int), 0.7), sizes]).astype(float)

    def rate(index: np.ndarray, axis: int) -> np.ndarray:
        drawn = sums[index]
        totals = drawn.sum(axis=-2)
        value: np.ndarray = totals[..., 0] / totals[..., 1]
        return value

    theirs = stats.bootstrap(
        (np.arange(200),), rate, vectorized=True, method="percentile", n_resamples=20_000, rng=np.random.default_rng(1)
    ).confidence_interval
    value = float(mean(sums.sum(axis=0)))
    ours, reason = interval_of(value, resample(sums, mean), 200)
    assert reason is None
    assert ours is not None
    width = theirs.high - theirs.low
    assert ours.low == pytest.approx(theirs.low, abs=0.08 * width)
    assert ours.high == pytest.approx(theirs.high, abs=0.08 * width)


def test_every_resample_draws_as_many_clusters_as_there_are() -> None:
    draws = cluster_draws(17)
    assert draws.shape == (N_RESAMPLES, 17)
    assert set(draws.sum(axis=1)) == {17.0}


@pytest.mark.slow
def test_many_clusters_are_drawn_alike_though_a_few_resamples_at_a_time() -> None:
    sums = np.random.default_rng(7).random((8193, 2))
    at_once = cluster_draws(8193) @ sums
    found = resample(sums, lambda columns: columns[..., 0] / columns[..., 1])
    assert found == pytest.approx(at_once[:, 0] / at_once[:, 1], rel=1e-12)


@pytest.mark.slow
def test_clusters_change_the_interval_and_not_the_value() -> None:
    records = noisy_records(1)
    by_item = [replace(record, cluster=f"{record.item_id}|x") for record in records]
    # Duplicating every row within its cluster adds no information: clustered, the interval stays; by row, it shrinks.
    doubled = records + [
        replace(record, item_id=f"{record.item_id}b", pair_id=f"{record.pair_id}b") for record in records
    ]
    values = {
        one.name: one.value
        for one in compute_metrics(records, "coreference")
        if not one.group and one.name == "accuracy"
    }
    for some in (by_item, doubled):
        again = next(one for one in compute_metrics(some, "coreference") if one.name == "accuracy" and not one.group)
        assert again.value == pytest.approx(values["accuracy"], abs=1e-12)
    assert interval_in(doubled, "accuracy") == interval_in(records, "accuracy")


def test_the_same_records_give_the_same_interval_in_any_order() -> None:
    records = noisy_records(2)
    assert interval_in(records, "ucerf").low == pytest.approx(interval_in(records[::-1], "ucerf").low, abs=1e-12)


def test_differences_of_two_models_are_paired() -> None:
    records = noisy_records(4)
    shifted = []
    for record in records:
        assert record.reading is not None
        p = record.reading.probabilities[0]
        better = 1 - (1 - p) * 0.9
        shifted.append(replace(record, reading=replace(record.reading, probabilities=(better, 1 - better))))
    one, other = (
        Measurement.of([RecordColumns.of(some)], "coreference").resampled(["accuracy"])["accuracy"]
        for some in (records, shifted)
    )
    unpaired = np.random.default_rng(0).permutation(other)
    assert np.std(one - other) < 0.6 * np.std(one - unpaired)


def test_coverage_of_the_interval_is_near_its_level() -> None:
    hits = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        sizes = rng.integers(5, 15, size=60)
        # Items of a cluster share a rate, so that rows are far from independent.
        rates = rng.beta(6, 4, size=60)
        sums = np.column_stack([rng.binomial(sizes, rates), sizes]).astype(float)
        interval, _ = interval_of(float(mean(sums.sum(axis=0))), resample(sums, mean), 60)
        assert interval is not None
        hits += interval.low <= 0.6 <= interval.high
    assert 0.89 <= hits / 200 <= 0.985


def test_undefined_resamples_leave_no_interval() -> None:
    values = np.full(N_RESAMPLES, 0.5)
    values[: N_RESAMPLES // 4] = np.nan
    for method in (PERCENTILE, NORMAL):
        assert interval_of(0.5, values, 9, method=method) == (None, "undefined on 25% of the resamples")


@pytest.mark.slow
def test_the_interval_of_every_metric_of_a_noisy_model_holds_its_value() -> None:
    # Gender-blind noise: resampling inflates absolute differences, so that their percentiles lie beside the value.
    rng = np.random.default_rng(11)
    rows = []
    for male, female in pairs_of_occupations(800):
        for referent, other in ((male, female), (female, male)):
            p = [0.9 if rng.uniform() < 0.7 else 0.1 for _ in range(2)]
            rows += [(referent, other, "masculine", p[0]), (referent, other, "feminine", p[1])]
    metrics = [one for one in compute_metrics(made_records(rows), "coreference") if one.interval is not None]
    assert {"equalized_odds", "eo_gap", "ucerf_group", "ucerf", "accuracy"} <= {one.name for one in metrics}
    for one in metrics:
        assert one.value is not None
        assert one.interval is not None
        # Sums in another order differ in the last bits.
        low, high = one.interval.low - 1e-12, one.interval.high + 1e-12
        assert low <= one.value <= high, (one.name, one.group)
        assert one.maximum is not None
        assert one.minimum <= one.interval.low <= one.interval.high <= one.maximum


def test_the_normal_interval_is_the_value_and_its_standard_error() -> None:
    resampled = np.random.default_rng(5).normal(0.3, 0.02, size=N_RESAMPLES)
    interval, _ = interval_of(0.2, resampled, 9, method=NORMAL)
    assert interval is not None
    assert interval.method == NORMAL
    assert (interval.high + interval.low) / 2 == pytest.approx(0.2)
    assert (interval.high - interval.low) / 2 == pytest.approx(1.96 * resampled.std(), rel=1e-3)
