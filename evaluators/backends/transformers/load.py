"""Loads torch and causal language models, and refuses unsuitable ones before the first request."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from biasboard.ground.errors import ConfigError, import_extra
from biasboard.ground.plain_text import printable
from evaluators.backend import check_model_id
from evaluators.backend_options import BackendOptions
from evaluators.models.model_files import CONFIG, ModelFiles, chosen_threads, find_model, load_pretrained, settings_of
from evaluators.models.tokenizer import ModelTokenizer, check_template_files, load_tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedModel

logger = logging.getLogger(__name__)

OUT_OF_MEMORY = "out of memory on a single request; use a smaller model, --dtype bfloat16 or another device"
_ENGINE_REMEDY = (
    "ask it with --backend vllm, or serve it with vllm serve MODEL, and score it with --backend openai --base-url URL"
)
T = TypeVar("T")
R = TypeVar("R")


def in_halves(compute: Callable[[Sequence[T]], Sequence[R]], items: Sequence[T]) -> list[R | None]:
    """Return what a function computes for a batch or, if memory runs out, for its halves; None for what fails alone."""
    torch = import_extra("torch", "hf")
    try:
        return [*compute(items)]
    except torch.OutOfMemoryError:
        if len(items) == 1:
            return [None]
        logger.warning("out of memory with %d inputs in a batch; halving it", len(items))
    # Retry outside the except block, where the failed pass no longer holds its memory.
    middle = len(items) // 2
    return [*in_halves(compute, items[:middle]), *in_halves(compute, items[middle:])]


class LoadedModel(NamedTuple):
    """A model on its device, and its tokenizer."""

    files: ModelFiles
    network: PreTrainedModel
    tokenizer: ModelTokenizer
    other_tokenizer_sha256: str | None
    """Hash of the tokenizer's behaviour if the user chose another than the model's own; otherwise None."""
    device: str
    precision: str
    """Data type of the weights."""
    settings: dict[str, str]
    """Settings of the result."""


def load_model(model: str, options: BackendOptions, *, is_masked: bool = False) -> LoadedModel:
    """Load a language model and its tokenizer onto a device.

    Args:
        model: Id on the Hub, or path of a local folder.
        options: Revision, precision, device, tokenizer and chat template.
        is_masked: True for a masked language model, such as BERT; False for one that writes texts.

    Raises:
        ConfigError: the model cannot be found or loaded, or an option is unknown.
        MissingExtraError: torch or transformers is not installed.
    """
    options.check_dtype()
    if options.name is not None:
        check_model_id(options.name)
    files = find_model(model, options.revision, own_tokenizer=options.tokenizer is None)
    named = options.tokenizer or model, None if options.tokenizer else files.commit
    config = settings_of(model, CONFIG, files.commit) or {}
    match config.get("architectures"):
        case [str(name)] if name.endswith("ForCausalLM" if is_masked else "ForMaskedLM"):
            if is_masked or not config.get("is_decoder"):
                raise _of_other_kind(printable(name, most=100), is_masked=is_masked)
    if options.chat:
        check_template_files(*named)
    has_encoder = bool(config.get("is_encoder_decoder")) and not is_masked
    if has_encoder:
        check_no_causal_options(options)
    # What the files tell is checked before this imports torch, which takes seconds.
    device, dtype, settings = computing(options)
    tokenizer = load_tokenizer(*named, **options.chat_settings)
    if is_masked:
        kind = "masked language model"
        network = load_network(model, files.commit, dtype, device, loader="AutoModelForMaskedLM", kind=kind)
    elif has_encoder:
        kind = "model of an encoder and a decoder"
        network = load_network(model, files.commit, dtype, device, loader="AutoModelForSeq2SeqLM", kind=kind)
        if network.config.decoder_start_token_id is None:
            raise ConfigError(
                f"model '{model}' names no decoder_start_token_id in {CONFIG}; add the one it was trained with"
            )
    else:
        network = load_network(model, files.commit, dtype, device)
    if not is_masked:
        check_special_tokens(network, tokenizer)
    # AutoModelForCausalLM also loads encoders such as BERT, with no more than a warning.
    if not has_encoder and looks_ahead(network) != is_masked:
        raise _of_other_kind(type(network).__name__, is_masked=is_masked)
    return LoadedModel(
        files=files,
        network=network,
        tokenizer=tokenizer,
        other_tokenizer_sha256=tokenizer.sha256 if options.tokenizer else None,
        device=device,
        precision=precision_of(network),
        settings=settings,
    )


def context_tokens_of(network: PreTrainedModel) -> int | None:
    """Return the largest number of tokens that a model takes, prompt and answer together; None if it is unknown."""
    context_tokens = getattr(network.config.get_text_config(), "max_position_embeddings", None)
    return context_tokens if isinstance(context_tokens, int) and context_tokens > 0 else None


def n_embedded(network: PreTrainedModel) -> int:
    """Return the number of token ids for which a model has embeddings."""
    embeddings: Any = network.get_input_embeddings()
    return len(embeddings.weight)


def precision_of(network: PreTrainedModel) -> str:
    """Return the data type of a model's weights, such as ``float32``."""
    return str(network.dtype).removeprefix("torch.")


