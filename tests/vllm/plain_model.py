"""A model as transformers computes it, one text at a time: what engines are compared with."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def load_plain(folder: Path) -> Any:
    """In float32."""
    import torch
    import transformers

    network: Any = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return network.eval()


def plain_logprob(network: Any, ids: list[int], n_context: int) -> float:
    """Of the tokens after the context: one pass, token after token."""
    import torch

    with torch.no_grad():
        logprobs = torch.log_softmax(network(torch.tensor([ids])).logits[0].double(), dim=-1)
    return sum(float(logprobs[place - 1, ids[place]]) for place in range(n_context, len(ids)))
