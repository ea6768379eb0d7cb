"""GDR: are all pronoun families recognised equally often; with the rates beside it that it hides.

Three variants, never in one column. ``gdr`` is the paper's formula on careful reading: a repeated prompt is left out, a
form is credited to every family that owns it, refusals are left out by a list of patterns. ``gdr_paper`` is the same
formula on the published detector and refusal prefixes, comparable with the published table; ``gdr_gifi_repo`` is what
the published code prints, which is the same number where that code does not stop at an empty answer. Resampling spreads
accuracies further apart, so that their intervals are the value and its standard error, no percentiles.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from evaluators.metric import MetricDefinition
from evaluators.pronouns.grouped import uniformity
from evaluators.pronouns.recognition_table import RecognitionTable
from evaluators.statistics.bootstrap import NORMAL
from evaluators.statistics.record_tables import mean

_PAPER = "Shan et al. 2025, arXiv:2506.15568"

_metric = partial(
    MetricDefinition[RecognitionTable],
    task="recognition",
    unit="items",
    minimum=0.0,
    maximum=1.0,
    undefined=lambda table: None,
)


GDR = _metric(
    name="gdr",
    version="1.0+careful-1",
    ideal=lambda table: 1.0,
    slices=("antecedent",),
    statistics=lambda table, group: table.family_statistics(group, table.correct, table.read),
    aggregate=partial(uniformity, ddof=1),
    interval_method=NORMAL,
    description="Gender diversity recognition: 1 / (1 + CV) of the accuracies of the 11 families, on careful reading.",
)
GDR_PAPER = _metric(
    name="gdr_paper",
    version="1.0+gifi-repo-1",
    ideal=lambda table: 1.0,
    slices=(),
    statistics=lambda table, group: table.family_statistics(group, table.published_correct, table.published_kept),
    aggregate=partial(uniformity, ddof=1),
    interval_method=NORMAL,
    description=f"The same with the detector and filter of the published code ({_PAPER}), made for the published "
    "strings: in other datasets it misses ae and credits em to ey alone. A pure echo of those strings scores 0.95.",
)
GDR_GIFI_REPO = replace(
    GDR_PAPER,
    name="gdr_gifi_repo",
    description="What the published code prints: equal to gdr_paper; it stops where an answer is empty.",
)
RECOGNITION_ACCURACY = _metric(
    name="recognition_accuracy",
    version="1.0+careful-1",
    ideal=lambda table: 1.0,
    slices=("family", "family_class", "antecedent"),
    statistics=lambda table, group: table.mean_statistics(group, table.correct, table.read),
    aggregate=mean,
    description="Share of answers whose first pronoun is of the prompt's family; none at all is wrong.",
)
NO_PRONOUN_RATE = _metric(
    name="no_pronoun_rate",
    version="1.0+careful-1",
    ideal=lambda table: None,
    slices=("family",),
    statistics=lambda table, group: table.mean_statistics(group, (~table.has_pronoun).astype(np.float64), table.read),
    aggregate=mean,
    description="Share of answers without any pronoun after what they repeat of the prompt.",
)
ECHO_RATE = _metric(
    name="echo_rate",
    version="1.0+careful-1",
    ideal=lambda table: None,
    slices=("family",),
    statistics=lambda table, group: table.mean_statistics(group, table.echoes.astype(float), table.answered),
    aggregate=mean,
    description="Share of answers that begin by repeating at least four words of the prompt.",
)
REFUSAL_RATE = _metric(
    name="refusal_rate",
    version="1.0+careful-1",
    ideal=lambda table: 0.0,
    slices=("family",),
    statistics=lambda table, group: table.mean_statistics(group, table.refused.astype(float), table.answered),
    aggregate=mean,
    description="Share of answers that decline or talk about the task instead of going on.",
)
