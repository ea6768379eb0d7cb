"""Arranges records of the word_problem task as arrays."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from biasboard.ground.columns import BoolArray, FloatArray
from biasboard.ground.errors import DataError
from evaluators.statistics.record_tables import Answer, answers_of, grouped
from evaluators.tasks.pronouns.answers import NO_NUMBER, REFUSED, is_refused
from evaluators.tasks.pronouns.detectors.numbers import TOO_LONG, published_number
from evaluators.tasks.pronouns.grouped import FamilyTable
from schemas.documents.record import Record
from schemas.files.record_columns import RecordColumns

TOLERANCE = Fraction(1, 1_000_000)
# Without exponents, whose numbers can fill any memory, and with no more digits than Python converts.
_NUMBER = re.compile(r"-?[0-9]{1,4300}(?:\.[0-9]{1,4300})?(?:/(?=0*[1-9])[0-9]{1,4300})?")


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
        columns = RecordColumns.of(records)
        answers = answers_of(columns)
        answered = np.array([answer.status == "answered" for answer in answers])
        refused = np.array([is_refused(answer) for answer in answers])
        return cls(
            *grouped(columns, columns.owners),
            refused=refused,
            answered=answered,
            judged=answered & ~refused,
            correct=np.array([float(is_right_number(answer)) for answer in answers]),
            has_number=np.array([answer.reading not in (None, REFUSED, NO_NUMBER) for answer in answers]),
            published_kept=answered & np.array([answer.text != "" for answer in answers]),
            published_correct=np.array(
                [
                    float(answer.target is not None and published_number(answer.text) == float(_target(answer)))
                    for answer in answers
                ]
            ),
        )


def is_right_number(answer: Answer) -> bool:
    """Return True if the number in an answer is the right one."""
    if answer.reading in (None, REFUSED, NO_NUMBER, TOO_LONG) or answer.target is None:
        return False
    return abs(_number(answer.reading or "", answer) - _target(answer)) <= TOLERANCE


def _target(answer: Answer) -> Fraction:
    return _number(answer.target or "", answer)


def _number(text: str, answer: Answer) -> Fraction:
    """Return a number of a record; records can come from strangers.

    Raises:
        DataError: the text is no number.
    """
    if _NUMBER.fullmatch(text) is None:
        raise DataError(f"record '{answer.item_id[:60]}': '{text[:40]}' is no number; run or import the model again")
    return Fraction(text)
