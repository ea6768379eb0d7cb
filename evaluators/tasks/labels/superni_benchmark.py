"""The benchmark SuperNI: label bias in classification after k examples (Reif & Schwartz 2024, arXiv:2405.02743)."""

from __future__ import annotations

from collections.abc import Iterator

from evaluators.benchmark import Benchmark, Gate, IndexDefinition, Part, ShownContext
from evaluators.calibrator import Calibration, calibrations
from evaluators.tasks.labels.label_baselines import BASELINES
from evaluators.tasks.labels.label_measures import MEASURES, QUARTERS
from evaluators.tasks.labels.label_prompts import N_BALANCED, N_COMPARED, N_EXAMPLES, N_FREQUENT, N_SETS, rule_of
from evaluators.tasks.labels.metric_variants import calibrated_measures

_TASK = "classification"
_RANKING = 8
"""Number of examples at which models are ranked, as in the tables of the paper."""
_CURVES = {
    "macro_f1": (1.0, 1.0, "Macro-F1"),
    "rsd": (0.0, None, "Squared RSD"),
    "bias_score": (0.0, 1.0, "BiasScore"),
}
"""Ideal, maximum and name of the measures that are shown for every number of examples."""
_TABLE = {
    "macro_f1": (1.0, 1.0, "Macro-F1"),
    "rsd_paper": (0.0, None, "The paper's RSD"),
    "bias_score": (0.0, 1.0, "BiasScore"),
}
"""Ideal, maximum and name of the measures that the paper's tables compare over sets of examples."""
_EVENNESS = {
    "gini": (0.0, 1.0, "Gini index"),
    "squared_cv": (0.0, None, "Squared coefficient of variation of the class accuracies"),
}
"""Ideal, maximum and name of the measures of the class accuracies alone: that of the paper, and one without chance."""
_CALIBRATED = {**_CURVES, **_EVENNESS, **{name: (1.0, 1.0, MEASURES[name].heading) for name in QUARTERS}}
"""Ideal, maximum and name of the measures that are compared before and after each calibration."""


def _index(
    metric: str,
    n_examples: int,
    description: str,
    ideal: float = 1.0,
    maximum: float | None = 1.0,
    n_frequent: int | None = None,
    n_sets: int = N_SETS,
) -> IndexDefinition:
    """Return the mean of a metric over sets of examples, of which a chosen number may have the more frequent label."""
    shown = f"after {n_examples} examples, mean of {n_sets} sets" if n_examples else "without examples"
    rule = None if n_frequent is None else rule_of(n_frequent)
    if n_frequent is not None:
        shown += f"; {n_frequent} of the examples have the more frequent of two labels"
    other_sets = None if n_sets == N_SETS else sets_suffix(n_sets)
    return IndexDefinition(
        name="_".join(filter(None, (metric, f"k{n_examples}", rule, other_sets))),
        parts=tuple(
            Part(
                metric,
                _TASK,
                "No examples" if context.example_set is None else f"Set {context.example_set}",
                context=context,
            )
            for context in contexts_of(n_examples, rule, n_sets)
        ),
        description=f"{description} {shown}.",
        ideal=ideal,
        maximum=maximum,
        paired=True,
        own_items=rule is not None,
    )


def contexts_of(n_examples: int, rule: str | None = None, n_sets: int = N_SETS) -> Iterator[ShownContext]:
    """Yield the sets of a number of examples; without examples there is one context."""
    yield from (ShownContext(n_examples, number, rule) for number in (range(n_sets) if n_examples else (None,)))


def sets_suffix(n_sets: int) -> str:
    """Return the end of the name of an index that is a mean over another number of sets than usual."""
    return f"{n_sets}sets"


def calibrated_at(measure: str, method: Calibration, n_examples: int) -> bool:
    """Return True if a measure has an index after a calibration and a number of examples."""
    is_known = measure in calibrated_measures(method) and (n_examples > 0 or not method.needs_examples)
    return is_known and (n_examples == _RANKING or measure in _CURVES)


BENCHMARK = Benchmark(
    name="superni",
    primary_metric="macro_f1",
    indices=(
        *(_index(name, _RANKING, title, ideal, top) for name, (ideal, top, title) in _CURVES.items()),
        _index("accuracy", _RANKING, "Accuracy"),
        *(_index(name, _RANKING, title, ideal, top) for name, (ideal, top, title) in _EVENNESS.items()),
        _index("rsd_paper", _RANKING, "The paper's RSD", 0.0, None),
        _index("bias_score_answers", _RANKING, "BiasScore of answers", 0.0),
        *(
            _index("domain_label_bias", k, "Domain-label bias", 0.0)
            for k in sorted(N_EXAMPLES, key=lambda k: k != _RANKING)
        ),
        *(_index(name, _RANKING, MEASURES[name].heading) for name in QUARTERS),
        *(
            _index(f"{name}_{method.name}", k, f"{title} with {method.title}", ideal, top)
            # Those after the number of examples that ranks come first, as they are shown in tables.
            for k in sorted(N_EXAMPLES, key=lambda k: k != _RANKING)
            for name, (ideal, top, title) in _CALIBRATED.items()
            for method in calibrations()
            if calibrated_at(name, method, k)
        ),
        *(
            _index(name, k, title, ideal, top)
            for name, (ideal, top, title) in _CURVES.items()
            for k in N_EXAMPLES
            if k != _RANKING
        ),
        *(_index(name, _RANKING, title, ideal, top, n_sets=N_COMPARED) for name, (ideal, top, title) in _TABLE.items()),
        *(
            _index(name, N_BALANCED, title, ideal, top, n_frequent)
            for name, (ideal, top, title) in _CURVES.items()
            for n_frequent in N_FREQUENT
        ),
    ),
    gates=(Gate("accuracy", _TASK),),
    baselines=BASELINES,
    # As in the tables of the paper, with its RSD.
    compared_over_sets={name: ideal for name, (ideal, *_) in _TABLE.items()},
    headline_metrics=("macro_f1", "accuracy", "rsd", "bias_score"),
    printed_metrics=(
        *("macro_f1", "accuracy", "rsd", "rsd_paper", "bias_score", "bias_score_answers", "domain_label_bias"),
        *(
            f"{name}_{method.name}"
            for name in ("macro_f1", "bias_score")
            for method in calibrations()
            if name in calibrated_measures(method)
        ),
        *("gini", "gini_gini", "squared_cv", "n_shown", "cut_rate"),
    ),
)
