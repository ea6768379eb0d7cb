"""Gini reweighting of label distributions: the items it is fitted on, and the corrections that a run stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from biasboard.ground.columns import FloatArray, IntArray
from biasboard.ground.errors import DataError
from evaluators.calibration.reweighting.gini_calibration import CALIBRATION
from evaluators.calibrator import Correction, LabelAnswers
from evaluators.metric import NO_INPUTS, MetricInputs
from evaluators.runs.measure.measuring import Measurement
from evaluators.statistics.class_accuracies import sen_welfare
from evaluators.statistics.option_scores import predicted_share
from evaluators.tasks.labels.label_answers import label_answers
from schemas.documents.record import Record
from schemas.documents.run_files import FittedCorrection
from schemas.files.record_columns import RecordColumns
from tests.evaluators.label_data import drawn_answer, made_dataset, made_records, measured, planned, simple

SHOWN = "release-4096b-k8-set1-v1"


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    dataset = made_dataset(tmp_path_factory.mktemp("tasks") / "tasks")
    (found,) = made_records(planned(dataset, "three", SHOWN), drawn_answer(11))
    return found


def answers_of(records: Sequence[Record], trained: Sequence[str] = ()) -> LabelAnswers:
    return label_answers(RecordColumns.of(records), {records[0].config: frozenset(trained)})


def weights(records: Sequence[Record], trained: Sequence[str] = ()) -> FloatArray:
    found = CALIBRATION.fit(answers_of(records, trained))
    assert isinstance(found, Correction)
    weights: FloatArray = 1 / found.ratios[0]
    return weights


def with_other_answers(records: Sequence[Record], ids: set[str]) -> list[Record]:
    """The same records, with reversed distributions for some items."""
    return [
        replace(one, reading=replace(one.reading, probabilities=one.reading.probabilities[::-1]))
        if one.item_id in ids and one.reading is not None
        else one
        for one in records
    ]


def ids_of(records: Sequence[Record], split: str, *, shown: bool = False) -> list[str]:
    return [one.item_id for one in records if one.split == split and ("shown_place" in one.groups) == shown]


@pytest.mark.slow
def test_it_is_fitted_on_what_the_model_has_not_seen_of_pool_and_bias() -> None:
    # A model that adds to label a in each distribution answers items of all splits.
    rng = np.random.default_rng(3)
    records = []
    for split, n in (("pool", 60), ("bias", 30), ("test", 40)):
        for number in range(n):
            target, p = ("a", rng.uniform(0.5, 1)) if number % 2 else ("b", rng.uniform(0.2, 0.8))
            place = number if split == "pool" and number < 8 else None
            records.append(simple(split, number, target, {"a": p, "b": 1 - p}, place=place))
    records += [simple("content_free", number, None, {"a": 0.7, "b": 0.3}, "placeholder") for number in range(3)]
    trained = ids_of(records, "pool")[:5]
    mask = CALIBRATION.fitted_items(answers_of(records, trained))
    fitted = {record.item_id for record, is_used in zip(records, mask, strict=True) if is_used}
    assert fitted == {*ids_of(records, "pool"), *ids_of(records, "bias")} - {*trained}
    assert len(fitted) == 60 - 8 - 5 + 30
    before = weights(records, trained)
    for ids in (ids_of(records, "test"), ids_of(records, "pool", shown=True), trained, ids_of(records, "content_free")):
        np.testing.assert_array_equal(weights(with_other_answers(records, {*ids}), trained), before)
    assert not np.array_equal(weights(with_other_answers(records, fitted), trained), before)


def test_a_label_that_is_preferred_gets_a_smaller_weight_and_the_test_profits() -> None:
    """The model adds to label a in each distribution: half of the b are called a until a weight undoes it."""
    made = []
    for split, n in (("pool", 60), ("bias", 30), ("test", 100)):
        for number in range(n):
            target, p = ("a", 0.95) if number % 2 else ("b", 0.55 if number % 4 else 0.2)
            made.append(simple(split, number, target, {"a": p, "b": 1 - p}))
    found = measured(made)
    assert (found["accuracy"].value, found["accuracy_gini"].value) == (0.75, 1.0)
    assert found["gini"].value == pytest.approx(1 / 6)
    assert found["gini_gini"].value == found["squared_cv_gini"].value == 0.0
    assert "bias_score_gini" not in found, "its items are among those that the weights were fitted on"


def stored(
    records: Sequence[Record], inputs: MetricInputs
) -> tuple[Mapping[str, float | None], Sequence[FittedCorrection]]:
    found = Measurement.of([RecordColumns.of(records)], "classification", inputs)
    return {one.name: one.value for one in found.metrics() if not one.group}, found.corrections


@pytest.mark.slow
def test_stored_weights_are_applied_and_not_fitted(records: list[Record]) -> None:
    fitted, (told,) = stored(records, NO_INPUTS)
    assert told.config == "three"
    assert told.n_items == int(CALIBRATION.fitted_items(answers_of(records)).sum())
    assert stored(records, MetricInputs(corrections=(told,), may_fit=False)) == (fitted, (told,))
    # Weights under which the first label is never predicted.
    other = replace(told, weights=(1e-9, *told.weights[1:]))
    changed, _ = stored(records, MetricInputs(corrections=(other,), may_fit=False))
    assert changed["smallest_class_accuracy_gini"] == 0.0
    assert {name for name in changed if changed[name] != fitted[name]} <= {n for n in changed if n.endswith("_gini")}


def test_stored_corrections_that_cannot_be_true_are_refused_and_without_any_nothing_is_fitted(
    records: list[Record],
) -> None:
    _, (told,) = stored(records, NO_INPUTS)
    refused: tuple[tuple[dict[str, Any], str], ...] = (
        ({"version": "0.9"}, "no correction gini 1.0 of config three is stored, though others are"),
        ({"n_items": 7}, "says that it is fitted on 7 items, and there are 32"),
        ({"labels": ("one", "other", "third")}, "gini of config three is for labels one, other, third, and the items "),
        ({"reason": "I say so", "labels": (), "weights": ()}, "'I say so', and weights can be fitted"),
    )
    for change, message in refused:
        with pytest.raises(DataError, match=message):
            stored(records, MetricInputs(corrections=(replace(told, **change),), may_fit=False))
    found = Measurement.of([RecordColumns.of(records)], "classification", MetricInputs(may_fit=False))
    (accuracy,) = (one for one in found.metrics() if one.name == "accuracy_gini" and not one.group)
    assert (accuracy.value, found.corrections) == (None, ())
    assert accuracy.reason == "no correction is stored beside the records; rescore the run"


@pytest.mark.slow
def test_a_gain_that_is_none_where_ties_are_shared_is_not_taken() -> None:
    """Half of the distributions are ties, which a fit gives to the first label and a metric shares."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        made = []
        for number in range(80):
            p = int(rng.integers(0, 5)) / 4
            made.append(simple("bias", number, "ab"[int(rng.integers(0, 2))], {"a": p, "b": 1 - p}))
        answers = answers_of(made)
        correction = CALIBRATION.fit(answers)
        assert isinstance(correction, Correction)
        before, after = (
            accuracies(shares, answers.targets) for shares in (answers.probabilities, correction.apply(answers))
        )
        assert np.mean(after) >= np.mean(before) - 1e-12
        assert sen_welfare(after) >= sen_welfare(before) - 1e-12


def accuracies(shares: FloatArray, targets: IntArray) -> list[float]:
    """The accuracy of each of two labels, with ties shared."""
    credits = predicted_share(shares)[np.arange(len(targets)), targets]
    return [float(credits[targets == label].mean()) for label in (0, 1)]


def test_with_one_label_beside_the_test_there_is_a_reason() -> None:
    made = [simple("pool", number, "a", {"a": 0.6, "b": 0.4}) for number in range(20)]
    made += [simple("test", number, "ab"[number % 2], {"a": 0.6, "b": 0.4}) for number in range(20)]
    found = measured(made)["accuracy_gini"]
    assert (found.value, found.reason) == (None, "the labelled items beside the test have 1 of 2 labels")
