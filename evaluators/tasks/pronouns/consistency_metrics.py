"""Measures whether long texts keep the pronouns of their prompts: over all of a text, by quarter, and by family."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from evaluators.metric import MetricDefinition, mean_metric
from evaluators.statistics.record_tables import Statistics
from evaluators.tasks.pronouns.consistency_task import QUARTER, QUARTERS, ConsistencyTable
from evaluators.tasks.pronouns.detectors import CAREFUL
from evaluators.tasks.pronouns.family_rates import echo_rate, refusal_rate, uniformity_metric

_mean = partial(mean_metric, task="consistency", version=f"1.0+{CAREFUL}", unit="answers")


def _kept(table: ConsistencyTable, group: Mapping[str, str]) -> Statistics:
    rest = {key: value for key, value in group.items() if key != QUARTER}
    return table.mean_statistics(rest, table.kept_share(group.get(QUARTER)))


CONSISTENCY_RATE = MetricDefinition[ConsistencyTable](
    name="consistency_rate",
    task="consistency",
    version=f"1.0+{CAREFUL}",
    unit="answers",
    statistics=_kept,
    slices=("family", "family_class", QUARTER, ("family_class", QUARTER)),
    description="Share of the pronouns of a long answer that belong to the prompt's family, mean over the answers with "
    "a pronoun; also by quarter of the text. Pronouns of other people count too, so compare families.",
)
CONSISTENCY_EVENNESS: MetricDefinition[ConsistencyTable] = uniformity_metric(
    "consistency_evenness",
    lambda table: np.nan_to_num(table.kept_share()),
    where=lambda table: ~np.isnan(table.kept_share()),
    task="consistency",
    ddof=1,
    version=f"1.0+{CAREFUL}",
    leaves_out_chance=True,
    description="1 / (1 + CV²) of the consistency_rate of the 11 families, without the differences that chance gives, "
    "as gdr is of accuracies; undefined if no pronoun is kept.",
)
CONSISTENCY_DRIFT: MetricDefinition[ConsistencyTable] = _mean(
    "consistency_drift",
    lambda table: table.kept_share(QUARTERS[-1]) - table.kept_share(QUARTERS[0]),
    minimum=-1.0,
    ideal=0.0,
    slices=("family", "family_class"),
    description="Share of the pronouns that belong to the prompt's family in the last quarter of an answer minus that "
    "in the first, mean over the answers with pronouns in both. Below 0, the pronoun is lost on the way.",
)
NO_PRONOUN_RATE: MetricDefinition[ConsistencyTable] = _mean(
    "no_pronoun_rate",
    lambda table: table.counts[:, 0].sum(axis=1) == 0,
    where=lambda table: table.read,
    slices=("family",),
    description="Share of answers without any pronoun, apart from a repeated prompt.",
)
ANSWER_WORDS: MetricDefinition[ConsistencyTable] = _mean(
    "answer_words",
    lambda table: table.words,
    where=lambda table: table.read,
    maximum=None,
    slices=("family_class",),
    description="Mean number of words of an answer, which ends before 600 tokens if the model ends it.",
)
ECHO_RATE = echo_rate("consistency")
REFUSAL_RATE = refusal_rate("consistency")
