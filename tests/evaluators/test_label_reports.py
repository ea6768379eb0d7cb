"""Reports on labels: how a model uses those of a part, and accuracies of classes before and after corrections."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from biasboard.ground.columns import BoolArray, FloatArray, IntArray
from evaluators.calibrator import LabelAnswers
from evaluators.statistics import class_accuracies
from evaluators.tasks.labels.label_reading import class_report, part_report
from evaluators.tasks.labels.label_tables import ConfigTable
from evaluators.tasks.labels.metric_variants import Variant

NONE = [np.nan] * 3
TEST = [("a", [0.6, 0.3, 0.1]), ("a", [0.4, 0.4, 0.2]), ("b", [0.1, 0.8, 0.1]), ("c", NONE)]
BIAS = [("a", [0.5, 0.25, 0.25]), ("a", [0.7, 0.15, 0.15]), ("b", [0.2, 0.6, 0.2])]


def answers(
    probabilities: FloatArray, targets: IntArray, splits: Sequence[str], offered: BoolArray | None = None
) -> LabelAnswers:
    n = len(probabilities)
    return LabelAnswers(
        config="letters",
        labels=("a", "b", "c"),
        probabilities=probabilities,
        offered=np.ones((n, 3), dtype=np.bool_) if offered is None else offered,
        targets=targets,
        splits=np.array(splits),
        content_free=np.array([""] * n),
        positions=np.full(n, -1),
        n_shown=np.zeros(n, dtype=np.int64),
        groups={"category": "Letters"},
        is_cut=np.zeros(n, dtype=np.bool_),
        is_trained=np.zeros(n, dtype=np.bool_),
    )


def of_rows(
    test: list[tuple[str, list[float]]], bias: list[tuple[str, list[float]]], offered: BoolArray | None = None
) -> LabelAnswers:
    rows = [*test, *bias]
    targets = np.array(["abc".index(target) for target, _ in rows])
    splits = ["test"] * len(test) + ["bias"] * len(bias)
    return answers(np.array([one for _, one in rows]), targets, splits, offered)


def test_labels_are_counted_and_half_the_distance_of_the_prior_from_equal_shares_is_the_bias_score() -> None:
    found = of_rows(TEST, BIAS)
    report = part_report(found)
    assert [(one.name, one.n_right) for one in report.labels] == [("a", 2), ("b", 1), ("c", 1)]
    # A tie counts in parts.
    assert [one.predicted_share for one in report.labels] == pytest.approx([1.5 / 3, 1.5 / 3, 0.0])
    assert (report.groups, report.are_same) == ({"category": "Letters"}, True)
    assert (report.why_no_share, report.why_no_prior) == (None, None)
    # Right labels count alike: (0.6, 0.2, 0.2) for a, (0.2, 0.6, 0.2) for b, and no item for c.
    assert [one.prior for one in report.labels] == pytest.approx([0.4, 0.4, 0.2])
    distance = (2 * (0.4 - 1 / 3) + (1 / 3 - 0.2)) / 2
    assert ConfigTable.of(found).values([Variant("bias_score")])["bias_score"] == pytest.approx(distance)


def test_what_is_unknown_is_null_with_a_reason() -> None:
    silent = part_report(of_rows([("a", NONE)], [("b", NONE)]))
    found = [(one.n_right, one.predicted_share, one.prior) for one in silent.labels]
    assert found == [(1, None, None), (0, None, None), (0, None, None)]
    assert silent.why_no_share == "no item of split test has a reading"
    assert silent.why_no_prior == "no item of split bias has a reading"


def test_labels_that_each_item_brings_are_told_apart_and_are_no_classes() -> None:
    offered = np.array([[1, 1, 0], [1, 0, 1]], dtype=np.bool_)
    own = of_rows([("a", [0.5, 0.5, 0.0]), ("c", [0.5, 0.0, 0.5])], [], offered)
    assert not part_report(own).are_same
    assert class_report(ConfigTable.of(own)) is None


def drawn() -> LabelAnswers:
    """200 random answers with skewed labels: of 4 items 1 is of bias, 1 of the pool and 2 of the test."""
    rng = np.random.default_rng(5)
    targets = rng.choice(3, size=200, p=np.array([0.7, 0.2, 0.1]))
    odds = rng.random((200, 3)) + 0.7 * np.eye(3)[targets] + [0.6, 0.0, 0.2]
    probabilities = odds / odds.sum(axis=1, keepdims=True)
    probabilities[:3] = np.nan
    return answers(probabilities, targets, ["test", "bias", "test", "pool"] * 50)


def test_accuracies_of_classes_under_each_correction_are_what_plain_counting_gives() -> None:
    found = drawn()
    table = ConfigTable.of(found)
    report = class_report(table)
    assert report is not None
    assert [column.label for column in report.columns] == ["Uncorrected", "BC", "BCL", "CC", "DC", "Gini", "LOOC"]
    names = {"Uncorrected": "", "BC": "bc", "BCL": "bcl", "Gini": "gini"}
    for column in report.columns:
        if column.label not in names:
            assert (column.accuracies, bool(column.reason)) == ((), True)
            continue
        right, total = [0] * 3, [0] * 3
        shares = table.probabilities[names[column.label], False]
        for target, split, row in zip(found.targets, found.splits, shares, strict=True):
            if split == "test" and not np.isnan(row[0]):
                total[target] += 1
                right[target] += int(row[target] == max(row))
        assert [one.n_items for one in column.accuracies] == total
        values = np.array([one.value for one in column.accuracies], dtype=np.float64)
        assert values == pytest.approx(np.array(right) / np.array(total))
        for value, low, high in (one[1:] for one in column.accuracies):
            assert value in (0, 1) or (low or 0) < (value or 0) < (high or 0)
        # The metrics that it names are the measures of these accuracies.
        variants = [Variant(name, names[column.label]) for name in ("gini", "cobias_paper", "accuracy")]
        expected = (class_accuracies.gini_index(values), class_accuracies.cobias(values), sum(right) / sum(total))
        of_metrics = table.values(variants)
        assert [*of_metrics.values()] == pytest.approx([float(value) for value in expected])
        assert set(of_metrics) < set(column.metrics)
    gap = class_report(ConfigTable.of(found._replace(targets=np.minimum(found.targets, 1))))
    assert gap is not None
    assert gap.columns[0].accuracies[2] == (0, None, None, None)
