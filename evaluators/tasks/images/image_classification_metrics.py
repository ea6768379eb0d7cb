"""The metrics of the task *image_classification*: those of labels, without what concerns texts and examples."""

from __future__ import annotations

from evaluators.tasks.labels.label_measures import MEASURES, WordSums
from evaluators.tasks.labels.metric_variants import label_metrics

METRICS = label_metrics(
    "image_classification",
    # No prompt shows examples, is cut or answered in words; no image is made of random words, and a dataset of
    # images is no suite.
    without=frozenset(
        {"n_shown", "cut_rate", "looc", "dc"}
        | {name for name, one in MEASURES.items() if one.of_answers or one.sums is WordSums or one.correlates}
    ),
    learned_from={
        "cc": "Calibrated by the mean distribution over images without content: of one colour, and of noise."
    },
)
