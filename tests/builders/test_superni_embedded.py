"""The embedded tasks: what they cover, and that the right label follows from the text."""

from __future__ import annotations

import re
import tomllib
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

import pytest

from builders.superni import embedded
from builders.superni.content import TaskContent
from builders.superni.items import labels_of, split_items, task_flags, unnamed_labels

OPTION = re.compile(r"\(([A-D])\) ([\w ]+?)(?= \(|$)")


@pytest.fixture(scope="module")
def tasks() -> dict[str, TaskContent]:
    return {name: task.read() for name, task in embedded.source_tasks().items()}


def file_of(repository: Path, name: str) -> dict[str, object]:
    text = (repository / "builders/superni/texts" / f"{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def test_the_tasks_cover_what_the_benchmark_needs(tasks: dict[str, TaskContent]) -> None:
    assert len(tasks) == 10
    n_labels = Counter(len(labels_of(task)) for task in tasks.values())
    assert n_labels == {2: 3, 3: 2, 4: 3, 6: 1, 12: 1}
    assert all(len(task.instances) >= 220 for task in tasks.values())
    spam = Counter(instance.label for instance in tasks["inbox_messages"].instances)
    assert spam["not spam"] / spam.total() == pytest.approx(0.85, abs=0.005)
    assert {name for name, task in tasks.items() if task.equivalent_labels} == {"odd_one_out", "find_the_kind"}
    assert any(" " in label for task in tasks.values() for label in labels_of(task))


def test_no_two_inputs_are_equal_and_no_slot_stays_open(tasks: dict[str, TaskContent]) -> None:
    for name, task in tasks.items():
        texts = [instance.text for instance in task.instances]
        assert len(set(texts)) == len(texts), name
        assert not [text for text in texts if re.search(r"[{}]|  | [.,!?]|\.\.", text)], name
        assert all(text[0].isupper() or text[0].isdigit() for text in texts), name


def test_instructions_name_every_label_and_nothing_is_flagged(tasks: dict[str, TaskContent]) -> None:
    for name, task in tasks.items():
        assert unnamed_labels(labels_of(task), task.instruction) == set(), name
        assert task_flags(labels_of(task), len(task.instances)) == (), name
        assert {item.flags for items in split_items(task, seed=42).values() for item in items} == {()}, name


def test_letters_are_balanced_and_items_offer_three_or_four(tasks: dict[str, TaskContent]) -> None:
    answers: dict[int, Counter[str]] = defaultdict(Counter)
    for items in split_items(tasks["find_the_kind"], seed=42).values():
        for item in items:
            if item.target is not None:
                answers[len(item.labels)][item.target] += 1
                assert item.labels == tuple(letter for letter, _ in OPTION.findall(item.text))
    assert answers == {3: dict.fromkeys("ABC", 40), 4: dict.fromkeys("ABCD", 30)}
    assert Counter(one.label for one in tasks["odd_one_out"].instances) == dict.fromkeys("ABCD", 58)


def test_the_odd_one_is_the_only_word_of_another_kind(tasks: dict[str, TaskContent], repository: Path) -> None:
    groups = file_of(repository, "odd_one_out")["groups"]
    assert isinstance(groups, dict)
    kind_of = {word: kind for kind, words in groups.items() for word in words}
    assert len(kind_of) == sum(map(len, groups.values())), "a word is of two kinds"
    for instance in tasks["odd_one_out"].instances:
        kinds = {letter: kind_of[word] for letter, word in OPTION.findall(instance.text)}
        (alone,) = (letter for letter, kind in kinds.items() if list(kinds.values()).count(kind) == 1)
        assert alone == instance.label


def test_only_the_right_option_is_of_the_kind_in_question(tasks: dict[str, TaskContent], repository: Path) -> None:
    file = file_of(repository, "find_the_kind")
    groups, kinds = file["groups"], file["kinds"]
    assert isinstance(groups, dict)
    assert isinstance(kinds, dict)
    kind_of = {word: kind for kind, words in groups.items() for word in words}
    assert len(kind_of) == sum(map(len, groups.values())), "a word is of two kinds"
    for instance in tasks["find_the_kind"].instances:
        (asked,) = (kind for kind, words in kinds.items() if re.search(rf"\b{words}\b", instance.text.split("\n")[0]))
        fitting = [letter for letter, word in OPTION.findall(instance.text) if kind_of[word] == asked]
        assert fitting == [instance.label]


UNITS = {
    "kilometres": 1000.0,
    "metres": 1.0,
    "centimetres": 0.01,
    "millimetres": 0.001,
    "feet": 0.3048,
    "inches": 0.0254,
    "yards": 0.9144,
    "tonnes": 1e6,
    "kilograms": 1000.0,
    "grams": 1.0,
    "milligrams": 0.001,
    "litres": 1.0,
    "millilitres": 0.001,
    "centilitres": 0.01,
    "seconds": 1.0,
    "minutes": 60.0,
    "hours": 3600.0,
    "days": 86400.0,
    "weeks": 604800.0,
    "months": 1 / 12,
    "years": 1.0,
    "decades": 10.0,
    "centuries": 100.0,
    "dozen eggs": 12.0,
    "eggs": 1.0,
    "dozen pencils": 12.0,
    "pencils": 1.0,
    "quarters of an hour": 900.0,
}


def test_conversions_are_true_where_arithmetic_says_so(tasks: dict[str, TaskContent]) -> None:
    units = "|".join(sorted(UNITS, key=len, reverse=True))
    for instance in tasks["unit_conversions"].instances:
        amounts = [
            float(number.replace(",", "")) * UNITS[unit]
            for number, unit in re.findall(rf"([\d,]+) ({units})\b", instance.text)
        ]
        assert len(amounts) == 2, instance.text
        assert (amounts[0] == pytest.approx(amounts[1])) == (instance.label == "true"), instance.text


def test_pairs_of_words_have_one_relation_each(repository: Path) -> None:
    relations = defaultdict(set)
    labels = file_of(repository, "word_relations")["label"]
    assert isinstance(labels, list)
    for label in labels:
        for row in label["rows"]:
            relations[frozenset(row.values())].add(label["name"])
    assert len(relations) == 120
    assert [pair for pair, found in relations.items() if len(found) > 1] == []


def test_positions_tell_nothing_about_the_label(tasks: dict[str, TaskContent]) -> None:
    # After the permutation, the labels of neighbouring items are as often equal as chance has it.
    for name, task in tasks.items():
        counts = Counter(instance.label for instance in task.instances)
        chance = sum((n / counts.total()) ** 2 for n in counts.values())
        splits = split_items(task, seed=42)
        targets = [item.target for split in ("bias", "pool", "test") for item in splits[split]]
        equal = sum(first == second for first, second in pairwise(targets)) / (len(targets) - 1)
        assert equal == pytest.approx(chance, abs=0.12), name


def test_a_task_with_too_few_phrases_is_our_own_bug() -> None:
    task = {"name": "made", "patterns": ["{x}"], "label": [{"name": "a", "n": 3, "slots": {"x": ["one", "two"]}}]}
    with pytest.raises(ValueError, match="made:a: only 2 different texts of 3; add phrases"):
        list(embedded.pattern_examples(task))
