"""How often models that answer in letters are alike, and copies of them: ``make bench ARGS='-k bench_likeness'``.

Tables of 20 models with accuracies of .5 to .95. Some items are harder than others for all of them, with log-odds that
have a standard deviation; everything else is independent. Of each model there is a copy, with one in twenty answers
changed. Printed are the pairs of models that are alike, the largest kappa of a pair, and the share of copies that are
alike to their original, by accuracy. The table of site/docs/sharing.md comes from here; it takes some minutes.
"""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from leaderboard.verify.sketches import shared_errors
from tests.leaderboard.test_sketches import ACCURACIES, in_letters, right_answers

N_TABLES = 20
SHOWN = (0, 6, 13, 15, 19)


@pytest.mark.parametrize(
    ("n_items", "spread"), tuple(product((150, 300, 500, 1_000, 2_000), (0.0, 1.0, 2.0, 3.0, 4.0)))
)
def test_pairs_and_copies(n_items: int, spread: float) -> None:
    rng = np.random.default_rng(1)
    n_alike, kappas, found = 0, [0.0], np.zeros(len(ACCURACIES))
    for _ in range(N_TABLES):
        hardness = rng.normal(0, spread, n_items)
        rights = [right_answers(accuracy, hardness, rng) for accuracy in ACCURACIES]
        models = [in_letters(right) for right in rights]
        for one, other in combinations(models, 2):
            errors = shared_errors(one.decisions, other.decisions)
            kappas += [] if errors is None else [errors.kappa]
            n_alike += one.likeness(other) is not None
        copies = [in_letters(right ^ (rng.random(n_items) < 0.05)) for right in rights]
        found += [model.likeness(copy) is not None for model, copy in zip(models, copies, strict=True)]
    shares = ", ".join(f"{ACCURACIES[place]:.2f}: {found[place] / N_TABLES:.2f}" for place in SHOWN)
    print(
        f"\n{n_items} items, hardness {spread:.0f}: {n_alike} of {N_TABLES * 190} pairs alike, largest kappa "
        f"{max(kappas):.2f}; copies found {shares}",
        end="",
    )
    if spread <= 2:
        assert n_alike == 0
