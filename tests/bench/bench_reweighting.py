"""Measures how fast and how well corrections of class probabilities are found.

Run it with ``make bench ARGS='-k bench_reweighting'``. CPU seconds count, since machines are shared. The package
tunethresholds, of the extra ``bench``, is compared if it is installed. ``REWEIGHTING_SEEDS`` chooses how many seeds.
"""

from __future__ import annotations

import importlib.util
import os
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest

from biasboard.ground.columns import FloatArray, IntArray
from evaluators.calibration.reweighting.fitting import PRESETS, UNCORRECTED, FitSettings, fit_rules
from evaluators.calibration.reweighting.problem import PAPER_RULES, Annealing, Objective, ObjectiveName
from evaluators.calibration.reweighting.rules import ClassRules, RuleSet, prepared
from evaluators.calibration.reweighting.solvers import anneal as solve
from evaluators.calibration.reweighting.top_two import TopTwo
from evaluators.statistics.class_accuracies import class_accuracies, gini_index, mean_accuracy, sen_welfare
from tests.bench.reweighting_rivals import (
    FIRST_COMMIT,
    LAST_COMMIT,
    METHODS,
    ONE_LINERS,
    Split,
    digits,
    full_counts,
    gini_of,
    held_out_by,
    page_example,
    published_annealing,
    synthetic,
    tuned_thresholds,
)
from tests.evaluators.reweighting.imbalanced import NAMES, imbalanced
from tests.evaluators.reweighting.made import Made, best_of_all, biased, problem_of

SEEDS = range(100, 100 + int(os.environ.get("REWEIGHTING_SEEDS", "5")))
N_MOVES, ROUNDS = 100, 5
SETTINGS: dict[str, FitSettings] = {
    **PRESETS,
    "coordinate": FitSettings(solver="coordinate"),
    "path": FitSettings(solver="path"),
    "anneal, sen": FitSettings(solver="anneal"),
}
DATA: dict[str, Callable[[int], Split]] = {
    "digits": digits,
    "synthetic, N=4": lambda seed: synthetic(seed, 4, 0.5),
    "synthetic, N=14": lambda seed: synthetic(seed, 14, 0.15),
}


class Reached(NamedTuple):
    """What predictions reach."""

    sen: float
    mean: float
    gini: float
    micro: float

    @classmethod
    def by(cls, made: Made, predicted: IntArray) -> Reached:
        shares = class_accuracies(made.targets, predicted, made.probabilities.shape[1]).accuracies
        sen, mean, gini = (float(measure(shares)) for measure in (sen_welfare, mean_accuracy, gini_index))
        return cls(sen, mean, gini, float((predicted == made.targets).mean()))


class OnTest(NamedTuple):
    """What a correction reaches on the rows to test on, and what it took."""

    reached: Reached
    seconds: float
    falls: bool
    """True if the mean accuracy on the fitted rows fell below that before the correction."""


def on_test(split: Split, fit: Callable[[Made], ClassRules]) -> OnTest:
    start = time.process_time()
    rules = fit(split.fitted)
    seconds = time.process_time() - start
    before = Reached.by(split.fitted, split.fitted.probabilities.argmax(axis=1))
    after = Reached.by(split.fitted, rules.predict(split.fitted.probabilities))
    of_test = Reached.by(split.tested, rules.predict(split.tested.probabilities))
    return OnTest(of_test, seconds, after.mean < before.mean - 1e-12)


def fitted_by(settings: FitSettings) -> Callable[[Made], ClassRules]:
    def fit(made: Made) -> ClassRules:
        return fit_rules(prepared(made.probabilities, settings.map), made.targets, settings).rules

    return fit


def _divided(division: Callable[[FloatArray, IntArray], ClassRules], made: Made) -> ClassRules:
    return division(made.probabilities, made.targets)


