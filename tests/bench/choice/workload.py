"""What the engines are asked: a language model and items, both made here from a seed.

Words are syllables put together, and a byte-level tokenizer is trained on sentences of them. Prompts and options use
words that are one token each, so that their lengths in tokens are chosen, not found. No text of any dataset is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from evaluators.backend import ChoiceRequest

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

TaskName: TypeAlias = Literal["multi-token", "one-token"]
TASKS: tuple[TaskName, ...] = ("multi-token", "one-token")

VOCABULARY = 8192
N_SHARED_TOKENS = 123
"""Of every prompt: the token at the start, an instruction and examples."""
OPTION_TOKENS = (5, 7, 2, 3)
LETTERS = (" A", " B", " C", " D")
_N_ITEM_WORDS = (57, 91)
"""Of the part of a prompt that is an item's own: with what is shared, prompts have about 200 tokens."""
_ENDING = "\nAnswer:"

_SYLLABLE = (
    ("b", "d", "f", "g", "h", "k", "l", "m", "n", "p", "r", "s", "t", "v", "w", "br", "dr", "kl", "pl", "st", "tr"),
    ("a", "e", "i", "o", "u", "ai", "ea", "oo"),
    ("", "", "n", "r", "s", "l", "t", "m"),
)


def save_model(folder: Path, *, seed: int = 0) -> int:
    """Save a Llama of 27.7 M parameters with random weights, and its tokenizer.

    Returns:
        Number of parameters.
    """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = _train_tokenizer(np.random.default_rng(seed))
    tokenizer.save_pretrained(folder)
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
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
    network = LlamaForCausalLM(config)
    network.save_pretrained(folder)
    return int(network.num_parameters())


def _train_tokenizer(rng: np.random.Generator) -> PreTrainedTokenizerFast:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<unk>", "<s>", "</s>"]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_training_text(rng), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    fast = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    )
    if len(fast) != VOCABULARY:
        raise RuntimeError(f"the tokenizer has {len(fast)} tokens instead of {VOCABULARY}; train it on more words")
    return fast


def _training_text(rng: np.random.Generator) -> Iterator[str]:
    words = _words(rng, 12_000)
    # Few words are frequent and many rare, as in a language; the frequent ones become tokens of their own.
    weights = 1 / np.arange(10, 10 + len(words))
    weights /= weights.sum()
    for sentence in rng.choice(np.array(words), size=(20_000, 12), p=weights):
        yield " ".join(["", *sentence]) + "."
    for letter in LETTERS:
        yield from [f"\nAnswer:{letter}"] * 50


def _words(rng: np.random.Generator, n: int) -> list[str]:
    found: dict[str, None] = {}
    while len(found) < n:
        syllables = ["".join(parts[rng.integers(len(parts))] for parts in _SYLLABLE) for _ in range(rng.integers(1, 4))]
        found["".join(syllables)] = None
    return list(found)


def made_requests(folder: Path, n: int, *, seed: int = 1) -> dict[TaskName, list[ChoiceRequest]]:
    """Requests of both tasks on the same prompts.

    Args:
        folder: With the tokenizer.
        n: Number of items.
        seed: Of their words.
    """
    from transformers import AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    rng = np.random.default_rng(seed)
    words = [word for word in _words(np.random.default_rng(0), 12_000) if len(_ids(tokenizer, f" {word}")) == 2]
    header = _header(tokenizer, words, rng)
    requests: dict[TaskName, list[ChoiceRequest]] = {task: [] for task in TASKS}
    for _ in range(n):
        prompt = header + _text(words, rng, int(rng.integers(*_N_ITEM_WORDS, endpoint=True))) + _ENDING
        texts = tuple(_text(words, rng, n_tokens) for n_tokens in OPTION_TOKENS)
        requests["multi-token"].append(_request(prompt, texts))
        requests["one-token"].append(_request(prompt, LETTERS))
    return requests


def _header(tokenizer: Any, words: Sequence[str], rng: np.random.Generator) -> str:
    text = "Choose"
    while (missing := N_SHARED_TOKENS - len(_ids(tokenizer, f"{text}.\n"))) > 0:
        text += _text(words, rng, missing)
    return f"{text}.\n"


def _text(words: Sequence[str], rng: np.random.Generator, n: int) -> str:
    return "".join(f" {words[place]}" for place in rng.integers(len(words), size=n))


def _ids(tokenizer: Any, text: str) -> list[int]:
    ids: list[int] = tokenizer(text)["input_ids"]
    return ids


def _request(prompt: str, options: tuple[str, ...]) -> ChoiceRequest:
    return ChoiceRequest(prompt=prompt, options=options, outcomes=tuple(option.strip() for option in options))
