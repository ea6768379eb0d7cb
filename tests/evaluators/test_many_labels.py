"""Many labels: what is measured, what is not, and that readings of so many are checked together."""

from __future__ import annotations

import random

import pytest

from biasboard.ground.errors import DataError
from evaluators.metric import RecordTable, TableSource
from evaluators.runs.measure.measuring import metric_definitions
from evaluators.tasks.images.image_classification_task import TASK
from schemas.documents.record import Record
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
def test_up_to_64_labels_all_is_measured_and_above_that_all_but_pairs_of_labels() -> None:
    some, more = (values_of(TASK.table(records(n))) for n in (64, 65))
    assert some["bias_score"][0] is not None
    assert {more[name] for name in more if name.startswith("bias_score")} == {
        (None, "it compares each label with each other one, for at most 64 labels")
    }
    assert 0.1 < (more["gini"][0] or 0) < 0.9


def test_more_labels_than_a_dataset_may_have_are_refused() -> None:
    names = tuple(f"label {number}" for number in range(129))
    many = simple("test", 0, names[0], dict.fromkeys(names, 1 / 129), k=0)
    with pytest.raises(DataError, match="its items offer 129 labels, and a task has at most 128"):
        TASK.table([many])
