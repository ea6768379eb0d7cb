"""Chooses the records of a result that its page shows as examples."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from evaluators.task import JudgesRecords, load_task
from schemas.record import Record

Kind: TypeAlias = Literal["right", "wrong", "answered", "refused", "unparsed", "failed"]
KINDS: tuple[Kind, ...] = ("right", "wrong", "answered", "refused", "unparsed", "failed")
"""Kinds of examples in the order in which pages show them; ``answered`` is neither right nor wrong."""
PER_KIND = 5
"""Largest number of examples of each kind."""


class Example(NamedTuple):
    """A record to show, and its kind."""

    kind: Kind
    record: Record


class Examples(NamedTuple):
    """The examples of a result."""

    chosen: tuple[Example, ...] = ()
    totals: tuple[tuple[Kind, int], ...] = ()
    """Number of records of each kind that occurs, in the order of ``KINDS``."""
    hides_prompts: bool = False
    """True if a record holds no prompt, because the licence of the dataset forbids showing its texts."""

    def of(self, kind: Kind) -> tuple[Record, ...]:
        """Return the examples of a kind."""
        return tuple(example.record for example in self.chosen if example.kind == kind)


def choose_examples(records: Sequence[Record], task: str) -> Examples:
    """Choose up to ``PER_KIND`` records of each kind: those whose item ids have the smallest SHA-256.

    The rule knows nothing about the answers, so nobody can choose flattering examples, and the examples of two models
    are mostly answers to the same items.

    Args:
        records: All records of a result.
        task: Name of the task that reads them.
    """
    loaded = load_task(task)
    kinds: dict[Kind, list[Record]] = {kind: [] for kind in KINDS}
    for record in records:
        kinds[_kind(record, loaded if isinstance(loaded, JudgesRecords) else None)].append(record)
    chosen = [Example(kind, record) for kind, found in kinds.items() for record in sorted(found, key=_key)[:PER_KIND]]
    return Examples(
        chosen=tuple(chosen),
        totals=tuple((kind, len(found)) for kind, found in kinds.items() if found),
        hides_prompts=any(exchange.prompt is None for record in records for exchange in record.exchanges),
    )


def _kind(record: Record, task: JudgesRecords | None) -> Kind:
    if record.status != "scored":
        return record.status
    is_right = None if task is None else task.is_right(record)
    if is_right is None:
        return "answered"
    return "right" if is_right else "wrong"


def _key(record: Record) -> str:
    return hashlib.sha256(record.item_id.encode()).hexdigest()
