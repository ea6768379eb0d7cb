"""Probabilities over options from stored log-probabilities, their certainty, and the predicted outcome.

The rule is implemented twice. :func:`option_probabilities` reads one exchange, and gives the reason if it has no
distribution. :func:`option_probabilities_of` reads the columns of many exchanges at once, and leaves unusual ones
(bounds, unknown numbers, options without tokens) to the other. Verification computes the distribution of every stored
answer again, which takes about 25 times as long one by one. Change both together;
tests/evaluators/test_column_readings.py compares them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np

from biasboard.ground.columns import BoolArray, Column, FloatArray, IntArray
from schemas.documents.record import Exchange, Reading
from schemas.documents.result import TOLERANCE, Normalisation
from schemas.files.record_columns import RecordColumns

_MERGED = (
    "the tokenizer merges prompt and options, or it is unknown whether it does, so that an option has no length of "
    "its own; use the normalisation sum"
)
MAX_BOUND_SHARE = 0.01
"""Largest total probability of options with only an upper bound, and so the largest error of the distribution."""
LEAST_SHARE = 0.01
"""Smallest probability that letters must have together as the first token of an answer for it to be read.

A model that reads the question puts its probability on the letters that it offers. SmolLM2-135M, the weakest on the
board that does, gives them .055 at least and .38 in the median of 25,280 questions; a model that opens ``<think>``
gives them about .0001. What is left to compare is then noise, in which two letters look alike, as in an ideal model.
TinyStories-656K writes a letter with two tokens, so that its share is unknown; it gives whole letters .0023 at most.
"""


MOST_TOGETHER = 1.02
"""Maximum sum of the probabilities of mutually exclusive options: 1, plus the rounding of half precision."""


def exclude_each_other(options: Sequence[str]) -> bool:
    """Return True if no option begins another, which it would not exclude."""
    ordered = sorted(option.strip() for option in options)
    return not any(later.startswith(earlier) for earlier, later in pairwise(ordered))


def why_impossible(
    options: Sequence[str], logprobs: Sequence[float | None], are_bounds: Sequence[bool] = ()
) -> str | None:
    """Return why options cannot have some log-probabilities together; None if they can, or some are upper bounds."""
    together = sum(np.exp(value) for value in logprobs if value is not None)
    if together <= MOST_TOGETHER or any(are_bounds) or not exclude_each_other(options):
        return None
    return f"its options have probabilities that sum to {together:.3g}, and they exclude each other"


def first_token_share(exchange: Exchange) -> float | None:
    """Return the probability that all options of an exchange have together as the first token of an answer.

    It is known from the log-probabilities where each option is one token, and is None otherwise. Upper bounds on some
    of them make it one.
    """
    counts, bounds = exchange.option_token_counts, exchange.option_is_bound or (False,) * len(exchange.options)
    is_first = all(count == 1 or bound for count, bound in zip(counts, bounds, strict=False))
    logprobs = exchange.option_logprobs
    if not is_first or not logprobs or None in logprobs:
        return None
    return float(np.exp(np.logaddexp.reduce(np.array(logprobs, dtype=np.float64))))


def why_elsewhere(exchange: Exchange) -> str | None:
    """Return why an answered choice among letters is no answer to them; None if it is one.

    Only letters are judged: other options are continuations among many that say the same.
    """
    share = first_token_share(exchange) if all(map(_is_letter, exchange.options)) else None
    if share is None or share >= LEAST_SHARE:
        return None
    return (
        f"the letters have {share:.2g} of the first token's probability together, and less than {LEAST_SHARE:g} is no "
        "answer: the model begins with something else, such as thinking"
    )


def _is_letter(option: str | None) -> bool:
    return option is not None and len(option.strip()) == 1


def option_probabilities(exchange: Exchange, normalisation: Normalisation) -> list[float] | str:
    """Compute the distribution over the options of one exchange.

    Args:
        exchange: Answered choice request with its log-probabilities.
        normalisation: Score of an option. ``sum`` is the sum of its token log-probabilities, which is the
            log-probability of the text. ``sum_with_end`` adds that of the end token. ``token_mean`` and ``byte_mean``
            divide the sum by the number of tokens or UTF-8 bytes; they need a border between prompt and option.
            ``token_mean_if_unequal`` is the token mean if the options' numbers of tokens differ, and else the sum.
            ``token_mean_with_end`` is the mean over the tokens and the end token. Both count a token that merges the
            end of the prompt with the option.

    Returns:
        One probability per option, summing to 1; or the reason why there is no distribution.
    """
    # Keep in step with option_probabilities_of().
    if normalisation == "token_mean_if_unequal":
        # With equal lengths the paper of this normalisation (arXiv:2405.02743) takes the sum, a true probability.
        if None in exchange.option_token_counts:
            return "the numbers of tokens of the options are unknown; use the normalisation sum"
        if len({*exchange.option_token_counts}) == 1:
            normalisation = "sum"
    bounded = exchange.option_is_bound
    if any(bounded) and normalisation != "sum":
        return "some log-probabilities are bounds, which no other normalisation than sum can be computed from"
    scores = []
    for index, option in enumerate(exchange.options):
        logprob = exchange.option_logprobs[index]
        if logprob is None:
            return f"the log-probability of option '{option}' was not returned"
        match normalisation:
            case "sum":
                divisor = 1
            case "sum_with_end" | "token_mean_with_end":
                end = exchange.option_end_logprobs[index]
                if end is None:
                    return "the model has no end token; use another normalisation"
                n_tokens = exchange.option_token_counts[index]
                logprob, divisor = logprob + end, 1
                if normalisation == "token_mean_with_end":
                    divisor = 0 if not n_tokens else n_tokens + 1
            case "token_mean_if_unequal":
                divisor = exchange.option_token_counts[index] or 0
            # A merged token is part prompt, part option, so the option has no length of its own. The sums above are
            # still right: they cover the whole text after the part that all options share.
            case "token_mean" | "byte_mean" if exchange.n_moved_tokens != 0:
                return _MERGED
            case "token_mean":
                divisor = exchange.option_token_counts[index] or 0
            case "byte_mean":
                divisor = exchange.option_byte_counts[index]
        if divisor == 0:
            return f"option '{option}' has no tokens to average over, or their number is unknown"
        scores.append(logprob / divisor)
    probabilities = _distribution(tuple(scores))
    if isinstance(probabilities, str):
        return probabilities
    left_open = [
        (option, share)
        for option, share, is_bound in zip(exchange.options, probabilities, bounded, strict=False)
        if is_bound
    ]
    total = sum(share for _, share in left_open)
    if total > MAX_BOUND_SHARE:
        names = ", ".join(f"'{option}'" for option, _ in left_open)
        return (
            f"not among the tokens that the endpoint returned: {names}; up to {total:.3g} of the probability may be "
            f"theirs, and more than {MAX_BOUND_SHARE:g} is too much to leave open"
        )
    return list(probabilities)


# Baselines give the same few scores to thousands of exchanges.
@lru_cache(maxsize=1_024)
def _distribution(scores: tuple[float, ...]) -> tuple[float, ...] | str:
    if np.isnan(scores).any():
        return "a log-probability is NaN"
    if np.isneginf(scores).all():
        return "every option has a probability of zero"
    values = np.array(scores, dtype=np.float64)
    # Shifted because exp() of a long option's log-probability would underflow.
    shifted = values - values.max()
    probabilities = _odds(shifted - np.log(np.exp(shifted).sum()))
    return tuple((probabilities / probabilities.sum()).tolist())


_UNDERFLOW = -690.0
"""Difference of log-probabilities, in nats, below which the ratio of the probabilities is only put in order."""


def _odds(differences: FloatArray) -> FloatArray:
    """Return the exponential of differences to the best score, of which no two that differ become equal.

    Whole sentences may be thousands of nats apart. Below exp(-745) = 0 the two less probable of three would tie,
    however far apart they are. The error is less than 1e-299.
    """
    far = np.exp(_UNDERFLOW) * np.divide(_UNDERFLOW, np.minimum(differences, _UNDERFLOW))
    return np.where(differences < _UNDERFLOW, far, np.exp(differences))


_MAX_OPTIONS = 128
"""Largest number of options for comparison as arrays; a stranger's file may have any number."""


