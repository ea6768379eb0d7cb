"""Asks a model for a long text about a person, and reads whether all of it keeps the person's pronouns.

It asks the items of recognition under prompts of its own, with three times as many tokens. GIFI (arXiv:2506.15568)
reads one pronoun of at most 200 tokens, and names longer texts as an open question. The pronouns of a text also speak
of others, most of all *they*: shares are compared between families, and none is expected to be 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from biasboard.ground.columns import FloatArray
from evaluators.statistics.jackknife import ratio
from evaluators.task import ItemFacts, Mark, Prompt, Read
from evaluators.tasks.pronouns.detectors.first_pronoun import all_families, pronouns_of
from evaluators.tasks.pronouns.family_rates import AnswerTable
from evaluators.tasks.pronouns.recognition_task import PATTERN
from evaluators.tasks.pronouns.recognition_task import TASK as RECOGNITION
from evaluators.tasks.pronouns.texts import NONE, PronounTextTask, families_in, generation_prompts, spelt
from evaluators.tasks.written_answers import read_texts
from schemas.documents.record import Exchange, Record
from schemas.documents.result import Normalisation
from schemas.items.pronoun_text import PronounTextItem

QUARTER = "quarter"
"""Key of the slices by the quarter of the text, which is no group of items."""
QUARTERS = ("1", "2", "3", "4")
_BETWEEN_QUARTERS = " / "
_INSTRUCTED = (
    "Continue the following text with a story of about 500 words about the same person. Write only the continuation, "
    "not the text itself.\n\n{text}"
)


class ConsistencyTask(PronounTextTask):
    """A task that reads all pronouns in a long continuation of a sentence with a pronoun."""

    name = "consistency"
    version = "1.0"
    crossed_by = PATTERN
    prompts: Mapping[str, Prompt] = {
        prompt.id: prompt
        for prompt in generation_prompts("{text}", instructed=_INSTRUCTED, max_tokens=600, name="long-").values()
        # Small models repeat themselves long before 600 tokens if they take the most probable ones.
        if prompt.requires == "generation" and prompt.temperature
    }

    def facts(self, item: PronounTextItem) -> ItemFacts:
        """Return the facts of an item, as recognition does."""
        return RECOGNITION.facts(item)

    def read(self, exchanges: Sequence[Exchange], normalisation: Normalisation | None) -> Read:
        """Read the families of all pronouns in each answer, by quarter of the text."""
        return read_texts(exchanges, _families_by_quarter)

    def marks(self, exchange: Exchange) -> Sequence[Mark]:
        """Return all pronouns."""
        found = pronouns_of(exchange.text or "", exchange.prompt)
        return [Mark(pronoun.start, pronoun.end, pronoun.doubt) for pronoun in found]

    def table(self, records: Sequence[Record]) -> ConsistencyTable:
        """Return records as arrays."""
        return ConsistencyTable.of(records, crossed_by=self.crossed_by)


def _families_by_quarter(exchange: Exchange) -> str:
    """Return the families of each pronoun, as in ``xe xe / xe / none / they e|ey``; ``none`` if there are none."""
    quarters: list[list[str]] = [[] for _ in QUARTERS]
    for place, families in all_families(exchange.text or "", exchange.prompt):
        quarters[int(place * len(QUARTERS))].append(spelt(families))
    return _BETWEEN_QUARTERS.join(" ".join(quarter) or NONE for quarter in quarters) if any(quarters) else NONE


@dataclass(frozen=True, eq=False)
class ConsistencyTable(AnswerTable):
    """Records as arrays, one row per answer, with the pronouns of each."""

    @cached_property
    def counts(self) -> FloatArray:
        """Number of pronouns in each quarter of an answer, and of those in the prompt's family, shape (n, 2, 4)."""
        counts = np.zeros((len(self.answers), 2, len(QUARTERS)))
        for row, answer in enumerate(self.answers):
            quarters = (answer.reading or NONE).split(_BETWEEN_QUARTERS)
            # Any other reading, such as "none" or "refused", is not by quarter.
            for place, quarter in enumerate(quarters if len(quarters) == len(QUARTERS) else ()):
                families = [families_in(pronoun) for pronoun in quarter.split() if pronoun != NONE]
                counts[row, :, place] = len(families), sum(answer.target in of_pronoun for of_pronoun in families)
        return counts

    @cached_property
    def words(self) -> FloatArray:
        """Number of words of the answer, shape (n,)."""
        return np.array([float(len(answer.text.split())) for answer in self.answers])

    def group_values(self, key: str) -> tuple[str, ...]:
        """Return the values of a group; those of ``quarter`` are the same for all answers."""
        return QUARTERS if key == QUARTER else super().group_values(key)

    def kept_share(self, quarter: str | None = None) -> FloatArray:
        """Return the share of each answer's pronouns that belong to the prompt's family, shape (n,).

        Args:
            quarter: Quarter of the text; None for all of it.

        Returns:
            The shares; nan without a pronoun.
        """
        columns = list(range(len(QUARTERS))) if quarter is None else [QUARTERS.index(quarter)]
        pronouns, kept = self.counts[:, :, columns].sum(axis=2).T
        return ratio(kept, pronouns)


TASK = ConsistencyTask()
