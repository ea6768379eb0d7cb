"""Records of the continuation task as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evaluators.detectors.echo import echo_end
from evaluators.metrics._grouped import BoolArray, GroupedTable, answers_of, grouped
from evaluators.pronoun_answers import REFUSED
from schemas.record import Record


@dataclass(frozen=True, eq=False)
class ContinuationTable(GroupedTable):
    """Rows are answers."""

    answered: BoolArray
    """Shape (n,): an answer came, refused or not."""
    refused: BoolArray
    echoes: BoolArray
    """Begins by repeating the prompt."""

    @classmethod
    def of(cls, records: Sequence[Record]) -> ContinuationTable:
        """Build the table."""
        answers = answers_of(records)
        return cls(
            *grouped([answer.record for answer in answers]),
            answered=np.array([answer.exchange.status == "answered" for answer in answers]),
            refused=np.array([answer.told == REFUSED or answer.record.status == "refused" for answer in answers]),
            echoes=np.array([echo_end(answer.text, answer.exchange.prompt) > 0 for answer in answers]),
        )
