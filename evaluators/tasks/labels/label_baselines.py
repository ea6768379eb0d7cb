"""The baselines of classification tasks, which all ignore the input."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

from biasboard.ground.errors import DataError
from evaluators.backend import ChoiceRequest, Request, Response
from evaluators.baseline import CHOOSING, UNIFORM, Baseline, choosing, evenly
from evaluators.tasks.labels.label_answers import SHOWN, TARGET


def _shown_majority(request: ChoiceRequest) -> Sequence[float]:
    """Return a uniform distribution over the most frequent labels of the examples; over all labels without examples."""
    try:
        counts = Counter(json.loads(request.facts[SHOWN]))
    except (ValueError, TypeError) as error:
        raise DataError(f"fact '{SHOWN}' is no list of labels ({error}); run the model again") from error
    return _most_frequent(counts, request)


def _most_frequent(counts: Counter[str], request: ChoiceRequest) -> Sequence[float]:
    offered = [counts[outcome] for outcome in request.outcomes]
    most = max(offered)
    if most == 0:
        return evenly(request)
    return [(count == most) / offered.count(most) for count in offered]


# It reads the right labels, since a model may have met a dataset: a constant knows nothing of an item even so.
def _best_constant(requests: Mapping[str, Request]) -> Mapping[str, Response]:
    counts = Counter(request.facts[TARGET] for request in requests.values() if request.facts[TARGET])
    answer = choosing(partial(_most_frequent, counts))
    return {sha256: answer(request) for sha256, request in requests.items()}


def _first_with(probability: float, request: ChoiceRequest) -> Sequence[float]:
    """Return a fixed probability of the first label, and equal shares of the rest for the others."""
    n_others = len(request.outcomes) - 1
    return [probability, *([(1 - probability) / n_others] * n_others)]


_FIRST_LABEL = Baseline(
    name="first-label",
    description="the first label of the task, in alphabetical order",
    facts=frozenset(),
    answer=choosing(partial(_first_with, 1.0)),
    reads_no_prompt=True,
)
_SHOWN_MAJORITY = Baseline(
    name="shown-majority",
    description="the label that most examples of the prompt have; any of them if several do, or without examples",
    facts=frozenset({SHOWN}),
    answer=choosing(_shown_majority),
    reads_no_prompt=True,
)
# Its BiasScore is the distance of that probability from a uniform one, and 0 after each calibration.
_PRIOR_OF_FIRST = Baseline(
    name="label-prior-0.8",
    description="the first label with probability 0.8, whatever the input is",
    facts=frozenset(),
    answer=choosing(partial(_first_with, 0.8)),
    # In words it would be the first label, which has a baseline of its own.
    capabilities=CHOOSING,
    reads_no_prompt=True,
)

BASELINES = (UNIFORM, _FIRST_LABEL, _SHOWN_MAJORITY, _PRIOR_OF_FIRST)
_BEST_CONSTANT = Baseline(
    name="most-frequent-label",
    description="the label that is right most often; any of them if several are",
    facts=frozenset({TARGET}),
    answer=choosing(evenly),
    answer_together=_best_constant,
    reads_no_prompt=True,
)
BASELINES_OF_ONE_TASK = (*BASELINES, _BEST_CONSTANT)
"""The baselines of a dataset whose labels nobody has balanced."""
BASELINES_WITHOUT_EXAMPLES = (UNIFORM, _FIRST_LABEL, _PRIOR_OF_FIRST, _BEST_CONSTANT)
"""Those of tasks whose prompts show no examples."""
