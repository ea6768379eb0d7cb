"""Reads what became of each item in a result, and remembers it by the hash of the records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from biasboard.ground.columns import Column
from biasboard.ground.memory import Memory
from biasboard.ground.strict_json import JsonValue
from leaderboard.verify.entries import KINDS, Entry, kinds_of
from schemas.files.record_columns import RecordColumns
from schemas.folders.run_folder import verified_parts

_KINDS, _FACTS, _PROMPTS = "kinds of answers", "facts of items", "prompts of items"

Codes = npt.NDArray[np.uint8]


class GroupColumn(NamedTuple):
    """The values of all items in one group, such as the pronoun."""

    key: str
    values: Sequence[str]
    codes: Sequence[int]
    """Index in ``values`` for each item; -1 for an item without a value."""


class ItemFacts(NamedTuple):
    """Names and groups of all items of a table, in the order of the dataset."""

    items: Sequence[str]
    configs: Sequence[str]
    splits: Sequence[str]
    groups: Sequence[GroupColumn]

    def groups_of(self, index: int) -> dict[str, str]:
        """Return the groups of one item, by name."""
        return {one.key: one.values[one.codes[index]] for one in self.groups if one.codes[index] >= 0}


def kind_codes(entry: Entry, memory: Memory) -> Codes:
    """Return the kind of the answer to each item as its index in ``KINDS``, shape (n_items,).

    Args:
        entry: A result whose folder is known.
        memory: The memory of this machine.
    """
    parts: dict[str, JsonValue] = {"records": entry.result.records.sha256, "task": entry.result.signature.task}
    stored = memory.get(_KINDS, parts)
    if not isinstance(stored, str):
        stored = kind_digits(_records(entry), entry.result.signature.task)
        memory.put(_KINDS, parts, stored)
    return np.frombuffer(stored.encode(), dtype=np.uint8) - ord("0")


def item_facts(entry: Entry, memory: Memory) -> ItemFacts:
    """Return names and groups of the items of a result; they are the same for all results of a table.

    Args:
        entry: A result whose folder is known.
        memory: The memory of this machine.
    """
    parts: dict[str, JsonValue] = {"records": entry.result.records.sha256}
    stored = memory.get(_FACTS, parts)
    if not isinstance(stored, dict):
        stored = _facts(_records(entry))
        memory.put(_FACTS, parts, stored)
    names = [cast("list[str]", stored[name]) for name in ("items", "configs", "splits")]
    groups = [GroupColumn(*one) for one in cast("list[tuple[str, list[str], list[int]]]", stored["groups"])]
    return ItemFacts(names[0], names[1], names[2], groups)


def prompts_at(entry: Entry, indices: Sequence[int], memory: Memory) -> list[tuple[str, ...]]:
    """Return the distinct prompts of some items.

    Args:
        entry: A result whose folder is known and whose texts may be shown.
        indices: Indices of the items.
        memory: The memory of this machine.
    """
    parts: dict[str, JsonValue] = {"records": entry.result.records.sha256, "places": list(indices)}
    stored = memory.get(_PROMPTS, parts)
    if not isinstance(stored, list):
        records = _records(entry).rows(np.array(indices, dtype=np.int64)) if indices else []
        asked = [dict.fromkeys(one.prompt for one in record.exchanges if one.prompt is not None) for record in records]
        stored = [list(prompts) for prompts in asked]
        memory.put(_PROMPTS, parts, stored)
    return [tuple(cast("list[str]", prompts)) for prompts in stored]


def _records(entry: Entry) -> RecordColumns:
    assert entry.folder is not None
    return RecordColumns.joined(verified_parts(entry.folder, entry.result))


def _facts(records: RecordColumns) -> dict[str, JsonValue]:
    columns = records.columns
    named: dict[str, JsonValue] = {
        name: [str(text) for text in columns[field].texts]
        for name, field in (("items", "item_id"), ("configs", "config"), ("splits", "split"))
    }
    groups: list[JsonValue] = [[one.key, list(one.values), list(one.codes)] for one in group_columns(records)]
    return {**named, "groups": groups}


def group_columns(records: RecordColumns) -> Iterator[GroupColumn]:
    """Yield the values of all items in each group."""
    owners, keys, values = records.columns["groups"].entries
    for code, key in enumerate(keys.coded.texts):
        chosen = keys.coded.codes == code
        coded = Column(values.array.filter(chosen)).coded
        of_item = np.full(len(records), -1)
        of_item[owners[chosen]] = coded.codes
        yield GroupColumn(str(key), [str(text) for text in coded.texts], of_item.tolist())


def kind_digits(records: RecordColumns, task: str) -> str:
    """Return the kind of each answer, such as right or refused, as the digit of its place in ``KINDS``."""
    digits = {kind: str(place) for place, kind in enumerate(KINDS)}
    return "".join(digits[kind] for kind in kinds_of(records, task))
