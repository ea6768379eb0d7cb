"""Items, datasets, records and language models that the tests make themselves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from biasboard.ground import strict_json
from evaluators.backend import ChoiceRequest, GenerateRequest, Request, Response
from evaluators.task import Task
from schemas.documents.dataset import Item
from schemas.documents.record import Exchange, Reading, Record
from schemas.documents.result import Normalisation
from schemas.files import contract, row_files
from schemas.items.coreference import CoreferenceItem
from schemas.lexicon import occupations
from tests.schemas import examples

PRONOUNS: Mapping[str, str] = {"masculine": "he", "feminine": "she"}


def certainty_by_hand(p: float) -> float:
    """The certainty of two outcomes, one of which has probability p."""
    return 2 - math.exp(-sum(q * math.log(q) for q in (p, 1 - p) if q > 0))


def desirability_by_hand(p: float) -> float:
    """The desirability of two outcomes, the desired one of which has probability p."""
    if abs(2 * p - 1) <= 1e-12:
        return 0.0
    return math.copysign(certainty_by_hand(p), p - 0.5)


def pairs_of_occupations(n: int) -> list[tuple[str, str]]:
    """(male-stereotyped, female-stereotyped), every occupation as often as its turn comes."""
    male = [name for name, occupation in occupations().items() if occupation.stereotype == "male"]
    female = [name for name, occupation in occupations().items() if occupation.stereotype == "female"]
    return [(male[index % 20], female[(index + index // 20) % 20]) for index in range(n)]


def made_items(n_pairs: int, *, ambiguous: bool = False) -> list[CoreferenceItem]:
    """Minimal pairs over rotating occupation pairs; referent and order of mention rotate too."""
    items = []
    for index, (male, female) in enumerate(pairs_of_occupations(n_pairs)):
        first, second = (male, female) if index % 2 else (female, male)
        referent = male if index // 2 % 2 else female
        for gender, pronoun in PRONOUNS.items():
            sentence = f"The {first} waited for the {second} in room {index} until {pronoun} could leave."
            fits = (gender == "masculine") == (referent == male)
            items.append(
                CoreferenceItem(
                    item_id=f"made-{index}-{pronoun}",
                    pair_id=f"made-{index}",
                    cluster=f"{male}|{female}",
                    sentence=sentence,
                    pronoun=pronoun,
                    pronoun_start=sentence.index(f" {pronoun} ") + 1,
                    pronoun_case="nominative",
                    pronoun_gender="masculine" if gender == "masculine" else "feminine",
                    occupations=(first, second),
                    referent=None if ambiguous else referent,
                    reference=first if ambiguous else referent,
                    stereotype=None if ambiguous else ("pro" if fits else "anti"),
                    template_id="made",
                    source_row=None,
                    flags=(),
                )
            )
    return items


def write_dataset(
    folder: Path, items: Mapping[str, Sequence[CoreferenceItem]], *, name: str = "made", redistributable: bool = True
) -> Path:
    """A dataset folder with one split ``test`` per config."""
    splits = tuple(examples.split_entry(rows, config) for config, rows in items.items())
    for entry, rows in zip(splits, items.values(), strict=True):
        row_files.write_rows(folder / entry.path, list(rows), CoreferenceItem)
    made = examples.manifest(())
    manifest = replace(
        made,
        name=name,
        title="Made by a test",
        parameters={},
        seed=None,
        sources=tuple(replace(source, revision=None, redistributable=redistributable) for source in made.sources),
        redistributable=redistributable,
        publish_refusal=None if redistributable else "the licence forbids it",
        splits=splits,
        content_sha256=strict_json.sha256([entry.content_sha256 for entry in splits]),
    )
    strict_json.write(folder / "dataset.json", contract.dump(manifest))
    return folder


def made_records(rows: Sequence[tuple[str, str, str, float]], *, ambiguous: bool = False) -> list[Record]:
    """Records without exchanges.

    Args:
        rows: (referent, other occupation, pronoun gender, probability of the referent). Two rows after one another with
            the same occupations and both genders are a minimal pair.
        ambiguous: No right answer: the first occupation is the reference only.
    """
    records = []
    seen: dict[tuple[str, str, str], int] = {}
    for index, (referent, other, gender, probability) in enumerate(rows):
        number = seen.get((referent, other, gender), 0)
        seen[referent, other, gender] = number + 1
        wanted = "male" if gender == "masculine" else "female"
        stereotyped = next(name for name in (referent, other) if occupations()[name].stereotype == wanted)
        groups = {
            "pronoun_gender": gender,
            "occupation": referent,
            "other_occupation": other,
            "stereotyped_occupation": stereotyped,
            "first_occupation": referent,
        }
        if not ambiguous:
            groups["stereotype"] = "pro" if stereotyped == referent else "anti"
        record = Record(
            item_id=f"row-{index}",
            config="type2",
            split="test",
            status="scored",
            truncated=False,
            reason=None,
            cluster="|".join(sorted((referent, other), key=lambda name: occupations()[name].stereotype, reverse=True)),
            pair_id=f"{referent}-{other}-{number}",
            target=None if ambiguous else referent,
            reference=referent,
            groups=groups,
            exchanges=(),
            reading=Reading(outcomes=(referent, other), probabilities=(probability, 1 - probability), answers=()),
        )
        records.append(record)
    return records


def save_tiny_llama(
    folder: Path,
    *,
    seed: int = 0,
    merge_words: bool = False,
    vocabulary: int = 600,
    head_size: int = 16,
    knows_every_sign: bool = False,
    positions: int = 256,
) -> Path:
    """A Llama with random weights and a tokenizer trained on sentences made here.

    Args:
        folder: Where to save it.
        seed: Of the weights.
        merge_words: Without a split at spaces, so that tokens span words, and prompt and option merge.
        vocabulary: Tokens.
        head_size: Of each of its four attention heads; some engines have no kernel for small ones.
        knows_every_sign: With a token for each sign of ASCII, so that the model can write JSON.
        positions: Tokens of the longest text.
    """
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    if merge_words:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(split=False)
        tokenizer.decoder = decoders.Metaspace(split=False)
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
    texts = [f"{item.sentence} '{item.pronoun.title()}' refers to the {item.reference}." for item in made_items(60)]
    special = ["<unk>", "<s>", "</s>"]
    # Bytes of other signs would make texts that end within one.
    alphabet = ["\u0120", *map(chr, range(33, 127))] if knows_every_sign else []
    trainer = trainers.BpeTrainer(
        # A tokenizer that reads a text as a few phrases is refused.
        vocab_size=vocabulary,
        special_tokens=special,
        initial_alphabet=alphabet,
        max_token_length=10 if merge_words else None,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    fast = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    )
    fast.save_pretrained(folder)
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(fast),
        hidden_size=4 * head_size,
        intermediate_size=8 * head_size,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=positions,
        bos_token_id=1,
        eos_token_id=2,
        # Larger than usual, so that an untrained model has preferences to get wrong.
        initializer_range=0.3,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def save_flat_llama(folder: Path, *, hidden_size: int = 512) -> Path:
    """A Llama with random weights that prefers none of its 32,000 tokens, about 30 million weights by default.

    The tokenizer knows every id of the vocabulary.
    """
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    tokens = ["<unk>", "<s>", "</s>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    tokens += [f"w{number}" for number in range(32_000 - len(tokens))]
    tokenizer = Tokenizer(models.BPE({token: index for index, token in enumerate(tokens)}, [], unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    ).save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokens),
        hidden_size=hidden_size,
        intermediate_size=hidden_size * 43 // 16,
        num_hidden_layers=4,
        num_attention_heads=8,
        num_key_value_heads=8,
        max_position_embeddings=512,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=2,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def preferred(request: Request, response: Response) -> str | None:
    """The outcome that a response prefers; None if it prefers none."""
    if isinstance(request, GenerateRequest):
        return response.text
    assert isinstance(request, ChoiceRequest)
    values = [float(str(value)) for value in response.option_logprobs]
    best = [outcome for outcome, value in zip(request.outcomes, values, strict=True) if value == max(values)]
    return best[0] if len(best) == 1 else None


def record_of(
    task: Task, item: Item, exchanges: tuple[Exchange, ...], normalisation: Normalisation | None, prompt: str = ""
) -> Record:
    """The record of an item, read by its task from given exchanges."""
    read, facts = task.reading(exchanges, normalisation, prompt), task.facts(item)
    return Record(
        item_id=item.item_id,
        config="test",
        split="test",
        status=read.status,
        truncated=False,
        reason=read.reason,
        cluster=facts.cluster,
        pair_id=facts.pair_id,
        target=facts.target,
        reference=facts.reference,
        groups=dict(facts.groups),
        exchanges=exchanges,
        reading=read.reading,
    )
