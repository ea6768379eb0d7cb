"""Asks a model to label a text, after some labelled texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from biasboard.ground.columns import BoolArray
from evaluators.backend import Request
from evaluators.metric import MetricInputs
from evaluators.statistics.option_scores import are_certain_choices
from evaluators.statistics.record_tables import MeasureTable
from evaluators.task import (
    Asked,
    ItemFacts,
    LabelUse,
    MeasuresParts,
    PartReport,
    Prompt,
    Read,
    ReportsLabels,
    ShowsExamples,
    by_id,
)
from evaluators.tasks.labelling.labelling_metrics import values_of
from evaluators.tasks.ordered_options import read_choice
from schemas.documents.record import Exchange
from schemas.documents.result import Normalisation
from schemas.files.record_columns import RecordColumns
from schemas.items.labelled import LabelledItem


def _prompt(prompt_id: str, k: int, example_set: int | None) -> Prompt:
    return Prompt(
        id=prompt_id,
        template="{instruction}\n\n{examples}Text: {text}\nLabel:",
        orders=((0,),),
        scoring="option_logprob",
        requires="option_logprobs",
        description=f"The labels of the item, after {k} labelled texts.",
        protocol="shown" if k else None,
        n_examples=k,
        example_set=example_set,
    )


class LabellingTask(ShowsExamples, MeasuresParts, ReportsLabels):
    """A choice among the labels of each item."""

    name = "labelling"
    item_shape = "labelled"
    examples_split = "pool"
    support_splits = frozenset({"pool", "bias", "content_free"})
    prompts = by_id(_prompt("plain-v1", 0, None), _prompt("shown-v1", 2, 0), _prompt("shown-other-v1", 2, 1))

    def requests(self, item: LabelledItem, asked: Asked) -> Sequence[Request]:
        """Return the one request about a text."""
        shown = "".join(f"Text: {one.text}\nLabel: {one.target}\n\n" for one in asked.examples)
        text = asked.prompt.template.format(instruction=item.instruction, examples=shown, text=item.text)
        options = tuple(f" {label}" for label in item.labels)
        return asked.prompt.asking(text, options=options, outcomes=item.labels)

    def facts(self, item: LabelledItem) -> ItemFacts:
        """Return the facts that the record keeps."""
        return ItemFacts(cluster=item.item_id, pair_id=None, target=item.target, reference=item.target, groups={})

    def read(self, exchanges: Sequence[Exchange], normalisation: Normalisation | None) -> Read:
        """Read the distribution over the labels."""
        return read_choice(exchanges[0], normalisation)

    def certain_readings(self, records: RecordColumns, normalisation: Normalisation | None) -> BoolArray:
        """Return the mask of the records whose reading follows from their answer."""
        return are_certain_choices(records, normalisation or "sum")

    def table_of_parts(
        self,
        parts: Iterable[RecordColumns],
        inputs: MetricInputs,
        *,
        is_suite: bool,
        metrics: frozenset[str] | None = None,
    ) -> MeasureTable:
        """Return the records of a suite as arrays, one row per part."""
        if not is_suite:
            return MeasureTable.of(values_of(RecordColumns.joined(parts)))
        of_parts = [values_of(records) for records in parts]
        known = {name: [each[name][~np.isnan(each[name])] for each in of_parts] for name in of_parts[0]}
        means = {name: [each.mean() if len(each) else np.nan for each in values] for name, values in known.items()}
        return MeasureTable.of({name: np.array(values) for name, values in means.items()})

    def part_report(self, records: RecordColumns) -> PartReport:
        """Return how often each label is right and chosen; no prior is measured."""
        right = Counter(record.target for record in records if record.split == "test")
        labels = sorted({name for record in records for name in record.exchanges[0].outcomes})
        chosen: Counter[str] = Counter()
        n_answers = 0
        for record in records:
            if record.split == "test" and record.reading is not None:
                n_answers += 1
                chosen[max(zip(record.reading.probabilities, record.reading.outcomes, strict=True))[1]] += 1
        return PartReport(
            groups={"first_label": labels[0]},
            labels=tuple(
                LabelUse(name, right[name], chosen[name] / n_answers if n_answers else None, prior=None)
                for name in labels
            ),
            are_same=True,
            why_no_share=None if n_answers else "nothing was answered",
            why_no_prior="no prior is measured",
        )

    def part_text(self, item: LabelledItem) -> str:
        """Return the instruction."""
        return item.instruction


TASK = LabellingTask()
