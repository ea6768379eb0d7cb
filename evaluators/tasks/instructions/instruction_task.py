"""Asks a model to write something in a given form. The answers are input for builders; nothing is measured.

An answer is read as ``json`` if JSON was asked for and found, and as ``text`` if any text was asked for. The builder
that reads the answers from the records judges their content.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evaluators.backend import GenerateRequest, Request
from evaluators.metric import RecordTable
from evaluators.task import Asked, ItemFacts, Prompt, Read, Task, by_id, quoted, unanswered
from evaluators.tasks.answer_lines import is_refusal
from schemas.documents.record import Exchange, Reading, Record
from schemas.documents.result import Normalisation
from schemas.files.json_answers import NoJsonError, find_json
from schemas.items.instruction import InstructionItem

JSON = "json"
"""Outcome of a request for JSON, and reading of an answer that holds JSON."""
TEXT = "text"
"""Reading of an answer if any text was asked for."""
_MAX_TOKENS = 1024


class InstructionTask(Task):
    """A task that reads whether an answer has the form that was asked for."""

    name = "instruction"
    version = "1.0"
    item_shape = "instruction"
    measures_nothing = True
    prompts: Mapping[str, Prompt] = by_id(
        *(
            Prompt(
                id=f"{name}-v1",
                template="{text}",
                scoring="generation",
                requires="generation",
                description=f"The instruction alone; {how}.",
                max_tokens=_MAX_TOKENS,
                temperature=temperature,
                top_p=1.0,
            )
            for name, temperature, how in (
                ("sampled", 1.0, "sampled at temperature 1"),
                ("greedy", 0.0, "the most probable token each time"),
            )
        )
    )

    def requests(self, item: InstructionItem, asked: Asked) -> Sequence[Request]:
        """Return the one request of an item."""
        prompt = asked.prompt
        return [
            GenerateRequest(
                prompt=prompt.template.format(text=item.text),
                max_tokens=prompt.max_tokens or _MAX_TOKENS,
                temperature=prompt.temperature or 0.0,
                sample=item.sample,
                json_schema=item.json_schema,
                outcomes=() if item.json_schema is None else (JSON,),
            )
        ]

    def facts(self, item: InstructionItem) -> ItemFacts:
        """Return the facts of an item, which has no right answer; its group is its cell."""
        return ItemFacts(cluster=item.cell, groups={"cell": item.cell})

    def read(self, exchanges: Sequence[Exchange], normalisation: Normalisation | None) -> Read:
        """Read whether the answer has the form that was asked for."""
        (exchange,) = exchanges
        if exchange.status != "answered":
            return unanswered(exchange)
        text = exchange.text or ""
        form = JSON if JSON in exchange.outcomes else TEXT
        if form == JSON:
            # A text that holds JSON is an answer, even if it begins like a refusal.
            try:
                find_json(text)
            except NoJsonError as error:
                if is_refusal(text):
                    return Read(status="refused", reason=f"declines: {quoted(text)}")
                return Read(status="unparsed", reason=f"holds no JSON: {error}")
        return Read(status="scored", reading=Reading(outcomes=(), probabilities=(), answers=(form,)))

    def table(self, records: Sequence[Record]) -> RecordTable:
        """Refuse: nothing is measured.

        Raises:
            TypeError: always.
        """
        raise TypeError("the answers of the task 'instruction' are data to build from, and nothing is measured on them")


TASK = InstructionTask()
