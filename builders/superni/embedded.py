"""The source *embedded*: tasks of this project, whose items are combined from the phrases in ``texts/``.

Each file is a task. Either every label has patterns, filled with phrases that suit the label, or items ask for one of
several words, whose letters are the labels. The files determine everything: there is no seed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib import resources
from itertools import count
from typing import Any, TypeVar

from biasboard.ground.files import packaged_toml
from builders.superni.items import Instance, SourceTasks, TaskContent

ADDRESS = "builders/superni/texts"
LICENCE = "Apache-2.0"
_MOST_TRIES = 100

T = TypeVar("T")


def source_tasks() -> SourceTasks:
    """Return the embedded tasks by name, sorted."""
    files = (entry.name for entry in resources.files("builders.superni").joinpath("texts").iterdir())
    names = sorted(name.removesuffix(".toml") for name in files if name.endswith(".toml"))
    return {name: partial(_task, name) for name in names}


def _task(name: str) -> TaskContent:
    task = packaged_toml("builders.superni", "texts", f"{name}.toml")
    examples = list(question_examples(task) if "options" in task else pattern_examples(task))
    return TaskContent(
        name=name,
        instruction=task["instruction"],
        category=task["category"],
        equivalent_labels=task.get("equivalent_labels", False),
        own_candidates=task.get("own_candidates", False),
        licence=LICENCE,
        sha256=None,
        instances=tuple(
            Instance(f"{name}-{number:03}", text, (label,), None) for number, (text, label) in enumerate(examples)
        ),
        rejects=(),
    )


def shuffled(values: Sequence[T], key: str) -> list[T]:
    """Return values in an order that looks random and depends on the key alone.

    >>> shuffled("abcde", "x") == shuffled("abcde", "x"), shuffled("abcde", "x") == shuffled("abcde", "y")
    (True, False)
    """
    # By hashes, so that no version of a random generator can change the order.
    order = sorted(range(len(values)), key=lambda index: hashlib.sha256(f"{key}:{index}".encode()).digest())
    return [values[index] for index in order]


def _endless(values: Sequence[T], key: str) -> Iterator[T]:
    """Yield values endlessly, each equally often, in a new order each round."""
    for turn in count():
        yield from shuffled(values, f"{key}:{turn}")


def pattern_examples(task: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the texts and right labels of a task whose labels have patterns: ``n`` different texts for each label."""
    for label in task["label"]:
        key = f"{task['name']}:{label['name']}"
        slots = {**task.get("slots", {}), **label.get("slots", {})}
        phrases = {name: _endless(values, f"{key}:{name}") for name, values in slots.items()}
        patterns = _endless(label.get("patterns") or task["patterns"], f"{key}:pattern")
        rows = _endless(label.get("rows") or task.get("rows") or [{}], f"{key}:row")
        texts: dict[str, None] = {}
        for _ in range(_MOST_TRIES * label["n"]):
            if len(texts) == label["n"]:
                break
            texts[_filled(next(patterns), next(rows), {name: next(values) for name, values in phrases.items()})] = None
        if len(texts) < label["n"]:
            raise ValueError(f"{key}: only {len(texts)} different texts of {label['n']}; add phrases")
        yield from ((text, label["name"]) for text in texts)


def _filled(pattern: str, row: Mapping[str, str], phrases: Mapping[str, str]) -> str:
    """Fill a pattern with the phrases of its slots and of a row; phrases of a row may have slots themselves."""
    values = {**phrases, **{name: text.format(**phrases) for name, text in row.items()}}
    # A slot in capitals, such as {Item}, begins a sentence.
    capital = {name.capitalize(): text[:1].upper() + text[1:] for name, text in values.items()}
    return pattern.format(**values, **capital)


def question_examples(task: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the texts and right letters of a task about words of different kinds; these letters alternate."""
    groups: Mapping[str, Sequence[str]] = task["groups"]
    texts: set[str] = set()
    for options in task["options"]:
        letters, key = options["letters"], f"{task['name']}:{options['letters']}"
        questions, kinds = _endless(task["questions"], f"{key}:question"), _endless(sorted(groups), f"{key}:kind")
        for number in range(options["n"]):
            label = letters[number % len(letters)]
            for attempt in range(_MOST_TRIES):
                drawn = f"{key}:{number}:{attempt}"
                kind = next(kinds)
                others = shuffled(sorted(set(groups) - {kind}), f"{drawn}:others")
                if task["answer"] == "member":
                    wrong = [shuffled(groups[other], f"{drawn}:{other}")[0] for other in others[: len(letters) - 1]]
                else:
                    wrong = shuffled(groups[others[0]], f"{drawn}:wrong")[: len(letters) - 1]
                words = dict(zip((letter for letter in letters if letter != label), wrong, strict=True))
                words[label] = shuffled(groups[kind], f"{drawn}:right")[0]
                question = next(questions).format(kind=task.get("kinds", {}).get(kind, kind))
                text = f"{question}\n" + " ".join(f"({letter}) {words[letter]}" for letter in letters)
                if text not in texts:
                    texts.add(text)
                    yield text, label
                    break
            else:
                raise ValueError(f"{key}: no other text after {number}; add words")
