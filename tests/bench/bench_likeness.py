"""How often honest models are alike, and disguised copies: ``make bench ARGS='-k bench_likeness'``.

First, of the accepted results: the pairs of two models on the same items that are alike, and the disguises under which
copies of those that choose one of two options are found. Then, of models that answer in letters: tables of 20 with
accuracies of .5 to .95. Some items are harder than others for all of them, with log-odds that have a standard
deviation; everything else is independent. Of each there is a copy, with one in twenty answers changed. Printed are the
pairs that are alike, the largest kappa of a pair, and the share of copies that are alike to their original, by
accuracy. The tables of site/docs/sharing.md come from here; it takes some minutes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations, product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from leaderboard.verify.board_files import RESULTS
from leaderboard.verify.intake import read_untrusted
from leaderboard.verify.sketches import Sketch, SketchMaker, asked, shared_errors
from schemas.documents.result import Result
from schemas.files.record_columns import RecordColumns
from schemas.folders.run_folder import find_runs, read_parts
from tests.leaderboard.test_sketches import ACCURACIES, in_letters, right_answers

Odds = npt.NDArray[np.float64]
N_TABLES = 20
SHOWN = (0, 6, 13, 15, 19)


@pytest.mark.parametrize(
    ("n_items", "spread"), tuple(product((150, 300, 500, 1_000, 2_000), (0.0, 1.0, 2.0, 3.0, 4.0)))
)
def bench_pairs_and_copies(n_items: int, spread: float) -> None:
    rng = np.random.default_rng(1)
    n_alike, kappas, found = 0, [0.0], np.zeros(len(ACCURACIES))
    for _ in range(N_TABLES):
        hardness = rng.normal(0, spread, n_items)
        rights = [right_answers(accuracy, hardness, rng) for accuracy in ACCURACIES]
        models = [in_letters(right) for right in rights]
        for one, other in combinations(models, 2):
            errors = shared_errors(one.decisions, other.decisions)
            kappas += [] if errors is None else [errors[0]]
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


def accepted_results() -> dict[tuple[str, str, str, int], list[tuple[Result, RecordColumns]]]:
    """All accepted results of models, by the items that they ask."""
    found: dict[tuple[str, str, str, int], list[tuple[Result, RecordColumns]]] = defaultdict(list)
    for folder in find_runs(RESULTS):
        result = read_untrusted(folder / "result.json")
        if not result.model.id.startswith("baseline/"):
            found[asked(result)].append((result, RecordColumns.joined(read_parts(folder, result, recount=False))))
    return found


def sketch_of(records: RecordColumns) -> Sketch:
    maker = SketchMaker()
    maker.add(records)
    return maker.sketch


def odds_of(records: RecordColumns) -> Odds | None:
    """Log-odds of the first outcome of each item, shape (n_items, n_orders); None unless all have two outcomes."""
    exchanges = records.exchanges
    logprobs, n_orders = exchanges["option_logprobs"].lists, np.unique(np.diff(records.first_exchanges))
    if len(n_orders) > 1 or {*logprobs.lengths.tolist()} != {2}:
        return None
    values = logprobs.values.numbers.reshape(-1, 2)
    return (signs(records) * (values[:, 0] - values[:, 1])).reshape(len(records), -1)


def signs(records: RecordColumns) -> npt.NDArray[np.int64]:
    """1 for each exchange whose first option is the first of the item, or else -1."""
    first = records.exchanges["outcomes"].lists.values.coded.codes[::2]
    return np.where(first == first[records.first_exchanges[records.owners]], 1, -1)


def answered(records: RecordColumns, odds: Odds) -> Sketch:
    """The sketch of the same records with other log-odds."""
    flat = signs(records) * odds.ravel()
    offered = records.exchanges["outcomes"].lists.values.texts
    means = (1 / (1 + np.exp(-odds))).mean(axis=1).tolist()
    readings: list[Any] = [
        {"outcomes": offered[2 * first : 2 * first + 2], "probabilities": [mean, 1 - mean], "answers": []}
        for first, mean in zip(records.first_exchanges[:-1].tolist(), means, strict=True)
    ]
    logprobs = np.stack([-np.logaddexp(0, -flat), -np.logaddexp(0, flat)], axis=1).tolist()
    return sketch_of(records.replaced({"reading": readings}, {"option_logprobs": logprobs}))


def disguised(odds: Odds, other: Odds, rng: np.random.Generator) -> Iterator[tuple[str, Odds]]:
    """Yield log-odds that a copy might give, and what was done to them."""
    n, spread = len(odds), odds.std()
    for size in (0.01, 0.03, 0.1, 0.3):
        yield f"noise of {size:.0%} of the standard deviation", odds + rng.normal(0, size * spread, odds.shape)
    yield "halved", odds / 2
    yield "bent", np.sign(odds) * np.log1p(np.abs(odds))
    chances = 1 / (1 + np.exp(-odds))
    if odds.shape[1] == 2:
        yield "orders swapped", odds[:, ::-1]
        low, high = np.maximum(0, 2 * chances.mean(axis=1) - 1) + 1e-9, np.minimum(1, 2 * chances.mean(axis=1)) - 1e-9
        first = rng.uniform(low, np.maximum(low, high))
        moved = np.clip(np.stack([first, 2 * chances.mean(axis=1) - first], axis=1), 1e-12, 1 - 1e-12)
        yield "mass moved between orders", np.log(moved) - np.log1p(-moved)
        by = rng.normal(0, 2 * spread, n)
        yield "log-odds moved between orders", odds + np.stack([by, -by], axis=1)
    sign = np.where(chances.mean(axis=1) > 0.5, 1, -1)[:, None]
    for share in (0, 0.02, 0.05, 0.1):
        kept = np.where(rng.random((n, 1)) < share, -sign, sign)
        yield f"signs kept, {share:.0%} turned", kept * np.abs(rng.normal(0, spread, odds.shape))
    for share in (0.2, 0.4, 0.5, 0.6):
        yield f"{share:.0%} own answers", np.where(rng.random((n, 1)) < share, odds[rng.permutation(n)], odds)
    yield "half of the answers another model's", np.where(rng.random((n, 1)) < 0.5, other, odds)
    yield "mean with another model", odds / spread + other / other.std()


def bench_accepted_results_and_disguised_copies() -> None:
    rng = np.random.default_rng(1)
    n_alike = n_pairs = 0
    found: dict[str, list[bool]] = defaultdict(list)
    for results in accepted_results().values():
        for (one, records), (other, others) in combinations(results, 2):
            if one.model.id == other.model.id:
                continue
            ours, theirs = sketch_of(records), sketch_of(others)
            n_pairs, n_alike = n_pairs + 1, n_alike + (ours.likeness(theirs) is not None)
            odds, of_other = odds_of(records), odds_of(others)
            if odds is not None and of_other is not None and odds.shape == of_other.shape:
                for what, changed in disguised(odds, of_other, rng):
                    found[what].append(ours.likeness(answered(records, changed)) is not None)
                for what, changed in disguised(of_other, odds, rng):
                    found[what].append(theirs.likeness(answered(others, changed)) is not None)
    print(f"\n{n_alike} of {n_pairs} pairs of accepted results are alike", end="")
    for what, each in found.items():
        print(f"\n{what}: {sum(each)} of {len(each)} copies found", end="")
    assert n_alike == 0
