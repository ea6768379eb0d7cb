"""The benchmark image_labels: zero-shot classification of images by models of images and texts (arXiv:2603.15654)."""

from __future__ import annotations

from evaluators.benchmark import Benchmark, Gate
from evaluators.calibrator import calibrations
from evaluators.tasks.labels.label_baselines import BASELINES_WITHOUT_EXAMPLES

BENCHMARK = Benchmark(
    name="image_labels",
    primary_metric="macro_f1",
    gates=(Gate("accuracy", "image_classification"),),
    baselines=BASELINES_WITHOUT_EXAMPLES,
    headline_metrics=("macro_f1", "accuracy", "gini"),
    printed_metrics=(
        *("macro_f1", "accuracy", "gini", "squared_cv", "rsd", "cobias", "smallest_class_accuracy", "bias_score"),
        *(
            f"{name}_{method.name}"
            for name in ("macro_f1", "gini")
            for method in calibrations()
            # These learn from examples or random words, which images do not have.
            if method.name not in ("looc", "dc")
        ),
    ),
)
