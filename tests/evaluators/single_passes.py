"""Log-probabilities as one would work them out by hand: one text, one forward pass, token after token."""

from __future__ import annotations

from typing import Any

from evaluators.backend import ChoiceRequest

ROUNDING = 1e-3
"""Nats by which two computations of the log-probability of an option may differ where float32 alone tells them apart.

Another processor, number of threads or way of batching adds up in another order. The last state h of a token has
length sqrt(64) = 8 after its norm. If it is off by e times that, a difference of two logits is off by at most |w_a -
w_b| 8 e (Cauchy and Schwarz), and no log-probability moves by more. Rows w of the output layer of ``save_tiny_llama``
are up to 3.2 long, which makes 51 e. About 30 operations in a row would leave e at sqrt(30) = 6 eps, but such large
weights sharpen the attention, which enlarges errors: against double precision, e is up to 64 eps with AVX-512 and 92
eps with SSE. Errors point anywhere, so that the worst log-probability of any of 600 tokens is off by 1.1e-4, a fifth
of the bound. Between two computations of ten such tokens, whose errors are independent, these are 2 sqrt(10) 1.1e-4 =
7e-4. Numbers off by a thousandth, or a position by one, move the log-probabilities of the tests by more.
"""


def plain_logprob(network: Any, tokenizer: Any, request: ChoiceRequest, option: str) -> tuple[float, float]:
    """Log-probability of an option and of the end token after it: one text, one pass, token after token."""
    import torch

    texts = [request.prompt, *(request.prompt + other for other in request.options)]
    encoded = [tokenizer(text)["input_ids"] for text in texts]
    start = [] if encoded[0] else [tokenizer.eos_token_id if tokenizer.bos_token is None else tokenizer.bos_token_id]
    encoded = [[*start, *ids] for ids in encoded]
    n_context = 0
    while all(len(ids) > n_context and ids[n_context] == encoded[0][n_context] for ids in encoded):
        n_context += 1
    ids = [*start, *tokenizer(request.prompt + option)["input_ids"]]
    with torch.no_grad():
        logits = network(torch.tensor([ids])).logits[0]
    total = 0.0
    for position in range(n_context, len(ids)):
        total += float(torch.log_softmax(logits[position - 1], dim=-1)[ids[position]])
    return total, float(torch.log_softmax(logits[-1], dim=-1)[tokenizer.eos_token_id])
