"""Defects of items and tasks that are flagged, because the data are kept as the source has them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from builders.dataset.output import Rule
from builders.superni.content import Instance

PERIOD = Rule(name="label_with_period", description="a label of the task ends in a period")
ALIKE = Rule(name="labels_alike", description="two labels of the task differ only in case or in spaces around them")
UNNAMED = Rule(name="label_not_in_instruction", description="the instruction does not name the right label")
SPACES = Rule(name="outer_whitespace", description="the input begins or ends with a space or a line break")
SEVERAL = Rule(name="several_outputs", description="the source gives several outputs, and the first one is taken")
REPEATED = Rule(name="repeated_input", description="another item of the task has the same input")
CONFLICT = Rule(name="conflicting_labels", description="another item of the task has the same input and another label")
UNCLEAR = Rule(
    name="candidates_unclear",
    description="the options of the input cannot be told apart, so that the item has all labels of the task",
)
FEW_TEST = 100
"""Number of items to evaluate below which a task is flagged, whatever limit the user sets.

A run asks this many of each task by default: a task with fewer is measured on fewer than the others, and the accuracies
of its labels vary more by chance, so that it looks more biased. The smallest task of the publication has 304.
"""
SMALL_TEST = Rule(name="small_test_split", description=f"the task has fewer than {FEW_TEST} items to evaluate")
FLAG_RULES = (PERIOD, ALIKE, UNNAMED, SPACES, SEVERAL, REPEATED, CONFLICT, UNCLEAR, SMALL_TEST)


def task_flags(labels: Sequence[str], n_test: int) -> tuple[str, ...]:
    """Return the flags that all items of a task carry, for its labels and its number of items to evaluate.

    >>> task_flags(["No.", "Yes."], 100), task_flags(["No", "Yes", "yes "], 100), task_flags(["No", "Yes"], 99)
    (('label_with_period',), ('labels_alike',), ('small_test_split',))
    """
    flags = [PERIOD.name] if any(label.rstrip().endswith(".") for label in labels) else []
    if len({label.strip().casefold() for label in labels}) < len(labels):
        flags.append(ALIKE.name)
    if n_test < FEW_TEST:
        flags.append(SMALL_TEST.name)
    return tuple(flags)


def unnamed_labels(labels: Iterable[str], instruction: str) -> frozenset[str]:
    """Return the labels that an instruction does not name as words of their own.

    The case of letters does not count, except in labels of one letter; nor does a period at the end of a label.

    >>> sorted(unnamed_labels(["A", "E", "yes", "No.", "maybe"], "Is it a fact? Choose A or D, Yes or no."))
    ['E', 'maybe']
    """
    return frozenset(label for label in labels if not _is_named(label, instruction))


def _is_named(label: str, instruction: str) -> bool:
    word = label.strip()
    word = word.removesuffix(".") or word
    flags = re.IGNORECASE if len(word) > 1 else re.NOFLAG
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", instruction, flags) is not None


def instance_flags(instances: Sequence[Instance], unnamed: frozenset[str]) -> list[tuple[str, ...]]:
    """Return the flags of each item of a task, without those that its whole task carries."""
    n_same = Counter(instance.text for instance in instances)
    labels = defaultdict(set)
    for instance in instances:
        labels[instance.text].add(instance.label)
    return [
        tuple(
            rule.name
            for rule, applies in (
                (UNNAMED, instance.label in unnamed),
                (SPACES, instance.text != instance.text.strip()),
                (SEVERAL, len(instance.outputs) > 1),
                (REPEATED, n_same[instance.text] > 1),
                (CONFLICT, len(labels[instance.text]) > 1),
            )
            if applies
        )
        for instance in instances
    ]
