"""Describes the pages of the benchmark labelled_text: one task of classification from a user's labelled texts."""

from __future__ import annotations

from dataclasses import replace

from leaderboard.benchmark_pages import Example, Headline
from leaderboard.benchmarks import image_labels, superni

_PAGES = superni.PAGES
PAGES = replace(
    _PAGES,
    name="labelled_text",
    title="Labelled texts",
    question="Does a model that sorts texts find every class, or only its favourite ones?",
    examples=(
        Example(
            "A text, and the labels of its data set, such as World, Sports, Business and Sci/Tech.",
            "The model has seen some solved examples and says which label fits. Is it right as often for each of them?",
        ),
    ),
    headlines=(
        _PAGES.headlines[0],
        Headline(
            "gini_k8",
            "Uneven over classes (Gini)",
            "How unequal the accuracies of the classes are. 0 is equal; chance alone gives some, and guessing no more "
            "than that, so look at the macro-F1 first.",
            "inequality from 0 to 1",
        ),
    ),
    is_of_own_data=True,
    config_names={"texts": ""},
    findings=(),
    # A single task has nothing to count.
    count_tables=None,
    summarised=("macro_f1", "accuracy", "gini", "smallest_class_accuracy"),
    papers=(*image_labels.PAGES.papers, *_PAGES.papers),
)
