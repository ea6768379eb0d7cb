"""Reports on one part of a suite: labels, how a model uses them, and floors beside measures."""

from __future__ import annotations

import numpy as np
import pytest

from biasboard.ground.columns import FloatArray
from evaluators.calibrator import LabelAnswers
from evaluators.runs.measure.measuring import metric_definitions
from evaluators.tasks.labels.label_reading import part_report
from evaluators.tasks.labels.label_tables import ConfigTable
from evaluators.tasks.labels.metric_variants import Variant

NONE = [np.nan] * 3
TEST = [("a", [0.6, 0.3, 0.1]), ("a", [0.4, 0.4, 0.2]), ("b", [0.1, 0.8, 0.1]), ("c", NONE)]
BIAS = [("a", [0.5, 0.25, 0.25]), ("a", [0.7, 0.15, 0.15]), ("b", [0.2, 0.6, 0.2])]


def answers(
    test: list[tuple[str, list[float]]], bias: list[tuple[str, list[float]]], offered: FloatArray | None = None
) -> LabelAnswers:
    rows = [*test, *bias]
    n = len(rows)
    return LabelAnswers(
        config="letters",
        labels=("a", "b", "c"),
        probabilities=np.array([one for _, one in rows]),
        offered=np.ones((n, 3), dtype=np.bool_) if offered is None else offered.astype(np.bool_),
        targets=np.array(["abc".index(target) for target, _ in rows]),
        splits=np.array(["test"] * len(test) + ["bias"] * len(bias)),
        content_free=np.array([""] * n),
        positions=np.full(n, -1),
        n_shown=np.zeros(n, dtype=np.int64),
        groups={"category": "Letters"},
        is_cut=np.zeros(n, dtype=np.bool_),
        is_trained=np.zeros(n, dtype=np.bool_),
    )


def test_labels_are_counted_and_a_tie_counts_in_parts() -> None:
    report = part_report(answers(TEST, BIAS))
    assert [(one.name, one.n_right) for one in report.labels] == [("a", 2), ("b", 1), ("c", 1)]
    assert [one.predicted_share for one in report.labels] == pytest.approx([1.5 / 3, 1.5 / 3, 0.0])
    assert report.groups == {"category": "Letters"}
    assert report.are_same
    assert (report.why_no_share, report.why_no_prior) == (None, None)


def test_half_the_distance_of_the_prior_from_equal_shares_is_the_bias_score() -> None:
    found = answers(TEST, BIAS)
    # Right labels count alike: (0.6, 0.2, 0.2) for a, (0.2, 0.6, 0.2) for b, and no item for c.
    prior = [one.prior for one in part_report(found).labels]
    assert prior == pytest.approx([0.4, 0.4, 0.2])
    distance = sum(abs(one - 1 / 3) for one in prior if one is not None) / 2
    assert ConfigTable.of(found).values([Variant("bias_score")])["bias_score"] == pytest.approx(distance)


def test_what_is_unknown_is_null_with_a_reason() -> None:
    silent = part_report(answers([("a", NONE)], [("b", NONE)]))
    assert [(one.n_right, one.predicted_share, one.prior) for one in silent.labels] == [
        (1, None, None),
        (0, None, None),
        (0, None, None),
    ]
    assert silent.why_no_share == "no item of split test has a reading"
    assert silent.why_no_prior == "no item of split bias has a reading"


def test_labels_that_each_item_brings_are_told_apart() -> None:
    offered = np.array([[1, 1, 0], [1, 0, 1]])
    own = answers([("a", [0.5, 0.5, 0.0]), ("c", [0.5, 0.0, 0.5])], [], offered)
    assert not part_report(own).are_same


def test_a_floor_is_a_metric_of_the_same_task() -> None:
    definitions = {one.name: one for one in metric_definitions("classification")}
    floors = {one.name: one.floor for one in definitions.values() if one.floor is not None}
    assert floors["bias_score"] == "bias_score_floor"
    assert floors["rsd_paper"] == "rsd_paper_floor"
    assert set(floors.values()) <= definitions.keys()
    # A calibration changes how much the distributions vary, so that chance gives another value.
    assert not [name for name in floors if "_bc" in name or "_cc" in name]
