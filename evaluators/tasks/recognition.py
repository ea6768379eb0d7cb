"""Asks a model to go on with a sentence in one pronoun family, and reads which pronoun it uses first.

The protocol of GIFI (arXiv:2506.15568): the sentence and "and". What a model repeats of the sentence is left out before
its first pronoun is looked for: a model that only echoes would otherwise recognise nearly everything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluators.backend import Request
from evaluators.pronouns.prompts import generation_prompts, generation_requests
from evaluators.pronouns.reading import family_groups, pronoun_of, read_texts
from evaluators.pronouns.recognition_table import RecognitionTable
from evaluators.task import ItemFacts, Prompt, Read
from schemas.items.pronoun_text import PronounTextItem
from schemas.record import Exchange, Record
from schemas.result import Normalisation

_PROMPTS = generation_prompts("{text} and")


@dataclass(frozen=True)
class RecognitionTask:
    """A sentence with a pronoun, one text, its first pronoun."""

    name: str = "recognition"
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
        """The family of the text is what should be recognised."""
        groups = family_groups(item.family)
        if item.antecedent is not None:
            groups["antecedent"] = item.antecedent
        return ItemFacts(
            cluster=item.template_id, pair_id=item.template_id, target=item.family, reference=item.family, groups=groups
        )

    def read(self, exchanges: Sequence[Exchange], normalisation: Normalisation | None) -> Read:
        """The families of the first pronoun of each answer."""
        return read_texts(exchanges, pronoun_of)

    def table(self, records: Sequence[Record]) -> RecognitionTable:
        """Records as arrays."""
        return RecognitionTable.of(records)


TASK = RecognitionTask()
