"""Measures of how well and how evenly a task's labels are predicted, as functions of sums over its items.

Sums allow each measure to be computed without any of the items too. Sums by class have one column per label. A label
that is right for no item is not a class: it can only be predicted wrongly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from biasboard.ground.columns import BoolArray, FloatArray, IntArray
from evaluators.statistics import class_accuracies
from evaluators.statistics.evenness import N_FOLDS, squares, times_noise
from evaluators.statistics.jackknife import ratio
from evaluators.statistics.option_scores import predicted_share
from evaluators.statistics.record_tables import mean

_ROOT_OF_HALF_NORMAL = float(np.sqrt(2 / np.pi))
"""Mean of the absolute value of a standard normal variable."""
_NEGLIGIBLE = 1e-12


class ClassSums(NamedTuple):
    """Sums over items by class, each of shape (..., k)."""

    right: FloatArray
    """Credit for the right label, over the items that have it."""
    n_items: FloatArray
    """Number of items by their right label."""
    predicted: FloatArray
    """Credit that each label gets from all items, right or wrong."""


class FoldSums(NamedTuple):
    """Sums over the items of each fold by class, each of shape (..., N_FOLDS, k)."""

    right: FloatArray
    """Credit for the right label, over the items that have it."""
    n_items: FloatArray
    """Number of items by their right label."""


class PriorSums(NamedTuple):
    """Sums over items by right label (second to last axis) and label (last axis), each of shape (..., k, k)."""

    probabilities: FloatArray
    squares: FloatArray
    """Squares of the probabilities."""
    even: FloatArray
    """Probabilities under the uniform distribution over the labels that each item offers."""
    even_squares: FloatArray
    """Squares of these uniform probabilities, which sum to 1/k over the k labels that an item offers."""
    n_items: FloatArray
    """Number of items by right label, in each column."""


class WordSums(NamedTuple):
    """Sums over inputs of random words by kind (second to last axis) and label (last axis), each of shape (..., 2, k).

    The first kind are English words, the second in-domain ones.
    """

    probabilities: FloatArray
    squares: FloatArray
    """Squares of the probabilities."""
    n_inputs: FloatArray
    """Number of inputs of each kind, in each column."""


# Statistics hold the fields one after the other, each with a column per label, or per pair of labels.
N_CLASS = len(ClassSums._fields)


def class_columns(shares: FloatArray, targets: IntArray) -> FloatArray:
    """Return the columns of :class:`ClassSums`, shape (n, 3, k)."""
    rows, credits = np.arange(len(shares)), predicted_share(shares)
    columns = np.zeros((len(shares), N_CLASS, shares.shape[1]))
    columns[rows, 0, targets] = credits[rows, targets]
    columns[rows, 1, targets] = 1.0
    columns[:, 2] = credits
    return columns


def fold_columns(shares: FloatArray, targets: IntArray, folds: IntArray) -> FloatArray:
    """Return the columns of :class:`FoldSums`, shape (n, 2, N_FOLDS, k)."""
    rows, credits = np.arange(len(shares)), predicted_share(shares)
    columns = np.zeros((len(shares), len(FoldSums._fields), N_FOLDS, shares.shape[1]))
    columns[rows, 0, folds, targets] = credits[rows, targets]
    columns[rows, 1, folds, targets] = 1.0
    return columns


def prior_columns(shares: FloatArray, targets: IntArray, even: FloatArray) -> FloatArray:
    """Return the columns of :class:`PriorSums`, shape (n, 5, k, k)."""
    n, k = shares.shape
    columns = np.zeros((n, len(PriorSums._fields), k, k))
    for column, values in enumerate((shares, shares**2, even, even**2, np.ones_like(shares))):
        columns[np.arange(n), column, targets] = values
    return columns


def word_columns(shares: FloatArray, are_in_domain: BoolArray) -> FloatArray:
    """Return the columns of :class:`WordSums`, shape (n, 3, 2, k)."""
    columns = np.zeros((len(shares), len(WordSums._fields), 2, shares.shape[1]))
    for column, values in enumerate((shares, shares**2, np.ones_like(shares))):
        columns[np.arange(len(shares)), column, are_in_domain.astype(np.int64)] = values
    return columns


def accuracy(sums: ClassSums) -> FloatArray:
    """Return the share of right predictions, shape (...,); nan without items."""
    return ratio(sums.right.sum(axis=-1), sums.n_items.sum(axis=-1))


def macro_f1(sums: ClassSums) -> FloatArray:
    """Return the mean over classes of F1, shape (...,), as scikit-learn computes it over the classes that occur.

    The published code passes scikit-learn only the labels that are right for some item.
    """
    f1 = ratio(2 * sums.right, sums.predicted + sums.n_items)
    return _over_classes(f1, sums)


def _counting(sums: FoldSums) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the accuracies of the classes, what the square of each must lose to be an unbiased estimate, and shares.

    Classes whose items are all in one fold do not count: nothing says how much of their accuracy is chance.

    Returns:
        The accuracies; the square of each, less the unbiased estimate of it; and the share of the items that each class
        has. All are of shape (..., k), and 0 for a class that does not count.
    """
    squared = squares(sums.right, sums.n_items)
    counts: BoolArray = ~np.isnan(squared)
    n_items = np.where(counts, sums.n_items.sum(axis=-2), 0.0)
    accuracies = np.where(counts, ratio(sums.right.sum(axis=-2), n_items), 0.0)
    noise = np.where(counts, accuracies**2 - squared, 0.0)
    return accuracies, noise, np.nan_to_num(ratio(n_items, n_items.sum(axis=-1, keepdims=True)))


