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
        scored = self.tokenizer.rows_of_all([self.as_scored(one.asked) for one in requests])
        ours = self.tokenizer.rows_of_all([one.request for one in requests])
        return [self._tokens(rows, our_rows) for rows, our_rows in zip(scored, ours, strict=True)]

    def _tokens(self, rows: Rows | str, ours: Rows | str) -> OptionTokens | str:
        if isinstance(rows, str):
            return rows
        if isinstance(ours, str):
            return ours
        if rows.n_moved:
            return (
                "the tokenizer merges the end of the context with an option, so that the harness left tokens out of "
                "its log-probability"
            )
        longest = max(map(len, rows.ids))
        if self.room is not None and longest > self.room:
            return f"context and option take {longest} tokens, and the harness cut them to {self.room}"
        n_prompt = ours.n_context + ours.n_moved
        counts = tuple(len(ids) - rows.n_context for ids in rows.ids)
        return OptionTokens(counts, max(n_prompt - rows.n_context, 0))


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
        rows = self.tokenizer.rows_of_all(requests)
        # Number of tokens before the border that our backends take.
        wanted = {place: one.n_context for place, one in enumerate(rows) if isinstance(one, Rows) and one.n_moved}
        found = [None if place in wanted else request for place, request in enumerate(requests)]
        shift = 0
        while wanted:
            shift += 1
            wanted = {place: n for place, n in wanted.items() if requests[place].prompt[:-shift].strip()}
            tried = [self.as_scored(_moved(requests[place], shift)) for place in wanted]
            results = zip(list(wanted), tried, self.tokenizer.rows_of_all(tried), strict=True)
            for place, moved, one in results:
                if isinstance(one, str) or one.n_moved:
                    continue
                if found[place] is None or one.n_context == wanted[place]:
                    found[place] = moved
                if one.n_context <= wanted[place]:
                    del wanted[place]
        return found


def _moved(request: ChoiceRequest, shift: int) -> ChoiceRequest:
    """Return a request whose options begin with the last characters of its context."""
    context, end = request.prompt[:-shift], request.prompt[-shift:]
    return replace(request, prompt=context, options=tuple(end + option for option in request.options))