def device_name(device: str) -> str:
    """Return the hardware name of a CUDA device, and any other device unchanged."""
    if not device.startswith("cuda"):
        return device
    name: str = import_extra("torch", "hf").cuda.get_device_name(device)
    return name


def load_network(
    model: str,
    revision: str | None,
    dtype: Any,
    device: str,
    *,
    loader: str = "AutoModelForCausalLM",
    kind: str = "causal language model",
) -> PreTrainedModel:
    """Load a model onto a device, and check that the checkpoint holds all its weights.

    Args:
        model: Id on the Hub, or path of a local folder.
        revision: Commit on the Hub; None for a folder.
        dtype: Precision of the weights.
        device: Device to compute on.
        loader: Name of the class of transformers that loads it.
        kind: Kind of model, for the error message.

    Raises:
        ConfigError: the model cannot be found or loaded, lacks weights, or is not of the kind.
        MissingExtraError: torch or transformers is not installed.
    """
    method = quantisation(settings_of(model, CONFIG, revision) or {})
    remedy = "check the id, or give a local folder"
    if method is not None:
        # transformers names the library that is missing.
        remedy = f"install what its quantisation by {method} needs, or {_ENGINE_REMEDY}"
        known = import_extra("transformers.quantizers.auto", "hf").AUTO_QUANTIZER_MAPPING
        # With no more than a warning, transformers takes weights quantised in an unknown way for plain numbers.
        if not {method, f"{method}_4bit"} & known.keys():
            fault = f"the weights of model '{model}' are quantised by {method}, which transformers does not know"
            raise ConfigError(f"{fault}; {_ENGINE_REMEDY}")
    network, report = load_pretrained(
        loader, model, revision, what=f"model '{model}'", remedy=remedy, dtype=dtype, output_loading_info=True
    )
    # Weights that the checkpoint lacks are drawn at random, so every run would score a different model.
    absent = sorted(map(str, [*report["missing_keys"], *report["mismatched_keys"]]))
    if absent:
        raise ConfigError(
            f"model '{model}' lacks {len(absent)} weights of a {kind}, such as {absent[0]}; "
            "give a checkpoint that holds them all"
        )
    loaded: PreTrainedModel = network.to(import_extra("torch", "hf").device(device)).eval()
    return loaded


def quantisation(config: Mapping[str, Any]) -> str | None:
    """Return how the weights of a model are quantised, such as ``gptq``, by its configuration; None if they are not.

    >>> quantisation({"quantization_config": {"quant_method": "gptq", "bits": 4}})
    'gptq'
    """
    # A model of texts and images names it for its part of texts.
    for part in (config, config.get("text_config")):
        settings = part.get("quantization_config") if isinstance(part, dict) else None
        if isinstance(settings, dict):
            # Configurations of older versions of bitsandbytes name no method.
            old = "bitsandbytes" if settings.get("load_in_4bit") or settings.get("load_in_8bit") else "unknown"
            return printable(str(settings.get("quant_method", old)), most=50)
    return None


def check_special_tokens(network: PreTrainedModel, tokenizer: ModelTokenizer) -> None:
    """Check that a model has embeddings for the special tokens that stand in every request, or after every option.

    Raises:
        ConfigError: the id of one lies beyond them.
    """
    special = {*tokenizer.pretrained.all_special_ids}
    used = {token for token in tokenizer.context_ids("a") if token in special} | {tokenizer.end_id}
    if tokenizer.added_start is not None:
        used.add(tokenizer.start_id)
    n_tokens = n_embedded(network)
    beyond = sorted(token for token in used if token is not None and token >= n_tokens)
    if beyond:
        name = tokenizer.pretrained.convert_ids_to_tokens(beyond[0])
        raise ConfigError(
            f"the tokenizer's special token '{name}' has the id {beyond[0]}, and the model has embeddings of "
            f"{n_tokens} tokens; name the tokenizer that it was trained with by --tokenizer"
        )


def check_no_causal_options(options: BackendOptions) -> None:
    """Refuse options that mean nothing for a model of an encoder and a decoder.

    Raises:
        ConfigError: one is set.
    """
    for name, value in {"lora": options.lora, "chat": options.chat, "scoring": options.scoring}.items():
        if value and value != "plain":
            given = f"--{name}" if value is True else f"--{name} {value}"
            raise ConfigError(
                f"{given}: is for models that continue a text, and this one has an encoder that reads the prompt; "
                "leave it out"
            )