def rsd(sums: FoldSums) -> FloatArray:
    """Return the square of :func:`rsd_paper`, without the differences that chance gives; nan at accuracy 0.

    An even model is at 0 on average, by chance as often below as above.
    """
    accuracies, noise, shares = _counting(sums)
    return _relative_spread(sums, accuracies, noise, shares)


def cobias(sums: FoldSums) -> FloatArray:
    """Return the mean squared difference between the accuracies of two classes, without that by chance.

    It is that of :func:`cobias_paper` with squares for absolute differences, and nan where that is. An even model is at
    0 on average, by chance as often below as above.
    """
    accuracies, noise, shares = _counting(sums)
    n = (shares > 0).sum(axis=-1).astype(np.float64)
    average = ratio(accuracies.sum(axis=-1), n)
    around = ((accuracies - average[..., None]) ** 2 * (shares > 0)).sum(axis=-1)
    # The noise of a class is in its own square, and with a weight of 1/k in the square of the mean.
    variance = ratio(around - noise.sum(axis=-1) * (1 - 1 / np.maximum(n, 1)), n)
    return np.where(average > 0, ratio(2 * n * variance, n - 1), np.nan)


def squared_cv(sums: FoldSums) -> FloatArray:
    """Return the squared coefficient of variation of the class accuracies, without what chance gives, shape (...,).

    It is the square of their standard deviation over their mean: :func:`gini` with squared for absolute differences,
    from 0 to k - 1, where only one of k classes is ever right, and nan where :func:`gini` is. An even model is at 0 on
    average, by chance as often below as above.
    """
    accuracies, noise, shares = _counting(sums)
    n = (shares > 0).sum(axis=-1).astype(np.float64)
    weights = np.nan_to_num(ratio((shares > 0).astype(np.float64), n[..., None]))
    return np.where(n > 1, _relative_spread(sums, accuracies, noise, weights), np.nan)


