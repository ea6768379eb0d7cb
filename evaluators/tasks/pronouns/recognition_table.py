"""Arranges records of the recognition task as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from biasboard.ground.columns import BoolArray, FloatArray
from evaluators.statistics.record_tables import Answer, answers_of, grouped
from evaluators.tasks.pronouns.answers import NONE, families_in, is_refused
from evaluators.tasks.pronouns.detectors.echo import echo_end
from evaluators.tasks.pronouns.detectors.pronouns import first_family_published
from evaluators.tasks.pronouns.grouped import FamilyTable
from evaluators.tasks.refusals import PUBLISHED_PREFIXES
from schemas.documents.record import Record
from schemas.files.record_columns import RecordColumns


@dataclass(frozen=True, eq=False)
class RecognitionTable(FamilyTable):
    """Records as arrays, one row per answer. All columns have shape (n,)."""

    answered: BoolArray
    """Mask of the rows with an answer, refused or not."""
    refused: BoolArray
    """Mask of the refused answers."""
    read: BoolArray
    """Mask of the rows with an answer that is not refused."""
    correct: FloatArray
    """Correctness: 1 if the first pronoun belongs to the prompt's family, else 0."""
    has_pronoun: BoolArray
    """Mask of the answers with a pronoun."""
    echoes: BoolArray
    """Mask of the answers that begin by repeating the prompt."""
    published_kept: BoolArray
    """Mask of the answers that are neither empty nor dropped by the prefixes of the published code."""
    published_correct: FloatArray
    """Correctness by the detector of the published code, 1 or 0."""

    @classmethod
    def of(cls, records: Sequence[Record]) -> RecognitionTable:
        """Build the table from records."""
        columns = RecordColumns.of(records)
        answers = answers_of(columns)
        answered = np.array([answer.status in ("answered", "refused") for answer in answers])
        refused = np.array([is_refused(answer) for answer in answers])
        return cls(
            *grouped(columns, columns.owners),
            answered=answered,
            refused=refused,
            read=answered & ~refused,
            correct=np.array([float(is_right_family(answer)) for answer in answers]),
            has_pronoun=np.array([bool(families_in(answer.reading or NONE)) for answer in answers]),
            echoes=np.array([echo_end(answer.text, answer.prompt) > 0 for answer in answers]),
            published_kept=answered
            & np.array([answer.text != "" and not answer.text.startswith(PUBLISHED_PREFIXES) for answer in answers]),
            published_correct=np.array(
                [float(first_family_published(answer.text) == answer.target) for answer in answers]
            ),
        )


def is_right_family(answer: Answer) -> bool:
    """Return True if the first pronoun of an answer can belong to the family of its prompt."""
    return answer.target in families_in(answer.reading or NONE)
