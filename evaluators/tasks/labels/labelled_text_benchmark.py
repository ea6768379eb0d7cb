"""The benchmark labelled_text: one task of classification, measured and ranked as superni is (arXiv:2603.15654)."""

from __future__ import annotations

from dataclasses import replace

from evaluators.tasks.labels import superni_benchmark
from evaluators.tasks.labels.label_baselines import BASELINES_OF_ONE_TASK

_OF_SUITES = superni_benchmark.BENCHMARK
BENCHMARK = replace(
    _OF_SUITES,
    name="labelled_text",
    baselines=BASELINES_OF_ONE_TASK,
    headline_metrics=("macro_f1", "accuracy", "gini", "smallest_class_accuracy"),
    printed_metrics=(
        *("macro_f1", "accuracy", "gini", "squared_cv", "cobias_paper", "top_class_dominance"),
        *("smallest_class_accuracy", "rsd_paper", "bias_score", "domain_label_bias"),
        *(name for name in _OF_SUITES.printed_metrics if name.startswith("macro_f1_")),
        *("gini_gini", "n_shown", "cut_rate"),
    ),
)
