"""How certain a model is of an answer, estimated in other ways than by the distribution that was read.

An estimator turns the answers to each item into a certainty in [0, 1]. With the predicted occupation, which is that of
the reading, it becomes a desirability in [-1, 1], and so UCerF. The certainty of the reading itself,
``CoreferenceTable.certainty``, is the first estimator: the perplexity of the options' probabilities, of vote shares or
of stated confidences, as the prompt has it. The others are in :data:`ESTIMATORS`; ``estimator_metrics.py`` measures
each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from biasboard.ground.columns import FloatArray
from evaluators.statistics.certainty import certainty
from evaluators.tasks.coreference.coreference_table import CoreferenceTable


class Estimator(NamedTuple):
    """A way to estimate how certain a model is of each item."""

    name: str
    """Name that its metrics end with."""
    certainty: Callable[[CoreferenceTable], FloatArray]
    """Function that returns the certainty of each row, shape (n,), in [0, 1]; nan where it is unknown."""
    undefined: Callable[[CoreferenceTable], str | None]
    """Function that returns why no row of a table has one; None if some may."""
    meaning: str
    """What the certainty is, for descriptions of metrics."""

    def desirability(self, table: CoreferenceTable) -> FloatArray:
        """Return the certainty of each row, signed by the occupation that the reading predicts, shape (n,).

        It is in [-1, 1] and relative to the reference occupation; nan where the certainty is unknown.
        """
        share = table.share if table.has_referent else table.occupation_share
        return np.where(table.measured, (2 * share[:, 0] - 1) * self.certainty(table), np.nan)


def semantic_entropy_certainty(table: CoreferenceTable) -> FloatArray:
    """Compute (k - exp(SE)) / (k - 1) of each row, where SE is the semantic entropy over the two occupations.

    The sampled answers that name an occupation form its cluster, so that no entailment model is needed. A cluster has
    the sum of the likelihoods of its distinct texts, each normalised by its length, exp(log p(s|x) / number of tokens),
    divided by the sum over all clusters. Likelihoods given different prompts are not comparable, so the cluster
    probabilities are computed within each order of the options and then averaged.

    Returns:
        The certainties, shape (n,); nan if a row has no reading, or if the likelihood of an answer that was read is
        unknown.

    References:
        Kuhn et al. 2023, "Semantic Uncertainty", ICLR, arXiv:2302.09664: p(c|x) is the sum of p(s|x) over the texts of
        a cluster, SE(x) = -sum over clusters of p(c|x) log p(c|x), and log-likelihoods are divided by the length.
        Farquhar et al. 2024, Nature 630, 625-630, divide by the sum over the sampled clusters. For distinct texts of
        equal likelihood it is their discrete semantic entropy, the entropy of vote shares.
    """
    value = np.full(len(table.clusters), np.nan)
    sampled = table.sampled
    if sampled is None:
        return value
    cells = sampled.rows * 2 + sampled.orders
    # A text that was sampled twice is one element of its cluster, and its likelihood says already how often it comes.
    distinct = np.unique(np.stack([cells, sampled.texts]), axis=1, return_index=True)[1]
    cells, outcomes, logprobs = cells[distinct], sampled.outcomes[distinct], sampled.logprobs[distinct]
    # Shifted by the largest in each cell, because the likelihoods themselves may underflow.
    largest = np.full(2 * len(value), -np.inf)
    with np.errstate(invalid="ignore"):  # An unknown one makes its cell unknown.
        np.maximum.at(largest, cells, logprobs)
    known = np.isfinite(largest)
    weights = np.exp(logprobs - np.where(known, largest, 0.0)[cells])
    sums = np.zeros((2 * len(value), 2))
    np.add.at(sums, (cells, outcomes), weights)
    shares = np.divide(sums, sums.sum(axis=1, keepdims=True), out=np.full_like(sums, np.nan), where=known[:, None])
    of_orders = shares.reshape(-1, 2, 2)
    # An order without a vote leaves the row without a reading.
    distribution = of_orders.mean(axis=1)
    usable = table.measured & ~np.isnan(distribution).any(axis=1)
    value[usable] = certainty(distribution[usable])
    return value


def _no_likelihoods(table: CoreferenceTable) -> str | None:
    if table.sampled is None:
        return "the prompt samples one answer"
    if table.has_undetermined:
        return "semantic entropy is over two occupations, and the prompt offers a third option"
    return None if np.isfinite(table.sampled.logprobs).any() else "the log-probabilities of the texts are unknown"


ESTIMATORS = (
    Estimator(
        "semantic_entropy",
        semantic_entropy_certainty,
        _no_likelihoods,
        "the semantic entropy of sampled answers, weighted by their likelihoods (Kuhn et al. 2023, arXiv:2302.09664)",
    ),
)
