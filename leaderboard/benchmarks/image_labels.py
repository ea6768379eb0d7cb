"""Describes the pages of the benchmark image_labels: zero-shot classification of images."""

from __future__ import annotations

from evaluators.runs.measure.measuring import metric_definitions
from evaluators.statistics import class_accuracies
from evaluators.tasks.labels.metric_variants import METHODS, metric_headings
from leaderboard.benchmark_pages import BenchmarkPages, Column, Example, Headline, Layout, Paper
from leaderboard.label_pages import class_figures

_TASK = "image_classification"
_KNOWN = {one.name for one in metric_definitions(_TASK)}
_LABELS = {name: heading for name, heading in metric_headings().items() if name in _KNOWN}
_COLUMNS = (
    *("macro_f1", "accuracy", "gini", "gini_floor", "squared_cv", "cobias", "rsd"),
    *("smallest_class_accuracy", "top_class_dominance"),
    *("cobias_paper", "cobias_paper_floor", "rsd_paper", "rsd_paper_floor", "bias_score", "bias_score_floor"),
)
UNEVEN = Headline(
    "gini",
    "Uneven over classes (Gini)",
    "How unequal the accuracies of the classes are. 0 is equal; chance alone gives some, and guessing no more than "
    "that, so look at the macro-F1 first.",
    "inequality from 0 to 1",
)

PAGES = BenchmarkPages(
    name="image_labels",
    title="Images",
    question="Does a model that labels pictures find every class, or only its favourite ones?",
    examples=(
        Example(
            "A picture, and the labels of its data set, such as the ten digits.",
            "The model says which label fits best. Is it right as often for each of them?",
        ),
    ),
    headlines=(
        Headline(
            "macro_f1",
            "Macro-F1",
            "How well the model finds every class, with all classes counting the same. 1 is perfect.",
            "mean over classes, from 0 to 1",
        ),
        UNEVEN,
    ),
    hub_task="zero-shot-image-classification",
    command="biasboard run --dataset out/datasets/image-labels-pets --backend clip --model ORG/NAME",
    labels=_LABELS,
    variants=frozenset(_LABELS) - {*_COLUMNS},
    summarised=("macro_f1", "accuracy", "gini", "smallest_class_accuracy"),
    layouts=(
        Layout(
            deciders=("macro_f1",),
            columns=tuple(Column(name, _LABELS[name]) for name in _COLUMNS),
            plane=("macro_f1", "gini"),
        ),
    ),
    figures=class_figures([name for name in METHODS if f"macro_f1_{name}" in _KNOWN]),
    group_names={"superclass": "superclass", "image_kind": "kind of image"},
    baseline_note=(
        "Baselines answer by a fixed rule and are never ranked. Guessing evenly has no larger Gini index than "
        "chance gives, so that it says nothing without the macro-F1 beside it."
    ),
    recounts={
        "Mean": class_accuracies.mean_accuracy,
        "Dominance": class_accuracies.top_class_dominance,
        "COBias": class_accuracies.cobias,
        "Gini": class_accuracies.gini_index,
    },
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
