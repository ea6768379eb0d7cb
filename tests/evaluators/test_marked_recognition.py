"""Recognition of people with a demographic marker: the embedded sentences, and the gap against plain loops."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from builders.gifi.embedded import marked_items
from evaluators.runs.measure.measuring import compute_metrics
from evaluators.tasks.pronouns.marked_recognition_task import TASK
from schemas.documents.result import Metric
from schemas.items.marked_text import MarkedTextItem
from schemas.lexicon import pronoun_families
from tests.evaluators.pronoun_records import FAMILIES, recorded

ITEMS = marked_items()


def measured(is_right: Callable[[MarkedTextItem], bool]) -> Mapping[tuple[str, ...], Metric]:
    """The metrics by name and slice, of a model that is right about some items and says *it* of the others."""

    def answer(item: MarkedTextItem) -> list[str]:
        return [f"{pronoun_families()[item.family].forms['reflexive'] if is_right(item) else 'it'} was seen."]

    metrics = compute_metrics(recorded(TASK, ITEMS, answer, TASK.prompts["sampled-v1"]), TASK.name)
    return {(metric.name, *(f"{key}={value}" for key, value in metric.group.items())): metric for metric in metrics}


def test_each_sentence_stands_with_each_marker_and_family_and_reads_as_english() -> None:
    markers = Counter((item.axis, item.marker) for item in ITEMS)
    assert len(markers) == 14
    assert set(markers.values()) == {12 * 11}
    assert {axis for axis, _ in markers} == {None, "age", "disability", "nationality", "race", "religion"}
    # Without its marker, a sentence is the unmarked one.
    assert len({(item.family, item.text.replace(f"{item.marker} ", "", 1)) for item in ITEMS}) == 12 * 11
    for item in ITEMS:
        assert list(item.problems()) == []
        assert item.text.startswith(f"My {item.marker} " if item.marker else "My ")
        assert not re.search(r"[\[\]{}|]|  ", item.text)
    (broken,) = replace(ITEMS[0], axis="age").problems()
    assert broken.startswith("axis: is age and marker is None")


def test_a_model_that_forgets_one_marker_by_hand() -> None:
    # Right of everybody but deaf people, of whom it keeps he and she only: 2 of 11.
    metrics = measured(lambda item: item.marker != "deaf" or item.family in ("he", "she"))
    assert metrics["unmarked_accuracy",].value == 1
    assert metrics["marker_gap", "marker=deaf"].value == pytest.approx(-9 / 11)
    assert metrics["marker_gap", "axis=disability"].value == pytest.approx(-9 / 22)
    assert metrics["marker_gap", "marker=blind"].value == 0
    assert metrics["marker_gap",].value == pytest.approx(-9 / 11 / 13)
    assert metrics["marker_gap", "family_class=neo", "axis=disability"].value == pytest.approx(-1 / 2)
    assert metrics["recognition_accuracy", "family=xe", "marker=deaf"].value == 0
    assert metrics["recognition_accuracy", "family=he", "marker=deaf"].value == 1


def test_gaps_are_those_of_plain_loops() -> None:
    def drawn(item: MarkedTextItem) -> bool:
        return hashlib.sha256(item.item_id.encode()).digest()[0] < (90 if item.axis == "age" else 150)

    metrics = measured(drawn)

    def accuracy(marker: str | None, *families: str) -> float:
        right = [drawn(item) for item in ITEMS if item.marker == marker and item.family in families]
        return sum(right) / len(right)

    assert metrics["unmarked_accuracy",].value == pytest.approx(accuracy(None, *FAMILIES))
    for marker in {item.marker for item in ITEMS if item.marker}:
        gap = accuracy(marker, *FAMILIES) - accuracy(None, *FAMILIES)
        assert metrics["marker_gap", f"marker={marker}"].value == pytest.approx(gap)
        of_xe = metrics["marker_gap", "family=xe", f"marker={marker}"].value
        assert of_xe == pytest.approx(accuracy(marker, "xe") - accuracy(None, "xe"))
    age = metrics["marker_gap", "axis=age"]
    assert age.interval is not None
    assert age.interval.high < 0
    assert metrics["marker_gap",].n == len(ITEMS)
