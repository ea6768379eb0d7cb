"""Describes the pages of the benchmark image_labels: zero-shot classification of images."""

from __future__ import annotations

from evaluators.runs.measure.measuring import metric_definitions
from evaluators.tasks.labels.metric_variants import metric_headings
from leaderboard.benchmark_pages import BenchmarkPages, Column, Layout, Paper

_TASK = "image_classification"
_KNOWN = {one.name for one in metric_definitions(_TASK)}
_LABELS = {name: heading for name, heading in metric_headings().items() if name in _KNOWN}
_COLUMNS = (
    *("macro_f1", "accuracy", "gini", "cobias", "rsd", "smallest_class_accuracy", "top_class_dominance"),
    *("gini_paper", "gini_paper_floor", "cobias_paper", "cobias_paper_floor", "rsd_paper", "rsd_paper_floor"),
    *("bias_score", "bias_score_floor"),
)

PAGES = BenchmarkPages(
    name="image_labels",
    labels=_LABELS,
    variants=frozenset(_LABELS) - {*_COLUMNS},
    headlines=("macro_f1", "accuracy", "gini", "smallest_class_accuracy"),
    layouts=(
        Layout(
            deciders=("macro_f1",),
            columns=tuple(Column(key=name, label=_LABELS[name], metric=name) for name in _COLUMNS),
            plane=("macro_f1", "gini"),
        ),
    ),
    group_names={"superclass": "superclass", "image_kind": "kind of image"},
    baseline_note=(
        "Baselines answer by a fixed rule and are never ranked. Even guessing has a Gini index² near 0, so that it "
        "says nothing without the macro-F1 beside it."
    ),
    papers=(
        Paper(
            key="lin2026discovering",
            title="Discovering the Hidden Role of Gini Index In Prompt-based Classification",
            authors=("Lin, Ruixi",),
            booktitle="arXiv preprint arXiv:2603.15654",
            year=2026,
            address="https://arxiv.org/abs/2603.15654",
            arxiv="2603.15654",
        ),
    ),
)
