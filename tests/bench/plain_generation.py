"""Plain batched ``generate`` of transformers, with which ``bench_generation.py`` compares.

As a process of its own, ``python -m tests.bench.plain_generation MODEL REQUESTS.json ROWS``, it is the script that
somebody writes in five minutes. Prompts are sorted by length, so that little is padded.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple


class Settings(NamedTuple):
    """How texts are generated, the same for all prompts."""

    max_tokens: int
    temperature: float
    top_p: float


def plain_texts(
    network: Any, tokenizer: Any, prompts: list[str], settings: Settings, rows: int
) -> tuple[list[str], int]:
    """Generate a text for each prompt.

    Returns:
        The texts in the order of the prompts, and the number of tokens in all of them.
    """
    import torch

    order = sorted(range(len(prompts)), key=lambda place: len(prompts[place]))
    texts = [""] * len(prompts)
    n_tokens = 0
    sampling: dict[str, Any] = {"do_sample": False}
    if settings.temperature > 0:
        sampling = {"do_sample": True, "temperature": settings.temperature, "top_p": settings.top_p, "top_k": 0}
    tokenizer.padding_side = "left"
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    torch.manual_seed(0)
    for start in range(0, len(order), rows):
        part = order[start : start + rows]
        given = tokenizer([prompts[place] for place in part], return_tensors="pt", padding=True)
        with torch.inference_mode():
            found = network.generate(
                input_ids=given["input_ids"],
                attention_mask=given["attention_mask"],
                max_new_tokens=settings.max_tokens,
                pad_token_id=tokenizer.pad_token_id,
                **sampling,
            )
        new = found[:, given["input_ids"].shape[1] :]
        ended = (new == tokenizer.eos_token_id).int()
        lengths = torch.where(ended.any(dim=1), ended.argmax(dim=1) + 1, new.shape[1])
        n_tokens += int(lengths.sum())
        for place, text in zip(part, tokenizer.batch_decode(new, skip_special_tokens=True), strict=True):
            texts[place] = text
    return texts, n_tokens


def main() -> None:
    """Generate the texts of a file of requests."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder, path, rows = sys.argv[1:]
    given = json.loads(Path(path).read_text())
    network = AutoModelForCausalLM.from_pretrained(folder)
    texts, n_tokens = plain_texts(
        network, AutoTokenizer.from_pretrained(folder), given["prompts"], Settings(*given["settings"]), int(rows)
    )
    print(json.dumps({"texts": texts, "tokens": n_tokens}))


if __name__ == "__main__":
    main()
