"""Reads the text that all items of a part share, such as its instruction, where the dataset may be shown."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from biasboard.ground.memory import Memory
from biasboard.ground.strict_json import JsonValue
from evaluators.task import Task, load_task
from leaderboard.pages.dataset_views import BuiltDataset
from leaderboard.pages.tables import Section
from schemas.documents.dataset import SplitEntry
from schemas.folders.dataset_folder import read_split

_KIND = "text of a part"


class PartTexts(NamedTuple):
    """The texts of the parts of a suite, or the reason why they are not shown."""

    texts: Mapping[str, str]
    """Text by name of the part."""
    why_none: str | None
    """Reason why no text is shown; None if they are, or if the task knows of none."""


def part_texts(section: Section, local: BuiltDataset | None, memory: Memory) -> PartTexts:
    """Return the text of each part of a suite.

    Args:
        section: A table of results on the suite.
        local: Its dataset; None if it is not on this machine.
        memory: The memory of this machine.

    Raises:
        DataError: the dataset is damaged.
    """
    task = load_task(section.table.signature.task)
    if not task.reports_parts:
        return PartTexts({}, None)
    if any(row.entry.match.is_held_out for row in section.table.rows):
        return PartTexts({}, "the dataset is held out, and its items stay secret")
    if local is None or local.folder is None:
        return PartTexts({}, "the dataset is not on the machine that built the site")
    manifest, folder = local.manifest, local.folder
    if not manifest.redistributable or manifest.publish_refusal is not None:
        # What follows a semicolon is advice for the owner of the dataset folder.
        refusal = (manifest.publish_refusal or "").partition(";")[0]
        return PartTexts({}, refusal or f"the licence of the dataset, {manifest.licence}, forbids showing its texts")
    # All items share the text, so that it is read where the fewest of them are.
    smallest: dict[str, SplitEntry] = {}
    for entry in sorted(manifest.splits, key=lambda one: one.n_items):
        if entry.config in section.table.signature.parts and entry.n_items:
            smallest.setdefault(entry.config, entry)
    return PartTexts({part: _text(folder, entry, task, memory) for part, entry in smallest.items()}, None)


def _text(folder: Path, entry: SplitEntry, task: Task, memory: Memory) -> str:
    parts: dict[str, JsonValue] = {"content": entry.content_sha256, "shape": entry.item_shape}
    stored = memory.get(_KIND, parts)
    if not isinstance(stored, str):
        stored = task.part_text(read_split(folder, entry)[0])
        memory.put(_KIND, parts, stored)
    return stored
