"""Selects the items of a dataset that a run asks about."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TypeAlias

from biasboard.ground.errors import ConfigError
from biasboard.ground.progress import steps
from schemas.documents.dataset import Manifest, SplitEntry
from schemas.documents.item_shape import Item, item_shapes
from schemas.files import row_files
from schemas.folders.dataset_folder import read_some, read_split

SplitItem: TypeAlias = tuple[str, Item]
"""An item and the split that it comes from."""

# Larger suites are read part by part: 297,379 items in 279 parts were asked within 303 MB.
_MAX_ITEMS_IN_MEMORY = 20_000
"""Largest number of a suite's items that stay in memory; those of larger suites are read again when needed."""


@dataclass(frozen=True, kw_only=True)
class SelectedPart:
    """The selected items of one config."""

    config: str
    folder: Path = Path()
    entries: tuple[SplitEntry, ...] = ()
    """All splits of the config."""
    splits: frozenset[str] = frozenset()
    """Splits whose items are selected."""
    limit: int | None = None
    support: frozenset[str] = frozenset()
    """Splits that the limit takes nothing from."""
    is_of_suite: bool = False
    """True if the config is asked as a part of a suite."""
    kept: tuple[SplitItem, ...] | None = field(default=None, repr=False)
    """The selected items; None to read them from the files each time."""
    _whole: dict[str, Sequence[Item]] = field(default_factory=dict, repr=False, compare=False)
    """Whole splits that were read before, if the selected items are kept too."""

    @property
    def items(self) -> tuple[SplitItem, ...]:
        """The selected items in order, each with its split.

        Raises:
            ConfigError: the limit leaves no whole pair or set.
            DataError: the data files are damaged.
        """
        if self.kept is not None:
            return self.kept
        wanted = [entry for entry in self.entries if entry.split in self.splits]
        items = [(entry.split, item) for entry in wanted for item in read_split(self.folder, entry)]
        # A limit over all splits would leave too few items in the small ones: of 1,000 items with 32 in split bias and
        # 64 to show as examples, a limit of 100 would keep about one in ten of each.
        limited = [(split, item) for split, item in items if split not in self.support]
        if self.limit is None or not limited:
            return tuple(items)
        units = _units_within(limited, self.limit)
        if not units:
            smallest = min(Counter(item.unit for _, item in limited).values())
            unit = item_shapes()[wanted[0].item_shape].unit_name
            raise ConfigError(
                f"--limit {self.limit} leaves no whole {unit} of config '{self.config}'; raise it to {smallest} or more"
            )
        return tuple((split, item) for split, item in items if split in self.support or item.unit in units)

    @property
    def max_items(self) -> int:
        """Upper bound on the number of selected items, from the manifest."""
        sizes = {entry.split: entry.n_items for entry in self.entries if entry.split in self.splits}
        n_limited = sum(n for split, n in sizes.items() if split not in self.support)
        taken = n_limited if self.limit is None else min(self.limit, n_limited)
        return taken + sum(n for split, n in sizes.items() if split in self.support)

    def sampled(self, n_items: float) -> SelectedPart:
        """Return the part with about so many items, evenly spaced over all its splits, without reading the others."""
        wanted = [entry for entry in self.entries if entry.split in self.splits]
        step = max(1, int(sum(entry.n_items for entry in wanted) / n_items))
        kept = tuple((entry.split, item) for entry in wanted for item in read_some(self.folder, entry, step))
        return replace(self, kept=kept)

    def items_of(self, split: str) -> Sequence[Item]:
        """Return all items of a split, selected or not.

        Raises:
            ConfigError: the config has no such split.
        """
        entry = next((entry for entry in self.entries if entry.split == split), None)
        if entry is None:
            raise ConfigError(f"config '{self.config}' has no split '{split}', whose items its prompts show")
        if self.kept is None:
            return read_split(self.folder, entry)
        if split not in self._whole:
            self._whole[split] = read_split(self.folder, entry)
        return self._whole[split]


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The selected items of one config, or of the parts of a suite."""

    manifest: Manifest
    config: str
    """Name of the config or suite."""
    item_shape: str
    """Item shape as the manifest lists it."""
    splits: tuple[str, ...]
    parts: tuple[SelectedPart, ...]
    is_suite: bool = False
    n_items: int
    items_sha256: str
    """SHA-256 of all items in order."""

    @property
    def limit(self) -> int | None:
        """The largest number of items of each part; None if there is none."""
        return self.parts[0].limit

    @property
    def items(self) -> tuple[SplitItem, ...]:
        """The items of all parts in order, each with its split."""
        return tuple(chain.from_iterable(part.items for part in self.parts))

    def without(self, configs: Collection[str]) -> Selection:
        """Return the selection without some of its parts."""
        kept = tuple(part for part in self.parts if part.config not in configs)
        if not self.items_sha256:  # Of an estimate.
            return replace(self, parts=kept, n_items=sum(part.max_items for part in kept))
        digest, n_items = hashlib.sha256(), 0
        for part in kept:
            items = part.items
            n_items += len(items)
            row_files.add_content(digest, (item for _, item in items))
        return replace(self, parts=kept, n_items=n_items, items_sha256=digest.hexdigest())


def shape_listed(manifest: Manifest, name: str) -> str:
    """Return the item shape of a config or suite, as the manifest lists it.

    Raises:
        ConfigError: there is no such config or suite.
    """
    # All configs of a suite have one shape.
    configs = manifest.parts(name) or (name,)
    item_shape = next((entry.item_shape for entry in manifest.splits if entry.config == configs[0]), None)
    if item_shape is None:
        have = ", ".join(dict.fromkeys((*(suite.name for suite in manifest.suites), *manifest.configs)))
        raise ConfigError(f"config '{name}' is not in dataset '{manifest.name}'; have: {have}")
    return item_shape


def select(
    folder: Path,
    manifest: Manifest,
    name: str,
    *,
    splits: Sequence[str] = (),
    parts: Sequence[str] = (),
    limit: int | None = None,
    support: frozenset[str] = frozenset(),
    without: frozenset[str] = frozenset(),
    n_sampled: int | None = None,
) -> Selection:
    """Select the items of a config or suite.

    Args:
        folder: The dataset folder.
        manifest: The manifest of the dataset.
        name: Name of the config or suite.
        splits: Names of the splits; empty for all splits.
        parts: Configs of the suite to take; empty for all of them.
        limit: Largest number of items of each config; None for all. Minimal pairs (or sets of variants) are selected
            whole, in the order of the hashes of their ids, so that every machine selects the same ones.
        support: Splits that the limit takes nothing from.
        without: Splits to leave out, such as those that no measure reads.
        n_sampled: For estimates alone: about how many items to read, evenly spaced, and no others. The number of items
            is then an upper bound, and there is no hash of them. None to read all.

    Raises:
        ConfigError: there is no such config, part or split, or the limit leaves no whole pair or set.
        DataError: the data files are damaged.
    """
    item_shape = shape_listed(manifest, name)
    of_suite = manifest.parts(name)
    if parts and not of_suite:
        raise ConfigError(f"--part is for a suite, and '{name}' is a single config; leave it out")
    for part_name in parts:
        if part_name not in of_suite:
            raise ConfigError(f"part '{part_name}' is not in suite '{name}'; have: {', '.join(of_suite)}")
    of_configs = []
    for config in [config for config in of_suite if not parts or config in parts] or [name]:
        entries = tuple(entry for entry in manifest.splits if entry.config == config)
        wanted = {entry.split for entry in entries if not splits or entry.split in splits} - without
        of_configs.append(
            SelectedPart(
                config=config,
                folder=folder,
                entries=entries,
                splits=frozenset(wanted),
                limit=limit,
                support=support,
                is_of_suite=bool(of_suite),
            )
        )
    have = dict.fromkeys(entry.split for part in of_configs for entry in part.entries)
    for split in splits:
        if split not in have:
            raise ConfigError(f"split '{split}' is not in config '{name}'; have: {', '.join(have)}")
    for part in of_configs:
        if not part.splits:
            raise ConfigError(f"part '{part.config}' of '{name}' has none of the splits; leave it out with --part")
    n_most = sum(part.max_items for part in of_configs)
    selected, digest, n_items = [], hashlib.sha256(), 0
    with steps() as step:
        for number, part in enumerate(of_configs):
            step("reading the items", number, len(of_configs))
            if n_sampled is not None:
                selected.append(part.sampled(n_sampled / len(of_configs)))
                continue
            items = part.items
            n_items += len(items)
            row_files.add_content(digest, (item for _, item in items))
            stays = len(of_configs) == 1 or n_most <= _MAX_ITEMS_IN_MEMORY
            selected.append(replace(part, kept=items) if stays else part)
    return Selection(
        manifest=manifest,
        config=name,
        item_shape=item_shape,
        splits=tuple(split for split in have if split not in without and (not splits or split in splits)),
        parts=tuple(selected),
        is_suite=bool(of_suite),
        n_items=n_items if n_sampled is None else n_most,
        items_sha256=digest.hexdigest() if n_sampled is None else "",
    )


def sampled(selection: Selection, n_items: int) -> Selection:
    """Return a selection with about so many of its items, evenly spaced, and at least one of each part."""
    step = max(1, sum(len(part.items) for part in selection.parts) // n_items)
    return replace(selection, parts=tuple(replace(part, kept=part.items[::step]) for part in selection.parts))


def _units_within(items: Sequence[SplitItem], limit: int) -> frozenset[str]:
    """Return as many whole units of items as the limit allows, in the order of the hashes of their ids."""
    sizes = Counter(item.unit for _, item in items)
    chosen: set[str] = set()
    room = limit
    for unit in sorted(sizes, key=lambda unit: hashlib.sha256(unit.encode()).digest()):
        if sizes[unit] > room:
            # Smaller units might still fit, but stopping here makes every smaller limit's selection part of a larger
            # one's, whose run then reuses the answers.
            break
        chosen.add(unit)
        room -= sizes[unit]
    return frozenset(chosen)
