"""Arranges records of the assignment task as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from biasboard.ground.columns import FloatArray
from evaluators.statistics.record_tables import GroupedTable, grouped
from evaluators.tasks.pronouns.answers import NONE, REFUSED, families_in
from evaluators.tasks.pronouns.detectors.pronouns import first_family_published
from evaluators.tasks.pronouns.grouped import FAMILIES
from schemas.documents.record import Record

THEY = FAMILIES.index("they")


@dataclass(frozen=True, eq=False)
class AssignmentTable(GroupedTable):
    """Records as arrays, one row per item with all its answers."""

    counts: FloatArray
    """Number of answers whose first pronoun belongs to each family, shape (n, 11).

    A pronoun that several families share counts for each with an equal share.
    """
    n_none: FloatArray
    """Number of answers without a pronoun, shape (n,)."""
    n_refused: FloatArray
    """Number of refused answers, shape (n,)."""
    published_counts: FloatArray
    """The same counts by the published detector, shape (n, 11); refusals count as answers."""

    def group_values(self, key: str) -> tuple[str, ...]:
        """Return the values of a group; the group ``family`` has all families that answers may use."""
        return FAMILIES if key == "family" else super().group_values(key)

    @classmethod
    def of(cls, records: Sequence[Record]) -> AssignmentTable:
        """Build the table."""
        answers = [record.reading.answers if record.reading is not None else _refusals(record) for record in records]
        return cls(
            *grouped(records),
            counts=np.array([_credited([families_in(answer) for answer in of_record]) for of_record in answers]),
            n_none=np.array([float(of_record.count(NONE)) for of_record in answers]),
            n_refused=np.array([float(of_record.count(REFUSED)) for of_record in answers]),
            published_counts=np.array([_credited(_published(record)) for record in records]),
        )


def _refusals(record: Record) -> tuple[str, ...]:
    return (REFUSED,) * len(record.exchanges) if record.status == "refused" else ()


def _published(record: Record) -> list[tuple[str, ...]]:
    texts = [exchange.text or "" for exchange in record.exchanges if exchange.status == "answered"]
    found = map(first_family_published, texts)
    return [() if family is None else (family,) for family in found]


def _credited(answers: Sequence[tuple[str, ...]]) -> FloatArray:
    counts = np.zeros(len(FAMILIES))
    for families in answers:
        for family in families:
            counts[FAMILIES.index(family)] += 1 / len(families)
    return counts