def _relative_spread(sums: FoldSums, accuracies: FloatArray, noise: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the mean squared distance of the class accuracies from their weighted mean, over its square, shape (...,).

    The quotient of two estimates is biased: a mean that is too low moves it further than one that is too high, and the
    spread and the mean share their luck if small classes are better or worse than large ones. Both biases are taken out
    by an expansion of second order, whose terms have estimates without bias.

    Args:
        sums: The sums of the classes.
        accuracies: Those of the classes, as :func:`_counting` returns them.
        noise: What their squares must lose.
        weights: Weight of each class, shape (..., k), with the sum 1; 0 for a class that does not count.

    References:
        Cochran 1977, "Sampling Techniques", section 6.8. With classes of 10, 20, 50 and 100 items the plain quotient is
        up to .035 off, and this one .007 (tests/bench/bench_evenness.py).
    """
    n = (weights > 0).sum(axis=-1).astype(np.float64)
    average = (weights * accuracies).sum(axis=-1)
    around = ((accuracies - average[..., None]) ** 2 * (weights > 0)).sum(axis=-1)
    # The noise of a class is in its own accuracy and, by its weight, in the mean.
    in_spread = (1 - 2 * weights + n[..., None] * weights**2) * (weights > 0)
    spread = ratio(around - (in_spread * noise).sum(axis=-1), n)
    # Twice the sum over classes of the noise in the mean times the slope of the spread.
    own = np.nan_to_num(times_noise(sums.right, sums.n_items)) * in_spread
    of_others = (n[..., None] * weights - 1) * (average[..., None] - weights * accuracies)
    of_others -= weights * (accuracies.sum(axis=-1, keepdims=True) - accuracies)
    covariance = ratio(2 * (weights * (own + noise * of_others)).sum(axis=-1), n)
    # The estimate of a noise can be below 0.
    noise_of_mean = np.maximum(ratio((weights**2 * noise).sum(axis=-1), average**2), 0.0)
    value: FloatArray = ratio(spread, average**2) / (1 + 3 * noise_of_mean)
    value += ratio(2 * covariance, average**3) / (1 + 6 * noise_of_mean)
    return value


def rsd_paper(sums: ClassSums) -> FloatArray:
    """Return the relative standard deviation of the class accuracies around the accuracy; nan at accuracy 0.

    References:
        Reif & Schwartz 2024, arXiv:2405.02743, RSD.

    >>> always_first = ClassSums(np.array([90.0, 0.0]), np.array([90.0, 10.0]), np.array([100.0, 0.0]))
    >>> rsd_paper(always_first).round(3), rsd_release(always_first).round(3)
    (np.float64(0.711), np.float64(0.556))
    """
    # The published code returns 0, the best value, where nothing is right.
    overall = accuracy(sums)
    return ratio(np.sqrt(_over_classes((_class_accuracies(sums) - overall[..., None]) ** 2, sums)), overall)


def rsd_release(sums: ClassSums) -> FloatArray:
    """Return the RSD around the mean class accuracy, as the published code computes it; nan at accuracy 0.

    It is never larger than :func:`rsd_paper`, and equal on balanced items.
    """
    classes = _class_accuracies(sums)
    spread = _over_classes((classes - _over_classes(classes, sums)[..., None]) ** 2, sums)
    return ratio(np.sqrt(spread), accuracy(sums))


def rsd_paper_floor(sums: ClassSums) -> FloatArray:
    """Return approximately the RSD by chance if all classes have the same true accuracy, shape (...,)."""
    return ratio(np.sqrt(_over_classes(_chance_variances(sums), sums)), accuracy(sums))


def cobias_paper(sums: ClassSums) -> FloatArray:
    """Return the mean absolute difference between the accuracies of two classes.

    It is nan with fewer than two classes, and where nothing is right: all classes are then equally wrong.

    References:
        Lin & You 2024, arXiv:2405.07623, COBias; also equation 4 of arXiv:2603.15654.
    """
    return np.where(accuracy(sums) > 0, class_accuracies.cobias(_class_accuracies(sums)), np.nan)


def cobias_paper_floor(sums: ClassSums) -> FloatArray:
    """Return approximately the COBias by chance if all classes have the same true accuracy, shape (...,)."""
    # The difference of two class accuracies is then about normal around 0.
    variances, n = _chance_variances(sums), _n_classes(sums)
    of_pairs = np.sqrt(variances[..., :, None] + variances[..., None, :]) * _ROOT_OF_HALF_NORMAL
    off_diagonal = of_pairs * (1 - np.eye(variances.shape[-1]))
    # A pair with a class without items is nan, and must not count.
    of_all = np.nan_to_num(off_diagonal).sum(axis=(-2, -1))
    return np.where(accuracy(sums) > 0, ratio(of_all, n * (n - 1)), np.nan)


def gini(sums: ClassSums) -> FloatArray:
    """Return the Gini index of the class accuracies, shape (...,), in [0, 1 - 1/k], chance included.

    It is nan if all of them are 0, or with fewer than two classes.

    References:
        arXiv:2603.15654, equation 3.
    """
    return np.where(_n_classes(sums) > 1, class_accuracies.gini_index(_class_accuracies(sums)), np.nan)


def gini_floor(sums: ClassSums) -> FloatArray:
    """Return approximately the Gini index by chance if all classes have the same true accuracy, shape (...,)."""
    # Equation 5 of arXiv:2603.15654: the Gini index is (n - 1) / 2n of COBias over the mean class accuracy.
    n = _n_classes(sums)
    mean = class_accuracies.mean_accuracy(_class_accuracies(sums))
    return ratio(cobias_paper_floor(sums) * (n - 1), 2 * n * mean)


def _of_accuracies(measure: Callable[[FloatArray], FloatArray], sums: ClassSums) -> FloatArray:
    """Return a measure of :mod:`evaluators.statistics.class_accuracies`, shape (...,)."""
    return measure(_class_accuracies(sums))


def bias_score(sums: PriorSums) -> FloatArray:
    """Return the distance of the mean distribution, in which classes have equal weights, from the uniform one.

    Returns:
        Half the sum of absolute differences, shape (...,), in [0, 1 - 1/k]; nan without items. The mean is over classes
        with items, the distance over all labels. If items offer different labels, their uniform distributions are
        averaged in the same way.

    References:
        Reif & Schwartz 2024, arXiv:2405.02743, BiasScore.
    """
    prior, even = _prior(sums.probabilities, sums), _prior(sums.even, sums)
    distance: FloatArray = np.abs(prior - even).sum(axis=-1) / 2
    return distance


def bias_score_normalised(sums: PriorSums) -> FloatArray:
    """Return BiasScore divided by its largest possible value, shape (...,), in [0, 1].

    That is 1 - 1/k if items have k labels, and otherwise the mean of these values, which a model reaches by always
    choosing a label that all items offer.
    """
    return ratio(bias_score(sums), 1 - _prior(sums.even_squares, sums).sum(axis=-1))


def bias_score_floor(sums: PriorSums) -> FloatArray:
    """Return approximately the BiasScore of an unbiased model whose distributions vary as much from item to item.

    A class with a single item is assumed to vary as the others do; the value is nan if no class has two items, or any.
    """
    # The variance of a mean of n distributions is that of a single one divided by n. Differences from the true mean are
    # about normal, and BiasScore is half the sum of their absolute values.
    n = sums.n_items
    squared = np.where(n > 1, sums.squares - n * np.nan_to_num(ratio(sums.probabilities, n)) ** 2, 0.0).clip(0.0)
    pooled = ratio(squared.sum(axis=-2), (n - 1).clip(0.0).sum(axis=-2))[..., None, :]
    of_means = np.where(n > 1, ratio(ratio(squared, n - 1), n), np.where(n > 0, pooled, 0.0))
    n_classes = (n[..., 0] > 0).sum(axis=-1)[..., None].astype(np.float64)
    deviations = ratio(np.sqrt(of_means.sum(axis=-2)), n_classes)
    floor: FloatArray = deviations.sum(axis=-1) * _ROOT_OF_HALF_NORMAL / 2
    return floor


def domain_label_bias(sums: WordSums) -> FloatArray:
    """Return the distance between the mean distributions over inputs of random English and of random in-domain words.

    It is what the words of a task alone add to some labels and take from others, in whatever order they stand.

    Returns:
        The total variation distance, half the sum of absolute differences, shape (...,), in [0, 1]; nan without inputs
        of either kind.

    References:
        Fei et al. 2023, arXiv:2305.19148, domain-label bias d_TV. They divide tasks into those with large, medium and
        small domain-label bias by it, which is not done here.
    """
    means = ratio(sums.probabilities, sums.n_inputs)
    distance: FloatArray = np.abs(means[..., 0, :] - means[..., 1, :]).sum(axis=-1) / 2
    return distance


def domain_label_bias_floor(sums: WordSums) -> FloatArray:
    """Return approximately the domain-label bias of a model that answers both kinds of words alike on average.

    Its distributions are assumed to vary as much from input to input; nan with fewer than two inputs of either kind.
    """
    # As for BiasScore: differences of means are about normal, with the sum of the variances of both means.
    n = sums.n_inputs
    squared = (sums.squares - n * ratio(sums.probabilities, n) ** 2).clip(0.0)
    deviations = np.sqrt(ratio(ratio(squared, n - 1), n).sum(axis=-2))
    floor: FloatArray = deviations.sum(axis=-1) * _ROOT_OF_HALF_NORMAL / 2
    return floor


def correlation(sums: FloatArray) -> FloatArray:
    """Return the Pearson correlation of two measures over tasks, shape (...,); nan if either does not vary.

    Args:
        sums: Number of tasks and the sums of x, y, x², y² and xy, shape (..., 6).
    """
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    spread_x, spread_y = n * xx - x**2, n * yy - y**2
    # Rounding can leave a small spread where nothing varies.
    varies = (spread_x > _NEGLIGIBLE * n * xx) & (spread_y > _NEGLIGIBLE * n * yy)
    pearson = ratio(n * xy - x * y, np.sqrt(np.maximum(spread_x, 0) * np.maximum(spread_y, 0)))
    return np.where(varies, pearson.clip(-1.0, 1.0), np.nan)


def _class_accuracies(sums: ClassSums) -> FloatArray:
    return ratio(sums.right, sums.n_items)


def _n_classes(sums: ClassSums) -> FloatArray:
    n_classes: FloatArray = (sums.n_items > 0).sum(axis=-1).astype(np.float64)
    return n_classes


def _over_classes(values: FloatArray, sums: ClassSums) -> FloatArray:
    """Return the mean over the classes that occur, shape (...,); nan without any."""
    occurs = sums.n_items > 0
    return ratio(np.where(occurs, values, 0.0).sum(axis=-1), occurs.sum(axis=-1).astype(np.float64))


def _chance_variances(sums: ClassSums) -> FloatArray:
    """Return the variance of each class accuracy if its true value is the overall accuracy, shape (..., k)."""
    overall = accuracy(sums)[..., None]
    return ratio(overall * (1 - overall) * np.ones_like(sums.n_items), sums.n_items)


def _prior(by_class: FloatArray, sums: PriorSums) -> FloatArray:
    """Return the mean over classes of the mean over their items, shape (..., k)."""
    means = ratio(by_class, sums.n_items)
    occurs = sums.n_items[..., :1] > 0
    n_classes = occurs.sum(axis=-2).astype(np.float64)
    return ratio(np.where(occurs, means, 0.0).sum(axis=-2), n_classes * np.ones(means.shape[-1]))


class LabelMeasure(NamedTuple):
    """The formula of a measure, and its properties, which are the same with and without a calibration."""

    formula: Callable[[Any], FloatArray]
    """Function of ``sums``, or of the sums of its docstring."""
    heading: str
    """Heading of its column or chart."""
    why_nan: str
    description: str
    sums: type[ClassSums | FoldSums | PriorSums | WordSums] | None = ClassSums
    """What it is computed from; None for a plain mean or a correlation."""
    of_answers: bool = False
    """True if it reads which label is most probable, and no probabilities."""
    is_floor: bool = False
    """True if it is the value that chance alone would give."""
    maximum: float | None = 1.0
    ideal: float | None = None
    correlates: tuple[str, ...] = ()
    """The two measures that it correlates; empty for other measures."""

    @property
    def reads_probabilities(self) -> bool:
        """True if it depends on more than which label is most probable."""
        if self.correlates:
            return any(MEASURES[name].reads_probabilities for name in self.correlates)
        return self.sums in (PriorSums, WordSums) and not self.of_answers


_NO_ITEMS = "no item has a reading"
_ZERO = "nothing is right, and the measure divides by the accuracy"
UNCOUNTED = "no item was asked, or the prompt is cut by tokens, of which the records do not tell"
_SINCE = "which datasets have since version 1.1.0"
NO_WORDS = f"there are no answers to random English words, {_SINCE}, or none to random words of the task"
FEW_WORDS = f"there are fewer than two answers to random English words, {_SINCE}, or to random words of the task"
_CONSTANT = "one of the two measures is the same for all tasks"
_NO_PAIR = "no class has two items with a reading"
_ZERO_OR_FEW = "nothing is right, or fewer than two classes have two items"
_WITHOUT_CHANCE = "without the differences that chance gives"
_ZERO_OR_SINGLE = "nothing is right, or there are fewer than two classes"
QUARTERS: Mapping[str, str] = {
    "worst_quarter_accuracy": "worst",
    "second_quarter_accuracy": "second worst",
    "third_quarter_accuracy": "second best",
    "best_quarter_accuracy": "best",
}
"""Metrics of the accuracies of the quarters of the classes, from the worst, and their names in words."""
_good, _uneven = (partial(LabelMeasure, ideal=ideal) for ideal in (1.0, 0.0))
_by_chance = partial(LabelMeasure, is_floor=True, maximum=None)
_correlation = partial(LabelMeasure, correlation, why_nan=_CONSTANT, sums=None)
MEASURES: Mapping[str, LabelMeasure] = {
    "accuracy": _good(accuracy, "Accuracy", _NO_ITEMS, "Share of right labels."),
    "macro_f1": _good(macro_f1, "Macro-F1", _NO_ITEMS, "Mean over classes of F1."),
    "gini": _uneven(
        gini, "Gini index", _ZERO_OR_SINGLE, "Gini index of the class accuracies, chance included (arXiv:2603.15654)."
    ),
    "rsd_paper": _uneven(
        rsd_paper,
        "RSD, paper",
        _ZERO,
        "Spread of the class accuracies around the accuracy, over it, chance included (Reif & Schwartz 2024, RSD).",
        maximum=None,
    ),
    "rsd_release": _uneven(
        rsd_release,
        "RSD, release",
        _ZERO,
        "RSD around the mean of the class accuracies, chance included, as the published code computes it.",
        maximum=None,
    ),
    "cobias_paper": _uneven(
        cobias_paper,
        "COBias, paper",
        _ZERO_OR_SINGLE,
        "Mean absolute difference between two class accuracies, chance included (arXiv:2405.07623).",
    ),
    "top_class_dominance": _good(
        partial(_of_accuracies, class_accuracies.top_class_dominance),
        "Dominance of the top class",
        _ZERO,
        "Largest class accuracy over the mean class accuracy.",
        maximum=None,
    ),
    "smallest_class_accuracy": _good(
        partial(_of_accuracies, class_accuracies.smallest_accuracy),
        "Smallest class accuracy",
        _NO_ITEMS,
        "Smallest class accuracy.",
    ),
    **{
        name: _good(
            partial(_of_accuracies, partial(class_accuracies.quarter_accuracy, quarter=quarter)),
            f"{words.capitalize()} quarter of classes",
            _NO_ITEMS,
            f"Mean accuracy of the {words} quarter of the classes, chance included (Lorenz curve of arXiv:2603.15654).",
        )
        for quarter, (name, words) in enumerate(QUARTERS.items())
    },
    # Measures of evenness that are ranked: without chance, which no root or absolute value can be.
    "rsd": _uneven(
        rsd,
        "Squared RSD",
        _ZERO_OR_FEW,
        f"Square of the RSD of Reif & Schwartz 2024, {_WITHOUT_CHANCE}.",
        FoldSums,
        maximum=None,
    ),
    "cobias": _uneven(
        cobias,
        "Squared COBias",
        _ZERO_OR_FEW,
        f"Mean squared difference between two class accuracies, {_WITHOUT_CHANCE} (COBias with squares).",
        FoldSums,
    ),
    "squared_cv": _uneven(
        squared_cv,
        "Squared CV",
        _ZERO_OR_FEW,
        f"Squared coefficient of variation of the class accuracies, {_WITHOUT_CHANCE}.",
        FoldSums,
        maximum=None,
    ),
    "bias_score": _uneven(
        bias_score,
        "BiasScore",
        _NO_ITEMS,
        "Distance of the mean distribution from the uniform one (Reif & Schwartz 2024, BiasScore).",
        PriorSums,
    ),
    "bias_score_normalised": _uneven(
        bias_score_normalised,
        "BiasScore over its range",
        _NO_ITEMS,
        "BiasScore over the largest value that it can have.",
        PriorSums,
    ),
    # It counts which label is most probable, as if the model had only named it. A model that always gives one of two
    # labels a probability of .6 has a BiasScore of .1, and .5 here.
    "bias_score_answers": _uneven(
        bias_score,
        "BiasScore of answers",
        _NO_ITEMS,
        "BiasScore of which label is answered, not of its probability; also known for answers in words.",
        PriorSums,
        of_answers=True,
    ),
    # Of the model itself: domain-context calibration learns from half of the inputs.
    "domain_label_bias": _uneven(
        domain_label_bias,
        "Domain-label bias",
        NO_WORDS,
        "Distance between the mean distributions over random English and random in-domain words (Fei et al. 2023).",
        WordSums,
    ),
    "rsd_paper_floor": _by_chance(
        rsd_paper_floor, "RSD by chance", _ZERO, "RSD by chance, at this accuracy and these numbers of items."
    ),
    "cobias_paper_floor": _by_chance(
        cobias_paper_floor,
        "COBias by chance",
        _ZERO_OR_SINGLE,
        "COBias by chance, at this accuracy and these numbers of items.",
    ),
    "gini_floor": _by_chance(
        gini_floor,
        "Gini index by chance",
        _ZERO_OR_SINGLE,
        "Gini index by chance, at this accuracy and these numbers of items.",
    ),
    "bias_score_floor": _by_chance(
        bias_score_floor,
        "BiasScore by chance",
        _NO_PAIR,
        "BiasScore by chance, of an unbiased model whose distributions vary as much.",
        PriorSums,
    ),
    "bias_score_answers_floor": _by_chance(
        bias_score_floor,
        "BiasScore of answers by chance",
        _NO_PAIR,
        "BiasScore of answers by chance, of an unbiased model whose answers vary as much.",
        PriorSums,
        of_answers=True,
    ),
    "domain_label_bias_floor": _by_chance(
        domain_label_bias_floor,
        "Domain-label bias by chance",
        FEW_WORDS,
        "Domain-label bias by chance, of a model that answers both kinds of words alike on average.",
        WordSums,
    ),
    # Of two measures over the tasks of a suite.
    "f1_rsd_correlation": _correlation(
        heading="Correlation of F1 and RSD",
        description="Pearson correlation of macro-F1 and the paper's RSD over the tasks.",
        correlates=("macro_f1", "rsd_paper"),
    ),
    "f1_bias_score_correlation": _correlation(
        heading="Correlation of F1 and BiasScore",
        description="Pearson correlation of macro-F1 and BiasScore over the tasks.",
        correlates=("macro_f1", "bias_score"),
    ),
    "n_shown": LabelMeasure(
        mean, "Examples shown", UNCOUNTED, "Mean number of examples that fit into a prompt.", sums=None, maximum=None
    ),
    "cut_rate": LabelMeasure(
        mean, "Cut inputs", UNCOUNTED, "Share of prompts whose input or instruction was shortened.", sums=None
    ),
}
"""All measures by name, in the order in which results list their metrics."""


def value_of(measure: str, sums: FloatArray) -> FloatArray:
    """Return a measure from sums of its columns, shape (...,): the mean if there are two, or else its formula."""
    kind = MEASURES[measure]
    if sums.shape[-1] == 2:
        return mean(sums)
    if kind.sums is None:
        return kind.formula(sums)
    n = len(kind.sums._fields)
    # The axes between those of the fields and of the labels.
    inner = {FoldSums: (N_FOLDS,), WordSums: (2,), PriorSums: (round((sums.shape[-1] / n) ** 0.5),)}.get(kind.sums, ())
    columns = sums.reshape(*sums.shape[:-1], n, *inner, -1)
    return kind.formula(kind.sums(*np.moveaxis(columns, -2 - len(inner), 0)))