def _of_other_kind(kind: str, *, is_masked: bool) -> ConfigError:
    if is_masked:
        return ConfigError(
            f"{kind} is no masked language model: it predicts a token from what stands before it alone; ask it with "
            "--backend transformers"
        )
    return ConfigError(
        f"{kind} is no causal language model: a token changes what was predicted before it; give a decoder, or ask a "
        "masked model which text is likelier with --backend masked"
    )


_PROBE_TOKENS = 16
_PROBE_TRIALS = 3
_PROBE_NOISE_FACTOR = 4.0
# Sixteen times the rounding of float32. In float32, a random BERT with the usual small weights moves by 1e-3.
_PROBE_ROUNDING = 2e-6
"""Difference, as a share of the largest logit, that rounding alone explains."""


def looks_ahead(network: PreTrainedModel) -> bool:
    """Return True if a token changes what a model predicts before it.

    Texts that differ in their last token alone must give the same logits at all earlier positions. The passes have one
    shape, so that each number is computed alike, and most causal models agree to the last bit also in half precision.
    Where tokens share a computation without seeing each other, such as a grouped product of experts or the outlier
    columns of 8-bit weights, rounding differs. That noise is measured on a text that stays as it is, beside another one
    that changes; it comes and goes, so every trial must exceed it.
    """
    torch = import_extra("torch", "hf")
    n_tokens, context = n_embedded(network), context_tokens_of(network) or 2 * _PROBE_TOKENS
    width = max(2, min(_PROBE_TOKENS, context // 2))
    # Ids from all over the vocabulary but its beginning, where special tokens stand.
    tokens = [n_tokens // 8 + index * (n_tokens * 3 // 4) // (2 * width) for index in range(2 * width)]
    beginning, lasts = tokens[: width - 1], tokens[width : width + _PROBE_TRIALS + 1]

    def logits(last: int, last_beside: int) -> Any:
        """Return the logits of a text that ends with a token, computed beside another text, shape (width, n)."""
        ids = torch.tensor([[*beginning, last], [*beginning[::-1], last_beside]], device=network.device)
        with torch.inference_mode():
            output = network(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[0]
        return torch.nan_to_num(output.float(), nan=0.0, posinf=0.0, neginf=0.0)

    first, *others = lasts
    reference = logits(first, first)
    moved = min((logits(last, first) - reference)[:-1].abs().max().item() for last in others)
    rounding = _PROBE_ROUNDING * reference.abs().max().item()
    if moved <= rounding:
        return False
    noise = max((logits(first, last) - reference).abs().max().item() for last in others)
    return bool(moved > rounding + _PROBE_NOISE_FACTOR * noise)


def computing(options: BackendOptions) -> tuple[str, Any, dict[str, str]]:
    """Import torch, and return the device, the precision of weights, and the settings of the result.

    The precision is by default float32 on a CPU, and that of the checkpoint elsewhere.

    Raises:
        ConfigError: the requested device cannot be used.
        MissingExtraError: torch is not installed.
    """
    torch = import_torch()
    n_threads = set_threads(torch)
    device = options.device
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        # torch accepts names of devices that this machine or build lacks, so the device must be tried.
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"--device {device} cannot be used: {reason}; use cpu, cuda, cuda:N or mps") from error
    # Half precision is slow and coarse on a CPU.
    usual = torch.float32 if device == "cpu" else "auto"
    dtype = usual if options.dtype is None else getattr(torch, options.dtype)
    return device, dtype, {"threads": str(n_threads)} if device == "cpu" else {}


_WAIT_POLICY = "OMP_WAIT_POLICY"


def import_torch() -> Any:
    """Import torch, so that its threads sleep instead of spinning while they wait for each other.

    A spinning thread blocks a core that others need as soon as anything else runs on the machine. OpenMP reads the
    variable once, when torch is loaded; a value set by the user is kept.

    Raises:
        MissingExtraError: torch is not installed.
    """
    if "torch" in sys.modules or _WAIT_POLICY in os.environ:
        return import_extra("torch", "hf")
    os.environ[_WAIT_POLICY] = "PASSIVE"
    try:
        return import_extra("torch", "hf")
    finally:
        # Child processes should not inherit it.
        del os.environ[_WAIT_POLICY]


def set_threads(torch: Any) -> int:
    """Limit torch's threads to the cores that this process may use, and return their number.

    A choice of the user is kept: by environment variable, or a smaller number by ``torch.set_num_threads``.
    """
    chosen = chosen_threads()
    if chosen.variable is None and chosen.n < torch.get_num_threads():
        torch.set_num_threads(chosen.n)
    n = int(torch.get_num_threads())
    if chosen.variable is not None and n > chosen.n_cores:
        logger.warning(
            "%s makes %d threads, and this process may use %d cores; threads that outnumber cores can be ten times "
            "slower: unset it",
            chosen.variable,
            n,
            chosen.n_cores,
        )
    return n
