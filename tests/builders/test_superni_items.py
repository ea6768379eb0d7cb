"""Labels, splits and flags of one task, on tasks that the tests make themselves."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from builders.superni.content import Instance, SourceRow, TaskContent, sort_rows
from builders.superni.items import (
    FEW_TEST,
    SPLITS,
    labels_of,
    n_test_of,
    offered,
    split_items,
    task_flags,
    unnamed_labels,
)
from evaluators.tasks.labels.classification_task import TASK
from schemas.files import contract
from schemas.items.label import LabelItem
from tests.builders.superni_files import text_of


def task(
    outputs: Sequence[tuple[str, ...]], *, name: str = "task001_made", texts: Sequence[str] | None = None
) -> TaskContent:
    texts = texts or [text_of(number) for number in range(len(outputs))]
    return TaskContent(
        name=name,
        instruction="Say yes or no.",
        category="Made",
        equivalent_labels=False,
        own_candidates=False,
        licence="MIT",
        sha256=None,
        instances=tuple(
            Instance(f"{name}-{number:03}", text, output, f"{name}.json, instance {number}")
            for number, (text, output) in enumerate(zip(texts, outputs, strict=True))
        ),
        rejects=(),
    )


def yes_no(n: int, name: str = "task001_made") -> TaskContent:
    return task([("yes",) if number % 2 else ("no",) for number in range(n)], name=name)


def test_splits_are_the_first_parts_of_a_permutation_that_the_seed_and_the_name_give() -> None:
    splits = split_items(yes_no(300), seed=7)
    digest = hashlib.sha256(b"7:task001_made").hexdigest()
    order = np.random.default_rng(int(digest, 16)).permutation(300)
    ids = {split: [int(item.item_id[-3:]) for item in items] for split, items in splits.items()}
    assert ids["bias"] == order[:32].tolist()
    assert ids["pool"] == order[32:96].tolist()
    assert ids["test"] == order[96:].tolist()
    assert tuple(splits) == SPLITS == ("test", "bias", "pool", "content_free")
    assert len(splits["content_free"]) == 43


def test_a_limit_takes_evaluation_items_alone_and_keeps_the_others_in_place() -> None:
    whole, some = (split_items(yes_no(300), seed=7, limit=limit) for limit in (1000, 20))
    assert [item.item_id for item in some["test"]] == [item.item_id for item in whole["test"][:20]]
    assert some["bias"] == whole["bias"]
    assert some["pool"] == whole["pool"]
    assert [n_test_of(300, 20), n_test_of(300, 1000), n_test_of(96, 10), n_test_of(2000, 1000)] == [20, 204, 0, 1000]


def test_seed_and_name_move_the_splits() -> None:
    first, other_seed = (split_items(yes_no(200), seed=seed)["bias"] for seed in (1, 2))
    other_name = split_items(yes_no(200, "task002_made"), seed=1)["bias"]
    assert [item.text for item in first] != [item.text for item in other_seed]
    assert [item.text for item in first] != [item.text for item in other_name]
    assert first == split_items(yes_no(200), seed=1)["bias"]


def test_labels_are_all_first_outputs_sorted_as_they_are_spelt() -> None:
    # 'Rare' stands once among 200 items, so that it is in one split only; spaces and case stay.
    outputs = [("no",)] * 100 + [("Yes", "of course")] * 98 + [("Rare",), (" no",)]
    content = task(outputs)
    assert labels_of(content) == (" no", "Rare", "Yes", "no")
    for items in split_items(content, seed=1).values():
        assert {item.labels for item in items} == {(" no", "Rare", "Yes", "no")}


def test_content_free_items_have_no_target_and_three_placeholders_come_first() -> None:
    items = split_items(yes_no(120), seed=1)["content_free"]
    assert [item.text for item in items[:3]] == ["N/A", "", "[MASK]"]
    kinds = ["placeholder"] * 3 + ["random_words"] * 20 + ["english_words"] * 20
    assert [item.content_free for item in items] == kinds
    assert {item.target for item in items} == {None}
    assert len({item.item_id for item in items}) == 43
    assert len({item.text for item in items[3:]}) == 40


def test_every_item_fits_the_contract() -> None:
    items = [item for of_split in split_items(yes_no(120), seed=1).values() for item in of_split]
    assert [problem for item in items for problem in contract.errors(contract.dump(item), LabelItem)] == []


def test_defects_of_an_item_are_its_flags() -> None:
    texts = [text_of(number) for number in range(100)]
    texts[1] = f" {texts[1]}"
    texts[3] = texts[2]
    texts[6] = texts[4]
    outputs: list[tuple[str, ...]] = [("no",) if number % 2 else ("yes",) for number in range(100)]
    outputs[9], outputs[11] = ("no", "never"), ("perhaps",)
    items = [item for split in split_items(task(outputs, texts=texts), seed=1).values() for item in split]
    flags = {int(item.item_id[-3:]): item.flags[1:] for item in items if item.content_free is None and item.flags[1:]}
    assert {item.flags[0] for item in items} == {"small_test_split"}
    assert flags == {
        1: ("outer_whitespace",),
        2: ("repeated_input", "conflicting_labels"),
        3: ("repeated_input", "conflicting_labels"),
        4: ("repeated_input",),
        6: ("repeated_input",),
        9: ("several_outputs",),
        11: ("label_not_in_instruction",),
    }


def test_defects_of_the_labels_flag_every_item_of_the_task() -> None:
    outputs = [("Yes.",) if number % 2 else ("yes.",) for number in range(100)]
    items = [item for split in split_items(task(outputs), seed=1).values() for item in split]
    assert len(items) == 100 + 43
    assert {item.flags for item in items} == {("label_with_period", "labels_alike", "small_test_split")}
    assert task_flags(["a", "b"], 1_000) == ()


@pytest.mark.parametrize(
    ("n_items", "limit", "is_small"), [(97, 1000, True), (195, 1000, True), (196, 1000, False), (196, 9, False)]
)
def test_a_small_test_split_flags_every_item_of_the_task(n_items: int, limit: int, is_small: bool) -> None:
    splits = split_items(yes_no(n_items), seed=1, limit=limit)
    assert len(splits["test"]) == min(n_items - 96, limit)
    flags = {item.flags for items in splits.values() for item in items}
    assert flags == {("small_test_split",) if is_small else ()}


def test_a_test_split_is_small_if_a_run_by_default_would_ask_more() -> None:
    assert TASK.default_limit == FEW_TEST


@pytest.mark.parametrize(
    ("labels", "instruction", "unnamed"),
    [
        (["joy", "sadness"], "Choose 'joy' or 'anger'.", {"sadness"}),
        (["Yes", "No"], "Answer yes or no.", set()),
        (["1", "10"], "Answer with a number from 10 to 20.", {"1"}),
        (["not related"], "Answer related or not.", {"not related"}),
        (["."], "Answer with a full stop.", {"."}),
    ],
)
def test_a_label_is_named_as_words_of_its_own(labels: list[str], instruction: str, unnamed: set[str]) -> None:
    assert unnamed_labels(labels, instruction) == unnamed


@pytest.mark.parametrize(
    ("text", "target", "found"),
    [
        ("Which? (A) wren (B) oak (C) tin", "B", ("A", "B", "C")),
        ("Which?\nA) wren\nB) oak", "A", ("A", "B")),
        ("Which? A. wren B. oak C. tin", "C", ("A", "B", "C")),
        ("Which? A: wren B: oak", "A", ("A", "B")),
        ("Which? (A)wren (B)oak", "D", None),
        ("Which? (A) wren", "A", None),
        ("A bird or a tree?", "A", None),
    ],
)
def test_the_options_of_an_input_are_the_labels_whose_sign_it_has(
    text: str, target: str, found: tuple[str, ...] | None
) -> None:
    assert offered(text, ("A", "B", "C", "D"), target) == found


def test_numbers_of_options_are_told_apart() -> None:
    text = "Which? 1) wren 2) oak 11) tin"
    assert offered(text, ("1", "11", "2", "3"), "1") == ("1", "11", "2")
    assert offered("It cost 3.1) wren, 2) oak", ("1", "2"), "2") is None


def test_items_with_own_candidates_have_them_as_labels_or_a_flag() -> None:
    letters = ["A", "B", "C", "D"]
    texts = [f"Which is {n}? (A) w (B) x (C) y" + (" (D) z" if n % 2 else "") for n in range(100)]
    texts[0] = "Which is 0, A or B?"
    outputs = [(letters[n % 3],) if n != 1 else ("D",) for n in range(100)]
    content = replace(task(outputs, texts=texts), own_candidates=True, instruction="Answer A, B, C or D.")
    items = {i.item_id[-3:]: i for split in split_items(content, seed=1).values() for i in split}
    assert items["001"].labels == ("A", "B", "C", "D")
    assert items["002"].labels == ("A", "B", "C")
    assert (items["000"].labels, items["000"].flags[1:]) == (("A", "B", "C", "D"), ("candidates_unclear",))
    assert sum("candidates_unclear" in item.flags for item in items.values()) == 1


def test_rows_that_cannot_be_used_are_rejects_with_a_rule() -> None:
    rows = [
        SourceRow("row 0", "a", "text", ["yes"]),
        SourceRow("row 1", "b", " \n", ["yes"]),
        SourceRow("row 2", "c", "text", []),
        SourceRow("row 3", "d", "text", ["  "]),
        SourceRow("row 4", "e", None, ["yes"]),
        SourceRow("row 5", "f", "text", [1]),
        SourceRow("row 6", "a", "other", "no"),
        SourceRow("row 7", None, "text", "no"),
        SourceRow("row 8", None, "text", ("no", "never")),
    ]
    found = sort_rows(rows, lambda text, n: f"{text}-{n}")
    assert [(one.item_id, one.text, one.outputs) for one in found.instances] == [
        ("a", "text", ("yes",)),
        ("text-1", "text", ("no",)),
        ("text-2", "text", ("no", "never")),
    ]
    assert [(reject.source_row, reject.rule) for reject in found.rejects] == [
        ("row 1", "empty_input"),
        ("row 2", "empty_output"),
        ("row 3", "empty_output"),
        ("row 4", "missing_field"),
        ("row 5", "missing_field"),
        ("row 6", "repeated_id"),
    ]
