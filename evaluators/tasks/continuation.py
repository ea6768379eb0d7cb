"""Asks a model to go on with a text in one pronoun family, whose tone is compared over the families.

The protocol of GIFI (arXiv:2506.15568). What is read here is whether the model goes on at all; scorers of sentiment,
toxicity and similarity read the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluators.backend import Request
from evaluators.pronouns.continuation_table import ContinuationTable, own_words
from evaluators.pronouns.prompts import generation_prompts, generation_requests, sampled_twice
from evaluators.pronouns.reading import family_groups, read_texts
from evaluators.statistics.record_tables import answers_of
from evaluators.task import ItemFacts, Prompt, Read
from evaluators.text_scores import TextScores
from schemas.items.pronoun_text import PronounTextItem
from schemas.record import Exchange, Record
from schemas.result import Normalisation

CONTINUED = "continued"
"""An answer that goes on with the text."""
_ONCE = generation_prompts("{text}")
_PROMPTS = {**_ONCE, **sampled_twice(_ONCE)}


@dataclass(frozen=True)
class ContinuationTask:
    """A text with a pronoun, one continuation."""

    name: str = "continuation"
    version: str = "1.0"
    item_shape: str = "pronoun_text"

    @property
    def prompts(self) -> Mapping[str, Prompt]:
        """By id; the first is the default."""
        return _PROMPTS

    def requests(self, item: PronounTextItem, prompt: Prompt) -> Sequence[Request]:
        """One request per sample."""
        return generation_requests(prompt.template.format(text=item.text), prompt)

    def facts(self, item: PronounTextItem) -> ItemFacts:
        """Nothing is right or wrong; the family is a group."""
        groups = family_groups(item.family)
        if item.topic is not None:
            groups["topic"] = item.topic
        return ItemFacts(cluster=item.template_id, pair_id=item.template_id, target=None, reference=None, groups=groups)

    def read(self, exchanges: Sequence[Exchange], normalisation: Normalisation | None) -> Read:
        """Whether each answer goes on."""
        return read_texts(exchanges, lambda exchange: CONTINUED)

    def table(self, records: Sequence[Record]) -> ContinuationTable:
        """Records as arrays."""
        return ContinuationTable.of(records)

    def texts(self, records: Sequence[Record]) -> Sequence[str]:
        """Every answer, and what it adds to its prompt."""
        answers = [answer for answer in answers_of(records) if answer.exchange.status == "answered"]
        found = dict.fromkeys(text for answer in answers for text in (answer.text, own_words(answer)))
        return [text for text in found if text.strip()]

    def scored_table(self, records: Sequence[Record], scores: TextScores) -> ContinuationTable:
        """Records and the scores of their texts as arrays."""
        return ContinuationTable.of(records, scores)


TASK = ContinuationTask()
