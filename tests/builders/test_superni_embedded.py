"""The embedded tasks: what they cover, and that the right label follows from the text."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from itertools import pairwise
from typing import Any

import pytest

from biasboard.ground.toml_files import packaged_toml
from builders.superni import embedded
from builders.superni.items import labels_of, split_items, task_flags, unnamed_labels

OPTION = re.compile(r"\(([A-D])\) ([\w ]+?)(?= \(|$)")
TASKS = {name: read() for name, read in embedded.source_tasks().items()}


def file_of(name: str) -> dict[str, Any]:
    return packaged_toml("builders.superni", "texts", f"{name}.toml")


def kinds_of(name: str) -> dict[str, str]:
    """Return the kind of each word; a word of two kinds is an error."""
    groups = file_of(name)["groups"]
    kind_of = {word: kind for kind, words in groups.items() for word in words}
    assert len(kind_of) == sum(map(len, groups.values())), "a word is of two kinds"
    return kind_of


def test_the_tasks_cover_what_the_benchmark_needs() -> None:
    n_labels = Counter(len(labels_of(task)) for task in TASKS.values())
    assert n_labels == {2: 3, 3: 2, 4: 3, 6: 1, 12: 1}
    assert all(len(task.instances) >= 220 for task in TASKS.values())
    spam = Counter(instance.label for instance in TASKS["inbox_messages"].instances)
    assert spam["not spam"] / spam.total() == pytest.approx(0.85, abs=0.005)
    assert {name for name, task in TASKS.items() if task.equivalent_labels} == {"odd_one_out", "find_the_kind"}
    assert any(" " in label for task in TASKS.values() for label in labels_of(task))


@pytest.mark.parametrize("name", TASKS)
def test_inputs_differ_instructions_name_every_label_and_positions_tell_nothing(name: str) -> None:
    task = TASKS[name]
    texts = [instance.text for instance in task.instances]
    assert len(set(texts)) == len(texts)
    assert not [text for text in texts if re.search(r"[{}]|  | [.,!?]|\.\.", text)]
    assert all(text[0].isupper() or text[0].isdigit() for text in texts)
    assert unnamed_labels(labels_of(task), task.instruction) == set()
    assert task_flags(labels_of(task), len(task.instances)) == ()
    splits = split_items(task, seed=42)
    assert {item.flags for items in splits.values() for item in items} == {()}
    # After the permutation, the labels of neighbouring items are as often equal as chance has it.
    counts = Counter(instance.label for instance in task.instances)
    targets = [item.target for split in ("bias", "pool", "test") for item in splits[split]]
    equal = sum(first == second for first, second in pairwise(targets)) / (len(targets) - 1)
    assert equal == pytest.approx(sum((n / counts.total()) ** 2 for n in counts.values()), abs=0.12)


def test_letters_are_balanced_and_only_the_right_option_is_of_the_kind_in_question() -> None:
    answers: dict[int, Counter[str | None]] = defaultdict(Counter)
    for item in (item for items in split_items(TASKS["find_the_kind"], seed=42).values() for item in items):
        if item.target is not None:
            answers[len(item.labels)][item.target] += 1
            assert item.labels == tuple(letter for letter, _ in OPTION.findall(item.text))
    assert answers == {3: dict.fromkeys("ABC", 40), 4: dict.fromkeys("ABCD", 30)}
    kind_of, kinds = kinds_of("find_the_kind"), file_of("find_the_kind")["kinds"]
    for instance in TASKS["find_the_kind"].instances:
        question = instance.text.split("\n")[0]
        (asked,) = (kind for kind, words in kinds.items() if re.search(rf"\b{words}\b", question))
        assert [letter for letter, word in OPTION.findall(instance.text) if kind_of[word] == asked] == [instance.label]


def test_the_odd_one_is_the_only_word_of_another_kind() -> None:
    kind_of = kinds_of("odd_one_out")
    assert Counter(one.label for one in TASKS["odd_one_out"].instances) == dict.fromkeys("ABCD", 58)
    for instance in TASKS["odd_one_out"].instances:
        kinds = {letter: kind_of[word] for letter, word in OPTION.findall(instance.text)}
        assert [one for one, kind in kinds.items() if [*kinds.values()].count(kind) == 1] == [instance.label]


SIZES = """kilometres 1000, metres 1, centimetres .01, millimetres .001, feet .3048, inches .0254, yards .9144,
tonnes 1e6, kilograms 1000, grams 1, milligrams .001, litres 1, millilitres .001, centilitres .01, seconds 1,
minutes 60, quarters of an hour 900, hours 3600, days 86400, weeks 604800, months .08333333, years 1, decades 10,
centuries 100, dozen eggs 12, eggs 1, dozen pencils 12, pencils 1"""
UNITS = {unit: float(size) for unit, _, size in (entry.strip().rpartition(" ") for entry in SIZES.split(","))}


def test_conversions_are_true_where_arithmetic_says_so() -> None:
    units = "|".join(sorted(UNITS, key=len, reverse=True))
    for instance in TASKS["unit_conversions"].instances:
        found = re.findall(rf"([\d,]+) ({units})\b", instance.text)
        one, other = (float(number.replace(",", "")) * UNITS[unit] for number, unit in found)
        assert (one == pytest.approx(other)) == (instance.label == "true"), instance.text


def test_pairs_of_words_have_one_relation_each() -> None:
    pairs = [frozenset(row.values()) for label in file_of("word_relations")["label"] for row in label["rows"]]
    assert len(set(pairs)) == len(pairs) == 120


def test_a_task_with_too_few_phrases_is_our_own_bug() -> None:
    task = {"name": "made", "patterns": ["{x}"], "label": [{"name": "a", "n": 3, "slots": {"x": ["one", "two"]}}]}
    with pytest.raises(ValueError, match="made:a: only 2 different texts of 3; add phrases"):
        list(embedded.pattern_examples(task))
