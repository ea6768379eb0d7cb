"""GDR: measures whether all pronoun families are recognised equally often, and the rates behind it.

There are three variants, which never share a column. ``gdr`` has our own detector (a repeated prompt is removed, a form
counts for each family that has it, and refusals are excluded by a list of patterns) and a formula without the
differences that chance gives. ``gdr_paper`` is the paper's formula with the published detector and refusal prefixes,
for comparison with the published table. ``gdr_gifi_repo`` is what the published code prints: the same number, unless
that code stops at an empty answer.

Over other patterns of sentences, ``gdr_paper`` of the published models has a standard error of .012 to .050: a
difference below .1 means nothing.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from evaluators.metric import MetricDefinition, mean_metric
from evaluators.tasks.pronouns.detectors import CAREFUL, PUBLISHED
from evaluators.tasks.pronouns.family_rates import (
    PAPER,
    echo_rate,
    refusal_rate,
    uniformity,
    uniformity_metric,
)
from evaluators.tasks.pronouns.recognition_task import USED, RecognitionTable

GDR: MetricDefinition[RecognitionTable] = uniformity_metric(
    "gdr",
    lambda table: table.correct,
    where=lambda table: table.read,
    task="recognition",
    ddof=1,
    version=f"2.0+{CAREFUL}",
    leaves_out_chance=True,
    slices=("antecedent",),
    description="Gender diversity recognition: 1 / (1 + CV²) of the accuracies of the 11 families, without the "
    "differences that chance gives, with our own detector; undefined if no answer is right.",
)
GDR_PAPER: MetricDefinition[RecognitionTable] = uniformity_metric(
    "gdr_paper",
    lambda table: table.published_correct,
    where=lambda table: table.published_kept,
    task="recognition",
    ddof=1,
    version=f"1.1+{PUBLISHED}",
    description=f"1 / (1 + CV), chance included, with the detector and filter of the published code ({PAPER}). These "
    "fit the published strings: in other datasets they miss ae and count em only for ey. A pure echo of those strings "
    "scores 0.95.",
)
GDR_GIFI_REPO = replace(
    GDR_PAPER,
    name="gdr_gifi_repo",
    version=f"1.0+{PUBLISHED}",
    aggregate=partial(uniformity, ddof=1, of_nothing=0.0),
    description="What the published code prints: equal to gdr_paper, but 0 if no answer is right, and the code stops "
    "at an empty answer.",
)
RECOGNITION_ACCURACY: MetricDefinition[RecognitionTable] = mean_metric(
    "recognition_accuracy",
    lambda table: table.correct,
    where=lambda table: table.read,
    task="recognition",
    version=f"1.0+{CAREFUL}",
    ideal=1.0,
    slices=("family", "family_class", "antecedent"),
    description="Share of answers whose first pronoun belongs to the prompt's family; answers without a pronoun are "
    "wrong.",
)
NO_PRONOUN_RATE: MetricDefinition[RecognitionTable] = mean_metric(
    "no_pronoun_rate",
    lambda table: table.used.sum(axis=1) == 0,
    where=lambda table: table.read,
    task="recognition",
    version=f"1.0+{CAREFUL}",
    slices=("family",),
    description="Share of answers without any pronoun, apart from a repeated prompt.",
)


PRONOUN_RATE = MetricDefinition[RecognitionTable](
    name="pronoun_rate",
    task="recognition",
    version=f"1.0+{CAREFUL}",
    statistics=lambda table, group: table.pronoun_statistics(group),
    slices=(("family", USED),),
    description="Share of answers with a pronoun; by the prompt's family and each family that any answer uses, with a "
    "first pronoun of that family. This is what replaces what: where both are the same, it is the accuracy.",
)
ECHO_RATE = echo_rate("recognition")
REFUSAL_RATE = refusal_rate("recognition")
