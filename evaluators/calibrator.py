"""The interface of a calibration, which learns from some answers how to correct a model's distributions over labels.

Each file ``NAME_calibration.py`` in ``evaluators/calibration`` is a calibration. It holds ``CALIBRATION``, an object of
a class that extends :class:`Calibration`. A calibration is fitted once for each task and context (prompt with its
examples) on stored distributions, and applied to stored distributions of the same task and context. No model is asked
again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from biasboard.ground.columns import BoolArray, FloatArray, IntArray
from biasboard.ground.errors import ConfigError
from biasboard.ground.kinds import CALIBRATIONS

# The released code divides by priors unchecked, and fails if one is 0.
SMALLEST_PRIOR = 1e-6
"""Smallest number that a correction divides by: a prior over its uniform probability, or the prior itself."""


class LabelAnswers(NamedTuple):
    """A model's answers to the items of one task in one context: n items and k labels."""

    config: str
    """Name of the task's config."""
    labels: tuple[str, ...]
    """All labels that any item offers, sorted."""
    probabilities: FloatArray
    """Distribution over the labels, shape (n, k); 0 for labels that an item does not offer, nan without a reading."""
    offered: BoolArray
    """Mask of the labels that each item offers, shape (n, k)."""
    targets: IntArray
    """Index of the right label, shape (n,); -1 if there is none."""
    splits: npt.NDArray[np.str_]
    """Name of each item's split, shape (n,)."""
    content_free: npt.NDArray[np.str_]
    """Kind of content-free input, shape (n,); "" for inputs with content."""
    positions: IntArray
    """Position of each item among the examples that the prompt shows, shape (n,); -1 for non-examples."""
    n_shown: IntArray
    """Number of examples that each item's prompt shows, shape (n,); -1 if it is unknown."""
    groups: dict[str, str]
    """Facts about the task, by name."""
    is_cut: BoolArray
    """Mask of the items whose input or instruction was shortened, shape (n,)."""
    is_trained: BoolArray
    """Mask of the items that an adapter of the model was trained on, shape (n,)."""
    in_words: bool = False
    """True if the model answers with the name of a label, which then has all probability of its distribution."""

    @property
    def has_reading(self) -> BoolArray:
        """The mask of the items with a distribution, shape (n,)."""
        return ~np.isnan(self.probabilities[:, 0])

    @property
    def evenly(self) -> FloatArray:
        """The uniform distribution over the labels that each item offers, shape (n, k)."""
        shares: FloatArray = self.offered / np.maximum(self.offered.sum(axis=1, keepdims=True), 1)
        return shares

    def of_split(self, name: str) -> BoolArray:
        """Return the mask of the items of a split with a distribution, shape (n,)."""
        of_split: BoolArray = self.has_reading & (self.splits == name)
        return of_split

    @property
    def unshown_pool(self) -> BoolArray:
        """The mask of the pool's items with a distribution whose labels the model has not seen, shape (n,).

        They are not examples of this context, and no adapter was trained on them.
        """
        return self.of_split("pool") & (self.positions < 0) & ~self.is_trained

    @property
    def shown(self) -> BoolArray:
        """The mask of the examples of this context with a distribution, shape (n,)."""
        return self.of_split("pool") & (self.positions >= 0)


class Correction(NamedTuple):
    """A correction of distributions: ``q ∝ p · (u / prior) ** strength``, with the uniform distribution u."""

    ratios: FloatArray
    """Prior of each label divided by its probability under u, shape (m, k). Row j is for prompts that show j examples;
    a single row is for all prompts. A row of nan means no correction."""
    strength: float = 1.0

    def apply(self, answers: LabelAnswers) -> FloatArray:
        """Return the corrected distributions, shape (n, k); nan where there is no correction or no reading."""
        rows = self._rows(answers)
        weights = np.maximum(rows, SMALLEST_PRIOR) ** -self.strength
        odds = answers.probabilities * np.where(np.isnan(rows), np.nan, weights)
        corrected: FloatArray = odds / odds.sum(axis=1, keepdims=True)
        return corrected

    def apply_as_in_paper(self, answers: LabelAnswers) -> FloatArray:
        """Return the softmax of ``p / prior`` instead of the renormalised quotient, shape (n, k).

        References:
            Reif & Schwartz 2024, arXiv:2405.02743: the paper has a softmax, its code renormalises. The most probable
            label is the same.
        """
        quotients = answers.probabilities / np.maximum(self._rows(answers) * answers.evenly, SMALLEST_PRIOR)
        odds = np.exp(quotients - quotients.max(axis=1, keepdims=True)) * answers.offered
        softmax: FloatArray = odds / odds.sum(axis=1, keepdims=True)
        return softmax

    def _rows(self, answers: LabelAnswers) -> FloatArray:
        # An unknown number, -1, takes the last row, that for all examples, as the released code does.
        return self.ratios[np.minimum(answers.n_shown, len(self.ratios) - 1)]


