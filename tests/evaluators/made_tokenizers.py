"""Small tokenizers of the kinds that models have, trained on texts that the tests make."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal


def save_trained(
    folder: Path,
    kind: Literal["bytes", "pieces", "words"],
    texts: Sequence[str],
    special: Sequence[str],
    *,
    size: int,
    single: str | None = None,
    knows_all_bytes: bool = True,
    **named: str | None,
) -> Any:
    """Train a tokenizer, save it as transformers loads it, and return it.

    Args:
        folder: Where to save it.
        kind: Bytes with BPE, pieces of SentencePiece with Unigram, or words and letters with WordPiece.
        texts: Texts to train it on.
        special: Its special tokens, in the order of their ids.
        size: Largest number of tokens of those that are trained; words that texts have more than once are tokens.
        single: What stands around a text, such as ``<s> $A``; None for nothing.
        knows_all_bytes: Whether each byte has a token.
        **named: Roles of the special tokens, such as ``bos_token``, and further settings.
    """
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    unknown = named.get("unk_token")
    trainer: Any = None
    if kind == "pieces":
        tokenizer = Tokenizer(models.Unigram())
        tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
        trainer = trainers.UnigramTrainer(vocab_size=size, special_tokens=[*special], unk_token=unknown)
    elif kind == "words":
        # Not trained: the trainer breaks ties by chance, and each run would have another model.
        counts = Counter(" ".join(texts).lower().split())
        letters = sorted({*"".join(counts)})
        tokens = [*special, *letters, *(f"##{letter}" for letter in letters), *sorted(counts - Counter({*counts}))]
        vocabulary = {token: number for number, token in enumerate(dict.fromkeys(tokens))}
        tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=unknown or ""))
        tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    else:
        tokenizer = Tokenizer(models.BPE() if knows_all_bytes else models.BPE(unk_token=unknown))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet() if knows_all_bytes else []
        trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=[*special], initial_alphabet=alphabet)
    if trainer is not None:
        tokenizer.train_from_iterator(texts, trainer)
    if single is not None:
        around = [(name, special.index(name)) for name in single.split() if name in special]
        tokenizer.post_processor = processors.TemplateProcessing(single=single, special_tokens=around)
    fast: Any = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **named)  # type: ignore[no-untyped-call]
    fast.save_pretrained(folder)
    return fast