def option_probabilities_of(
    exchanges: Mapping[str, Column], k: int, normalisation: Normalisation
) -> tuple[FloatArray, BoolArray]:
    """Compute the distributions over the options of exchanges with ``k`` options each.

    Args:
        exchanges: The fields of exchanges, by name.
        k: Number of options; exchanges with any other number are not certain.
        normalisation: Score of an option; see :func:`evaluators.statistics.option_scores.option_probabilities`.

    Returns:
        Probability of each option, shape (n_exchanges, k), 0 in rows that are not certain; and the mask of the
        exchanges with all numbers that their distribution needs, and no bounds among them.
    """
    # Keep in step with option_probabilities().
    scores, is_certain = _numbers(exchanges["option_logprobs"], k)
    n_tokens, _ = _numbers(exchanges["option_token_counts"], k)
    # Letters for which why_elsewhere() has a reason.
    is_first = is_certain & (n_tokens == 1).all(axis=1) & _are_letters(exchanges["options"])
    shares = np.exp(np.logaddexp.reduce(np.where(is_first[:, None], scores, 0.0), axis=1))
    is_certain &= ~(is_first & (shares < LEAST_SHARE))
    is_certain &= exchanges["status"].coded.is_one_of("answered") & exchanges["kind"].coded.is_one_of("choice")
    is_certain &= exchanges["option_is_bound"].lists.lengths == 0
    if normalisation in ("sum_with_end", "token_mean_with_end"):
        ends, is_known = _numbers(exchanges["option_end_logprobs"], k)
        scores, is_certain = scores + ends, is_certain & is_known
    if normalisation not in ("sum", "sum_with_end"):
        name = "option_byte_counts" if normalisation == "byte_mean" else "option_token_counts"
        counts, is_known = _numbers(exchanges[name], k)
        if normalisation in ("token_mean", "byte_mean"):
            is_known &= exchanges["n_moved_tokens"].numbers == 0
        is_certain &= is_known & (counts > 0).all(axis=1)
        if normalisation == "token_mean_if_unequal":
            counts = np.where((counts == counts[:, :1]).all(axis=1)[:, None], 1.0, counts)
        elif normalisation == "token_mean_with_end":
            counts = counts + 1
        scores = scores / np.where(counts > 0, counts, 1.0)
    best = scores.max(axis=1)
    is_certain &= np.isfinite(best)
    scores[~is_certain], best[~is_certain] = -np.inf, 0.0
    odds = _odds(scores - best[:, None])
    total = odds.sum(axis=1, keepdims=True)
    return np.divide(odds, total, out=np.zeros_like(odds), where=total > 0), is_certain