def ways(seed: int) -> Iterator[tuple[str, Callable[[Made], ClassRules]]]:
    yield UNCORRECTED, lambda made: ClassRules.of_weights(np.ones(made.probabilities.shape[1]))
    for name, division in ONE_LINERS.items():
        yield name, partial(_divided, division)
    for name, settings in SETTINGS.items():
        yield name, fitted_by(settings)
    yield "published annealing, last commit", lambda made: published_annealing(made, LAST_COMMIT, seed)
    yield "published annealing, first commit", lambda made: published_annealing(made, FIRST_COMMIT, seed)
    if importlib.util.find_spec("tunethresholds"):
        yield "tunethresholds (MCC)", lambda made: tuned_thresholds(made, seed)


def told(values: list[float]) -> str:
    error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.3f} ±{error:.3f}"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", DATA)
def bench_solvers(name: str) -> None:
    """Test accuracy, Gini index and time of all solvers and rivals, means and standard errors over seeds."""
    found: dict[str, list[OnTest]] = {}
    for seed in SEEDS:
        split = DATA[name](seed)
        for way, fit in ways(seed):
            found.setdefault(way, []).append(on_test(split, fit))
    n_rows, n_classes = split.fitted.probabilities.shape
    print(f"\n{name}: {n_rows} rows, {n_classes} classes, {len(SEEDS)} seeds, test values")
    print(f"{'':36} {'mean class acc.':>15} {'Gini':>13} {'Sen':>13} {'accuracy':>13} {'CPU s':>7} falls")
    for way, each in found.items():
        columns = [
            told([getattr(one.reached, measure) for one in each]) for measure in ("mean", "gini", "sen", "micro")
        ]
        seconds = statistics.mean(one.seconds for one in each)
        print(f"{way:36} {columns[0]:>15} {' '.join(f'{one:>13}' for one in columns[1:])} {seconds:7.2f} ", end="")
        print(f"{sum(one.falls for one in each)}/{len(each)}")
    default, before = found["default"], found[UNCORRECTED]
    assert not any(one.falls for one in default)
    assert statistics.mean(one.reached.sen for one in default) > statistics.mean(one.reached.sen for one in before)


def held_out(made: Made, seed: int) -> dict[str, Reached]:
    """Return what each method reaches on the half that it was not fitted on, for both halves together."""
    return {method: Reached.by(made, held_out_by(method, *made, seed=seed)) for method in METHODS}


def print_held_out(title: str, found: list[dict[str, Reached]]) -> None:
    """Print means and standard errors, and of the default's lead in Sen welfare over each method."""
    print(f"\n{title}, {len(found)} seeds, held out")
    print(f"{'':21} {'Sen welfare':>13} {'mean class acc.':>15} {'Gini':>13} {'lead of the default':>20}")
    for method in METHODS:
        columns = [told([getattr(each[method], name) for each in found]) for name in ("sen", "mean", "gini")]
        lead = told([each["default"].sen - each[method].sen for each in found])
        print(f"{method:21} {columns[0]:>13} {columns[1]:>15} {columns[2]:>13} {lead:>20}")


@pytest.mark.parametrize("are_labels_rare", [False, True])
@pytest.mark.parametrize("name", NAMES)
def bench_one_liners(name: str, are_labels_rare: bool) -> None:
    """Presets beside divisions by the mean and by the prior, on data sets with planted imbalance."""
    found = [held_out(imbalanced(name, seed, are_labels_rare=are_labels_rare), seed) for seed in SEEDS]
    where = "in training and labels" if are_labels_rare else "in training"
    print_held_out(f"{name}, classes rare {where}", found)


def bench_page_example() -> None:
    """The table on the page: random halves of the rows of its example."""
    made = page_example()
    print_held_out("the example of the page", [held_out(made, seed) for seed in SEEDS])


