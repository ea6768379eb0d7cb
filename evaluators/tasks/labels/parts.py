"""Reports how a model uses the labels of one task: what it chooses, and what it expects before it reads an input."""

from __future__ import annotations

import numpy as np

from biasboard.ground.columns import FloatArray
from evaluators.calibrator import LabelAnswers
from evaluators.statistics.outcomes import predicted_share
from evaluators.task import LabelUse, PartReport

_EVALUATED, _PRIOR = "test", "bias"


def part_report(answers: LabelAnswers) -> PartReport:
    """Return the supports of the labels, the share of the answers that choose each, and the prior of the model.

    The prior is the mean distribution on the split *bias* in which each right label has the same weight: its distance
    from the uniform one is BiasScore.

    Args:
        answers: The answers to one task in one context.
    """
    n_right = np.bincount(
        answers.targets[(answers.splits == _EVALUATED) & (answers.targets >= 0)], minlength=len(answers.labels)
    )
    shares, prior = _shares(answers), _prior(answers)
    return PartReport(
        groups=dict(answers.groups),
        labels=tuple(
            LabelUse(
                name=name,
                n_right=int(n_right[place]),
                predicted_share=None if shares is None else float(shares[place]),
                prior=None if prior is None else float(prior[place]),
            )
            for place, name in enumerate(answers.labels)
        ),
        are_same=bool(answers.offered.all()),
        why_no_share=None if shares is not None else f"no item of split {_EVALUATED} has a reading",
        why_no_prior=None if prior is not None else f"no item of split {_PRIOR} has a reading",
    )


def _shares(answers: LabelAnswers) -> FloatArray | None:
    """Return the share of the evaluated answers that choose each label, shape (k,); None without answers."""
    used = answers.of_split(_EVALUATED)
    if not used.any():
        return None
    shares: FloatArray = predicted_share(answers.probabilities[used]).mean(axis=0)
    return shares


def _prior(answers: LabelAnswers) -> FloatArray | None:
    """Return the mean over right labels of the mean distribution on their items, shape (k,); None without answers."""
    used = answers.of_split(_PRIOR) & (answers.targets >= 0)
    if not used.any():
        return None
    targets = answers.targets[used]
    means = [answers.probabilities[used][targets == target].mean(axis=0) for target in np.unique(targets)]
    prior: FloatArray = np.mean(means, axis=0)
    return prior
