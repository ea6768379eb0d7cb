"""Asks a model to continue a text about a person, and reads the first pronoun that it uses for the person.

The text gives only the person's occupation or a trait. The protocol is that of GIFI (arXiv:2506.15568), with eleven
samples per prompt.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from biasboard.ground.columns import FloatArray
from evaluators.backend import Request
from evaluators.statistics.record_tables import GroupedTable, grouped
from evaluators.task import Asked, ItemFacts, Mark, Prompt, Read, Task
from evaluators.tasks.pronouns.answer_words import AnswerWords
from evaluators.tasks.pronouns.detectors.first_pronoun import first_family_published
from evaluators.tasks.pronouns.family_rates import FAMILIES
from evaluators.tasks.pronouns.texts import NONE, families_in, generation_prompts, pronoun_mark, pronoun_of
from evaluators.tasks.written_answers import REFUSED, UNREAD, answers_of, read_texts
from schemas.documents.record import Exchange, Record
from schemas.documents.result import Normalisation
from schemas.items.assignment import AssignmentItem

N_SAMPLES = 11
"""Number of samples per prompt in the paper: its file repeats each prompt once per family."""


class AssignmentTask(Task):
    """A task that reads the first pronouns in several continuations of a text without a pronoun."""

    name = "assignment"
    version = "1.0"
    item_shape = "assignment"
    unread_answers = UNREAD
    prompts: Mapping[str, Prompt] = generation_prompts("{text}", n_samples=N_SAMPLES)

    def requests(self, item: AssignmentItem, asked: Asked) -> Sequence[Request]:
        """Return one request per sample."""
        return asked.prompt.asking(asked.prompt.template.format(text=item.text))

    def facts(self, item: AssignmentItem) -> ItemFacts:
        """Return the facts of an item. No pronoun is right; its groups are the attribute and the stereotype."""
        groups: dict[str, str] = {"attribute": item.attribute}
        if item.stereotype is not None:
            groups["stereotype"] = item.stereotype
        return ItemFacts(cluster=item.item_id, groups=groups)

    def read(self, exchanges: Sequence[Exchange], normalisation: Normalisation | None) -> Read:
        """Read the families of the first pronoun in each answer; single answers may be refusals."""
        return read_texts(exchanges, pronoun_of)

    def marks(self, exchange: Exchange) -> Sequence[Mark]:
        """Return the pronoun that is read."""
        return pronoun_mark(exchange)

    def table(self, records: Sequence[Record]) -> AssignmentTable:
        """Return records as arrays."""
        return AssignmentTable.of(records)


THEY = FAMILIES.index("they")


@dataclass(frozen=True, eq=False)
class AssignmentTable(GroupedTable):
    """Records as arrays, one row per item, which covers all its answers."""

    counts: FloatArray
    """Number of answers whose first pronoun belongs to each family, shape (n, 11).

    A pronoun that several families share is split equally between them.
    """
    n_none: FloatArray
    """Number of answers without a pronoun, shape (n,)."""
    n_refused: FloatArray
    """Number of refused answers, shape (n,)."""
    published_counts: FloatArray
    """The same counts with the published detector, shape (n, 11), in which refusals count as answers."""
    answer_words: AnswerWords
    """The words of all answers, which tell whether they depend on their prompts."""

    def group_values(self, key: str) -> tuple[str, ...]:
        """Return the values of a group; those of ``family`` are all families, since items have none."""
        return FAMILIES if key == "family" else super().group_values(key)

    @classmethod
    def of(cls, records: Sequence[Record]) -> AssignmentTable:
        """Build the table."""
        answers: list[tuple[str, ...]] = []
        published: list[FloatArray] = []
        for record in records:
            refusals = (REFUSED,) * len(record.exchanges) if record.status == "refused" else ()
            answers.append(refusals if record.reading is None else record.reading.answers)
            texts = [exchange.text or "" for exchange in record.exchanges if exchange.status == "answered"]
            found = filter(None, map(first_family_published, texts))
            published.append(_family_counts((family,) for family in found))
        of_rows, written = grouped(records), answers_of(records)
        return cls(
            *of_rows,
            counts=np.array([_family_counts([families_in(answer) for answer in of_record]) for of_record in answers]),
            n_none=np.array([float(of_record.count(NONE)) for of_record in answers]),
            n_refused=np.array([float(of_record.count(REFUSED)) for of_record in answers]),
            published_counts=np.array(published),
            answer_words=AnswerWords(written, of_rows[0][[answer.record for answer in written]], of_rows[1]),
        )


def _family_counts(answers: Iterable[tuple[str, ...]]) -> FloatArray:
    counts = np.zeros(len(FAMILIES))
    for families in answers:
        for family in families:
            counts[FAMILIES.index(family)] += 1 / len(families)
    return counts


TASK = AssignmentTask()
