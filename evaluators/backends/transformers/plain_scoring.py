"""Scores options in the simplest way, one row per option: the reference for every faster way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from biasboard.ground.errors import import_extra
from evaluators.backends.transformers.last_layers import WantedToken, wanted_logprobs
from evaluators.models.tokenizer import TokenRows

if TYPE_CHECKING:
    import torch
    from torch import Tensor
    from transformers import PreTrainedModel


class OptionScore(NamedTuple):
    """Log-probability of an option, and of the end token after it, in nats."""

    logprob: float
    end_logprob: float | None


def padded(rows: Sequence[Sequence[int]], device: torch.device) -> Tensor:
    """Return rows of token ids, shape (n, longest), with zeros on the right, which a causal model ignores."""
    width = max(map(len, rows))
    filled: Tensor = import_extra("torch", "hf").tensor([[*row, *[0] * (width - len(row))] for row in rows])
    return filled.to(device)


def batches_of(sizes: Mapping[int, tuple[int, int]], batch_tokens: int) -> list[list[int]]:
    """Return batches of requests of similar length, longest first, each within the token budget after padding.

    Args:
        sizes: Number of tokens in the longest row of each request, and number of its rows, by the request's index.
        batch_tokens: Maximum number of tokens in a batch; a single request may exceed it.
    """
    batches: list[list[int]] = []
    width = n_rows = 0
    for index in sorted(sizes, key=lambda index: (-sizes[index][0], index)):
        longest, n_more = sizes[index]
        if not batches or (n_rows + n_more) * width > batch_tokens:
            batches.append([])
            width, n_rows = longest, 0
        batches[-1].append(index)
        n_rows += n_more
    return batches


class Batch(NamedTuple):
    """Requests that are scored in one forward pass."""

    rows: tuple[tuple[int, ...], ...]
    """Requests in each row, as indices into the sequence that was planned."""
    n_prefix: int = 0
    """Number of leading tokens that all requests share; they are computed once for several batches."""


@dataclass(frozen=True)
class PlainScorer:
    """A scorer with one row per option, padded on the right."""

    network: PreTrainedModel
    end_id: int | None
    batch_tokens: int

    def plan(self, encoded: Mapping[int, TokenRows]) -> list[Batch]:
        """Plan batches of requests of similar length, longest first, each within the token budget after padding."""
        sizes = {index: (max(map(len, rows.ids)), len(rows.ids)) for index, rows in encoded.items()}
        return [Batch(tuple((index,) for index in batch)) for batch in batches_of(sizes, self.batch_tokens)]

    def score(self, trees: Sequence[Sequence[TokenRows]], n_prefix: int = 0) -> list[list[OptionScore]]:
        """Score the options of requests in one forward pass; groups and prefixes, which packed rows have, are ignored.

        Returns:
            Score of each option, per request in the order of ``trees``.
        """
        requests = [rows for tree in trees for rows in tree]
        flat = [(ids, rows.n_context) for rows in requests for ids in rows.ids]
        device = self.network.device
        end = [] if self.end_id is None else [self.end_id]
        # The token at position i is predicted at i - 1; the last position predicts the end token.
        wanted = [
            WantedToken(index, position, token)
            for index, (row, n) in enumerate(flat)
            for position, token in enumerate([*row[n:], *end], start=n - 1)
        ]
        arguments = {
            "input_ids": padded([row for row, _ in flat], device),
            # OPT and Bloom derive positions from it.
            "attention_mask": padded([[1] * len(row) for row, _ in flat], device),
            "use_cache": False,
        }
        values = iter(wanted_logprobs(self.network, arguments, wanted))
        return [
            [
                OptionScore(sum(next(values) for _ in row[rows.n_context :]), next(values) if end else None)
                for row in rows.ids
            ]
            for rows in requests
        ]
