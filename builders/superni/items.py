"""Items of a task and their splits: which item belongs where depends on the seed and the name of the task alone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from builders.superni.candidates import offered
from builders.superni.content import TaskContent
from builders.superni.content_free import N_RANDOM, PLACEHOLDERS, random_texts
from builders.superni.flags import UNCLEAR, instance_flags, task_flags, unnamed_labels
from schemas.items.label import ContentFree, LabelItem

SPLITS = ("test", "bias", "pool", "content_free")
"""Names of the splits of each config, in the order in which they are written."""
N_BIAS = 32
N_POOL = 64
N_SUPPORT = N_BIAS + N_POOL
"""Number of items that are not evaluated."""
N_CONTENT_FREE = len(PLACEHOLDERS) + N_RANDOM
N_TEST = 1000
"""Maximum number of evaluation items per task, as in the publication."""


def task_rng(seed: int, name: str) -> np.random.Generator:
    """Return a source of randomness for one task, on which no other task has an influence."""
    digest = hashlib.sha256(f"{seed}:{name}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest, "big"))


def labels_of(content: TaskContent) -> tuple[str, ...]:
    """Return the sorted labels of a task: the first outputs of all its items, as the source spells them."""
    return tuple(sorted({instance.label for instance in content.instances}))


def n_test_of(n_instances: int, limit: int) -> int:
    """Return the number of evaluation items of a task with this many items."""
    return max(0, min(limit, n_instances - N_SUPPORT))


def split_items(content: TaskContent, *, seed: int, limit: int = N_TEST) -> Mapping[str, Sequence[LabelItem]]:
    """Return the items of each split of a task.

    A random permutation p of the items gives bias = p[0:32], pool = p[32:96] and test = p[96:], up to the limit. All
    splits are in the order of the permutation, so that the first k items of the pool are k demonstrations.

    Args:
        content: Task with at least 97 items.
        seed: Seed of the build.
        limit: Maximum number of evaluation items.
    """
    order = task_rng(seed, content.name).permutation(len(content.instances)).tolist()
    # A limit is the user's own choice, and moves no other split.
    flags = task_flags(labels_of(content), len(content.instances) - N_SUPPORT)
    items = _label_items(content, flags)
    chosen = [items[place] for place in order[: N_SUPPORT + limit]]
    test = chosen[N_SUPPORT:]
    splits = (test, chosen[:N_BIAS], chosen[N_BIAS:N_SUPPORT], _content_free(test, content, flags, seed))
    return dict(zip(SPLITS, splits, strict=True))


def _label_items(content: TaskContent, of_task: tuple[str, ...]) -> list[LabelItem]:
    labels = labels_of(content)
    of_items = instance_flags(content.instances, unnamed_labels(labels, content.instruction))
    plain = _plain_item(content, labels, of_task)
    items = []
    for instance, own in zip(content.instances, of_items, strict=True):
        item = replace(
            plain,
            item_id=instance.item_id,
            text=instance.text,
            target=instance.label,
            source_row=instance.place,
            flags=of_task + own,
        )
        if content.own_candidates:
            found = offered(item.text, labels, instance.label)
            item = replace(item, flags=(*item.flags, UNCLEAR.name)) if found is None else replace(item, labels=found)
        items.append(item)
    return items


def _plain_item(content: TaskContent, labels: tuple[str, ...], flags: tuple[str, ...]) -> LabelItem:
    """Return an item with all that the items of a task have in common."""
    return LabelItem(
        item_id="",
        instruction=content.instruction,
        text="",
        labels=labels,
        target=None,
        category=content.category,
        equivalent_labels=content.equivalent_labels,
        content_free=None,
        source_row=None,
        flags=flags,
    )


def _content_free(
    test: Sequence[LabelItem], content: TaskContent, flags: tuple[str, ...], seed: int
) -> list[LabelItem]:
    plain = _plain_item(content, labels_of(content), flags)
    # A stream of its own: another way of drawing words must not move a split.
    rng = task_rng(seed, f"{content.name}:words")
    return [
        replace(plain, item_id=f"{content.name}-content-free-{number:02}", text=text, content_free=kind)
        for number, (kind, text) in enumerate(_texts([item.text for item in test], rng))
    ]


def _texts(test: Sequence[str], rng: np.random.Generator) -> Iterator[tuple[ContentFree, str]]:
    for text in PLACEHOLDERS:
        yield "placeholder", text
    for text in random_texts(test, N_RANDOM, rng):
        yield "random_words", text
