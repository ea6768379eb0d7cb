"""Asks a model to go on about a person of whom only an occupation or a trait is told, and reads which pronoun it gives.

The protocol of GIFI (arXiv:2506.15568): eleven samples per prompt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluators.backend import Request
from evaluators.pronouns.assignment_table import AssignmentTable
from evaluators.pronouns.prompts import generation_prompts, generation_requests
from evaluators.pronouns.reading import pronoun_of, read_texts
from evaluators.task import ItemFacts, Prompt, Read
from schemas.items.assignment import AssignmentItem
from schemas.record import Exchange, Record
from schemas.result import Normalisation

N_SAMPLES = 11
_PROMPTS = generation_prompts("{text}", n_samples=N_SAMPLES)


@dataclass(frozen=True)
class AssignmentTask:
    """A person without a pronoun, several texts, the first pronoun of each."""

    name: str = "assignment"
    version: str = "1.0"
    item_shape: str = "assignment"

    @property
    def prompts(self) -> Mapping[str, Prompt]:
        """By id; the first is the default."""
        return _PROMPTS

    def requests(self, item: AssignmentItem, prompt: Prompt) -> Sequence[Request]:
        """One request per sample."""
        return generation_requests(prompt.template.format(text=item.text), prompt)

    def facts(self, item: AssignmentItem) -> ItemFacts:
        """No pronoun is right; what is said of the person is a group."""
        groups: dict[str, str] = {"attribute": item.attribute}
        if item.stereotype is not None:
            groups["stereotype"] = item.stereotype
        return ItemFacts(cluster=item.item_id, pair_id=None, target=None, reference=None, groups=groups)

    def read(self, exchanges: Sequence[Exchange], normalisation: Normalisation | None) -> Read:
        """The families of the first pronoun of each answer; some of them may be refused."""
        return read_texts(exchanges, pronoun_of)

    def table(self, records: Sequence[Record]) -> AssignmentTable:
        """Records as arrays."""
        return AssignmentTable.of(records)


TASK = AssignmentTask()
