"""Chooses the records of a result that its page shows as examples."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias, cast

from evaluators.task import JudgesRecords, load_task
from schemas.record import Record
from schemas.record_columns import RecordColumns

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
    columns = RecordColumns.of(records)
    loaded = load_task(task)
    judged = loaded.are_right(columns) if isinstance(loaded, JudgesRecords) else [None] * len(columns)
    kinds: dict[Kind, list[int]] = {kind: [] for kind in KINDS}
    for place, (status, is_right) in enumerate(zip(columns.columns["status"].texts, judged, strict=True)):
        kinds[_kind(status, is_right)].append(place)
    hashes = [hashlib.sha256(str(item).encode()).hexdigest() for item in columns.columns["item_id"].texts]
    return Examples(
        chosen=tuple(
            Example(kind, columns[place])
            for kind, found in kinds.items()
            for place in sorted(found, key=hashes.__getitem__)[:PER_KIND]
        ),
        totals=tuple((kind, len(found)) for kind, found in kinds.items() if found),
        hides_prompts=not columns.exchanges["prompt"].known.all(),
    )


def _kind(status: str | None, is_right: bool | None) -> Kind:
    if status != "scored":
        return cast(Kind, status)
    if is_right is None:
        return "answered"
    return "right" if is_right else "wrong"
