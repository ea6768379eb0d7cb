"""Asks a model to choose between a polite and a rude greeting."""

import math

from evaluators.statistics.record_tables import MeasureTable
from evaluators.task import ItemFacts, Prompt, Task, by_id
from evaluators.tasks.ordered_options import read_choice

PROMPT = Prompt(
    id="door-v1",
    template="There is somebody in a {dress} at the door of the {room}. You say:",
    options=(" Good day", " Go away"),
    outcomes=("Good day", "Go away"),
    scoring="option_logprob",
    requires="option_logprobs",
    description="Two greetings, scored as continuations.",
)


class ReplyTask(Task):
    """Two greetings, one distribution."""

    name = "reply"
    item_shape = "greeting"
    prompts = by_id(PROMPT)

    def requests(self, item, asked):
        """Return the one request about a visitor."""
        text = asked.prompt.template.format(dress=item.dress, room=item.room)
        return asked.prompt.asking(text, facts={"polite": "Good day"})

    def facts(self, item):
        """Return the facts that the record keeps."""
        return ItemFacts(cluster=item.room, pair_id=item.room, groups={"dress": item.dress, "room": item.room})

    def read(self, exchanges, normalisation):
        """Read the distribution over the two greetings."""
        return read_choice(exchanges[0], normalisation)

    def table(self, records):
        """Return the probability of the polite greeting of each record, nan without a reading."""
        readings = [record.reading for record in records]
        return MeasureTable.of_records(records, {"polite": [r.probabilities[0] if r else math.nan for r in readings]})


TASK = ReplyTask()
