"""Finds the border between context and option at which another harness scores what our backends score.

A harness may tokenise the context alone, and attribute all tokens after that number to the option. Where the tokenizer
merges characters across the border, it then scores other tokens than ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from evaluators.backend import ChoiceRequest
from evaluators.harness import AsScored, OptionTokens
from evaluators.models.tokenizer import ModelTokenizer, TokenRows


def count_option_tokens(
    tokenizer: ModelTokenizer,
    as_scored: AsScored,
    context_tokens: int | None,
    requests: Sequence[ChoiceRequest],
    asked: Sequence[ChoiceRequest],
) -> list[OptionTokens | str]:
    """Count the tokens that a harness scored as those of the options, or say why it scored something else.

    Args:
        tokenizer: The model's tokenizer.
        as_scored: Function that moves a border to where the harness puts it.
        context_tokens: Largest number of tokens of context and option that the harness gave the model; None if unknown.
        requests: The requests of our task.
        asked: The requests that it answered in their place.
    """
    counted: list[OptionTokens | str] = []
    for rows, expected in zip(
        tokenizer.rows_of_all(list(map(as_scored, asked))), tokenizer.rows_of_all(requests), strict=True
    ):
        if isinstance(rows, str) or isinstance(expected, str):
            counted.append(rows if isinstance(rows, str) else str(expected))
            continue
        longest = max(map(len, rows.ids))
        if rows.n_moved:
            counted.append(
                "the tokenizer merges the end of the context with an option, so that the harness left tokens out of "
                "its log-probability"
            )
        elif context_tokens is not None and longest > context_tokens:
            counted.append(f"context and option take {longest} tokens, and the harness cut them to {context_tokens}")
        else:
            n_prompt = expected.n_context + expected.n_moved
            counted.append(OptionTokens(rows.token_counts, max(n_prompt - rows.n_context, 0)))
    return counted


def move_borders(
    tokenizer: ModelTokenizer, as_scored: AsScored, requests: Sequence[ChoiceRequest]
) -> list[ChoiceRequest | None]:
    """Return requests with the same texts in which a harness scores the tokens that our backends score.

    Borders move towards the start of the text, to one at which nothing is merged and the same tokens are scored. If
    there is none, the nearest border at which nothing is merged is taken: the sum then includes more tokens of the
    context, the same for each option. A request without any such border becomes None.
    """
    encoded = tokenizer.rows_of_all(requests)
    # Number of tokens before the border of our backends.
    n_before_border = {
        index: rows.n_context for index, rows in enumerate(encoded) if isinstance(rows, TokenRows) and rows.n_moved
    }
    nearest = [None if index in n_before_border else request for index, request in enumerate(requests)]
    shift = 0
    while n_before_border:
        shift += 1
        n_before_border = {index: n for index, n in n_before_border.items() if requests[index].prompt[:-shift].strip()}
        # Their options begin with the last characters of their contexts.
        moved_requests = [
            as_scored(
                replace(
                    request,
                    prompt=request.prompt[:-shift],
                    options=tuple(request.prompt[-shift:] + option for option in request.options),
                )
            )
            for request in map(requests.__getitem__, n_before_border)
        ]
        for index, moved, rows in zip(
            list(n_before_border), moved_requests, tokenizer.rows_of_all(moved_requests), strict=True
        ):
            # A text says that an option has no token of its own, for which lm-eval stops with an assertion.
            if isinstance(rows, str) or rows.n_moved:
                continue
            if nearest[index] is None or rows.n_context == n_before_border[index]:
                nearest[index] = moved
            if rows.n_context <= n_before_border[index]:
                del n_before_border[index]
    return nearest
