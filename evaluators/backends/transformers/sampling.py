"""Draws tokens at random such that rounding hardly ever decides between two of them.

The token ids are halved repeatedly, and a random number decides which half the token is in. Each of these choices (15
for 32,000 ids) depends on the ratio of two probability masses, which rounding changes by no more than its own size. A
single random number looked up in the cumulative distribution would have a border at every token. Where a model has no
preference, these borders are so close together that rounding would decide most tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from biasboard.ground.errors import import_extra

if TYPE_CHECKING:
    from torch import Tensor


# With one number per token, rounding decided about 650 of 40,865 tokens of a real model; with one per choice, at most
# about 44.
def n_choices(n_tokens: int) -> int:
    """Return how many random numbers draw one of ``n_tokens`` tokens."""
    return max(1, (n_tokens - 1).bit_length())


def draw(
    logits: Tensor, temperature: Tensor, top_p: Tensor, numbers: Tensor, rounding: float
) -> tuple[list[int], list[bool]]:
    """Draw a token per row.

    Args:
        logits: Logits of the next token, shape (n, vocabulary).
        temperature: Temperature of each row, above 0, shape (n, 1).
        top_p: Mass of the most probable tokens to draw from, shape (n, 1).
        numbers: Random numbers in [0, 1) as float64, shape (n, :func:`n_choices` of the vocabulary).
        rounding: Largest error of a logit, in nats.

    Returns:
        Token of each row, and whether rounding may have decided it.
    """
    # In double precision, sums over a vocabulary round far less than the logits themselves.
    torch = import_extra("torch", "hf")
    probabilities = torch.softmax(logits.double() / temperature, dim=-1)
    error = rounding / temperature
    kept, unsure, bounds = _most_probable(probabilities, top_p, error)
    sums = kept.cumsum(dim=-1)
    tokens, doubtful = _halve(numbers, error, sums, sums, sums)
    if unsure:
        # Only for these rows: the sums of all rows would take as long as everything else.
        part = probabilities[unsure]
        fewest, most = (part.masked_fill(part < least, 0).cumsum(dim=-1) for least in bounds)
        _, again = _halve(numbers[unsure], error[unsure], sums[unsure], fewest, most)
        for row, is_doubtful in zip(unsure, again, strict=True):
            doubtful[row] = is_doubtful
    return tokens, doubtful


def _halve(numbers: Tensor, error: Tensor, kept: Tensor, fewest: Tensor, most: Tensor) -> tuple[list[int], list[bool]]:
    """Draw a token per row by choosing between halves of the ids.

    Args:
        numbers: Random number of each choice, shape (n, choices).
        error: Rounding of the logarithm of a probability, shape (n, 1).
        kept: Running sums of the probabilities over ids, shape (n, vocabulary).
        fewest: Running sums over the tokens that are kept whatever the rounding.
        most: Running sums over the tokens that are kept under some rounding.
    """
    torch = import_extra("torch", "hf")
    n_choices, n_tokens = numbers.shape[-1], kept.shape[-1]
    growth = 1 + 2 * error
    low = torch.zeros_like(numbers[:, :1], dtype=torch.long)
    doubtful = torch.zeros_like(low, dtype=torch.bool)
    range_of_kept = _Range(kept)
    ranges = [range_of_kept] if fewest is most is kept else [range_of_kept, _Range(fewest), _Range(most)]
    for choice in range(n_choices):
        number = numbers[:, choice, None]
        middle = (low + (1 << (n_choices - 1 - choice))).clamp(max=n_tokens)
        halves = [each.halves(middle) for each in ranges]
        (left, right), (fewest_left, fewest_right), (most_left, most_right) = halves[0], halves[-2:][0], halves[-1]
        # Could either half be chosen if rounding moved every probability in its favour?
        may_be_right = (number * (fewest_left + most_right * growth) >= fewest_left) & (most_right > 0)
        may_be_left = number * (most_left * growth + fewest_right) < most_left * growth
        doubtful |= may_be_right & may_be_left
        is_right = number * (left + right) >= left
        for each in ranges:
            each.choose(is_right)
        low = torch.where(is_right, middle, low)
    return low[:, 0].tolist(), doubtful[:, 0].tolist()


class _Range:
    """A range of token ids per row, initially all of them, and the running sums at its ends."""

    def __init__(self, sums: Tensor) -> None:
        self._sums = sums
        self._at_low = sums.new_zeros((len(sums), 1))
        self._at_middle = self._at_low
        self._at_high = sums[:, -1:]

    def halves(self, middle: Tensor) -> tuple[Tensor, Tensor]:
        """Return the masses of the ids before ``middle`` and from ``middle`` on, each of shape (n, 1)."""
        self._at_middle = self._sums.gather(-1, middle - 1)
        return self._at_middle - self._at_low, self._at_high - self._at_middle

    def choose(self, is_right: Tensor) -> None:
        """Narrow each row to one half."""
        torch = import_extra("torch", "hf")
        self._at_low = torch.where(is_right, self._at_middle, self._at_low)
        self._at_high = torch.where(is_right, self._at_high, self._at_middle)


def _most_probable(
    probabilities: Tensor, top_p: Tensor, error: Tensor
) -> tuple[Tensor, list[int], tuple[Tensor, Tensor]]:
    """Set all probabilities to zero except those of the fewest tokens that together hold ``top_p`` of the mass.

    Among equally probable tokens, those with lower ids are kept first.

    Args:
        probabilities: Probability of each token, shape (n, vocabulary).
        top_p: Mass to keep in each row, shape (n, 1).
        error: Rounding of the logarithm of a probability, shape (n, 1).

    Returns:
        The probabilities, shape (n, vocabulary); the rows in which rounding could have kept other tokens; and in each
        of these, the least probability of the tokens that are kept whatever the rounding, and of those that are kept
        under some rounding, shapes (k, 1).
    """
    torch = import_extra("torch", "hf")
    if bool((top_p >= 1).all()):
        return probabilities, [], (top_p[:0], top_p[:0])
    # On a CPU, numpy sorts with vector instructions, an order of magnitude faster than torch, which also sorts indices.
    if probabilities.device.type == "cpu":
        ordered = torch.from_numpy(np.sort(probabilities.numpy(), axis=-1)).flip(-1)
    else:
        ordered = torch.sort(probabilities, dim=-1, descending=True).values
    n_tokens = ordered.shape[-1]
    mass = ordered.cumsum(dim=-1)

    def least_of(top_p: Tensor, is_all: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return number and least probability of the tokens that hold a mass, and the next lower probability."""
        n = torch.where(is_all, n_tokens, torch.searchsorted(mass, top_p) + 1).clamp(max=n_tokens)
        following = ordered.gather(-1, n.clamp(max=n_tokens - 1)).masked_fill(n == n_tokens, 0)
        return n, ordered.gather(-1, n - 1), following

    n_kept, least, following = least_of(top_p, top_p >= 1)
    kept = probabilities.masked_fill(probabilities < least, 0)
    if bool((following == least).any()):
        tied = probabilities == least
        n_tied = n_kept - (probabilities > least).sum(dim=-1, keepdim=True)
        kept.masked_fill_(tied & (tied.cumsum(dim=-1) > n_tied), 0)
    n_fewest, least_of_fewest, after_fewest = least_of(top_p * (1 - 2 * error), top_p >= 1)
    n_most, least_of_most, after_most = least_of(top_p * (1 + 2 * error), top_p >= 1)
    near = 4 * error
    # Rounding may swap the last kept token with the next one.
    swaps_fewest, swaps_most = after_fewest >= least_of_fewest * (1 - near), after_most >= least_of_most * (1 - near)
    least_of_fewest = torch.where(swaps_fewest, least_of_fewest * (1 + near), least_of_fewest)
    least_of_most = torch.where(swaps_most, least_of_most * (1 - near), least_of_most)
    is_unsure = (n_fewest != n_most) | ((n_most < n_tokens) & (swaps_fewest | swaps_most))
    rows = is_unsure[:, 0].nonzero()[:, 0].tolist()
    return kept, rows, (least_of_fewest[rows], least_of_most[rows])
