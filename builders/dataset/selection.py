"""Reduces a dataset to some of its units, such as templates, each kept whole and equally many per split."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from biasboard.ground.errors import ConfigError
from builders.dataset.output import DraftSplit
from schemas.documents.item_shape import Item


def take_units(splits: Sequence[DraftSplit[Item]], limit: int | None) -> tuple[DraftSplit[Item], ...]:
    """Keep at most ``limit`` items: whole units, such as all variants of a template, equally many per split.

    Args:
        splits: Splits in which every unit is complete.
        limit: Maximum number of items. None keeps everything.

    Returns:
        The splits with the kept items in their original order.

    Raises:
        ConfigError: the limit is too small for one unit per split.
    """
    if limit is None:
        return tuple(splits)
    sizes = [Counter(item.unit for item in split.items) for split in splits]
    least = sum(min(of_split.values()) for of_split in sizes)
    if limit < least:
        places = ", ".join(f"{split.config}/{split.split}" for split in splits)
        raise ConfigError(f"--limit {limit}: one template from each of {places} needs at least {least} items; raise it")
    room = limit
    kept: set[str] = set()
    queues = [sorted(of_split, key=lambda unit: hashlib.sha256(unit.encode()).digest()) for of_split in sizes]
    by_unit = {unit: n for of_split in sizes for unit, n in of_split.items()}
    for unit in round_robin(queues):
        if by_unit[unit] > room:
            break
        kept.add(unit)
        room -= by_unit[unit]
    return tuple(replace(split, items=[item for item in split.items if item.unit in kept]) for split in splits)


def round_robin(queues: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the first entry of each queue, then the second of each, and so on."""
    waiting = [iter(queue) for queue in queues]
    while waiting:
        still = []
        for queue in waiting:
            for place in queue:
                yield place
                still.append(queue)
                break
        waiting = still
