"""Asks a model to label an input, after k solved examples of the same task.

The protocol is that of Reif & Schwartz (NAACL 2024, arXiv:2405.02743): the reading of an item is the distribution over
the labels that it may get. Their paper normalises by length only where labels have different lengths, which is the
default here (``token_mean_if_unequal``). Their code always takes the mean over the tokens and the end token
(``token_mean_with_end``).

A prompt of the style *words* is for models without log-probabilities: the answer is the name of a label, and the
reading gives that label all probability. What is measured on probabilities, such as BiasScore and every calibration,
is then undefined. Both kinds of results never share a table.

Models are judged by the split *test*. The others support the measurement: *bias* holds items on which the prior of a
model is measured, *pool* the examples, and *content_free* inputs without content, from which calibrations learn and
domain-label bias is measured.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import islice

from evaluators.backend import Request
from evaluators.baseline import Facts
from evaluators.task import Asked, ItemFacts, Prompt, TrainsAdapters
from evaluators.tasks.labels.label_answers import CONTENT_FREE, CUT, POSITION, SHOWN
from evaluators.tasks.labels.label_prompts import examples_by_rule, filled, label_prompts, why_no_examples
from evaluators.tasks.labels.label_reading import LabelTask
from schemas.files.record_columns import RecordColumns
from schemas.items.label import LabelItem


class ClassificationTask(TrainsAdapters, LabelTask):
    """A task that reads a distribution over the labels of an input."""

    name = "classification"
    version = "1.0"
    item_shape = "label"
    examples_split = "pool"
    support_splits = frozenset({"bias", "pool", "content_free"})
    default_contexts = (0, 8)
    # As in the scripts of the release, though the paper says 1,000. The standard error of the accuracy is then up to 5
    # points on one task, and a small part of that for the mean over 279 tasks.
    default_limit = 100
    prompts: Mapping[str, Prompt] = label_prompts()

    def requests(self, item: LabelItem, asked: Asked) -> Sequence[Request]:
        """Return the one request about an input."""
        prompt = asked.prompt
        prompt_text = filled(item, prompt, asked.examples, asked.count_tokens)
        facts = dict(self.baseline_facts(self.facts(item)))
        if prompt.max_prompt_tokens is None:
            facts[SHOWN] = _labels(asked.examples[: prompt_text.n_shown])
        # Without the full stop that follows the labels of examples, as in the release.
        options = tuple(f" {label}" for label in item.labels)
        return prompt.asking(prompt_text.text, options=options, outcomes=item.labels, facts=facts)

    def chosen_examples(self, pool: Sequence[LabelItem], prompt: Prompt) -> Sequence[LabelItem]:
        """Return the examples of a prompt that fixes how many of them have the more frequent label."""
        return examples_by_rule(pool, prompt.example_rule or "", prompt.n_examples or 0, prompt.example_set or 0)

    def why_no_examples(self, pool: Sequence[LabelItem], prompt: Prompt) -> str | None:
        """Return why such a prompt finds no examples: other than two labels, too few items of one, or no room."""
        return why_no_examples(pool, prompt)

    def training_items(
        self, pool: Sequence[LabelItem], prompt: Prompt, shown: Sequence[LabelItem], n_items: int
    ) -> Sequence[LabelItem]:
        """Return the items on which the adapter of a prompt is trained, consecutive in the pool from a first index.

        With k examples, set s and n items to train on, the first index is k(s + 1) if k is at least n, and k + ns
        otherwise, as in the code of Reif & Schwartz (§5). The pool wraps around. Items that the prompt shows are
        skipped.
        """
        k, number = prompt.n_examples or 0, prompt.example_set or 0
        first = k * (number + 1) if k >= n_items else k + n_items * number
        left_out = {item.item_id for item in shown}
        order = (pool[(first + step) % len(pool)] for step in range(len(pool)))
        return tuple(islice((item for item in order if item.item_id not in left_out), n_items))

    def shown_items(self, records: RecordColumns) -> frozenset[str]:
        """Return the ids of the items that are shown as examples."""
        ids = records.columns["item_id"].texts
        rows, keys, _ = records.columns["groups"].entries
        return frozenset(str(ids[row]) for row in rows[keys.coded.is_one_of(POSITION)].tolist())

    def facts(self, item: LabelItem) -> ItemFacts:
        """Return the facts of an item."""
        groups = {"category": item.category, "equivalent_labels": "yes" if item.equivalent_labels else "no"}
        if item.content_free is not None:
            groups[CONTENT_FREE] = item.content_free
        return ItemFacts(cluster=item.item_id, target=item.target, reference=item.target, groups=groups)

    def shown_groups(self, item: LabelItem, asked: Asked) -> Mapping[str, str]:
        """Return the labels of the examples that the prompt of an item shows, and the item's position among them.

        Where the model's tokenizer decides how many fit, the labels are left out: the facts of an item must not depend
        on the model.
        """
        groups = {} if asked.position is None else {POSITION: str(asked.position)}
        if asked.prompt.max_prompt_tokens is None:
            prompt_text = filled(item, asked.prompt, asked.examples)
            groups[SHOWN] = _labels(asked.examples[: prompt_text.n_shown])
            if prompt_text.cut is not None:
                groups[CUT] = prompt_text.cut
        return groups

    def baseline_facts(self, facts: Facts) -> Mapping[str, str]:
        """Return the right label, and the labels of the examples that the prompt shows, if known."""
        shown = {SHOWN: facts.groups[SHOWN]} if SHOWN in facts.groups else {}
        return {**super().baseline_facts(facts), **shown}

    def part_text(self, item: LabelItem) -> str:
        """Return the instruction."""
        return item.instruction


def _labels(examples: Sequence[LabelItem]) -> str:
    """Return the labels of examples as a JSON list."""
    return json.dumps([example.target for example in examples], ensure_ascii=False)


TASK = ClassificationTask()
