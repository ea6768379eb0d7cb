"""Reduces a dataset to some of its minimal pairs, spread over the occupation pairs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from biasboard.ground.errors import ConfigError
from builders.dataset.output import DraftSplit
from builders.dataset.selection import round_robin
from schemas.items.coreference import CoreferenceItem


def take_pairs(
    splits: Sequence[DraftSplit[CoreferenceItem]], limit: int | None
) -> tuple[DraftSplit[CoreferenceItem], ...]:
    """Keep at most ``limit`` items: whole minimal pairs, equally many per split, spread over the occupation pairs.

    Args:
        splits: Splits in which every pair is complete. The pairs of a cluster, in their order, are taken to represent
            different cells of the design.
        limit: Maximum number of items; an odd limit keeps one item less. None keeps everything.

    Returns:
        The splits with the kept items in their original order.

    Raises:
        ConfigError: the limit is too small for one pair per split.
    """
    if limit is None:
        return tuple(splits)
    if limit < 2 * len(splits):
        places = ", ".join(f"{split.config}/{split.split}" for split in splits)
        raise ConfigError(
            f"--limit {limit}: one pair from each of {places} needs at least {2 * len(splits)} items; raise it"
        )
    queues = [_spread_pairs(split) for split in splits]
    kept: set[str] = set()
    for place in round_robin(queues):
        if 2 * len(kept) + 2 > limit:
            break
        kept.add(place)
    return tuple(replace(split, items=[item for item in split.items if item.pair_id in kept]) for split in splits)


def _spread_pairs(split: DraftSplit[CoreferenceItem]) -> list[str]:
    """Order the pair ids of a split: one from each occupation pair, then a second one from each, and so on."""
    pairs: dict[str, dict[str, None]] = {}
    for item in split.items:
        pairs.setdefault(item.cluster, {})[item.pair_id] = None
    clusters = sorted(pairs, key=lambda name: hashlib.sha256(name.encode()).digest())
    # Each occupation pair starts one cell further on, so that a small selection takes every cell equally often.
    turned = []
    for rank, cluster in enumerate(clusters):
        ids = list(pairs[cluster])
        start = rank % len(ids)
        turned.append(ids[start:] + ids[:start])
    return list(round_robin(turned))
