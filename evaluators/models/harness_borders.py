"""Finds the border between context and option at which another harness scores what our backends score.

A harness may tokenise the context alone, and count every token behind as many as that as the option's. Where the
tokenizer merges characters across the border, it then scores other tokens than ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from evaluators.backend import ChoiceRequest
from evaluators.harness import AskedRequest, OptionTokens
from evaluators.models.tokenizer import ModelTokenizer, Rows


@dataclass(frozen=True, slots=True)
class BorderCounter:
    """A counter of the tokens that a harness scored as those of the options."""

    tokenizer: ModelTokenizer
    as_scored: Callable[[ChoiceRequest], ChoiceRequest]
    """Function that returns a request with the border where the harness puts it."""
    room: int | None
    """Largest number of tokens of context and option that the harness gave the model; None if unknown."""

    def __call__(self, requests: Sequence[AskedRequest]) -> list[OptionTokens | str]:
        """Return the tokens of each request, or why the log-probabilities are not those of its options."""
        scored = self.tokenizer.rows_of_all([self.as_scored(request.asked) for request in requests])
        expected = self.tokenizer.rows_of_all([request.request for request in requests])
        return [self._tokens(rows, wanted) for rows, wanted in zip(scored, expected, strict=True)]

    def _tokens(self, rows: Rows | str, expected: Rows | str) -> OptionTokens | str:
        if isinstance(rows, str):
            return rows
        if isinstance(expected, str):
            return expected
        if rows.n_moved:
            return (
                "the tokenizer merges the end of the context with an option, so that the harness left tokens out of "
                "its log-probability"
            )
        longest = max(map(len, rows.ids))
        if self.room is not None and longest > self.room:
            return f"context and option take {longest} tokens, and the harness cut them to {self.room}"
        n_prompt = expected.n_context + expected.n_moved
        return OptionTokens(rows.token_counts, max(n_prompt - rows.n_context, 0))


@dataclass(frozen=True, slots=True)
class BorderMover:
    """A function that moves borders to the front, to where the tokenizer merges nothing across them."""

    tokenizer: ModelTokenizer
    as_scored: Callable[[ChoiceRequest], ChoiceRequest]
    """Function that returns a request with the border where the harness puts it."""

    def __call__(self, requests: Sequence[ChoiceRequest]) -> list[ChoiceRequest | None]:
        """Return requests of the same texts whose scored tokens are those that our backends score.

        Where no border does it, the nearest one is taken across which nothing is merged. The sum then holds more tokens
        of the context, the same for each option. A request without any such border becomes None.
        """
        encoded = self.tokenizer.rows_of_all(requests)
        # Number of tokens before the border that our backends take.
        wanted = {
            index: rows.n_context for index, rows in enumerate(encoded) if isinstance(rows, Rows) and rows.n_moved
        }
        nearest = [None if index in wanted else request for index, request in enumerate(requests)]
        shift = 0
        while wanted:
            shift += 1
            wanted = {index: n for index, n in wanted.items() if requests[index].prompt[:-shift].strip()}
            tried = [self.as_scored(_moved(requests[index], shift)) for index in wanted]
            for index, moved, rows in zip(list(wanted), tried, self.tokenizer.rows_of_all(tried), strict=True):
                if isinstance(rows, str) or rows.n_moved:
                    continue
                if nearest[index] is None or rows.n_context == wanted[index]:
                    nearest[index] = moved
                if rows.n_context <= wanted[index]:
                    del wanted[index]
        return nearest


def _moved(request: ChoiceRequest, shift: int) -> ChoiceRequest:
    """Return a request whose options begin with the last characters of its context."""
    context, end = request.prompt[:-shift], request.prompt[-shift:]
    return replace(request, prompt=context, options=tuple(end + option for option in request.options))
