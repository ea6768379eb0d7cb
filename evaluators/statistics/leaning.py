"""Tests whether stored answers lean away from new ones of the same model, as rounding errors do not.

Honest answers and new ones are two roundings of the same numbers, so that either may be the larger one: whatever its
size, the difference c of a cluster has a random sign. Chernoff's bound then holds for their sum S and every a > 0,
P(S >= s) <= exp(-a s) * product of cosh(a c), however large the rounding errors of a model are. How many decisions they
change is bounded by what changes if answers are rounded as badly as they may be; where that may be many, as with a
model whose options nearly tie, whoever hands in its answers decides them as he likes.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from biasboard.ground.columns import FloatArray
from schemas.documents.record import Reading, Record

LEVEL = 1e-3
"""Largest probability that honest answers are said to lean, over all tests of a result together."""
_LEAST = 1e-3
"""Smallest mean difference that counts: metrics are shown with three digits, and the last bits of two libraries need
not have random signs."""

_MOST_LEFT = 1 / 6
"""Largest share of the decisions that rounding may change. SmolLM2-135M in bfloat16 has 1 / 10 of 200."""


class Lean(NamedTuple):
    """Differences between stored answers and new ones that are not those of rounding."""

    how: str
    """What the stored answers do, such as "leans towards" an outcome."""
    rows: frozenset[int]
    """Indices of the records that differ so."""


def find_lean(
    records: Sequence[Record], again: Sequence[Reading | None], *rounded: Sequence[Reading | None]
) -> Lean | None:
    """Return where stored readings lean to from new ones of the same items, or decide otherwise too often; else None.

    Tested are the probabilities and the decisions for the right outcome, the reference, the likeliest one, those that
    groups name, and each by its name, over all items and in each group. What moves a metric that is a mean of these
    moves one of them.

    Args:
        records: The stored records.
        again: The readings of new answers to their items.
        rounded: Readings of the same answers, each time rounded as badly as they may be.
    """
    # By measure, outcome and group.
    differences: dict[tuple[str, str, str], dict[int, float]] = defaultdict(dict)
    for row, (record, reading) in enumerate(zip(records, again, strict=True)):
        shares = [_shares(record.reading), _shares(reading)]
        outcomes = dict.fromkeys([*shares[0], *shares[1]])
        roles = {"the right outcome": record.target, "the reference": record.reference, **record.groups}
        # By both readings together, as either could be the stored one.
        likeliest = max(outcomes, key=lambda one: sum(share.get(one, 0.0) for share in shares), default=None)
        roles |= {"the likeliest outcome": likeliest, **{f"outcome '{outcome}'": outcome for outcome in outcomes}}
        groups = ("", *(f" where {name} is {value}" for name, value in record.groups.items()))
        for measure, (stored, new) in (("decisions", [*map(_decision, shares)]), ("probability", shares)):
            for (role, outcome), group in product(roles.items(), groups):
                if outcome in outcomes:
                    differences[measure, role, group][row] = stored.get(outcome, 0.0) - new.get(outcome, 0.0)
    totals: dict[tuple[str, str, str], float] = {}
    p_values: dict[tuple[str, str, str], float] = {}
    distinct = set[frozenset[tuple[str, float]]]()
    # Half of the level is for what most metrics rank by: how often the right outcome is decided for, over all items.
    first = next(iter(differences), None)
    for test, by_row in differences.items():
        sums: dict[str, float] = defaultdict(float)
        for row, difference in by_row.items():
            sums[records[row].cluster] += difference
        values = np.array(list(sums.values()))
        # Of fewer clusters, all may have the same sign by chance.
        if np.count_nonzero(values**2) > math.log2(4 / LEVEL):
            totals[test], p_values[test] = (total := values.sum()), 2 * _p_value(values)
            if test != first:
                # What one of two outcomes gains, the other loses: that is one test.
                distinct.add(frozenset((cluster, round(value * total, 12)) for cluster, value in sums.items()))
    leaning = [
        test
        for test, total in totals.items()
        if p_values[test] * (1 if test == first else len(distinct)) < LEVEL
        and abs(total) > _LEAST * len(differences[test])
    ]
    if not leaning:
        return _find_changes(records, again, rounded)
    measure, outcome, group = least = min(leaning, key=p_values.__getitem__)
    return Lean(
        f"leans {'towards' if totals[least] > 0 else 'away from'} {outcome}{group} in {measure}",
        frozenset(row for row, value in differences[least].items() if value * totals[least] > 0),
    )


def _p_value(values: FloatArray) -> float:
    """Return a bound on the probability that a sum of values with random signs is as far from 0 as theirs."""
    total = abs(values.sum())
    # Every factor gives a bound: small ones that of Hoeffding, large ones that of counting signs.
    factors = 2.0 ** np.arange(10) * total / (values**2).sum()
    scaled = np.outer(factors, np.abs(values))
    log_cosh = scaled + np.log1p(np.exp(-2 * scaled)) - math.log(2)
    return float(2 * np.exp((log_cosh.sum(axis=1) - factors * total).min()))


def _find_changes(
    records: Sequence[Record], again: Sequence[Reading | None], rounded: Sequence[Sequence[Reading | None]]
) -> Lean | None:
    """Return which decisions changed if they are more than rounding explains, or which it may change if too many."""
    changed, *by_rounding = (_changed(readings, again) for readings in ([one.reading for one in records], *rounded))
    # One more than were found, which makes zero of a few rounds no proof.
    n, expected = len(changed), (1 + sum(map(len, by_rounding))) / len(rounded)

    def is_chance(n: int) -> bool:
        # Chernoff's bound on a number of rare events.
        return n <= expected or n - expected - n * math.log(n / expected) >= math.log(LEVEL)

    if not is_chance(n):
        return Lean(f"one of {n} other decisions, and rounding explains {expected:.1f}", changed)
    most = max(filter(is_chance, range(len(records) + 1)))
    if most <= _MOST_LEFT * len(records):
        return None
    how = f"rounding may change {most} of {len(records)} decisions, too many to vouch for any"
    return Lean(how, frozenset().union(*by_rounding))


def _changed(readings: Sequence[Reading | None], again: Sequence[Reading | None]) -> frozenset[int]:
    pairs = enumerate(zip(readings, again, strict=True))
    return frozenset(row for row, (one, own) in pairs if _decision(_shares(one)) != _decision(_shares(own)))


def _shares(reading: Reading | None) -> Mapping[str, float]:
    return {} if reading is None else dict(zip(reading.outcomes, reading.probabilities, strict=True))


def _decision(shares: Mapping[str, float]) -> Mapping[str, float]:
    """Return the most probable outcome with a share of 1, or equal shares of those that tie."""
    best = [outcome for outcome, share in shares.items() if share == max(shares.values())]
    return {outcome: 1 / len(best) for outcome in best}
