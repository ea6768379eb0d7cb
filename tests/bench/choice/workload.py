"""What the engines are asked: a language model and items, both made here from a seed.

Words are syllables put together, and a byte-level tokenizer is trained on sentences of them. Prompts and options use
words that are one token each, so that their lengths in tokens are chosen, not found. No text of any dataset is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evaluators.backend import ChoiceRequest

VOCABULARY = 8192
N_SHARED_TOKENS = 123
"""Of every prompt: the token at the start, an instruction and examples."""
N_ITEM_WORDS = (57, 91)
"""Of the part of a prompt that is an item's own: with what is shared, prompts have about 200 tokens."""
OPTION_TOKENS = (5, 7, 2, 3)
LETTERS = (" A", " B", " C", " D")
SYLLABLE = (
    ("b", "d", "f", "g", "h", "k", "l", "m", "n", "p", "r", "s", "t", "v", "w", "br", "dr", "kl", "pl", "st", "tr"),
    ("a", "e", "i", "o", "u", "ai", "ea", "oo"),
    ("", "", "n", "r", "s", "l", "t", "m"),
)


def save_model(folder: Path) -> None:
    """Save a Llama of 27.7 M parameters with random weights, and its tokenizer."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    save_tokenizer(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=512,
        intermediate_size=1408,
        num_hidden_layers=6,
        # Heads of 64: vLLM computes none below 32 on a CPU.
        num_attention_heads=8,
        num_key_value_heads=8,
        max_position_embeddings=512,
        bos_token_id=1,
        eos_token_id=2,
        # Larger than usual: an untrained model is then as far from indifferent as a trained one.
        initializer_range=0.05,
    )
    LlamaForCausalLM(config).save_pretrained(folder)


def save_tokenizer(folder: Path) -> None:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=["<unk>", "<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(training_text(np.random.default_rng(0)), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    fast = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    )
    assert len(fast) == VOCABULARY
    fast.save_pretrained(folder)


def training_text(rng: np.random.Generator) -> Iterator[str]:
    words = made_words(rng)
    # Few words are frequent and many rare, as in a language; the frequent ones become tokens of their own.
    weights = 1 / np.arange(10, 10 + len(words))
    weights /= weights.sum()
    for sentence in rng.choice(np.array(words), size=(20_000, 12), p=weights):
        yield " ".join(["", *sentence]) + "."
    for letter in LETTERS:
        yield from [f"\nAnswer:{letter}"] * 50


def made_words(rng: np.random.Generator) -> list[str]:
    found: dict[str, None] = {}
    while len(found) < 12_000:
        syllables = ["".join(parts[rng.integers(len(parts))] for parts in SYLLABLE) for _ in range(rng.integers(1, 4))]
        found["".join(syllables)] = None
    return list(found)


def made_requests(folder: Path, n: int) -> dict[str, list[ChoiceRequest]]:
    """Return requests of two tasks on the same n prompts, for the tokenizer of a folder."""
    from transformers import AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(folder)

    def n_tokens(text: str) -> int:
        return len(tokenizer(text)["input_ids"])

    rng = np.random.default_rng(1)
    words = [word for word in made_words(np.random.default_rng(0)) if n_tokens(f" {word}") == 2]
    instruction = "Choose"
    while (missing := N_SHARED_TOKENS - n_tokens(f"{instruction}.\n")) > 0:
        instruction += drawn(words, rng, missing)
    requests: dict[str, list[ChoiceRequest]] = {"multi-token": [], "one-token": []}
    for _ in range(n):
        own = drawn(words, rng, int(rng.integers(*N_ITEM_WORDS, endpoint=True)))
        options = tuple(drawn(words, rng, length) for length in OPTION_TOKENS)
        for task, offered in (("multi-token", options), ("one-token", LETTERS)):
            outcomes = tuple(option.strip() for option in offered)
            prompt = f"{instruction}.\n{own}\nAnswer:"
            requests[task].append(ChoiceRequest(prompt=prompt, options=offered, outcomes=outcomes))
    return requests


def drawn(words: Sequence[str], rng: np.random.Generator, n: int) -> str:
    return "".join(f" {words[place]}" for place in rng.integers(len(words), size=n))
