"""Selects the items of a dataset that a run asks about."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from schemas.dataset import Manifest
from schemas.dataset_folder import read_split
from schemas.errors import ConfigError
from schemas.item_shape import Item, item_shapes


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The selected items of one config, each with its split."""

    manifest: Manifest
    config: str
    item_shape: str
    """Item shape as the manifest lists it."""
    splits: tuple[str, ...]
    items: tuple[tuple[str, Item], ...]


def select(
    folder: Path, manifest: Manifest, config: str, *, splits: Sequence[str] = (), limit: int | None = None
) -> Selection:
    """Select the items of a config.

    Args:
        folder: The dataset folder.
        manifest: The manifest of the dataset.
        config: Name of the config.
        splits: Names of the splits; empty for all splits of the config.
        limit: Largest number of items; None for all. Minimal pairs (or sets of variants) are selected as a whole, by
            the hash of their id, so that each machine selects the same ones.

    Raises:
        ConfigError: there is no such config or split, or the limit leaves no whole pair or set.
        DataError: the data files are damaged.
    """
    entries = [entry for entry in manifest.splits if entry.config == config]
    if not entries:
        have = ", ".join(dict.fromkeys(entry.config for entry in manifest.splits))
        raise ConfigError(f"config '{config}' is not in dataset '{manifest.name}'; have: {have}")
    have_splits = [entry.split for entry in entries]
    for split in splits:
        if split not in have_splits:
            raise ConfigError(f"split '{split}' is not in config '{config}'; have: {', '.join(have_splits)}")
    wanted = [entry for entry in entries if not splits or entry.split in splits]
    found = [(entry.split, item) for entry in wanted for item in read_split(folder, entry)]
    items = found if limit is None else _limited(found, limit)
    if not items:
        least = min(Counter(item.unit for _, item in found).values())
        unit = item_shapes()[wanted[0].item_shape].unit_name
        raise ConfigError(f"--limit {limit} leaves no whole {unit} of config '{config}'; raise it to {least} or more")
    return Selection(
        manifest=manifest,
        config=config,
        item_shape=wanted[0].item_shape,
        splits=tuple(entry.split for entry in wanted),
        items=tuple(items),
    )


def _limited(items: Sequence[tuple[str, Item]], limit: int) -> list[tuple[str, Item]]:
    sizes = Counter(item.unit for _, item in items)
    chosen: set[str] = set()
    room = limit
    for unit in sorted(sizes, key=lambda unit: hashlib.sha256(unit.encode()).digest()):
        if sizes[unit] > room:
            break
        chosen.add(unit)
        room -= sizes[unit]
    return [(split, item) for split, item in items if item.unit in chosen]
