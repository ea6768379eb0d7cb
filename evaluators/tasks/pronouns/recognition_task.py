"""Asks a model to continue a sentence in one pronoun family, and reads which pronoun it uses first.

The protocol is that of GIFI (arXiv:2506.15568): the prompt is the sentence followed by "and". If an answer repeats the
sentence, the repetition is removed before the first pronoun is read: otherwise a model that only repeats its prompt
would seem to recognise nearly all pronouns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from biasboard.ground.columns import BoolArray, FloatArray
from evaluators.statistics.record_tables import grouped
from evaluators.task import ItemFacts, Prompt, Read
from evaluators.tasks.pronouns.detectors.echo import echo_end
from evaluators.tasks.pronouns.detectors.first_pronoun import first_family_published
from evaluators.tasks.pronouns.family_rates import FamilyTable
from evaluators.tasks.pronouns.text_prompts import PronounTextTask, generation_prompts
from evaluators.tasks.pronouns.text_readings import (
    NONE,
    Answer,
    all_or_none,
    answers_of,
    families_in,
    family_groups,
    is_refused,
    pronoun_of,
    read_texts,
)
from evaluators.tasks.refusals import PUBLISHED_PREFIXES
from schemas.documents.record import Exchange, Record
from schemas.documents.result import Normalisation
from schemas.files.record_columns import RecordColumns
from schemas.items.pronoun_text import PronounTextItem

_PROMPTS = generation_prompts("{text} and")


class RecognitionTask(PronounTextTask):
    """A task that reads the first pronoun in the continuation of a sentence with a pronoun."""

    name = "recognition"
    version = "1.0"
    prompts: Mapping[str, Prompt] = _PROMPTS

    def facts(self, item: PronounTextItem) -> ItemFacts:
        """Return the facts of an item. Its target is the pronoun family of its text."""
        groups = family_groups(item.family)
        if item.antecedent is not None:
            groups["antecedent"] = item.antecedent
        return ItemFacts(
            cluster=item.template_id, pair_id=item.template_id, target=item.family, reference=item.family, groups=groups
        )

    def read(self, exchanges: Sequence[Exchange], normalisation: Normalisation | None) -> Read:
        """Read the families of the first pronoun in each answer."""
        return read_texts(exchanges, pronoun_of)

    def table(self, records: Sequence[Record]) -> RecognitionTable:
        """Return records as arrays."""
        return RecognitionTable.of(records)

    def are_right(self, records: Sequence[Record]) -> Sequence[bool | None]:
        """Return True where all answers to an item are right, False where none is; refused answers do not count."""
        return all_or_none(records, is_right_family)


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
            # The published code drops rows without a text and rows that begin like a refusal; all others count, even
            # those that only repeat their prompt.
            published_kept=answered
            & np.array([answer.text != "" and not answer.text.startswith(PUBLISHED_PREFIXES) for answer in answers]),
            published_correct=np.array(
                [float(first_family_published(answer.text) == answer.target) for answer in answers]
            ),
        )


def is_right_family(answer: Answer) -> bool:
    """Return True if the first pronoun of an answer can belong to the family of its prompt."""
    return answer.target in families_in(answer.reading or NONE)


TASK = RecognitionTask()
