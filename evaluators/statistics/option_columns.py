"""Computes the probabilities over options of many exchanges together; see :mod:`option_scores` for single ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from biasboard.ground.columns import BoolArray, Column, FloatArray
from schemas.documents.metric_comparison import TOLERANCE
from schemas.documents.result import Normalisation
from schemas.files.record_columns import RecordColumns

_MOST_OPTIONS = 128
"""Number of options up to which records are compared as arrays; a stranger's file may hold any number."""


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
    odds = np.exp(scores - best[:, None])
    total = odds.sum(axis=1, keepdims=True)
    return OptionProbabilities(np.divide(odds, total, out=np.zeros_like(odds), where=total > 0), is_certain)


def are_certain_choices(records: RecordColumns, normalisation: Normalisation) -> BoolArray:
    """Return the mask of the records whose reading certainly is the distribution over the options of their one answer.

    Each record may have options of its own, in any number.

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
    is_usual = (read.lengths[rows] == k) & (shares.lengths[rows] == k) & (k <= _MOST_OPTIONS)
    is_usual &= readings["answers"].lists.lengths[rows] == 0
    asked_texts, read_texts = asked.values.coded, read.values.coded
    code_of = {text: code for code, text in enumerate(asked_texts.texts)}
    read_codes = np.array([*(code_of.get(text, -2) for text in read_texts.texts), -2])[read_texts.codes]
    given = shares.values.numbers
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