def _are_letters(options: Column) -> BoolArray:
    """Return the mask of the exchanges whose options are all letters, shape (n_exchanges,)."""
    lists = options.lists
    codes, texts = lists.values.coded.codes, lists.values.coded.texts
    is_letter = np.array([*map(_is_letter, texts), False])[codes]
    # Options that are no letters are counted up to each exchange.
    n_others = np.concatenate(([0], np.cumsum(~is_letter)))[lists.offsets]
    mask: BoolArray = np.diff(n_others) == 0
    return mask


def are_certain_choices(records: RecordColumns, normalisation: Normalisation) -> BoolArray:
    """Return the mask of the records whose reading certainly is the distribution over the options of their one answer.

    Records may differ in their options and their number.

    Args:
        records: The records.
        normalisation: Score of an option; see :func:`evaluators.statistics.option_scores.option_probabilities`.

    Returns:
        The mask, shape (n,). Records with several exchanges, with bounds, or with unknown numbers are not certain.
    """
    exchanges, readings = records.exchanges, records.readings
    asked, read, shares = exchanges["outcomes"].lists, readings["outcomes"].lists, readings["probabilities"].lists
    is_certain: BoolArray = np.zeros(len(records), dtype=np.bool_)
    is_single = (np.diff(records.first_exchanges) == 1) & records.has_reading
    rows = np.flatnonzero(is_single)
    firsts = records.first_exchanges[:-1][rows]
    k = asked.lengths[firsts]
    is_usual = (read.lengths[rows] == k) & (shares.lengths[rows] == k) & (k <= _MAX_OPTIONS)
    is_usual &= readings["answers"].lists.lengths[rows] == 0
    asked_texts, read_texts = asked.values.coded, read.values.coded
    code_of = {text: code for code, text in enumerate(asked_texts.texts)}
    # Outcomes are compared as codes; -2 stands for one that no exchange offers, as -1 is the code of a missing text.
    read_codes = np.array([*(code_of.get(text, -2) for text in read_texts.texts), -2])[read_texts.codes]
    given = shares.values.numbers
    # Lists of equal length form a matrix, so this loops over numbers of options and not over records.
    for size in np.unique(k[is_usual]).tolist():
        of_size = np.flatnonzero(is_usual & (k == size))
        computed, has_numbers = option_probabilities_of(exchanges, size, normalisation)
        steps = np.arange(size)
        names = asked_texts.codes[asked.offsets[firsts[of_size]][:, None] + steps]
        same = names == read_codes[read.offsets[rows[of_size]][:, None] + steps]
        stored = given[shares.offsets[rows[of_size]][:, None] + steps]
        agrees = same.all(axis=1) & (np.abs(computed[firsts[of_size]] - stored) <= TOLERANCE).all(axis=1)
        is_certain[rows[of_size]] = agrees & has_numbers[firsts[of_size]]
    return is_certain


