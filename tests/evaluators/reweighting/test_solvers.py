"""Every solver with every objective: reproducible, never all wrong, true to the floor, and blind to names and order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.calibration.reweighting.fitting import PRESETS, Fit, FitSettings, fit_rules
from evaluators.calibration.reweighting.problem import OBJECTIVES, Annealing, ObjectiveName
from evaluators.calibration.reweighting.rules import RuleSet
from evaluators.calibration.reweighting.solvers import SOLVERS, balanced_log_weights
from tests.evaluators.reweighting import oracle
from tests.evaluators.reweighting.made import Made, biased, problem_of, tied

SHORT = Annealing(cooling=0.75, stop_ratio=1e-2, moves_per_level=60, n_restarts=1)
every_solver = pytest.mark.parametrize("solver", SOLVERS)
every_objective = pytest.mark.parametrize("objective", OBJECTIVES)


def fitted(made: Made, **choices: Any) -> Fit:
    choices.setdefault("annealing", SHORT)
    return fit_rules(made.probabilities, made.targets, FitSettings(**choices))


def predicted(fit: Fit, made: Made) -> list[int]:
    return [int(one) for one in fit.rules.predict(made.probabilities)]


def mean_of(made: Made, guesses: list[int]) -> float:
    return oracle.mean(oracle.accuracies(made.targets.tolist(), guesses, made.probabilities.shape[1]))


def test_the_presets_are_a_default_a_reference_and_the_paper() -> None:
    assert PRESETS["default"] == FitSettings()
    assert PRESETS["balanced"] == FitSettings(solver="convex")
    assert PRESETS["paper"] == FitSettings(solver="anneal", objective="gini", has_floor=False)
    assert [(name, SOLVERS[of_name.solver].chooses_rules) for name, of_name in PRESETS.items()] == [
        ("default", False),
        ("balanced", False),
        ("paper", True),
    ]


@every_solver
@every_objective
def test_a_fit_can_be_repeated(solver: str, objective: ObjectiveName) -> None:
    made = biased(1, 150, 4)
    one, other = (fitted(made, solver=solver, objective=objective, seed=5) for _ in range(2))
    np.testing.assert_array_equal(one.rules.weights, other.rules.weights)
    np.testing.assert_array_equal(one.rules.functions, other.rules.functions)
    assert one.candidates == other.candidates


def test_another_seed_is_another_search() -> None:
    made = biased(1, 300, 5)
    fits = [fitted(made, solver="anneal", objective="gini", has_floor=False, seed=seed) for seed in range(4)]
    assert len({(*fit.rules.weights.tolist(), *fit.rules.functions.tolist()) for fit in fits}) > 1


@pytest.mark.slow
@every_solver
@every_objective
def test_the_floor_is_kept(solver: str, objective: ObjectiveName) -> None:
    for seed in range(4):
        made = biased(seed, 120, 4, sharpness=0.8, skew=0.6)
        before = mean_of(made, made.probabilities.argmax(axis=1).tolist())
        fit = fitted(made, solver=solver, objective=objective)
        after = mean_of(made, predicted(fit, made))
        assert after >= before - 1e-12, seed
        assert fit.candidates[
            [one.name for one in fit.candidates].index(fit.chosen)
        ].mean_class_accuracy == pytest.approx(after)


@pytest.mark.slow
@settings(max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from(OBJECTIVES), st.sampled_from(["shrunk", "coordinate", "path"]))
def test_the_floor_is_kept_among_ties(seed: int, objective: ObjectiveName, solver: str) -> None:
    made = tied(seed, 20, 3)
    before = mean_of(made, made.probabilities.argmax(axis=1).tolist())
    assert mean_of(made, predicted(fitted(made, solver=solver, objective=objective), made)) >= before - 1e-12


@every_solver
@every_objective
def test_what_is_chosen_is_the_best_candidate_that_keeps_the_floor(solver: str, objective: ObjectiveName) -> None:
    made = biased(8, 150, 4, sharpness=0.7)
    fit = fitted(made, solver=solver, objective=objective)
    allowed = [one for one in fit.candidates if one.is_allowed]
    chosen = next(one for one in fit.candidates if one.name == fit.chosen)
    assert chosen.objective == min(one.objective for one in allowed)
    reached = oracle.objective(objective, made.targets.tolist(), predicted(fit, made), 4)
    assert chosen.objective == pytest.approx(reached, abs=1e-9)


@pytest.mark.parametrize(("n_rows", "skew"), [(60, 0.0), (400, 0.5), (4000, 0.2)])
def test_the_default_lies_between_the_balanced_weights_and_the_best_search(n_rows: int, skew: float) -> None:
    made = biased(2, n_rows, 4, skew=skew)
    problem = problem_of(made)
    targets = made.targets.tolist()
    values = []
    for candidate in SOLVERS["coordinate"].solve(problem).candidates:
        guesses = oracle.weighted(made.probabilities.tolist(), candidate.rules.weights.tolist())
        shares = oracle.accuracies(targets, guesses, 4)
        values.append((1 - oracle.sen(shares), -oracle.mean(shares), candidate.rules.weights))
    best = min(values, key=lambda value: value[:2])[2]
    n_rarest = min(oracle.counted(targets, 4))
    trust = n_rarest / (n_rarest + 100)
    (shrunk,) = SOLVERS["shrunk"].solve(problem).candidates
    balanced = balanced_log_weights(problem).tolist()
    searched = [math.log(weight) for weight in best]
    centre = sum(searched) / 4
    expected = [trust * (log - centre) + (1 - trust) * start for log, start in zip(searched, balanced, strict=True)]
    found = [math.log(weight) for weight in shrunk.rules.weights]
    np.testing.assert_allclose(np.array(found) - max(found), np.array(expected) - max(expected), atol=1e-9)


@pytest.mark.slow
@every_objective
def test_all_wrong_is_a_trap_that_the_objectives_close(objective: ObjectiveName) -> None:
    made = biased(3, 700, 14, bias=1.5)
    # Temperatures next to nothing descend greedily, which ends in the trap.
    cold = Annealing(temperature=1e-9, cooling=0.5, stop_ratio=0.1, moves_per_level=400, n_restarts=2)
    fit = fitted(made, objective=objective, solver="anneal", has_floor=False, annealing=cold)
    assert mean_of(made, predicted(fit, made)) > 0
    assert all(math.isfinite(one.objective) for one in fit.candidates)


@every_objective
def test_rules_that_mirror_all_probabilities_are_never_right_and_never_chosen(objective: ObjectiveName) -> None:
    made = biased(3, 280, 14, sharpness=6.0)
    mirrored = RuleSet().rules(np.full(14, 18)).predict(made.probabilities).tolist()
    assert mean_of(made, mirrored) == 0
    assert oracle.objective(objective, made.targets.tolist(), mirrored, 14) == np.inf
    fit = fitted(made, objective=objective, solver="anneal", has_floor=False)
    assert mean_of(made, predicted(fit, made)) > 0


@every_solver
@every_objective
def test_where_the_classifier_is_never_right_no_solver_settles_for_it(solver: str, objective: ObjectiveName) -> None:
    base = biased(4, 120, 3)
    winners = base.probabilities.argmax(axis=1)
    made = Made(base.probabilities, (winners + 1) % 3)
    fit = fitted(made, solver=solver, objective=objective, has_floor=False)
    assert mean_of(made, winners.tolist()) == 0
    values = {one.name: one.objective for one in fit.candidates}
    assert values["uncorrected"] == math.inf
    if any(map(math.isfinite, values.values())):
        assert mean_of(made, predicted(fit, made)) > 0


@every_solver
@every_objective
@pytest.mark.parametrize("seed", [0, 1])
def test_permuted_classes_give_permuted_predictions(solver: str, objective: ObjectiveName, seed: int) -> None:
    made = biased(seed, 150, 5)
    permutation = np.random.default_rng(seed).permutation(5)
    # Column j of the permuted table is column permutation[j] of the first one.
    permuted = Made(made.probabilities[:, permutation], np.argsort(permutation)[made.targets])
    choices: dict[str, Any] = {"solver": solver, "objective": objective}
    one, other = predicted(fitted(made, **choices), made), predicted(fitted(permuted, **choices), permuted)
    assert [int(permutation[place]) for place in other] == one


# Not the default, which trusts twice the rows more.
@pytest.mark.parametrize("solver", [name for name in SOLVERS if name != "shrunk"])
@every_objective
def test_rows_that_stand_there_twice_change_nothing(solver: str, objective: ObjectiveName) -> None:
    made = biased(6, 100, 4)
    twice = Made(np.repeat(made.probabilities, 2, axis=0), np.repeat(made.targets, 2))
    one, other = (fitted(each, solver=solver, objective=objective) for each in (made, twice))
    assert predicted(other, made) == predicted(one, made)


@pytest.mark.parametrize("solver", [name for name, solver in SOLVERS.items() if not solver.chooses_rules])
@every_objective
def test_rows_need_not_sum_to_one(solver: str, objective: ObjectiveName) -> None:
    made = biased(9, 100, 4)
    scales = 2.0 ** np.random.default_rng(0).integers(-60, 60, size=(100, 1))
    scaled = Made(made.probabilities * scales, made.targets)
    choices: dict[str, Any] = {"solver": solver, "objective": objective}
    assert predicted(fitted(scaled, **choices), made) == predicted(fitted(made, **choices), made)


@every_solver
@every_objective
def test_a_class_without_rows_is_no_obstacle(solver: str, objective: ObjectiveName) -> None:
    base = biased(2, 120, 4)
    made = Made(base.probabilities, np.where(base.targets == 2, 0, base.targets))
    fit = fitted(made, solver=solver, objective=objective)
    assert [one is None for one in fit.report.class_accuracies_after] == [False, False, True, False]
    weight = fit.rules.weights[2]
    assert np.isnan(weight) or weight > 0
    assert any("1 of 4 classes have no row" in note for note in fit.report.notes)
