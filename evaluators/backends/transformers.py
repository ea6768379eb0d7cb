"""Any causal language model of the Hub or of a local folder, with exact option log-probabilities.

Context and option are tokenised together, as the model knows text. What all options of a request and the context have
in common is the context; the rest is scored. Where a tokenizer merges across the border, the last tokens of the
context thus move into every option alike, and the record says how many. Rows are padded on the right, which a causal
model never looks at, so that a batch gives what single passes give up to rounding. Logits become log-probabilities in
float32 whatever the precision of the model.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import inspect
import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from evaluators.backend import BackendOptions, Capability, Request, Response, Runtime, model_identity
from evaluators.run_folder import check_model_id
from schemas.errors import ConfigError, import_extra
from schemas.files import sha256_file
from schemas.result import Model

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

logger = logging.getLogger(__name__)

SUMMARY = "any causal model of the Hugging Face Hub or a local folder, on CPU, CUDA or MPS (extra: hf)"
MODELS: tuple[str, ...] = ()

_DTYPES = ("float32", "bfloat16", "float16")
_BATCH_TOKENS = {"cpu": 4096, "mps": 8192, "cuda": 32768}
_TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model", "tekken.json")
_HASHED = frozenset({".json", ".safetensors", ".bin", ".model", ".txt", ".jinja"})


class Rows(NamedTuple):
    """The options of a request, each after the context, as token ids."""

    ids: tuple[list[int], ...]
    n_context: int
    """Leading tokens that all options share with the context."""
    n_moved: int
    """Tokens of the context that are not among them."""


@dataclass
class TransformersBackend:
    """A loaded model."""

    network: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    device: str
    batch_tokens: int
    model: Model
    runtime: Runtime
    arguments: tuple[str, ...] = ()
    capabilities: frozenset[Capability] = frozenset({"option_logprobs"})
    reads_facts: bool = False
    _rows: dict[tuple[str, tuple[str, ...]], Rows | str] = field(default_factory=dict)

    def plan(self, requests: Sequence[Request]) -> Sequence[Sequence[int]]:
        """Batches of similar length, longest first, each within the token budget after padding."""
        encoded = [self._encoded(request) for request in requests]
        sizes = [0 if isinstance(rows, str) else max(map(len, rows.ids)) for rows in encoded]
        counts = [0 if isinstance(rows, str) else len(rows.ids) for rows in encoded]
        batches: list[list[int]] = []
        width = n_rows = 0
        for index in sorted(range(len(requests)), key=lambda index: (-sizes[index], index)):
            if not batches or (n_rows + counts[index]) * width > self.batch_tokens:
                batches.append([])
                width, n_rows = sizes[index], 0
            batches[-1].append(index)
            n_rows += counts[index]
        return batches

    def answer(self, requests: Sequence[Request]) -> Sequence[Response]:
        """Score one batch; on too little memory its halves, down to single requests."""
        torch = import_extra("torch", "hf")
        try:
            return self._answer(requests)
        except torch.OutOfMemoryError:
            if len(requests) == 1:
                reason = "out of memory on a single request; use a smaller model, --dtype bfloat16 or another device"
                return [Response(status="failed", error=reason)]
            logger.warning("out of memory with %d requests in a batch; halving it", len(requests))
        # Outside the handler, where the failed pass no longer holds its memory.
        middle = len(requests) // 2
        return [*self.answer(requests[:middle]), *self.answer(requests[middle:])]

    def _answer(self, requests: Sequence[Request]) -> list[Response]:
        encoded = [self._encoded(request) for request in requests]
        scores = iter(self._score([rows for rows in encoded if not isinstance(rows, str)]))
        answers = []
        for rows in encoded:
            if isinstance(rows, str):
                answers.append(Response(status="failed", error=rows))
                continue
            scored = next(scores)
            if any(math.isnan(value) for score in scored for value in score):
                reason = f"a log-probability is NaN in {self.model.precision}; use --dtype float32 or bfloat16"
                answers.append(Response(status="failed", error=reason))
                continue
            answers.append(
                Response(
                    status="answered",
                    option_logprobs=tuple(score.logprob for score in scored),
                    option_end_logprobs=tuple(score.end_logprob if self._has_end else None for score in scored),
                    option_token_counts=tuple(len(ids) - rows.n_context for ids in rows.ids),
                    n_moved_tokens=rows.n_moved,
                    n_prompt_tokens=rows.n_context + rows.n_moved,
                    n_completion_tokens=0,
                )
            )
        return answers

    def _encoded(self, request: Request) -> Rows | str:
        """The rows of a request, or why it has none."""
        key = (request.prompt, request.options)
        if key not in self._rows:
            self._rows[key] = self._encode(request)
        return self._rows[key]

    def _encode(self, request: Request) -> Rows | str:
        context = self._tokens(request.prompt)
        options = [self._tokens(request.prompt + option) for option in request.options]
        n_common = _n_common([context, *options])
        if n_common == 0:
            return "context and options share no token, and the tokenizer adds none at the start"
        for option, ids in zip(request.options, options, strict=True):
            if len(ids) == n_common:
                return f"option '{option}' has no tokens of its own"
        longest, room = max(map(len, options)), self._room()
        if room is not None and longest > room:
            return f"context and option take {longest} tokens, the model {room}"
        return Rows(tuple(options), n_common, len(context) - n_common)

    def _tokens(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer(text)["input_ids"]
        # Some tokenizers close every text with an end token, which would stand between context and option.
        while len(ids) > 1 and ids[-1] == self.tokenizer.eos_token_id:
            ids = ids[:-1]
        return ids

    @property
    def _has_end(self) -> bool:
        return self.tokenizer.eos_token_id is not None

    def _room(self) -> int | None:
        room = getattr(self.network.config.get_text_config(), "max_position_embeddings", None)
        return room if isinstance(room, int) and room > 0 else None

    def _score(self, requests: Sequence[Rows]) -> list[list[_Score]]:
        """Scores per request and option, from one forward pass."""
        if not requests:
            return []
        torch = import_extra("torch", "hf")
        flat = [(ids, rows.n_context) for rows in requests for ids in rows.ids]
        width = max(len(ids) for ids, _ in flat)
        ids = torch.tensor([[*row, *[0] * (width - len(row))] for row, _ in flat])
        mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row, _ in flat])
        end = self.tokenizer.eos_token_id if self._has_end else 0
        # The token at position i is predicted at i - 1; the last position predicts the end token.
        places = [(index, at) for index, (row, n) in enumerate(flat) for at in range(n - 1, len(row))]
        targets = [token for row, n in flat for token in (*row[n:], end)]
        with torch.inference_mode():
            logprobs = self._logprobs(ids.to(self.device), mask.to(self.device), places)
            picked = logprobs.gather(1, torch.tensor(targets, device=logprobs.device)[:, None])[:, 0]
        values = iter(picked.double().cpu().tolist())
        return [
            [_Score(sum(next(values) for _ in row[rows.n_context :]), next(values)) for row in rows.ids]
            for rows in requests
        ]

    def _logprobs(self, ids: Tensor, mask: Tensor, places: Sequence[tuple[int, int]]) -> Tensor:
        """Float32 log-probabilities at (row, position) places, shape (n_places, vocabulary)."""
        torch = import_extra("torch", "hf")
        positions = sorted({place for _, place in places})
        arguments: dict[str, Any] = {"input_ids": ids, "attention_mask": mask, "use_cache": False}
        if "logits_to_keep" in inspect.signature(self.network.forward).parameters:
            # The head runs on the positions that are needed, not on every token times the vocabulary.
            arguments["logits_to_keep"] = torch.tensor(positions, device=self.device)
            columns = {position: column for column, position in enumerate(positions)}
        else:
            columns = {position: position for position in positions}
        logits = self.network(**arguments).logits
        rows = torch.tensor([row for row, _ in places], device=logits.device)
        at = torch.tensor([columns[place] for _, place in places], device=logits.device)
        result: Tensor = torch.log_softmax(logits[rows, at].float(), dim=-1)
        return result


def _n_common(sequences: Sequence[Sequence[int]]) -> int:
    """Length of the longest prefix that all sequences share."""
    columns = enumerate(zip(*sequences, strict=False))
    return next((place for place, tokens in columns if len(set(tokens)) > 1), min(map(len, sequences)))


class _Score(NamedTuple):
    """Of one option, in nats."""

    logprob: float
    end_logprob: float


def open_backend(model: str, options: BackendOptions) -> TransformersBackend:
    """Load a model.

    Args:
        model: Id of the Hub, or path of a local folder.
        options: Revision, precision, device, token budget of a batch.

    Raises:
        ConfigError: the model cannot be found or loaded, or an option is unknown.
        MissingExtraError: torch or transformers is not installed.
    """
    torch = import_extra("torch", "hf")
    folder = Path(model)
    local = folder.is_dir()
    if local:
        _check_folder(folder, options)
    elif folder.is_absolute() or model.startswith("."):
        raise ConfigError(f"model folder '{model}' does not exist; name a folder or an id of the Hub")
    model_id = check_model_id(options.name or (f"local/{folder.resolve().name}" if local else model))
    device = _device(torch, options.device)
    dtype = _dtype(torch, options.dtype, device)
    loaded = _load(model, options.revision, dtype)
    network: PreTrainedModel = loaded.network
    network.to(torch.device(device)).eval()
    _check_causal(network)
    revision = _folder_revision(folder) if local else getattr(network.config, "_commit_hash", None)
    if revision is None:
        raise ConfigError(f"model '{model}': its commit is unknown; name it with --revision, or use a local folder")
    precision = str(network.dtype).removeprefix("torch.")
    identity = {
        "backend": "transformers",
        "id": None if local else model,
        "revision": revision,
        "precision": precision,
        "device": device.partition(":")[0],
    }
    return TransformersBackend(
        network=network,
        tokenizer=loaded.tokenizer,
        device=device,
        arguments=_arguments(
            options, folder.resolve().name if local else model, None if local else revision, precision
        ),
        batch_tokens=options.batch_tokens or _BATCH_TOKENS.get(device.partition(":")[0], 8192),
        model=Model(
            id=model_id,
            revision=revision,
            backend="transformers",
            precision=precision,
            chat_template_sha256=None,
            endpoint="local",
            identity_sha256=model_identity(identity),
        ),
        runtime=Runtime(
            device=torch.cuda.get_device_name(device) if device.startswith("cuda") else device,
            packages={name: importlib.metadata.version(name) for name in ("torch", "transformers", "tokenizers")},
        ),
    )


class _Loaded(NamedTuple):
    network: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase


def _load(model: str, revision: str | None, dtype: Any) -> _Loaded:
    transformers = import_extra("transformers", "hf")
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(model, revision=revision)
        network, report = transformers.AutoModelForCausalLM.from_pretrained(
            model, revision=revision, dtype=dtype, output_loading_info=True
        )
    # The libraries below raise whatever they like, tokenizers a bare Exception; every one of them is about the model.
    except Exception as error:
        reason = " ".join(str(error).split())[:300]
        message = f"model '{model}' cannot be loaded: {reason}; check the id, or give a local folder"
        raise ConfigError(message) from error
    # Weights that the checkpoint lacks were drawn at random: every run would score another model.
    absent = sorted(map(str, [*report["missing_keys"], *report["mismatched_keys"]]))
    if absent:
        raise ConfigError(
            f"model '{model}' lacks {len(absent)} weights of a causal language model, such as {absent[0]}; "
            "give a checkpoint that holds them all"
        )
    return _Loaded(network, tokenizer)


def _check_causal(network: PreTrainedModel) -> None:
    """Refuse a model whose predictions see the tokens that come after, as those of an encoder do."""
    torch = import_extra("torch", "hf")
    with torch.inference_mode():
        ids = torch.tensor([[1, 2, 3], [1, 2, 4]], device=network.device)
        logits = network(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[:, 1].float()
    if not torch.allclose(logits[0], logits[1], rtol=0.05, atol=0.05, equal_nan=True):
        raise ConfigError(
            f"{type(network).__name__} is no causal language model: a token changes what was predicted before it; "
            "give a decoder"
        )


def _arguments(options: BackendOptions, model: str, revision: str | None, precision: str) -> tuple[str, ...]:
    """What opens the same model again; of a local folder only the name."""
    known = {
        "model": model,
        "name": options.name,
        "revision": revision,
        "dtype": precision if precision in _DTYPES else None,
        "device": options.device,
        "batch-tokens": options.batch_tokens,
    }
    return tuple(f"--{name} {value}" for name, value in known.items() if value is not None)


def _check_folder(folder: Path, options: BackendOptions) -> None:
    if options.revision is not None:
        raise ConfigError("a local folder has no --revision; leave it out, its files are hashed")
    if not (folder / "config.json").is_file():
        raise ConfigError(f"model folder '{folder}' has no config.json; save the model there with save_pretrained")
    if not any((folder / name).is_file() for name in _TOKENIZER_FILES):
        raise ConfigError(
            f"model folder '{folder}' has no tokenizer (one of {', '.join(_TOKENIZER_FILES)}); "
            "save it there with AutoTokenizer.from_pretrained(ID).save_pretrained(FOLDER)"
        )


def _device(torch: Any, wanted: str | None) -> str:
    if wanted is None:
        if torch.cuda.is_available():
            return "cuda"
        return "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        torch.zeros(1, device=wanted).item()
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"--device {wanted} cannot be used: {reason}; use cpu, cuda, cuda:N or mps") from error
    return wanted


def _dtype(torch: Any, wanted: str | None, device: str) -> Any:
    if wanted is None:
        # Half precision is slow and coarse on a CPU; elsewhere a model runs in the precision of its checkpoint.
        return torch.float32 if device == "cpu" else "auto"
    if wanted not in _DTYPES:
        raise ConfigError(f"--dtype {wanted} does not exist; have: {', '.join(_DTYPES)}")
    return getattr(torch, wanted)


def _folder_revision(folder: Path) -> str:
    """Hash of the names and contents of the files that make the model."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.suffix in _HASHED:
            digest.update(f"{path.name}:{sha256_file(path)}\n".encode())
    return f"sha256:{digest.hexdigest()}"
