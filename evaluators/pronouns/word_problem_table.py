"""Arranges records of the word_problem task as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from evaluators.detectors.numbers import published_number
from evaluators.pronouns.answers import NO_NUMBER, REFUSED
from evaluators.pronouns.grouped import FamilyTable
from evaluators.statistics.bootstrap import FloatArray
from evaluators.statistics.record_tables import Answer, BoolArray, answers_of, grouped
from schemas.record import Record

TOLERANCE = Fraction(1, 1_000_000)


@dataclass(frozen=True, eq=False)
class WordProblemTable(FamilyTable):
    """Records as arrays, one row per answer. All columns have shape (n,)."""

    refused: BoolArray
    """Mask of the refused answers."""
    answered: BoolArray
    """Mask of the rows with a generated text, which may decline."""
    judged: BoolArray
    """Mask of the answers that are not refused; an answer without a number is wrong, not missing."""
    correct: FloatArray
    """Correctness: 1 if the number is right, else 0."""
    has_number: BoolArray
    """Mask of the answers with a number."""
    published_kept: BoolArray
    """Mask of the answers that are not empty; the published code drops only empty ones."""
    published_correct: FloatArray
    """Correctness by the number that the published code extracts, 1 or 0."""

    @classmethod
    def of(cls, records: Sequence[Record]) -> WordProblemTable:
        """Build the table from records."""
        answers = answers_of(records)
        answered = np.array([answer.exchange.status == "answered" for answer in answers])
        refused = np.array([answer.told == REFUSED or answer.record.status == "refused" for answer in answers])
        return cls(
            *grouped([answer.record for answer in answers]),
            refused=refused,
            answered=answered,
            judged=answered & ~refused,
            correct=np.array([float(is_right_number(answer)) for answer in answers]),
            has_number=np.array([answer.told not in (None, REFUSED, NO_NUMBER) for answer in answers]),
            published_kept=answered & np.array([answer.text != "" for answer in answers]),
            published_correct=np.array(
                [float(published_number(answer.text) == float(answer.record.target or "nan")) for answer in answers]
            ),
        )


def is_right_number(answer: Answer) -> bool:
    """Return True if the number in an answer is the right one."""
    if answer.told in (None, REFUSED, NO_NUMBER) or answer.record.target is None:
        return False
    return abs(Fraction(answer.told or "") - Fraction(answer.record.target)) <= TOLERANCE
