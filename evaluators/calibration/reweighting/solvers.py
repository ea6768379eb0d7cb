"""The solvers: ways to find the rules of all classes, each a function from a problem to candidates.

``shrunk`` is the default. ``convex`` has few parameters for all rows, and overfits least. ``anneal`` is that of the
paper, with a schedule that cools. Nobody chooses ``coordinate``, with its exact searches over one weight after the
other, and ``path``, which chooses a single number: the calibration *gini* has them, whose values stored results hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from biasboard.ground.columns import FloatArray, IntArray
from evaluators.calibration.reweighting.problem import ROUNDING, Problem
from evaluators.calibration.reweighting.rules import ClassRules
from evaluators.calibration.reweighting.top_two import TopTwo

# Steps towards equal accuracies: their number, the size of the first, and the step at which the size is halved.
_N_EQUALISING, _FIRST_STEP, _SLOWING = 400, 2.0, 20.0
# Smallest probability, as a share of the largest in its row; smaller ones, such as 0, are raised to it. It is relative
# because rows need not sum to 1: products of token probabilities can be below any absolute bound.
_SMALLEST_SHARE = 1e-12
# Penalty on biases, which keeps those of perfectly separated classes finite.
_RIDGE = 1e-6
# If right classes are the least probable, the best slope a is 0 or negative, and b / a explodes.
_SMALLEST_SLOPE = 0.05
_MOST_NEWTON_STEPS, _MOST_HALVINGS, _SUFFICIENT = 100, 40, 1e-10
_N_PATH_POINTS = 20
# Number of rows of the rarest class with which a search has half of the say. On digits, wine, breast cancer and iris
# with planted imbalance, over 40 seeds each, 50, 100 and 200 differed by at most .003 in held-out Sen welfare; 20 was
# lower by up to .006.
_HALF_TRUSTED = 100
_MOST_SWEEPS = 50
# Relative distance below which thresholds count as equal, so that rounding cannot decide on which side a row is.
_SAME = 1e-9
# Range of the weights that are tried; a row with a higher threshold is never won, and one with a lower never lost.
_LEAST, _MOST = 1e-13, 1e13
_MOVES_PER_CLASS, _LEAST_MOVES = 10, 200
# Share of proposals that are a rule with a similar number; the others are any rule, as in the papers.
_SHARE_OF_STEPS = 0.5
# Probability that such a step goes to the next rule; it falls by the same share with each further rule.
_NEARNESS = 0.3


def equalising_steps(problem: Problem) -> list[tuple[FloatArray, FloatArray]]:
    """Return the steps towards weights that make classes about equally accurate.

    Of each, these are the logarithms of the weights, shape (n_classes,), and the number of rows of each class that they
    predict right, of the same shape.

    In step t the logarithm of a class's weight rises by ``2 / (1 + t / 20)`` times the distance of its accuracy below
    the mean, as in multiplicative weights.
    """
    supports = problem.objective.supports
    log_weights, steps = np.zeros(problem.n_classes), []
    for step in range(_N_EQUALISING + 1):
        weights = np.exp(log_weights - log_weights.max())
        n_right = problem.n_right_of((problem.probabilities * weights).argmax(axis=1))
        steps.append((log_weights, n_right))
        below_mean = problem.objective.mean(n_right) - n_right / np.maximum(supports, 1)
        change = np.where(supports > 0, below_mean, 0.0)
        log_weights = problem.centred(log_weights + _FIRST_STEP / (1 + step / _SLOWING) * change)
    return steps


def balanced_log_weights(problem: Problem) -> FloatArray:
    """Return the logarithms of the class weights of a balanced logistic model, shape (n_classes,).

    The model is ``softmax(a · log p + b)``, fitted by Newton's method to the mean over classes of the mean
    log-likelihood of their rows. It predicts the class with the largest ``log p + b / a``, hence the weights
    ``exp(b / a)``. The problem is convex, so the solution is unique.
    """
    occurs = problem.objective.supports > 0
    probabilities = problem.probabilities[:, occurs]
    largest = probabilities.max(axis=1, keepdims=True)
    shares_of_largest = np.divide(probabilities, largest, out=np.ones_like(probabilities), where=largest > 0)
    model = _Logistic(
        log_odds=np.log(np.maximum(shares_of_largest, _SMALLEST_SHARE)),
        targets=(np.cumsum(occurs) - 1)[problem.targets],
        row_weights=1.0 / (occurs.sum() * problem.objective.supports[problem.targets]),
    )
    parameters = np.concatenate([np.zeros(int(occurs.sum())), [1.0]])
    loss = model.loss(parameters)
    for _ in range(_MOST_NEWTON_STEPS):
        new, new_loss = model.step(parameters, loss)
        if loss - new_loss <= _SUFFICIENT:
            break
        parameters, loss = new, new_loss
    log_weights = np.zeros(problem.n_classes)
    log_weights[occurs] = parameters[:-1] / parameters[-1]
    return problem.centred(log_weights)


class _Logistic(NamedTuple):
    """A logistic model of the classes that occur; its parameters are their biases and then the slope."""

    log_odds: FloatArray
    targets: IntArray
    row_weights: FloatArray
    """Weights of the rows, which sum to 1."""

    def loss(self, parameters: FloatArray) -> float:
        """Return the negative log-likelihood of parameters, shape (n_classes + 1,)."""
        scores = self._scores(parameters)
        rows = np.arange(len(scores))
        ridge = _RIDGE / 2 * float((parameters[:-1] ** 2).sum())
        return float(self.row_weights @ (np.log(np.exp(scores).sum(axis=1)) - scores[rows, self.targets])) + ridge

    def step(self, parameters: FloatArray, loss: float) -> tuple[FloatArray, float]:
        """Return the parameters after a step of Newton's method that does not raise the loss, and their loss."""
        gradient, curvature = self._derivatives(parameters)
        if parameters[-1] <= _SMALLEST_SLOPE and gradient[-1] > 0:
            # The slope is at its bound, so only the biases may move: a step that also moved the slope would be
            # shortened to nothing.
            gradient[-1] = curvature[-1, :-1] = curvature[:-1, -1] = 0.0
        move = np.linalg.solve(curvature, -gradient)
        for halvings in range(_MOST_HALVINGS):
            new = parameters + move / 2**halvings
            new[-1] = max(new[-1], _SMALLEST_SLOPE)
            new_loss = self.loss(new)
            if new_loss <= loss:
                return new, new_loss
        return parameters, loss

    def _scores(self, parameters: FloatArray) -> FloatArray:
        """Return the logits of each row, shape (n, n_classes), shifted so that the largest is 0."""
        scores: FloatArray = parameters[-1] * self.log_odds + parameters[:-1]
        scores -= scores.max(axis=1, keepdims=True)
        return scores

    def _derivatives(self, parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
        odds = np.exp(self._scores(parameters))
        q = odds / odds.sum(axis=1, keepdims=True)
        weighted = q * self.row_weights[:, None]
        expected = (q * self.log_odds).sum(axis=1)
        n = q.shape[1]
        gradient, curvature = np.empty(n + 1), np.empty((n + 1, n + 1))
        of_targets = np.bincount(self.targets, self.row_weights, minlength=n)
        gradient[:n] = weighted.sum(axis=0) - of_targets + _RIDGE * parameters[:n]
        gradient[n] = self.row_weights @ (expected - self.log_odds[np.arange(len(q)), self.targets])
        curvature[:n, :n] = np.diag(weighted.sum(axis=0) + _RIDGE) - q.T @ weighted
        curvature[n, :n] = curvature[:n, n] = (weighted * (self.log_odds - expected[:, None])).sum(axis=0)
        curvature[n, n] = self.row_weights @ ((q * self.log_odds**2).sum(axis=1) - expected**2) + _RIDGE
        return gradient, curvature


def convex(problem: Problem) -> list[ClassRules]:
    """Return the weights of the balanced logistic model, whatever the objective."""
    return [ClassRules.of_weights(np.exp(balanced_log_weights(problem)))]


def path(problem: Problem) -> list[ClassRules]:
    """Return points on the way from no correction to ``convex``, and on to equal accuracies."""
    balanced = balanced_log_weights(problem)
    even, _ = equalising_steps(problem)[-1]
    return [
        ClassRules.of_weights(np.exp(start + share * (end - start)))
        for start, end in ((np.zeros_like(balanced), balanced), (balanced, even))
        for share in np.linspace(0.0, 1.0, _N_PATH_POINTS + 1).tolist()[1:]
    ]


def coordinate(problem: Problem) -> list[ClassRules]:
    """Return equal accuracies and where line searches over single weights from them end; then the same of *convex*."""
    even, _ = min(equalising_steps(problem)[:-1], key=lambda step: problem.score(step[1]))
    candidates = []
    for log_weights in (even, balanced_log_weights(problem)):
        start = ClassRules.of_weights(np.exp(log_weights))
        candidates += [start, ClassRules.of_weights(_improved(problem, start.weights))]
    return candidates


def shrunk(problem: Problem) -> list[ClassRules]:
    """Return the best candidate of ``coordinate``, drawn towards ``convex``.

    With n rows in the rarest class, the logarithms of its weights have the share n / (n + 100), and those of ``convex``
    the rest. A search follows single rows, and with few of them it finds noise: on held-out rows it then loses to
    ``convex``, and to a division by the mean probability; with thousands of rows it beats both.
    """
    best = min(coordinate(problem), key=lambda rules: problem.score(problem.n_right(rules)))
    supports = problem.objective.supports
    n = int(supports[supports > 0].min())
    trust = n / (n + _HALF_TRUSTED)
    searched = problem.centred(np.log(best.weights))
    log_weights = trust * searched + (1 - trust) * balanced_log_weights(problem)
    return [ClassRules.of_weights(np.exp(log_weights))]


def _improved(problem: Problem, start: FloatArray) -> FloatArray:
    """Return weights that no change of a single one improves."""
    objective, weights = problem.objective, start.copy()
    top = TopTwo(problem.probabilities, problem.targets, problem.probabilities * weights)
    before = float(objective(top.n_right()))
    for _ in range(_MOST_SWEEPS):
        for class_index in problem.order.tolist():
            # With the Gini index alone, breaking the best class can pay.
            line = _line(top, class_index, is_monotone=objective.name == "sen")
            if line is None:
                continue
            tried, n_right = line
            values = objective(n_right)
            best = np.flatnonzero(values <= values.min() + ROUNDING)
            # Of equally good weights take that with the higher mean accuracy, then the one nearest to the current.
            means = objective.mean(n_right[best])
            best = best[means >= means.max() - ROUNDING]
            distances = np.abs(np.log(tried[best] / weights[class_index]))
            weights[class_index] = tried[best[np.argmin(distances)]]
            top.accept(class_index, top.probabilities[class_index] * weights[class_index])
        after = float(objective(top.n_right()))
        if not after < before - ROUNDING:
            break
        before = after
    return weights


def _line(top: TopTwo, class_index: int, *, is_monotone: bool) -> tuple[FloatArray, FloatArray] | None:
    """Return all weights of a class that can be optimal, shape (n_points,), and the right rows of each class at each.

    It is None if the weight of the class changes nothing.

    A class wins a row when its weight exceeds the row's threshold: the best other value divided by its own probability.
    Between two thresholds nothing changes, so sorting them gives the counts at every weight::

        thresholds     0.2        0.5   0.6             1.4       rows in which it is the right class: 0.2 and 1.4
        weights   w0  -o-   w1   -x-   -x-     w2      -o-   w3   right rows of the class: 0 at w0, 1 at w1, w2, 2 at w3

    If a class that gets better never makes the objective worse (``is_monotone``), only w0, w1 and w3 can be optimal:
    from w1 to w2 the class wins only rows of other classes.
    """
    probabilities = top.probabilities[class_index]
    others, others_are_right = top.others(class_index)
    own = top.targets == class_index
    # A row where neither this class nor the best other one is right does not change the number of right rows.
    rows = np.flatnonzero((own | others_are_right) & (probabilities > 0) & (others > 0))
    with np.errstate(over="ignore"):
        # A row where the class has almost no probability needs an infinite weight.
        thresholds = others[rows] / probabilities[rows]
    order = np.argsort(thresholds, kind="stable")
    order = order[(thresholds[order] > _LEAST) & (thresholds[order] < _MOST)]
    if not len(order):
        return None
    rows, thresholds = rows[order], thresholds[order]
    groups = np.concatenate([[0], np.cumsum(thresholds[1:] > thresholds[:-1] * (1 + _SAME))])
    stops = np.unique(groups[own[rows]]) if is_monotone else np.arange(groups[-1] + 1)
    # One weight below all thresholds, and one between each stop's group of thresholds and the next group.
    firsts = thresholds[np.searchsorted(groups, np.arange(groups[-1] + 1))]
    lasts = thresholds[np.searchsorted(groups, np.arange(groups[-1] + 1), side="right") - 1]
    nexts = np.append(firsts[1:], _MOST)
    weights = np.sqrt(np.concatenate([[_LEAST * firsts[0]], lasts[stops] * nexts[stops]]))
    lowest = top.trial(class_index, probabilities * weights[0])
    n_stops, n_classes = len(stops), len(lowest)
    # The first stop at which each row is won; rows that are won after all stops change nothing.
    won_at = np.searchsorted(stops, groups)
    rows, won_at = rows[won_at < n_stops], won_at[won_at < n_stops]
    targets, was_right = top.targets[rows], others_are_right[rows]
    lost = np.bincount(won_at[was_right] * n_classes + targets[was_right], minlength=n_stops * n_classes)
    changes = -lost.reshape(n_stops, n_classes).astype(np.float64)
    changes[:, class_index] += np.bincount(won_at[targets == class_index], minlength=n_stops)
    return weights, np.cumsum(np.vstack([lowest, changes]), axis=0)


def anneal(problem: Problem) -> list[ClassRules]:
    """Return the best rules of each restart: annealing, followed by improvements of single rules.

    The published schedule of DCS (arXiv:2503.05157) ends at a temperature of 200 for an objective that counts rows, and
    still accepted 51 % of worsening moves with 4 classes, and 90 % with 14. Here objectives lie in [0, 1], the
    temperature falls from 0.1 to a thousandth of that, and a search over single changes follows.

    Half of the proposals are any other rule, as in the papers, and half a rule with a similar number, such as a similar
    weight. Of 100 single searches on five problems with four classes, 1,000 rows and 30 weights, 95 found the optimum
    of all 30⁴ combinations; with only the first kind and ten proposals per class, 51 did.
    """
    candidates = []
    for restart in range(problem.annealing.n_restarts):
        search = _Annealing(problem)
        search.anneal(np.random.default_rng(problem.seed + restart))
        search.improve()
        candidates.append(problem.rule_set.rules(search.best))
    return candidates


class _Annealing:
    """A search from the rules that change nothing."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        # The number of the rule of each class; the last rule changes nothing.
        self._chosen = np.full(problem.n_classes, problem.rule_set.n_rules - 1)
        self._top = TopTwo(problem.probabilities, problem.targets, problem.probabilities)
        self._score = self._best_score = problem.score(self._top.n_right())
        self.best = self._chosen.copy()
        """The numbers of the best rules so far, shape (n_classes,)."""

    def anneal(self, rng: np.random.Generator) -> None:
        """Try random changes; worsening ones are accepted ever more rarely."""
        schedule, order, n_rules = self.problem.annealing, self.problem.order, self.problem.rule_set.n_rules
        n_moves = schedule.moves_per_level or max(_MOVES_PER_CLASS * len(order), _LEAST_MOVES)
        first = temperature = schedule.temperature
        while temperature >= schedule.stop_ratio * first:
            classes = order[rng.integers(len(order), size=n_moves)].tolist()
            others = rng.integers(n_rules - 1, size=n_moves).tolist()
            lengths = rng.geometric(_NEARNESS, size=n_moves) * rng.choice([-1, 1], size=n_moves)
            steps = np.where(rng.random(n_moves) < _SHARE_OF_STEPS, lengths, 0).tolist()
            chances = rng.random(n_moves).tolist()
            for class_index, other, step, chance in zip(classes, others, steps, chances, strict=True):
                rule = int(self._chosen[class_index]) + step
                if step == 0 or not 0 <= rule < n_rules:
                    # A proposal never equals the current rule. The released code compares with the start instead, so no
                    # class ever gets its first rule back.
                    rule = other + (other >= self._chosen[class_index])
                self._propose(class_index, rule, chance, temperature)
            temperature *= schedule.cooling

    def improve(self) -> None:
        """Try every rule of every class, starting from the best rules, until nothing improves."""
        for class_index in np.flatnonzero(self._chosen != self.best).tolist():
            self._chosen[class_index] = self.best[class_index]
            self._top.accept(class_index, self._values(class_index, self._chosen[class_index]))
        self._score = self._best_score
        is_better = True
        while is_better:
            before = self._best_score
            for class_index in self.problem.order.tolist():
                for rule in range(self.problem.rule_set.n_rules):
                    if rule != self._chosen[class_index]:
                        self._propose(class_index, rule, 1.0, 0.0)
            is_better = self._best_score[0] < before[0] - ROUNDING

    def _propose(self, class_index: int, rule: int, chance: float, temperature: float) -> None:
        """Try a change, and accept it if it is no worse or by chance; at temperature 0 only if it is better."""
        objective, values = self.problem.objective, self._values(class_index, rule)
        n_right = self._top.trial(class_index, values)
        new = float(objective(n_right))
        # Both are infinite where nothing is right, and infinity minus infinity is nan.
        worse_by = new - self._score[0] if new > self._score[0] else 0.0
        if worse_by > 0 and (temperature <= 0 or chance >= math.exp(-worse_by / temperature)):
            return
        score = (new, -float(objective.mean(n_right)))
        if temperature <= 0 and not score < self._score:
            return
        self._top.accept(class_index, values)
        self._chosen[class_index], self._score = rule, score
        if score < self._best_score:
            self._best_score, self.best = score, self._chosen.copy()

    def _values(self, class_index: int, rule: int) -> FloatArray:
        return self.problem.rule_set.value(rule, self._top.probabilities[class_index])


SOLVERS: dict[str, Callable[[Problem], list[ClassRules]]] = {
    solver.__name__: solver for solver in (shrunk, convex, anneal, coordinate, path)
}
"""The solvers by name: functions that return candidates, of which the caller takes the best."""