class Calibration(ABC):
    """A way to learn a correction from the answers to one task in one context."""

    name: str
    """The suffix of the names of its metrics, such as ``looc``."""
    label: str
    """The abbreviation in tables, such as ``LOOC``."""
    title: str
    """The full name of the method."""
    description: str
    """A sentence that says what it learns from."""
    version: str = "1.0"
    """The version; raised by each change that can alter a value."""
    is_of_paper: bool = False
    """True if the paper describes it with a softmax, which is then measured too."""
    learns_from: frozenset[str] = frozenset()
    """The splits whose right labels it learns from; metrics on these splits are not calibrated."""

    needs_examples: bool = False
    """True if it learns from the examples that the prompt shows, so that there is no correction without any."""

    @abstractmethod
    def fit(self, answers: LabelAnswers) -> Correction | str:
        """Return the correction, or the reason why there is none."""


class PriorCalibration(Calibration):
    """A calibration whose prior is the mean distribution over certain items, see :meth:`rows`."""

    no_items: str
    """The reason to give for having no correction if there are no such items."""

    @abstractmethod
    def rows(self, answers: LabelAnswers) -> BoolArray:
        """Return the mask of these items, each with a distribution, shape (n,)."""

    def fit(self, answers: LabelAnswers) -> Correction | str:
        """Return the correction, or the reason why there is none."""
        rows = self.rows(answers)
        return Correction(prior_ratio(answers, rows)) if rows.any() else self.no_items


class ContentFreeCalibration(PriorCalibration):
    """A calibration whose prior is the mean distribution over one kind of content-free inputs."""

    content_free: str
    """The kind, such as ``placeholder``."""

    def rows(self, answers: LabelAnswers) -> BoolArray:
        """Return the mask of these items, each with a distribution, shape (n,)."""
        mask: BoolArray = answers.has_reading & (answers.content_free == self.content_free)
        return mask


class StoredCalibration(Calibration):
    """A calibration whose correction, one weight per label, is stored after the fit and never fitted anew.

    A fit that compares predictions can end differently on another processor: the last digit of a probability can decide
    a prediction, and one prediction moves a value by far more than verification tolerates.
    """

    @abstractmethod
    def fitted_items(self, answers: LabelAnswers) -> BoolArray:
        """Return the mask of the items to fit on, shape (n,)."""

    @abstractmethod
    def obstacle(self, answers: LabelAnswers) -> str | None:
        """Return the reason why nothing can be fitted; None if it can."""


def prior_ratio(answers: LabelAnswers, rows: BoolArray, weights: FloatArray | None = None) -> FloatArray:
    """Return the mean distribution of some items divided by the mean of their uniform distributions, shape (1, k).

    Args:
        answers: The answers.
        rows: Mask of the items with a distribution to average, shape (n,).
        weights: Weight of each of these items, summing to 1; None for equal weights.
    """
    shares = np.full(int(rows.sum()), 1 / rows.sum()) if weights is None else weights
    prior, even = shares @ answers.probabilities[rows], shares @ answers.evenly[rows]
    ratio: FloatArray = np.divide(prior, even, out=np.ones_like(prior), where=even > 0)
    return ratio[None, :]


@cache
def calibrations() -> tuple[Calibration, ...]:
    """Return all calibrations, sorted by name.

    Raises:
        ConfigError: two calibrations have one name.
    """
    by_name: dict[str, Calibration] = {}
    for file in CALIBRATIONS.names():
        calibration: Calibration = CALIBRATIONS.get(file, Calibration)
        if by_name.setdefault(calibration.name, calibration) is not calibration:
            raise ConfigError(
                f"two files in {CALIBRATIONS.package} have the calibration '{calibration.name}'; rename one"
            )
    return tuple(by_name[name] for name in sorted(by_name))
