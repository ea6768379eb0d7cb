"""The corrections of label distributions: what moves them, what does not, and their effect in closed form."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evaluators.calibrator import Correction, calibrations
from evaluators.tasks.labels.classification_task import TASK
from evaluators.tasks.labels.label_answers import label_answers
from schemas.documents.record import Record
from schemas.files.record_columns import RecordColumns
from tests.evaluators.label_data import (
    drawn_answer,
    made_dataset,
    made_records,
    measured,
    planned,
    simple,
    values,
)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_dataset(tmp_path_factory.mktemp("tasks") / "tasks")


def test_looc_uses_the_examples_that_a_prompt_has_room_for_and_says_where_none_fits() -> None:
    """Four examples: a prompt with the first two learns (.9 + .3) / 2 of a, and one with all four (.9 + .2) / 2."""
    shares, targets = (0.9, 0.3, 0.9, 0.1), ("a", "b", "a", "b")
    records = [
        simple("pool", place, target, {"a": p, "b": 1 - p}, place=place, k=3)
        for place, (p, target) in enumerate(zip(shares, targets, strict=True))
    ]
    records += [simple("test", k, "a", {"a": 0.58, "b": 0.42}, k=k) for k in (0, 1, 2, 4)]
    (calibration,) = (one for one in calibrations() if one.name == "looc")
    correction = calibration.fit(label_answers(RecordColumns.of(records)))
    assert isinstance(correction, Correction)
    priors = [ratio[0] / 2 for ratio in correction.ratios.tolist()]
    assert priors[1:] == pytest.approx([0.9, 0.6, (0.9 + 0.3) / 2, (0.9 + 0.2) / 2], abs=1e-12)
    assert np.isnan(priors[0])
    found = measured(records)
    # The prompt without examples has no correction. Of the others, only .58 over the prior .55 stays above one half.
    assert (found["accuracy_looc"].n, found["accuracy_looc"].n_excluded) == (3, 1)
    assert found["accuracy_looc"].value == pytest.approx(1 / 3, abs=1e-12)
    assert found["accuracy"].value == 1.0
    # Where no example fits, there is no value.
    records = [simple("pool", place, label, {"a": 0.9, "b": 0.1}, place=place, k=1) for place, label in enumerate("ab")]
    records += [simple("test", number, "a", {"a": 0.58, "b": 0.42}, k=0) for number in range(3)]
    records += [simple("bias", number, "b", {"a": 0.58, "b": 0.42}, k=0) for number in range(3)]
    found = measured(records, is_suite=True)
    for name in ("accuracy_looc", "bias_score_looc", "bias_score_looc_softmax"):
        reason = "no example fits into the prompt of any item that is evaluated"
        assert (found[name].value, found[name].reason) == (None, reason)
    # One that fits is enough for a value.
    records.append(simple("test", 3, "a", {"a": 0.58, "b": 0.42}, k=1))
    assert measured(records)["accuracy_looc"].n == 1


def of_split(split: str, rows: Sequence[Sequence[float]], golds: str = "abc") -> list[Record]:
    return [
        simple(split, number, golds[number % len(golds)], dict(zip("abc", shares, strict=True)))
        for number, shares in enumerate(rows)
    ]


def test_a_task_without_an_answer_is_left_out_of_what_chance_gives_which_one_item_a_class_does_not_tell() -> None:
    read = of_split("bias", [[0.9, 0.05, 0.05], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6], [0.3, 0.6, 0.1]])
    unread = [replace(one, config="b", status="refused", reading=None, reason="declines") for one in read]
    alone, both = values(read), {name: one.value for name, one in measured(read, unread, is_suite=True).items()}
    of_none = values(unread)
    for name in ("bias_score", "bias_score_answers"):
        for measure in (name, f"{name}_floor"):
            assert alone[measure] is not None
            assert both[measure] == pytest.approx(alone[measure])
            assert of_none[measure] is None
    assert values(read[:3])["bias_score_floor"] is None, "each class has one item"


def test_judging_passes_over_items_without_reading_or_answer_and_records_of_tokens_have_no_number_of_examples(
    dataset: Path,
) -> None:
    (records,) = made_records(planned(dataset, "three", "release-4096b-k8-set1-v1"), drawn_answer(4, p_missing=0.3))
    for record, right in zip(records, TASK.are_right(records), strict=True):
        if record.reading is None or record.target is None:
            assert right is None
            continue
        shares = dict(zip(record.reading.outcomes, record.reading.probabilities, strict=True))
        top = [label for label, share in shares.items() if share >= max(shares.values()) - 1e-12]
        assert right is (None if len(top) > 1 and record.target in top else record.target in top)
    # Records may not depend on the tokenizer.
    (records,) = made_records(planned(dataset, "two", "release-2000t-k16-set0-v1"), drawn_answer(1))
    found = values(records)
    assert (found["n_shown"], found["cut_rate"]) == (None, None)


@pytest.mark.parametrize(
    ("shown", "told"), [("aabbc", "even"), ("aaabc", "uneven"), ("aab", "uneven"), ("bb", "one label")]
)
def test_the_prompt_with_the_most_examples_tells_how_even_their_labels_are(shown: str, told: str) -> None:
    records = of_split("test", [[0.5, 0.3, 0.2]] * 3)
    asked = [
        replace(one, groups={**one.groups, "shown_labels": json.dumps([*labels])})
        for one, labels in zip(records, ("", shown, "c"), strict=True)
    ]
    assert label_answers(RecordColumns.of(asked)).groups["example_balance"] == told
