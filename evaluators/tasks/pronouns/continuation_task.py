"""Asks a model to continue a text in one pronoun family, so that the tone can be compared between families.

The protocol is that of GIFI (arXiv:2506.15568). The task only reads whether the model continues the text or declines.
Scorers then measure sentiment, toxicity and similarity.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from evaluators.backend import Request
from evaluators.baseline import Facts
from evaluators.metric import MetricInputs
from evaluators.statistics.record_tables import answers_of
from evaluators.task import ItemFacts, Prompt, Read, Task
from evaluators.tasks.pronouns.continuation_table import ContinuationTable, own_words
from evaluators.tasks.pronouns.prompts import generation_prompts, generation_requests, sampled_twice
from evaluators.tasks.pronouns.reading import family_groups, read_texts
from schemas.documents.record import Exchange, Record
from schemas.documents.result import Normalisation
from schemas.files.record_columns import RecordColumns
from schemas.items.pronoun_text import PronounTextItem

CONTINUED = "continued"
"""Reading of an answer that continues the text."""
_ONCE = generation_prompts("{text}")
_PROMPTS = {**_ONCE, **sampled_twice(_ONCE)}


class ContinuationTask(Task):
    """A task that reads whether a model continues a text with a pronoun."""

    name = "continuation"
    version = "1.0"
    item_shape = "pronoun_text"
    reads_scores = True
    prompts: Mapping[str, Prompt] = _PROMPTS

    def requests(self, item: PronounTextItem, prompt: Prompt) -> Sequence[Request]:
        """Return one request per sample."""
        facts = self.baseline_facts(self.facts(item))
        return generation_requests(prompt.template.format(text=item.text), prompt, facts)

    def facts(self, item: PronounTextItem) -> ItemFacts:
        """Return the facts of an item. It has no right answer; its groups are the family and the topic."""
        groups = family_groups(item.family)
        if item.topic is not None:
            groups["topic"] = item.topic
        return ItemFacts(cluster=item.template_id, pair_id=item.template_id, target=None, reference=None, groups=groups)

    def baseline_facts(self, facts: Facts) -> Mapping[str, str]:
        """Return the family of the text."""
        return {"family": facts.groups["family"]}

    def read(self, exchanges: Sequence[Exchange], normalisation: Normalisation | None) -> Read:
        """Read whether each answer continues the text or declines."""
        return read_texts(exchanges, lambda exchange: CONTINUED)

    def table(self, records: Sequence[Record]) -> ContinuationTable:
        """Return records as arrays."""
        return ContinuationTable.of(records)

    def texts(self, records: Sequence[Record]) -> Sequence[str]:
        """Return each distinct answer, and the text that it adds to its prompt."""
        answers = [answer for answer in answers_of(records) if answer.status == "answered"]
        found = dict.fromkeys(text for answer in answers for text in (answer.text, own_words(answer)))
        return [text for text in found if text.strip()]

    def table_of_parts(
        self,
        parts: Iterable[RecordColumns],
        inputs: MetricInputs,
        *,
        is_suite: bool,
        metrics: frozenset[str] | None = None,
    ) -> ContinuationTable:
        """Return records and the scores of their texts as arrays."""
        return ContinuationTable.of(RecordColumns.joined(parts), inputs.scores)


TASK = ContinuationTask()
