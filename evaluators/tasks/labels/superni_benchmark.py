"""The benchmark SuperNI: label bias in classification after k examples (Reif & Schwartz 2024, arXiv:2405.02743)."""

from __future__ import annotations

from evaluators.benchmark import Benchmark, Context, Gate, IndexDefinition, Part
from evaluators.calibrator import calibrations
from evaluators.tasks.labels.label_baselines import BASELINES, baseline_with_prior
from evaluators.tasks.labels.label_measures import MEASURES, QUARTERS
from evaluators.tasks.labels.label_prompts import N_BALANCED, N_EXAMPLES, N_SETS, SHARES, rule_of
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


_CALIBRATED = {
    "macro_f1": (1.0, 1.0, "Macro-F1"),
    "bias_score": (0.0, 1.0, "BiasScore"),
    "gini": (0.0, None, "Squared Gini index"),
    **{name: (1.0, 1.0, MEASURES[name].heading) for name in QUARTERS},
}
"""Ideal, maximum and name of the measures that are compared before and after each calibration."""


def _index(
    metric: str,
    n_examples: int,
    description: str,
    ideal: float = 1.0,
    maximum: float | None = 1.0,
    percent: int | None = None,
) -> IndexDefinition:
    """Return the mean of a metric over the sets of examples, of which the first label may have a chosen share."""
    sets: tuple[int | None, ...] = tuple(range(N_SETS)) if n_examples else (None,)
    shown = f"after {n_examples} examples, mean of {N_SETS} sets" if n_examples else "without examples"
    rule = None if percent is None else rule_of(percent)
    if percent is not None:
        shown += f"; {percent} % of the examples have the first label"
    return IndexDefinition(
        name="_".join(filter(None, (metric, f"k{n_examples}", rule))),
        parts=tuple(
            Part(
                metric,
                _TASK,
                f"Set {number}" if n_examples else "No examples",
                context=Context(n_examples, number, rule),
            )
            for number in sets
        ),
        description=f"{description} {shown}.",
        ideal=ideal,
        maximum=maximum,
        paired=True,
    )


BENCHMARK = Benchmark(
    name="superni",
    primary_metric="macro_f1",
    indices=(
        *(_index(name, _RANKING, title, ideal, top) for name, (ideal, top, title) in _CURVES.items()),
        _index("accuracy", _RANKING, "Accuracy"),
        _index("gini", _RANKING, "Squared Gini index", 0.0, None),
        _index("rsd_paper", _RANKING, "The paper's RSD", 0.0, None),
        _index("bias_score_answers", _RANKING, "BiasScore of answers", 0.0),
        *(_index(name, _RANKING, MEASURES[name].heading) for name in QUARTERS),
        *(
            _index(f"{name}_{method.name}", _RANKING, f"{title} with {method.title}", ideal, top)
            for name, (ideal, top, title) in _CALIBRATED.items()
            for method in calibrations()
            if name in calibrated_measures(method)
        ),
        *(
            _index(name, k, title, ideal, top)
            for name, (ideal, top, title) in _CURVES.items()
            for k in N_EXAMPLES
            if k != _RANKING
        ),
        *(
            _index(name, N_BALANCED, title, ideal, top, percent)
            for name, (ideal, top, title) in _CURVES.items()
            for percent in SHARES
        ),
    ),
    gates=(Gate("accuracy", _TASK),),
    baselines=BASELINES,
    baseline_with_parameter=baseline_with_prior,
    # As in the tables of the paper, with its RSD.
    compared_over_sets={"macro_f1": 1.0, "rsd_paper": 0.0, "bias_score": 0.0},
    headline_metrics=("macro_f1", "accuracy", "rsd", "bias_score"),
    printed_metrics=(
        *("macro_f1", "accuracy", "rsd", "rsd_paper", "bias_score", "bias_score_answers"),
        *(
            f"{name}_{method.name}"
            for name in ("macro_f1", "bias_score")
            for method in calibrations()
            if name in calibrated_measures(method)
        ),
        *("gini", "gini_gini", "n_shown", "cut_rate"),
    ),
)
