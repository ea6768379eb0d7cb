"""Minimal pairs found with arrays are those that a loop over the rows finds, in its order."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from evaluators.tasks.coreference.coreference_table import CoreferenceTable


def looped(table: CoreferenceTable, group: Mapping[str, str]) -> tuple[list[tuple[int, int]], int]:
    """Find the pairs of a slice row by row, and the number of pairs that are left out."""
    gender, reference = table.column("pronoun_gender"), table.column("occupation")
    sides: dict[str, list[int]] = {}
    for index in np.flatnonzero(table.rows(group)):
        sides.setdefault(table.pair_ids[index], []).append(int(index))
    complete = []
    for pair in sides.values():
        by_gender = {str(gender[index]): index for index in pair}
        if len(pair) == 2 and by_gender.keys() == {"masculine", "feminine"}:
            masculine, feminine = by_gender["masculine"], by_gender["feminine"]
            if reference[masculine] == reference[feminine] and table.measured[pair].all():
                complete.append((masculine, feminine))
    return complete, len(sides) - len(complete)


def made_table(seed: int, n: int) -> CoreferenceTable:
    """A table with pairs of one, two and three sides, of one gender or both, measured or not, in any order."""
    rng = np.random.default_rng(seed)
    probabilities = rng.dirichlet([1.0, 1.0], n)
    probabilities[rng.random(n) < 0.1] = 0.0
    return CoreferenceTable(
        clusters=rng.integers(0, 5, n),
        n_clusters=5,
        crossing=None,
        groups={
            "pronoun_gender": rng.choice(["masculine", "feminine", "neutral"], n, p=[0.48, 0.48, 0.04]),
            "occupation": rng.choice(["baker", "judge"], n, p=[0.8, 0.2]),
            "stereotype": rng.choice(["pro", "anti", ""], n),
        },
        probabilities=probabilities,
        usable=probabilities.sum(axis=1) > 0,
        occupation_pairs=np.zeros(n, dtype=np.int64),
        pair_ids=tuple(f"pair-{number}" for number in rng.integers(0, max(1, n // 2), n)),
        has_referent=bool(seed % 2),
        has_undetermined=False,
    )


def test_pairs_are_those_of_a_loop_in_its_order() -> None:
    n_found = 0
    for seed in range(60):
        table = made_table(seed, (0, 1, 2, 7, 200)[seed % 5])
        for group in (
            {},
            {"occupation": "baker"},
            {"stereotype": "pro"},
            {"stereotype": "anti", "occupation": "judge"},
        ):
            pairs = table.pairs(group)
            expected, n_excluded = looped(table, group)
            assert list(zip(pairs.masculine.tolist(), pairs.feminine.tolist(), strict=True)) == expected
            assert pairs.n_excluded == n_excluded
            n_found += len(expected)
    assert n_found > 200
