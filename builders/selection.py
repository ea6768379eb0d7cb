"""Cuts a dataset down to whole minimal pairs or templates, without losing its balance more than it has to."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from builders.output import DraftSplit
from schemas.errors import ConfigError
from schemas.item_shape import Item
from schemas.items.coreference import CoreferenceItem


def take_pairs(
    splits: Sequence[DraftSplit[CoreferenceItem]], limit: int | None
) -> tuple[DraftSplit[CoreferenceItem], ...]:
    """Keep at most ``limit`` items: whole pairs, as many of each split, spread over the occupation pairs.

    Args:
        splits: Items whose pairs are complete; the pairs of a cluster in an order in which each stands for
            another cell of the design.
        limit: Greatest number of items; an odd one keeps one item less. None keeps everything.

    Returns:
        The splits with their items in the old order.

    Raises:
        ConfigError: fewer items than one pair per split.
    """
    if limit is None:
        return tuple(splits)
    if limit < 2 * len(splits):
        places = ", ".join(f"{split.config}/{split.split}" for split in splits)
        raise ConfigError(f"--limit {limit}: a pair of each of {places} needs at least {2 * len(splits)}; raise it")
    queues = [_spread_pairs(split) for split in splits]
    kept: set[str] = set()
    for place in _round_robin(queues):
        if 2 * len(kept) + 2 > limit:
            break
        kept.add(place)
    return tuple(replace(split, items=[item for item in split.items if item.pair_id in kept]) for split in splits)


def take_units(splits: Sequence[DraftSplit[Item]], limit: int | None) -> tuple[DraftSplit[Item], ...]:
    """Keep at most ``limit`` items: whole units, such as all variants of a template, as many of each split.

    Args:
        splits: Items whose units are complete.
        limit: Greatest number of items. None keeps everything.

    Returns:
        The splits with their items in the old order.

    Raises:
        ConfigError: fewer items than one unit per split.
    """
    if limit is None:
        return tuple(splits)
    sizes = [Counter(item.unit for item in split.items) for split in splits]
    least = sum(min(of_split.values()) for of_split in sizes)
    if limit < least:
        places = ", ".join(f"{split.config}/{split.split}" for split in splits)
        raise ConfigError(f"--limit {limit}: a template of each of {places} needs at least {least}; raise it")
    room = limit
    kept: set[str] = set()
    queues = [sorted(of_split, key=lambda unit: hashlib.sha256(unit.encode()).digest()) for of_split in sizes]
    by_unit = {unit: n for of_split in sizes for unit, n in of_split.items()}
    for unit in _round_robin(queues):
        if by_unit[unit] > room:
            break
        kept.add(unit)
        room -= by_unit[unit]
    return tuple(replace(split, items=[item for item in split.items if item.unit in kept]) for split in splits)


def _spread_pairs(split: DraftSplit[CoreferenceItem]) -> list[str]:
    """Pair ids of a split: one of each occupation pair, then a second one of each, and so on."""
    pairs: dict[str, dict[str, None]] = {}
    for item in split.items:
        pairs.setdefault(item.cluster, {})[item.pair_id] = None
    clusters = sorted(pairs, key=lambda name: hashlib.sha256(name.encode()).digest())
    # The start moves on by one with each occupation pair, so that a short cut takes every cell equally often.
    turned = []
    for rank, cluster in enumerate(clusters):
        ids = list(pairs[cluster])
        start = rank % len(ids)
        turned.append(ids[start:] + ids[:start])
    return list(_round_robin(turned))


def _round_robin(queues: Iterable[Sequence[str]]) -> Iterator[str]:
    waiting = [iter(queue) for queue in queues]
    while waiting:
        still = []
        for queue in waiting:
            for place in queue:
                yield place
                still.append(queue)
                break
        waiting = still
