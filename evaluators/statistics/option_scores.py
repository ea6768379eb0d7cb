"""Computes probabilities over options from stored log-probabilities, under any normalisation, without the model."""

from __future__ import annotations

import numpy as np

from schemas.documents.record import Exchange
from schemas.documents.result import Normalisation

_MERGED = (
    "the tokenizer merges prompt and options, or it is unknown whether it does, so that an option has no length of "
    "its own; use the normalisation sum"
)
MAX_BOUND_SHARE = 0.01
"""Largest total probability of options with only an upper bound; the distribution is then off by no more than this."""


def option_probabilities(exchange: Exchange, normalisation: Normalisation) -> list[float] | str:
    """Compute the distribution over the options of one exchange.

    Args:
        exchange: Answered choice request with its log-probabilities.
        normalisation: Score of an option. ``sum`` is the sum of its token log-probabilities, which is the
            log-probability of the text. ``sum_with_end`` adds the end token. ``token_mean`` and ``byte_mean`` divide
            the sum by the number of tokens or of UTF-8 bytes; they need a border between prompt and option.
            ``token_mean_if_unequal`` takes the mean over the tokens of the sum if options have different numbers of
            them, and the sum if not. ``token_mean_with_end`` takes the mean of these tokens and the end token. Where
            the tokenizer merges the end of the prompt with an option, both count the merged token.

    Returns:
        One probability per option, summing to 1; or a text that says why there is no distribution.
    """
    if normalisation == "token_mean_if_unequal":
        if None in exchange.option_token_counts:
            return "the numbers of tokens of the options are unknown; use the normalisation sum"
        if len({*exchange.option_token_counts}) == 1:
            normalisation = "sum"
    bounded = exchange.option_is_bound
    if any(bounded) and normalisation != "sum":
        return "some log-probabilities are bounds, which no other normalisation than sum can be computed from"
    scores = []
    for index, option in enumerate(exchange.options):
        logprob = exchange.option_logprobs[index]
        if logprob is None:
            return f"the log-probability of option '{option}' was not returned"
        match normalisation:
            case "sum":
                divisor = 1
            case "sum_with_end" | "token_mean_with_end":
                end = exchange.option_end_logprobs[index]
                if end is None:
                    return "the model has no end token; use another normalisation"
                n_tokens = exchange.option_token_counts[index]
                logprob, divisor = logprob + end, 1
                if normalisation == "token_mean_with_end":
                    divisor = 0 if not n_tokens else n_tokens + 1
            case "token_mean_if_unequal":
                divisor = exchange.option_token_counts[index] or 0
            case "token_mean" | "byte_mean" if exchange.n_moved_tokens != 0:
                return _MERGED
            case "token_mean":
                divisor = exchange.option_token_counts[index] or 0
            case "byte_mean":
                divisor = exchange.option_byte_counts[index]
        if divisor == 0:
            return f"option '{option}' has no tokens to average over, or their number is unknown"
        scores.append(logprob / divisor)
    if np.isnan(scores).any():
        return "a log-probability is NaN"
    if np.isneginf(scores).all():
        return "every option has a probability of zero"
    values = np.array(scores, dtype=np.float64)
    shifted = values - values.max()
    probabilities = np.exp(shifted - np.log(np.exp(shifted).sum()))
    left_open = [
        (option, share)
        for option, share, is_bound in zip(exchange.options, probabilities, bounded, strict=False)
        if is_bound
    ]
    total = sum(share for _, share in left_open)
    if total > MAX_BOUND_SHARE:
        names = ", ".join(f"'{option}'" for option, _ in left_open)
        return (
            f"not among the tokens that the endpoint returned: {names}; up to {total:.3g} of the probability may be "
            f"theirs, and more than {MAX_BOUND_SHARE:g} is too much to leave open"
        )
    return [float(value) for value in probabilities / probabilities.sum()]
