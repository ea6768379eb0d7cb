"""Log-probabilities as one would work them out by hand: one text, one forward pass, token after token."""

from __future__ import annotations

from typing import Any

from evaluators.backend import ChoiceRequest


def plain_logprob(network: Any, tokenizer: Any, request: ChoiceRequest, option: str) -> tuple[float, float]:
    """Log-probability of an option and of the end token after it: one text, one pass, token after token."""
    import torch

    texts = [request.prompt, *(request.prompt + other for other in request.options)]
    encoded = [tokenizer(text)["input_ids"] for text in texts]
    n_context = 0
    while all(len(ids) > n_context and ids[n_context] == encoded[0][n_context] for ids in encoded):
        n_context += 1
    ids = tokenizer(request.prompt + option)["input_ids"]
    with torch.no_grad():
        logits = network(torch.tensor([ids])).logits[0]
    total = 0.0
    for position in range(n_context, len(ids)):
        total += float(torch.log_softmax(logits[position - 1], dim=-1)[ids[position]])
    return total, float(torch.log_softmax(logits[-1], dim=-1)[tokenizer.eos_token_id])