@pytest.mark.parametrize(("n_classes", "least"), [(4, 2.5), (14, 7.0), (100, 100.0)])
def bench_moves(n_classes: int, least: float) -> None:
    """Time of one move: the counts that follow from a changed class, and all values of all classes anew."""
    made = biased(0, 10_000, n_classes)
    rng = np.random.default_rng(1)
    numbers = rng.choice(PAPER_RULES.numbers, size=n_classes)
    top = TopTwo(made.probabilities, made.targets, PAPER_RULES.rules(numbers).transform(made.probabilities))
    objective = Objective("gini", top.supports)
    moves = list(
        zip(rng.integers(n_classes, size=N_MOVES).tolist(), rng.integers(49, size=N_MOVES).tolist(), strict=True)
    )

    def evaluated(accepts: bool) -> list[float]:
        found = []
        for one, number in moves:
            values = PAPER_RULES.value(number, top.probabilities[one])
            found.append(float(objective(top.trial(one, values))))
            if accepts:
                top.accept(one, values)
        return found

    def recomputed() -> list[float]:
        found = []
        for one, number in moves:
            changed = numbers.copy()
            changed[one] = number
            columns = [PAPER_RULES.value(rule, made.probabilities[:, n]) for n, rule in enumerate(changed.tolist())]
            values = np.column_stack(columns)
            found.append(gini_of(full_counts(values, made), top.supports))
        return found

    np.testing.assert_allclose(evaluated(False), [np.inf if np.isnan(one) else one for one in recomputed()], atol=1e-9)
    taken: dict[str, list[float]] = {"full": [], "trial": [], "accepted": []}
    for _ in range(ROUNDS):
        for name, call in (
            ("full", recomputed),
            ("trial", lambda: evaluated(False)),
            ("accepted", lambda: evaluated(True)),
        ):
            start = time.process_time()
            call()
            taken[name].append((time.process_time() - start) / N_MOVES * 1e6)
    full, trial, accepted = (statistics.median(taken[name]) for name in taken)
    print(f"\nN={n_classes}: full {full:.0f} us, incremental {trial:.0f} us ({full / trial:.1f} times)", end="")
    print(f", with acceptance {accepted:.0f} us ({full / accepted:.1f} times)")
    assert full / trial >= least


def bench_brute_force() -> None:
    """How often annealing finds the best of 30 ** 4 combinations of weights: single searches, and three restarts."""
    rule_set = RuleSet(has_functions=False)
    names: tuple[ObjectiveName, ...] = ("gini", "sen")
    single, several, gaps = 0, 0, []
    for instance in range(3):
        made = biased(200 + instance, 1000, 4)
        best = best_of_all(made, 30)
        for name in names:
            for seed in range(10):
                problem = problem_of(made, name, rule_set, Annealing(n_restarts=3), seed=10 * seed)
                candidates, _ = solve(problem)
                values = [problem.score(problem.n_right(rules))[0] for rules in candidates.values()]
                gaps.append(values[0] - best[name])
                single += values[0] <= best[name] + 1e-12
                several += min(values) <= best[name] + 1e-12
    print(
        f"\nbrute force: {single} of 60 single searches and {several} of 60 with 3 restarts; worst gap {max(gaps):.4f}"
    )
    assert single >= 0.8 * 60
    assert several == 60


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("n_rows", "n_classes"), [(10_000, 14), (10_000, 100), (1_000_000, 4)])
def bench_default_fit(n_rows: int, n_classes: int) -> None:
    """Time of whole fits of each solver on larger tables."""
    made = biased(1, n_rows, n_classes, bias=1.5)
    for solver in ("shrunk", "convex", "path", *(["anneal"] if n_rows <= 10_000 else [])):
        settings = FitSettings(solver=solver, annealing=Annealing(n_restarts=1))
        start = time.process_time()
        fit = fit_rules(made.probabilities, made.targets, settings)
        seconds = time.process_time() - start
        print(f"\n{n_rows} x {n_classes}, {solver}: {seconds:.1f} s of CPU, {fit.n_evaluations} evaluations", end="")
        assert any(fit.report.class_accuracies_after)
