"""What a source has of a task, and the items of it: the options that each offers, its flags, and its split.

The split of an item depends only on the seed and the name of the task. Defects of items and tasks are flagged instead
of repaired, because the data are kept as the source has them.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from builders.dataset.output import Rule, rng_for
from builders.superni.content_free import N_RANDOM, PLACEHOLDERS, english_texts, random_texts
from schemas.documents.dataset import Reject
from schemas.items.label import ContentFree, LabelItem

SPLITS = ("test", "bias", "pool", "content_free")
"""Names of the splits of each config, in the order in which they are written."""
N_BIAS = 32
N_POOL = 64
N_SUPPORT = N_BIAS + N_POOL
"""Number of items that are not evaluated; all three numbers are those of the publication."""
N_TEST = 1000
"""Maximum number of evaluation items per task, as in the publication."""

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
"""Number of evaluation items below which a task is flagged, whatever limit the user sets.

By default a run asks this many of each task. A task with fewer is measured on fewer items than the others: the
accuracies of its labels vary more by chance, so that it looks more biased. The publication's smallest task has 304.
"""
SMALL_TEST = Rule(name="small_test_split", description=f"the task has fewer than {FEW_TEST} items to evaluate")
FLAG_RULES = (PERIOD, ALIKE, UNNAMED, SPACES, SEVERAL, REPEATED, CONFLICT, UNCLEAR, SMALL_TEST)


class Instance(NamedTuple):
    """One usable input of a task, with its outputs."""

    item_id: str
    text: str
    outputs: tuple[str, ...]
    location: str | None
    """Location in the source, such as ``task073_x.json, instance 12``, counted from 0; None for an embedded task."""

    @property
    def label(self) -> str:
        """The right label: the first output, as the source spells it."""
        return self.outputs[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskContent:
    """Everything that a source holds about one task."""

    name: str
    instruction: str
    category: str
    equivalent_labels: bool
    """True if the labels only number the choices, as the letters of options do."""
    own_candidates: bool
    """True if the items of the task offer different numbers of options, so that each has its own labels."""
    licence: str
    """Licence of the task, as the source states it."""
    sha256: str | None
    """SHA-256 of the file; None for an embedded task."""
    instances: tuple[Instance, ...]
    rejects: tuple[Reject, ...]
    """Items that were dropped."""


SourceTasks: TypeAlias = Mapping[str, Callable[[], TaskContent]]
"""Tasks of a source by name, not read yet; each function reads its task, and may raise DataError."""


def labels_of(content: TaskContent) -> tuple[str, ...]:
    """Return the sorted labels of a task: the first outputs of all its items, as the source spells them."""
    # The release takes only evaluation items, so that a demonstration may have a label that is not in its list.
    return tuple(sorted({instance.label for instance in content.instances}))


def split_items(content: TaskContent, *, seed: int, limit: int = N_TEST) -> Mapping[str, Sequence[LabelItem]]:
    """Return the items of each split of a task.

    A random permutation p of the items gives bias = p[0:32], pool = p[32:96] and test = p[96:], up to the limit. All
    splits are in the order of the permutation, so that the first k items of the pool are k demonstrations.

    Args:
        content: Task with at least 97 items.
        seed: Seed of the build.
        limit: Maximum number of evaluation items.
    """
    # One generator per task. The publication drew all tasks from one stream, in which a change of one file changed the
    # examples of every later task.
    order = rng_for(seed, content.name).permutation(len(content.instances)).tolist()
    places = {"test": order[N_SUPPORT : N_SUPPORT + limit], "bias": order[:N_BIAS], "pool": order[N_BIAS:N_SUPPORT]}
    # By all items, not by the limit, which is the user's own choice.
    return items_at(content, places, n_test=len(content.instances) - N_SUPPORT, seed=seed)


def items_at(
    content: TaskContent, places: Mapping[str, Sequence[int]], *, n_test: int, seed: int
) -> Mapping[str, Sequence[LabelItem]]:
    """Return the items of each split of a task, given where in the task they are.

    Args:
        content: The task.
        places: Indices of the instances of each split but the last.
        n_test: Number of items that could be evaluated.
        seed: Seed of the random words.
    """
    labels = labels_of(content)
    # What the items of a task have in common.
    plain = LabelItem(
        item_id="",
        instruction=content.instruction,
        text="",
        labels=labels,
        target=None,
        category=content.category,
        equivalent_labels=content.equivalent_labels,
        content_free=None,
        source_row=None,
        flags=task_flags(labels, n_test),
    )
    items = _label_items(content, plain)
    splits = {split: [items[index] for index in places[split]] for split in SPLITS[:-1]}
    return {**splits, SPLITS[-1]: _content_free(splits["test"], content.name, plain, seed)}


def _label_items(content: TaskContent, plain: LabelItem) -> list[LabelItem]:
    of_items = instance_flags(content.instances, unnamed_labels(plain.labels, content.instruction))
    items = []
    for instance, own in zip(content.instances, of_items, strict=True):
        item = replace(
            plain,
            item_id=instance.item_id,
            text=instance.text,
            target=instance.label,
            source_row=instance.location,
            flags=plain.flags + own,
        )
        if content.own_candidates:
            options = offered(item.text, plain.labels, instance.label)
            unclear = replace(item, flags=(*item.flags, UNCLEAR.name))
            item = unclear if options is None else replace(item, labels=options)
        items.append(item)
    return items


def _content_free(test: Sequence[LabelItem], task: str, plain: LabelItem, seed: int) -> list[LabelItem]:
    inputs = [item.text for item in test]
    # Generators of their own, so that drawing words in another way would not change the splits.
    words = random_texts(inputs, N_RANDOM, rng_for(seed, f"{task}:words"))
    english = english_texts(inputs, N_RANDOM, rng_for(seed, f"{task}:english"))
    texts: list[tuple[ContentFree, str]] = [("placeholder", text) for text in PLACEHOLDERS]
    texts += [("random_words", text) for text in words]
    texts += [("english_words", text) for text in english]
    return [
        replace(plain, item_id=f"{task}-content-free-{number:02}", text=text, content_free=kind)
        for number, (kind, text) in enumerate(texts)
    ]


def task_flags(labels: Sequence[str], n_test: int) -> tuple[str, ...]:
    """Return the flags that all items of a task carry, given its labels and its number of evaluation items.

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

    Case is ignored except in labels of one letter; so is a period at the end of a label.

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
    """Return the flags of each item of a task, without those of the whole task."""
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


def offered(text: str, labels: Sequence[str], target: str) -> tuple[str, ...] | None:
    """Return the labels that an input offers, in the order of the task.

    Returns:
        The labels whose marker is in the input; None if there are fewer than two, or the right one is not among them.

    >>> offered("Which is a bird? (A) wren (B) oak (C) tin", ("A", "B", "C", "D"), "B")
    ('A', 'B', 'C')
    >>> offered("Which is a bird?", ("A", "B"), "B") is None
    True
    """
    signs = {label: re.escape(label.strip()) for label in labels}
    options = tuple(
        label for label, sign in signs.items() if re.search(rf"\({sign}\)|(?<![\w(.]){sign}(?:[).:])(?=\s|$)", text)
    )
    return options if len(options) > 1 and target in options else None
