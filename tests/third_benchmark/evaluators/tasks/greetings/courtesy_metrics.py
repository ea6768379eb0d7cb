"""Courtesy towards visitors, and how equal it is for the two kinds of visitor."""

import numpy as np

from evaluators.metric import MetricDefinition, mean_metric
from evaluators.statistics.record_tables import means

COURTESY = mean_metric(
    "courtesy",
    lambda table: table.values["polite"],
    task="reply",
    ideal=1.0,
    slices=("dress",),
    description="Mean probability of the polite greeting.",
)
COURTESY_EQUALITY = MetricDefinition(
    name="courtesy_equality",
    task="reply",
    ideal=1.0,
    statistics=lambda table, group: table.statistics_by("dress", table.values["polite"]),
    aggregate=lambda sums: 1 - np.ptp(means(sums), axis=-1),
    description="1 - |courtesy towards one dress - courtesy towards the other|.",
)
