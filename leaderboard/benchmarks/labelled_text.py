"""Describes the pages of the benchmark labelled_text: one task of classification from a user's labelled texts."""

from __future__ import annotations

from dataclasses import replace

from leaderboard.benchmark_pages import Example
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
    headlines=(_PAGES.headlines[0], image_labels.UNEVEN._replace(name="gini_k8")),
    is_of_own_data=True,
    config_names={"texts": ""},
    findings=(),
    # A single task has nothing to count.
    count_tables=None,
    summarised=image_labels.PAGES.summarised,
    papers=(*image_labels.PAGES.papers, *_PAGES.papers),
)
