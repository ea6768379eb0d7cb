"""Labels, splits and flags of one task, on tasks that the tests make themselves."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from biasboard.ground.files import packaged_toml
from builders.superni import embedded
from builders.superni.items import (
    FEW_TEST,
    SPLITS,
    Instance,
    TaskContent,
    labels_of,
    offered,
    split_items,
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


def all_items(content: TaskContent) -> list[LabelItem]:
    return [item for of_split in split_items(content, seed=1).values() for item in of_split]


def test_splits_are_the_first_parts_of_a_permutation_that_the_seed_and_the_name_give() -> None:
    splits = split_items(yes_no(300), seed=7)
    order = np.random.default_rng(int(hashlib.sha256(b"7:task001_made").hexdigest(), 16)).permutation(300).tolist()
    ids = {split: [int(item.item_id[-3:]) for item in items] for split, items in splits.items()}
    assert (ids["bias"], ids["pool"], ids["test"]) == (order[:32], order[32:96], order[96:])
    assert tuple(splits) == SPLITS == ("test", "bias", "pool", "content_free")
    # A limit takes evaluation items alone, and keeps the others in place.
    some = split_items(yes_no(300), seed=7, limit=20)
    assert (some["test"], some["bias"], some["pool"]) == (splits["test"][:20], splits["bias"], splits["pool"])
    others = [split_items(yes_no(300), seed=8), split_items(yes_no(300, "task002_made"), seed=7)]
    texts = [[item.text for item in of["bias"]] for of in (splits, *others)]
    assert texts[0] not in texts[1:]


def test_labels_are_all_first_outputs_sorted_as_they_are_spelt() -> None:
    # 'Rare' stands once among 200 items, so that it is in one split only; spaces and case stay.
    content = task([("no",)] * 100 + [("Yes", "of course")] * 98 + [("Rare",), (" no",)])
    assert labels_of(content) == (" no", "Rare", "Yes", "no")
    assert {item.labels for item in all_items(content)} == {labels_of(content)}


def test_content_free_items_have_no_target_and_every_item_fits_the_contract() -> None:
    items = split_items(yes_no(120), seed=1)["content_free"]
    assert [item.text for item in items[:3]] == ["N/A", "", "[MASK]"]
    kinds = ["placeholder"] * 3 + ["random_words"] * 20 + ["english_words"] * 20
    assert [item.content_free for item in items] == kinds
    assert {item.target for item in items} == {None}
    assert (len({item.item_id for item in items}), len({item.text for item in items[3:]})) == (43, 40)
    found = [
        problem for item in all_items(yes_no(120)) for problem in contract.converted(contract.dump(item), LabelItem)[1]
    ]
    assert found == []


def test_defects_of_an_item_are_its_flags() -> None:
    texts = [text_of(number) for number in range(100)]
    texts[1] = f" {texts[1]}"
    texts[3], texts[6] = texts[2], texts[4]
    outputs: list[tuple[str, ...]] = [("no",) if number % 2 else ("yes",) for number in range(100)]
    outputs[9], outputs[11] = ("no", "never"), ("perhaps",)
    items = all_items(task(outputs, texts=texts))
    assert {item.flags[0] for item in items} == {"small_test_split"}
    flags = {int(item.item_id[-3:]): item.flags[1:] for item in items if item.content_free is None and item.flags[1:]}
    assert flags == {
        1: ("outer_whitespace",),
        **dict.fromkeys((2, 3), ("repeated_input", "conflicting_labels")),
        **dict.fromkeys((4, 6), ("repeated_input",)),
        9: ("several_outputs",),
        11: ("label_not_in_instruction",),
    }


@pytest.mark.parametrize(("n_items", "limit", "is_small"), [(195, 1000, True), (196, 1000, False), (196, 9, False)])
def test_defects_of_the_task_flag_every_item(n_items: int, limit: int, is_small: bool) -> None:
    splits = split_items(yes_no(n_items), seed=1, limit=limit)
    assert len(splits["test"]) == min(n_items - 96, limit)
    flags = {item.flags for items in splits.values() for item in items}
    assert flags == {("small_test_split",) if is_small else ()}
    # It is small if a run by default would ask more.
    assert TASK.default_limit == FEW_TEST
    of_labels = {item.flags for item in all_items(task([("Yes.",), ("yes.",)] * 100))}
    assert of_labels == {("label_with_period", "labels_alike")}


@pytest.mark.parametrize(
    ("text", "labels", "target", "found"),
    [
        ("Which? (A) wren (B) oak (C) tin", "A B C D", "B", "A B C"),
        ("Which?\nA) wren\nB) oak", "A B C D", "A", "A B"),
        ("Which? (A) wren", "A B C D", "A", None),
        ("Which? 1) wren 2) oak 11) tin", "1 11 2 3", "1", "1 11 2"),
        ("It cost 3.1) wren, 2) oak", "1 2", "2", None),
    ],
)
def test_the_options_of_an_input_are_the_labels_whose_sign_it_has(
    text: str, labels: str, target: str, found: str | None
) -> None:
    assert offered(text, labels.split(), target) == (None if found is None else tuple(found.split()))


def test_items_with_own_candidates_have_them_as_labels_or_a_flag() -> None:
    texts = [f"Which is {n}? (A) w (B) x (C) y" + (" (D) z" if n % 2 else "") for n in range(100)]
    texts[0] = "Which is 0, A or B?"
    outputs = [("ABC"[n % 3],) if n != 1 else ("D",) for n in range(100)]
    content = replace(task(outputs, texts=texts), own_candidates=True, instruction="Answer A, B, C or D.")
    items = {item.item_id[-3:]: item for item in all_items(content)}
    assert (items["001"].labels, items["002"].labels) == (("A", "B", "C", "D"), ("A", "B", "C"))
    assert (items["000"].labels, items["000"].flags[1:]) == (("A", "B", "C", "D"), ("candidates_unclear",))
    assert sum("candidates_unclear" in item.flags for item in items.values()) == 1


def test_embedded_tasks_have_inputs_that_differ_and_instructions_that_name_every_label() -> None:
    tasks = {name: read() for name, read in embedded.source_tasks().items()}
    assert Counter(len(labels_of(content)) for content in tasks.values()) == {2: 3, 3: 2, 4: 3, 6: 1, 12: 1}
    assert {name for name, content in tasks.items() if content.equivalent_labels} == {"odd_one_out", "find_the_kind"}
    for content in tasks.values():
        texts = [instance.text for instance in content.instances]
        assert len(set(texts)) == len(texts) >= 220
        assert not [text for text in texts if re.search(r"[{}]|  | [.,!?]|\.\.", text)]
        assert unnamed_labels(labels_of(content), content.instruction) == set()
        assert {item.flags for item in all_items(content)} == {()}


OPTION = re.compile(r"\(([A-D])\) ([\w ]+?)(?= \(|$)")


def test_the_right_letter_of_an_embedded_task_is_that_of_the_only_word_of_its_kind() -> None:
    for name in ("odd_one_out", "find_the_kind"):
        file = packaged_toml("builders.superni", "texts", f"{name}.toml")
        kind_of = {word: kind for kind, words in file["groups"].items() for word in words}
        for instance in embedded.source_tasks()[name]().instances:
            kinds = {letter: kind_of[word] for letter, word in OPTION.findall(instance.text)}
            asked = [kind for kind, words in file.get("kinds", {}).items() if re.search(rf"\b{words}\b", instance.text)]
            odd = [kind for kind in kinds.values() if [*kinds.values()].count(kind) == 1]
            assert [letter for letter, kind in kinds.items() if kind in (asked or odd)] == [instance.label]
