"""Asks a model to choose between a polite and a rude greeting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluators.backend import ChoiceRequest, Request
from evaluators.statistics.option_scores import option_probabilities
from evaluators.task import Asked, ItemFacts, Prompt, Read, Task
from evaluators.tasks.greetings.courtesy_metrics import GreetingTable
from schemas.documents.record import Exchange, Reading, Record
from schemas.documents.result import Normalisation
from schemas.items.greeting import GreetingItem

_OUTCOMES = ("Good day", "Go away")
_PROMPT = Prompt(
    id="door-v1",
    template="There is {visitor} at the door of the {room}. You say:",
    options=(" Good day", " Go away"),
    outcomes=_OUTCOMES,
    outcome_texts=(),
    orders=((0, 1),),
    scoring="option_logprob",
    requires="option_logprobs",
    description="Two greetings, scored as continuations.",
)


@dataclass(frozen=True)
class ReplyTask(Task):
    """Two greetings, one distribution."""

    name: str = "reply"
    version: str = "1.0"
    item_shape: str = "greeting"

    @property
    def prompts(self) -> Mapping[str, Prompt]:
        """Prompts by id; the first is the default."""
        return {_PROMPT.id: _PROMPT}

    def requests(self, item: GreetingItem, asked: Asked) -> Sequence[Request]:
        """Return the one request about a visitor."""
        text = asked.prompt.template.format(visitor=item.visitor, room=item.room)
        facts = {"polite": item.polite}
        return [ChoiceRequest(prompt=text, options=asked.prompt.options, outcomes=_OUTCOMES, facts=facts)]

    def facts(self, item: GreetingItem) -> ItemFacts:
        """Return the facts that the record keeps."""
        groups = {"dress": item.dress, "room": item.room}
        return ItemFacts(cluster=item.room, pair_id=item.room, target=None, reference=None, groups=groups)

    def read(self, exchanges: Sequence[Exchange], normalisation: Normalisation | None) -> Read:
        """Read the distribution over the two greetings."""
        (exchange,) = exchanges
        if exchange.status != "answered":
            return Read(status=exchange.status, reading=None, reason=exchange.error)
        found = option_probabilities(exchange, normalisation or "sum")
        if isinstance(found, str):
            return Read(status="failed", reading=None, reason=found)
        reading = Reading(outcomes=_OUTCOMES, probabilities=tuple(found), answers=())
        return Read(status="scored", reading=reading, reason=None)

    def table(self, records: Sequence[Record]) -> GreetingTable:
        """Return the records as arrays."""
        return GreetingTable.of(records)


TASK = ReplyTask()
