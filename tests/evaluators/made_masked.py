"""Small masked models with random weights, and their pseudo-log-likelihoods as one would work them out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tests.evaluators.made_tokenizers import save_trained

WORDS = "the nurse thanked guard because she he was kind doctor waited for baker and left a town people are not all"


def save_masked(folder: Path, kind: str = "Bert", texts: Sequence[str] = (), **settings: Any) -> Path:
    """A masked model, ``Bert`` with WordPiece or ``Roberta`` with bytes, whose rare words are several tokens."""
    import torch
    import transformers

    is_bert = kind == "Bert"
    first, last, mask = ("[CLS]", "[SEP]", "[MASK]") if is_bert else ("<s>", "</s>", "<mask>")
    pad, unknown = ("[PAD]", "[UNK]") if is_bert else ("<pad>", "<unk>")
    # As in these models: the padding of RoBERTa has id 1.
    special = [pad, first, last, unknown, mask] if is_bert else [first, pad, last, unknown, mask]
    fast = save_trained(
        folder,
        "words" if is_bert else "bytes",
        [*[WORDS] * 9, *texts, "souvenirs electricians, .!"],
        special,
        size=120 if is_bert else 330,
        single=f"{first} $A {last}",
        cls_token=first,
        sep_token=last,
        mask_token=mask,
        pad_token=pad,
        unk_token=unknown,
    )
    torch.manual_seed(11)
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    positions = {"max_position_embeddings": 64 if is_bert else 66}
    config = getattr(transformers, f"{kind}Config")(
        **(sizes | positions | {"vocab_size": len(fast), "pad_token_id": special.index(pad)} | settings)
    )
    # Larger than usual, so that a token out of place moves every number.
    config.initializer_range = 0.3
    getattr(transformers, f"{kind}ForMaskedLM")(config).save_pretrained(folder)
    return folder


def plain_pseudo_logprob(folder: Path, prompt: str, option: str) -> tuple[float, int]:
    """The pseudo-log-likelihood of an option and its number of tokens: one pass for each token.

    With a token, the later ones of its word are hidden too.
    """
    import torch

    tokenizer, network = _loaded(folder)
    text = prompt + option
    encoded = tokenizer(text, return_offsets_mapping=True)
    total, n = 0.0, 0
    for position, (_, end) in enumerate(encoded["offset_mapping"]):
        word = encoded.word_ids()[position]
        if word is None or end <= len(prompt):
            continue
        ids = torch.tensor([encoded["input_ids"]])
        ids[0, position] = tokenizer.mask_token_id
        for later in range(position + 1, ids.shape[1]):
            if encoded.word_ids()[later] == word:
                ids[0, later] = tokenizer.mask_token_id
        with torch.no_grad():
            logits = network(input_ids=ids).logits[0, position]
        total += float(torch.log_softmax(logits.double(), dim=-1)[encoded["input_ids"][position]])
        n += 1
    return total, n


@cache
def _loaded(folder: Path) -> tuple[Any, Any]:
    import torch
    import transformers

    network = transformers.AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.float32).eval()
    return transformers.AutoTokenizer.from_pretrained(folder), network
