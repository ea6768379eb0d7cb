"""Computes the probabilities over options of many exchanges together; see :mod:`option_scores` for single ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from evaluators.statistics.bootstrap import FloatArray
from evaluators.statistics.record_tables import BoolArray
from schemas.columns import Column
from schemas.result import Normalisation


class OptionProbabilities(NamedTuple):
    """The distributions over the options of many exchanges."""

    values: FloatArray
    """Probability of each option, shape (n_exchanges, k); 0 in rows that are not certain."""
    is_certain: BoolArray
    """Mask of the exchanges with all numbers that their distribution needs, and no bounds among them."""


def option_probabilities_of(
    exchanges: Mapping[str, Column], k: int, normalisation: Normalisation
) -> OptionProbabilities:
    """Compute the distributions over the options of exchanges with ``k`` options each.

    Args:
        exchanges: The fields of exchanges, by name.
        k: Number of options; exchanges with another number are not certain.
        normalisation: Score of an option; see :func:`evaluators.statistics.option_scores.option_probabilities`.
    """
    scores, is_certain = _numbers(exchanges["option_logprobs"], k)
    is_certain &= exchanges["status"].coded.is_one_of("answered") & exchanges["kind"].coded.is_one_of("choice")
    is_certain &= exchanges["option_is_bound"].lists.lengths == 0
    if normalisation == "sum_with_end":
        ends, is_known = _numbers(exchanges["option_end_logprobs"], k)
        scores, is_certain = scores + ends, is_certain & is_known
    elif normalisation != "sum":
        name = "option_token_counts" if normalisation == "token_mean" else "option_byte_counts"
        counts, is_known = _numbers(exchanges[name], k)
        is_certain &= is_known & (counts > 0).all(axis=1) & (exchanges["n_moved_tokens"].numbers == 0)
        scores = scores / np.where(counts > 0, counts, 1.0)
    best = scores.max(axis=1)
    is_certain &= np.isfinite(best)
    scores[~is_certain], best[~is_certain] = -np.inf, 0.0
    odds = np.exp(scores - best[:, None])
    total = odds.sum(axis=1, keepdims=True)
    return OptionProbabilities(np.divide(odds, total, out=np.zeros_like(odds), where=total > 0), is_certain)


def _numbers(column: Column, k: int) -> tuple[FloatArray, BoolArray]:
    """Return lists of numbers as rows, shape (n, k), and the mask of those with ``k`` known numbers."""
    lists = column.lists
    is_whole = lists.lengths == k
    rows = np.full((len(is_whole), k), np.nan)
    rows[is_whole] = lists.values.numbers[lists.offsets[:-1][is_whole][:, None] + np.arange(k)]
    return rows, is_whole & ~np.isnan(rows).any(axis=1)
