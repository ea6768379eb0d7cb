"""The worked numbers of certainty and desirability, and what must hold for any distribution."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.statistics.certainty import certainty, desirability, perplexity, predicted_share

# p of the right one of two outcomes; entropy in nats, perplexity, certainty with k = 2, and with 38 more outcomes of
# probability 0.
WORKED = [
    (0.50, 0.6931, 2.0000, 0.0000, 0.9744),
    (0.60, 0.6730, 1.9601, 0.0399, 0.9754),
    (0.70, 0.6109, 1.8420, 0.1580, 0.9784),
    (0.80, 0.5004, 1.6494, 0.3506, 0.9833),
    (0.90, 0.3251, 1.3841, 0.6159, 0.9902),
    (0.95, 0.1985, 1.2196, 0.7804, 0.9944),
    (0.99, 0.0560, 1.0576, 0.9424, 0.9985),
    (1.00, 0.0000, 1.0000, 1.0000, 1.0000),
]
distributions = st.lists(st.floats(0.001, 1), min_size=2, max_size=6).map(
    lambda weights: np.array([weights]) / sum(weights)
)


@pytest.mark.parametrize(("p", "entropy", "ppl", "c2", "c40"), WORKED)
def test_worked_numbers_of_two_and_forty_outcomes(p: float, entropy: float, ppl: float, c2: float, c40: float) -> None:
    two = np.array([[p, 1 - p]])
    assert math.log(perplexity(two)[0]) == pytest.approx(entropy, abs=5e-5)
    assert perplexity(two)[0] == pytest.approx(ppl, abs=5e-5)
    assert certainty(two)[0] == pytest.approx(c2, abs=5e-5)
    assert certainty(np.pad(two, ((0, 0), (0, 38))))[0] == pytest.approx(c40, abs=5e-5)


@pytest.mark.parametrize(
    ("probabilities", "ppl", "c"),
    [((0.6, 0.3, 0.1), 2.4546, 0.2727), ((0.5, 0.5, 0.0), 2.0, 0.5), ((1 / 3,) * 3, 3, 0)],
)
def test_worked_numbers_of_three_outcomes(probabilities: tuple[float, ...], ppl: float, c: float) -> None:
    assert perplexity(np.array([probabilities]))[0] == pytest.approx(ppl, abs=5e-5)
    assert certainty(np.array([probabilities]))[0] == pytest.approx(c, abs=5e-5)


@given(distributions)
def test_certainty_is_in_range_and_ignores_the_order_of_outcomes(probabilities: np.ndarray) -> None:
    value = certainty(probabilities)[0]
    assert 0 <= value <= 1
    assert certainty(probabilities[:, ::-1])[0] == pytest.approx(value, abs=1e-12)


@given(distributions)
def test_perplexity_equals_a_plain_loop(probabilities: np.ndarray) -> None:
    entropy = 0.0
    for p in probabilities[0]:
        if p > 0:
            entropy -= p * math.log(p)
    assert perplexity(probabilities)[0] == pytest.approx(math.exp(entropy), rel=1e-12)


def test_one_outcome_is_an_error_not_a_division_by_zero() -> None:
    with pytest.raises(ValueError, match="at least 2 outcomes"):
        certainty(np.array([[1.0]]))


def test_probabilities_that_do_not_sum_to_one_are_an_error() -> None:
    with pytest.raises(ValueError, match="does not sum to 1"):
        certainty(np.array([[0.9, 0.9]]))


def test_tied_outcomes_share_the_prediction_whatever_their_place() -> None:
    shares = predicted_share(np.array([[0.4, 0.4, 0.2], [0.2, 0.4, 0.4], [0.5, 0.5 - 1e-13, 0.0]]))
    assert shares.tolist() == [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.5, 0.0]]


def test_desirability_of_a_tie_follows_the_share() -> None:
    # Of three outcomes two tie: the sign is 2/2 - 1 = 0 where the target is among them, -1 where it is not.
    tied = np.array([[0.45, 0.45, 0.1]] * 2)
    values = desirability(tied, np.array([0, 2]))
    assert values[0] == 0
    assert values[1] == -certainty(tied)[1] < 0
