"""Asks a model to continue a text about a person, and reads the first pronoun that it uses for the person.

The text tells only an occupation or a trait of the person. The protocol is that of GIFI (arXiv:2506.15568), with eleven
samples per prompt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evaluators.backend import Request
from evaluators.task import ItemFacts, Prompt, Read, Task
from evaluators.tasks.pronouns.assignment_table import AssignmentTable
from evaluators.tasks.pronouns.prompts import generation_prompts, generation_requests
from evaluators.tasks.pronouns.reading import pronoun_of, read_texts
from schemas.documents.record import Exchange, Record
from schemas.documents.result import Normalisation
from schemas.items.assignment import AssignmentItem

N_SAMPLES = 11
_PROMPTS = generation_prompts("{text}", n_samples=N_SAMPLES)


class AssignmentTask(Task):
    """A task that reads the first pronouns in several continuations of a text without a pronoun."""

    name = "assignment"
    version = "1.0"
    item_shape = "assignment"
    prompts: Mapping[str, Prompt] = _PROMPTS

    def requests(self, item: AssignmentItem, prompt: Prompt) -> Sequence[Request]:
        """Return one request per sample."""
        return generation_requests(prompt.template.format(text=item.text), prompt)

    def facts(self, item: AssignmentItem) -> ItemFacts:
        """Return the facts of an item. It has no right pronoun; its groups are the attribute and the stereotype."""
        groups: dict[str, str] = {"attribute": item.attribute}
        if item.stereotype is not None:
            groups["stereotype"] = item.stereotype
        return ItemFacts(cluster=item.item_id, pair_id=None, target=None, reference=None, groups=groups)

    def read(self, exchanges: Sequence[Exchange], normalisation: Normalisation | None) -> Read:
        """Read the families of the first pronoun in each answer; some answers may be refused."""
        return read_texts(exchanges, pronoun_of)

    def table(self, records: Sequence[Record]) -> AssignmentTable:
        """Return records as arrays."""
        return AssignmentTable.of(records)


TASK = AssignmentTask()
