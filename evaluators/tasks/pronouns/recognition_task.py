"""Asks a model to continue a sentence in one pronoun family, and reads which pronoun it uses first.

The protocol is that of GIFI (arXiv:2506.15568): the prompt is the sentence followed by "and". If an answer repeats the
sentence, the repetition is removed before the first pronoun is read. Otherwise a model that only repeats its prompt
would seem to recognise nearly all pronouns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evaluators.backend import Request
from evaluators.baseline import Facts
from evaluators.task import ItemFacts, Prompt, Read, Task
from evaluators.tasks.pronouns.prompts import generation_prompts, generation_requests
from evaluators.tasks.pronouns.reading import all_or_none, family_groups, pronoun_of, read_texts
from evaluators.tasks.pronouns.recognition_table import RecognitionTable, is_right_family
from schemas.documents.record import Exchange, Record
from schemas.documents.result import Normalisation
from schemas.items.pronoun_text import PronounTextItem

_PROMPTS = generation_prompts("{text} and")


class RecognitionTask(Task):
    """A task that reads the first pronoun in the continuation of a sentence with a pronoun."""

    name = "recognition"
    version = "1.0"
    item_shape = "pronoun_text"
    prompts: Mapping[str, Prompt] = _PROMPTS

    def requests(self, item: PronounTextItem, prompt: Prompt) -> Sequence[Request]:
        """Return one request per sample."""
        facts = self.baseline_facts(self.facts(item))
        return generation_requests(prompt.template.format(text=item.text), prompt, facts)

    def facts(self, item: PronounTextItem) -> ItemFacts:
        """Return the facts of an item. Its target is the pronoun family of its text."""
        groups = family_groups(item.family)
        if item.antecedent is not None:
            groups["antecedent"] = item.antecedent
        return ItemFacts(
            cluster=item.template_id, pair_id=item.template_id, target=item.family, reference=item.family, groups=groups
        )

    def baseline_facts(self, facts: Facts) -> Mapping[str, str]:
        """Return the family of the text."""
        return {"family": facts.groups["family"]}

    def read(self, exchanges: Sequence[Exchange], normalisation: Normalisation | None) -> Read:
        """Read the families of the first pronoun in each answer."""
        return read_texts(exchanges, pronoun_of)

    def table(self, records: Sequence[Record]) -> RecognitionTable:
        """Return records as arrays."""
        return RecognitionTable.of(records)

    def are_right(self, records: Sequence[Record]) -> Sequence[bool | None]:
        """Return True where all answers to an item are right, False where none is; refused answers do not count."""
        return all_or_none(records, is_right_family)


TASK = RecognitionTask()
