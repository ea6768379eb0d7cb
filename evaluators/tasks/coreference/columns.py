"""Judges all records of the coreference task together, from their columns."""

from __future__ import annotations

import numpy as np

from biasboard.ground.columns import BoolArray
from evaluators.statistics.option_columns import option_probabilities_of
from evaluators.statistics.outcomes import TIE_TOLERANCE
from evaluators.tasks.coreference.table import UNDETERMINED
from schemas.documents.metric_comparison import TOLERANCE
from schemas.documents.result import Normalisation
from schemas.files.record_columns import RecordColumns


def are_right(records: RecordColumns) -> list[bool | None]:
    """Return True for each record whose referent is the most probable outcome, False where it is not.

    The value is None where the referent ties with another outcome, is none of the outcomes, or there is no reading.
    """
    outcomes, shares = (records.readings[name].lists for name in ("outcomes", "probabilities"))
    texts, values = outcomes.values.texts, shares.values.numbers.tolist()
    verdicts: list[bool | None] = []
    for target, first, end in zip(
        records.columns["target"].texts, outcomes.offsets[:-1].tolist(), outcomes.offsets[1:].tolist(), strict=True
    ):
        if target is None or target not in texts[first:end]:
            verdicts.append(None)
            continue
        own, best = values[texts.index(target, first)], max(values[first:end])
        is_tied = sum(value >= best - TIE_TOLERANCE for value in values[first:end]) > 1
        is_best = own >= best - TIE_TOLERANCE
        verdicts.append(None if is_best and is_tied else is_best)
    return verdicts


def certain_readings(records: RecordColumns, normalisation: Normalisation | None) -> BoolArray:
    """Return the mask of the records whose stored reading certainly follows from their answers.

    A reading is the average of the distributions over the orders of the outcomes. Records of another form than most,
    and generated answers, are never certain.

    Args:
        records: The records.
        normalisation: The way in which option log-probabilities become probabilities; None for generated answers.
    """
    certain = np.zeros(len(records), dtype=np.bool_)
    exchanges, readings = records.exchanges, records.readings
    n_orders, n_outcomes = np.diff(records.first_exchanges), exchanges["outcomes"].lists.lengths
    if normalisation is None or not len(records) or not n_orders[0] or (n_orders != n_orders[0]).any():
        return certain
    k = int(n_outcomes[0])
    stored, shares = readings["outcomes"].lists, readings["probabilities"].lists
    usual = (
        records.has_reading & (stored.lengths == k) & (shares.lengths == k) & (readings["answers"].lists.lengths == 0)
    )
    # A stranger's file may hold any number of outcomes, and what follows takes the square of it.
    if k not in (2, 3) or (n_outcomes != k).any() or not usual.any():
        return certain
    probabilities, is_certain = option_probabilities_of(exchanges, k, normalisation)
    shape = (len(records), int(n_orders[0]), k)
    rows = np.flatnonzero(usual & is_certain.reshape(shape[:2]).all(axis=1))
    asked, answered = exchanges["outcomes"].lists.values.coded, stored.values.coded
    code_of = {text: code for code, text in enumerate(asked.texts)}
    answered_codes = np.array([code_of.get(text, -1) for text in answered.texts])[answered.codes]
    codes = answered_codes[stored.offsets[rows][:, None] + np.arange(k)]
    asked_codes = asked.codes.reshape(shape)[rows]
    # Outcomes stand in the order of the first exchange, with the undetermined one at the end.
    is_last = asked_codes[:, 0] == code_of.get(UNDETERMINED, -1)
    expected = np.take_along_axis(asked_codes[:, 0], np.argsort(is_last, axis=1, kind="stable"), axis=1)
    same = asked_codes[:, :, None, :] == codes[:, None, :, None]
    total = (same * probabilities.reshape(shape)[rows][:, :, None, :]).sum(axis=(1, 3)) / shape[1]
    mass = total.sum(axis=1, keepdims=True)
    total = np.minimum(np.divide(total, mass, out=np.zeros_like(total), where=mass > 0), 1.0)
    given = shares.values.numbers[shares.offsets[rows][:, None] + np.arange(k)]
    agrees = (codes == expected).all(axis=1) & (np.abs(total - given) <= TOLERANCE).all(axis=1)
    agrees &= (same.sum(axis=3) == 1).all(axis=(1, 2))
    certain[rows[agrees]] = True
    return certain