def _numbers(column: Column, k: int) -> tuple[FloatArray, BoolArray]:
    """Return lists of numbers as rows, shape (n, k), and the mask of those with ``k`` known numbers."""
    lists = column.lists
    is_whole = lists.lengths == k
    rows = np.full((len(is_whole), k), np.nan)
    rows[is_whole] = lists.values.numbers[lists.offsets[:-1][is_whole][:, None] + np.arange(k)]
    return rows, is_whole & ~np.isnan(rows).any(axis=1)


class FirstTokenShares:
    """The share of the first token's probability that letters have together, over the choices of many records."""

    def __init__(self) -> None:
        """Start with no records."""
        self._shares: list[FloatArray] = []

    def add(self, records: RecordColumns) -> None:
        """Add the choices among letters of one token each; others have no such share."""
        exchanges = records.exchanges
        for k in np.unique(exchanges["options"].lists.lengths).tolist():
            logprobs, is_whole = _numbers(exchanges["option_logprobs"], k)
            n_tokens, _ = _numbers(exchanges["option_token_counts"], k)
            # Each option has a bound where some have one, and is then a first token as well.
            has_bounds = exchanges["option_is_bound"].lists.lengths > 0
            is_first = is_whole & ((n_tokens == 1) | has_bounds[:, None]).all(axis=1)
            is_first &= _are_letters(exchanges["options"]) & (k > 0)
            self._shares.append(np.exp(np.logaddexp.reduce(logprobs[is_first], axis=1)))

    @property
    def median(self) -> float | None:
        """The median share; None if no choice has one."""
        shares = np.concatenate(self._shares or [np.empty(0)])
        return float(np.median(shares)) if len(shares) else None


TIE_TOLERANCE = 1e-12
"""Difference up to which probabilities tie: equal ones can differ in the last bits."""
_SUM_TOLERANCE = 1e-9


