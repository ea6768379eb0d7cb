"""A hundred labels: what is measured, what is not, and that readings of so many are checked together."""

from __future__ import annotations

import random

import pytest

from biasboard.ground.errors import DataError
from evaluators.metric import RecordTable, TableSource
from evaluators.runs.measure.measuring import metric_definitions
from evaluators.tasks.images.image_classification_task import TASK
from schemas.documents.record import Record
from tests.evaluators import label_oracle
from tests.evaluators.label_data import simple

K = 100
LABELS = [f"thing {number:03}" for number in range(K)]


def records(k: int) -> list[Record]:
    """Three images of each label to evaluate, two of each for bias and for the pool, and two without content."""
    rng, found = random.Random(5), []
    for split, n in (("test", 3), ("bias", 2), ("pool", 2), ("content_free", 1)):
        targets = [None, None] if split == "content_free" else LABELS[:k] * n
        for number, target in enumerate(targets):
            odds = {label: rng.expovariate(1.0) for label in LABELS[:k]}
            if target is not None and rng.random() < LABELS.index(target) / K:
                odds[target] += 5.0
            total = sum(odds.values())
            kind = "placeholder" if target is None else ""
            p = {label: value / total for label, value in odds.items()}
            found.append(simple(split, number, target, p, kind, k=0))
    return found


def values_of(table: RecordTable) -> dict[str, tuple[float | None, str | None]]:
    source = TableSource(table)
    found = {one.name: one.value_of(source, {}) for one in metric_definitions("image_classification")}
    return {name: (one.value, one.reason) for name, one in found.items()}


@pytest.mark.slow
def test_measures_of_classes_are_those_of_plain_loops_and_those_of_pairs_of_labels_are_undefined() -> None:
    made = records(K)
    found = values_of(TASK.table(made))
    pairs = [
        (str(one.target), dict(zip(one.reading.outcomes, one.reading.probabilities, strict=True)))
        for one in made
        if one.split == "test" and one.reading is not None
    ]
    expected = label_oracle.shown(label_oracle.class_measures(pairs) | label_oracle.fold_measures(pairs))
    compared = 0
    for name, (value, reason) in found.items():
        if name.startswith("bias_score"):
            assert (value, reason) == (None, "it compares each label with each other one, for at most 64 labels")
        elif name in expected:
            assert value == pytest.approx(expected[name], abs=1e-9), name
            compared += 1
    assert compared >= 11
    assert found["gini"][0] is not None
    assert 0.1 < found["gini"][0] < 0.9


@pytest.mark.slow
def test_up_to_64_labels_everything_is_measured() -> None:
    assert values_of(TASK.table(records(64)))["bias_score"][0] is not None
    assert values_of(TASK.table(records(65)))["bias_score"][0] is None


def test_more_labels_than_a_dataset_may_have_are_refused() -> None:
    names = tuple(f"label {number}" for number in range(129))
    many = simple("test", 0, names[0], dict.fromkeys(names, 1 / 129), k=0)
    with pytest.raises(DataError, match="its items offer 129 labels, and a task has at most 128"):
        TASK.table([many])
