"""Every solver with every objective: reproducible, never all wrong, true to the floor, and blind to names and order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.calibration.reweighting.fitting import Fit, Settings, fit_rules, held_out_rows
from evaluators.calibration.reweighting.problem import OBJECTIVES, Annealing, DcsWeights, ObjectiveName
from evaluators.calibration.reweighting.rules import MapKind, RuleSet
from evaluators.calibration.reweighting.solvers import SOLVERS
from tests.evaluators.reweighting import oracle
from tests.evaluators.reweighting.made import Made, biased, tied, unequal

SHORT = Annealing(cooling=0.75, stop_ratio=1e-2, moves_per_level=60, n_restarts=1)
NAMES = ("anneal", "coordinate", "convex", "path")
WAYS: tuple[tuple[str, MapKind], ...] = (
    *((solver, "weights") for solver in NAMES),
    ("anneal", "full"),
    ("anneal", "membership"),
)
every_way = pytest.mark.parametrize(("solver", "correction"), WAYS)
every_objective = pytest.mark.parametrize("objective", OBJECTIVES)


def fitted(made: Made, **choices: Any) -> Fit:
    choices.setdefault("annealing", SHORT)
    return fit_rules(made.probabilities, made.targets, Settings(**choices))


def predicted(fit: Fit, made: Made) -> list[int]:
    return [int(one) for one in fit.rules.predict(made.probabilities)]


def mean_of(made: Made, guesses: list[int]) -> float:
    return oracle.mean(oracle.accuracies(made.targets.tolist(), guesses, made.probabilities.shape[1]))


def test_these_are_all_solvers() -> None:
    assert sorted(NAMES) == sorted(SOLVERS)
    assert [name for name in NAMES if SOLVERS[name].chooses_rules] == ["anneal"]


@every_way
@every_objective
def test_a_fit_can_be_repeated(solver: str, correction: MapKind, objective: ObjectiveName) -> None:
    made = biased(1, 150, 4)
    one, other = (fitted(made, solver=solver, correction=correction, objective=objective, seed=5) for _ in range(2))
    np.testing.assert_array_equal(one.rules.weights, other.rules.weights)
    np.testing.assert_array_equal(one.rules.functions, other.rules.functions)
    assert one.candidates == other.candidates


def test_another_seed_is_another_search() -> None:
    made = biased(1, 300, 5)
    fits = [fitted(made, solver="anneal", objective="gini", min_mean=None, seed=seed) for seed in range(4)]
    assert len({tuple(fit.rules.weights) for fit in fits}) > 1


@pytest.mark.slow
@every_way
@every_objective
def test_the_default_floor_is_kept(solver: str, correction: MapKind, objective: ObjectiveName) -> None:
    for seed in range(4):
        made = biased(seed, 120, 4, sharpness=0.8, skew=0.6)
        before = mean_of(made, made.probabilities.argmax(axis=1).tolist())
        fit = fitted(made, solver=solver, correction=correction, objective=objective)
        after = mean_of(made, predicted(fit, made))
        assert after >= before - 1e-12, seed
        assert fit.candidates[
            [one.name for one in fit.candidates].index(fit.chosen)
        ].mean_class_accuracy == pytest.approx(after)


@pytest.mark.slow
@settings(max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from(OBJECTIVES), st.sampled_from(["coordinate", "path"]))
def test_the_default_floor_is_kept_among_ties(seed: int, objective: ObjectiveName, solver: str) -> None:
    made = tied(seed, 20, 3)
    before = mean_of(made, made.probabilities.argmax(axis=1).tolist())
    assert mean_of(made, predicted(fitted(made, solver=solver, objective=objective), made)) >= before - 1e-12


@every_way
@every_objective
def test_what_is_chosen_is_the_best_candidate_that_keeps_the_floor(
    solver: str, correction: MapKind, objective: ObjectiveName
) -> None:
    made = biased(8, 150, 4, sharpness=0.7)
    fit = fitted(made, solver=solver, correction=correction, objective=objective)
    allowed = [one for one in fit.candidates if one.is_allowed and one.objective is not None]
    chosen = next(one for one in fit.candidates if one.name == fit.chosen)
    assert chosen.objective == min(one.objective for one in allowed if one.objective is not None)
    reached = oracle.objective(objective, made.targets.tolist(), predicted(fit, made), 4)
    assert chosen.objective == pytest.approx(reached, abs=1e-9)


@pytest.mark.slow
def test_all_wrong_is_a_trap_that_the_objectives_close() -> None:
    made = biased(3, 700, 14, bias=1.5)
    unchanged = made.probabilities.argmax(axis=1).tolist()
    terms = (1.0, 2.7, 0.0, 4000.0)
    # Without a guard the best value of DCS without mutual information is that of an error in every row.
    before = oracle.dcs(made.targets.tolist(), unchanged, 14, terms) / len(made.targets)
    assert before > 1.0
    # Temperatures next to nothing descend greedily, which ends in the trap.
    cold = Annealing(temperature=1e-9, cooling=0.5, stop_ratio=0.1, moves_per_level=400, n_restarts=2)
    for objective in OBJECTIVES:
        kinds: tuple[MapKind, ...] = ("weights", "full", "membership")
        for correction in kinds:
            fit = fitted(
                made,
                objective=objective,
                correction=correction,
                solver="anneal",
                min_mean=None,
                annealing=cold,
                dcs=DcsWeights(tau=0.0),
            )
            assert mean_of(made, predicted(fit, made)) > 0, (objective, correction)
            assert all(one.objective is not None for one in fit.candidates)


@every_objective
def test_rules_that_mirror_all_probabilities_are_never_right_and_never_chosen(objective: ObjectiveName) -> None:
    made = biased(3, 280, 14, sharpness=6.0)
    mirrored = RuleSet("membership").rules(np.full(14, 18)).predict(made.probabilities).tolist()
    assert mean_of(made, mirrored) == 0
    assert oracle.objective(objective, made.targets.tolist(), mirrored, 14) == np.inf
    fit = fitted(made, objective=objective, correction="membership", solver="anneal", min_mean=None)
    assert mean_of(made, predicted(fit, made)) > 0


@every_way
@every_objective
def test_where_the_classifier_is_never_right_no_solver_settles_for_it(
    solver: str, correction: MapKind, objective: ObjectiveName
) -> None:
    base = biased(4, 120, 3)
    winners = base.probabilities.argmax(axis=1)
    made = Made(base.probabilities, (winners + 1) % 3)
    fit = fitted(made, solver=solver, correction=correction, objective=objective, min_mean=None)
    assert mean_of(made, winners.tolist()) == 0
    values = {one.name: one.objective for one in fit.candidates}
    assert values["uncorrected"] is None
    if any(value is not None for value in values.values()):
        assert mean_of(made, predicted(fit, made)) > 0


@every_way
@every_objective
@pytest.mark.parametrize("seed", [0, 1])
def test_permuted_classes_give_permuted_predictions(
    solver: str, correction: MapKind, objective: ObjectiveName, seed: int
) -> None:
    made = biased(seed, 150, 5)
    permutation = np.random.default_rng(seed).permutation(5)
    # Column j of the permuted table is column permutation[j] of the first one.
    permuted = Made(made.probabilities[:, permutation], np.argsort(permutation)[made.targets])
    choices: dict[str, Any] = {"solver": solver, "correction": correction, "objective": objective}
    one, other = predicted(fitted(made, **choices), made), predicted(fitted(permuted, **choices), permuted)
    assert [int(permutation[place]) for place in other] == one


@every_way
@pytest.mark.parametrize("objective", ["sen", "gini", "cobias"])
def test_rows_that_stand_there_twice_change_nothing(solver: str, correction: MapKind, objective: ObjectiveName) -> None:
    made = biased(6, 100, 4)
    twice = Made(np.repeat(made.probabilities, 2, axis=0), np.repeat(made.targets, 2))
    choices: dict[str, Any] = {"solver": solver, "correction": correction, "objective": objective}
    one, other = fitted(made, **choices), fitted(twice, **choices)
    assert predicted(other, made) == predicted(one, made)


@pytest.mark.parametrize(("solver", "correction"), [way for way in WAYS if way[1] == "weights"])
@every_objective
def test_rows_need_not_sum_to_one(solver: str, correction: MapKind, objective: ObjectiveName) -> None:
    made = biased(9, 100, 4)
    scales = 2.0 ** np.random.default_rng(0).integers(-60, 60, size=(100, 1))
    scaled = Made(made.probabilities * scales, made.targets)
    if solver == "anneal":
        # The order in which annealing visits classes follows the sums of their columns.
        scaled = Made(made.probabilities * 7, made.targets)
    choices: dict[str, Any] = {"solver": solver, "correction": correction, "objective": objective}
    assert predicted(fitted(scaled, **choices), made) == predicted(fitted(made, **choices), made)


@every_way
@every_objective
def test_a_class_without_rows_is_no_obstacle(solver: str, correction: MapKind, objective: ObjectiveName) -> None:
    base = biased(2, 120, 4)
    made = Made(base.probabilities, np.where(base.targets == 2, 0, base.targets))
    fit = fitted(made, solver=solver, correction=correction, objective=objective)
    assert np.isnan(fit.accuracies.after).tolist() == [False, False, True, False]
    weight = fit.rules.weights[2]
    assert np.isnan(weight) or weight > 0
    assert any("1 of 4 classes have no row" in note for note in fit.notes)


@every_objective
def test_a_floor_out_of_reach_is_told(objective: ObjectiveName) -> None:
    made = biased(5, 100, 4, sharpness=0.5)
    fit = fitted(made, objective=objective, min_mean=0.999)
    assert not any(one.is_allowed for one in fit.candidates)
    assert any("nothing that was found keeps the mean class accuracy at 0.999" in note for note in fit.notes)
    assert mean_of(made, predicted(fit, made)) > 0


def test_a_balanced_floor_holds_95_percent_of_what_balanced_weights_reach() -> None:
    even = unequal(0)
    made = Made(even.probabilities * [30.0, 1.0, 1.0, 1.0], even.targets)
    uncorrected = mean_of(made, made.probabilities.argmax(axis=1).tolist())
    choices: tuple[dict[str, Any], ...] = (
        {"solver": "convex", "min_mean": None},
        {"min_mean": None},
        {"min_mean": "balanced"},
    )
    balanced, free, held = (
        mean_of(made, predicted(fitted(made, objective="sen" if "solver" in one else "gini", **one), made))
        for one in choices
    )
    assert max(uncorrected, free) < 0.9 * balanced
    assert 0.95 * balanced - 1e-12 <= held < balanced


@every_objective
def test_rows_held_out_choose_among_candidates(objective: ObjectiveName) -> None:
    made = biased(7, 60, 3, skew=1.6)
    assert min(np.bincount(made.targets)) <= 5
    fit = fitted(made, objective=objective, validation_fraction=0.2, solver="coordinate")
    assert fit.accuracies.supports.sum() == 60
    assert np.isfinite(fit.rules.weights).all()
    again = fitted(made, objective=objective, validation_fraction=0.2, solver="coordinate")
    np.testing.assert_array_equal(fit.rules.weights, again.rules.weights)


def test_rows_held_out_are_a_share_of_each_class() -> None:
    targets = biased(3, 300, 3, skew=0.4).targets
    mask = held_out_rows(targets, 0.25, seed=1)
    for of_class in range(3):
        n = int((targets == of_class).sum())
        assert int(mask[targets == of_class].sum()) == n // 4
    assert not np.array_equal(held_out_rows(targets, 0.25, seed=2), mask)
    np.testing.assert_array_equal(held_out_rows(targets, 0.25, seed=1), mask)
    assert held_out_rows(np.array([0, 0, 1, 1, 2]), 0.1, seed=0).tolist().count(True) == 2
    assert not held_out_rows(targets, 0.0, seed=1).any()