def likeliest(reading: Reading) -> tuple[str, ...]:
    """Return the most probable outcome of a reading, or several that are equally probable; () if it has none."""
    highest = max(reading.probabilities, default=0.0) - TIE_TOLERANCE
    pairs = zip(reading.outcomes, reading.probabilities, strict=True) if reading.probabilities else ()
    return tuple(outcome for outcome, probability in pairs if probability >= highest)


def perplexity(probabilities: FloatArray) -> FloatArray:
    """Compute the exponential of the entropy of each outcome distribution, with 0 ln 0 = 0.

    Args:
        probabilities: Outcome distributions, shape (n, k), each row summing to 1.

    Returns:
        The perplexities, shape (n,), in [1, k].

    References:
        Wang et al. 2025, arXiv:2505.23996, f_perplexity. It is the perplexity of the k-way distribution and not of a
        text; otherwise the certainty would not lie in [0, 1].

    >>> perplexity(np.array([[0.5, 0.5], [1.0, 0.0]])).round(3)
    array([2., 1.])
    """
    logs = np.log(probabilities, out=np.zeros_like(probabilities), where=probabilities > 0)
    value: FloatArray = np.exp(-(probabilities * logs).sum(axis=1))
    return value


def certainty(probabilities: FloatArray) -> FloatArray:
    """Compute the certainty of each outcome distribution, (k - perplexity) / (k - 1).

    Args:
        probabilities: Outcome distributions, shape (n, k) with k >= 2, each row summing to 1.

    Returns:
        The certainties, shape (n,), in [0, 1]: 0 for the uniform distribution, 1 if one outcome has all the
        probability. Values for different k are not comparable.

    Raises:
        ValueError: k < 2, or a row does not sum to 1.

    References:
        Wang et al. 2025, arXiv:2505.23996, c(x).

    >>> certainty(np.array([[0.95, 0.05]])).round(4)
    array([0.7804])
    """
    k = probabilities.shape[1]
    if k < 2:
        raise ValueError(f"certainty needs at least 2 outcomes, got {k}")
    if np.any(np.abs(probabilities.sum(axis=1) - 1) > _SUM_TOLERANCE):
        raise ValueError("certainty is of probabilities, but a row does not sum to 1; renormalise it")
    value: FloatArray = (k - perplexity(probabilities)) / (k - 1)
    # Rounding may leave the range.
    return value.clip(0.0, 1.0)


def predicted_share(probabilities: FloatArray) -> FloatArray:
    """Compute the credit of each outcome for being predicted: 1 for the most probable one, or 1/t each if t tie.

    Args:
        probabilities: Outcome distributions, shape (n, k).

    Returns:
        The credits, shape (n, k), each row summing to 1. No outcome wins a tie by its position.

    >>> predicted_share(np.array([[0.7, 0.3], [0.5, 0.5]]))
    array([[1. , 0. ],
           [0.5, 0.5]])
    """
    # With argmax the first of equal outcomes would win, and the order of the options would decide.
    top = probabilities >= probabilities.max(axis=1, keepdims=True) - TIE_TOLERANCE
    share: FloatArray = top / top.sum(axis=1, keepdims=True)
    return share


def desirability(probabilities: FloatArray, target: IntArray) -> FloatArray:
    """Compute the signed certainty, positive if the target is predicted and negative if it is not.

    Args:
        probabilities: Outcome distributions, shape (n, k), each row summing to 1.
        target: Index of the desired outcome, shape (n,).

    Returns:
        The signed certainties, shape (n,), in [-1, 1]. If t outcomes tie and the target is one of them, the certainty
        is multiplied by 2/t - 1 instead of by a sign.

    References:
        Wang et al. 2025, arXiv:2505.23996, D(x). The rule for ties is ours.

    >>> desirability(np.array([[0.95, 0.05], [0.95, 0.05]]), np.array([0, 1])).round(4)
    array([ 0.7804, -0.7804])
    """
    # With two outcomes a tie has certainty 0, so the rule for ties only matters from three on.
    share = predicted_share(probabilities)[np.arange(len(target)), target]
    return (2 * share - 1) * certainty(probabilities)
