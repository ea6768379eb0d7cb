"""Any causal language model of the Hub or of a local folder, through ``transformers``; exact option log-probabilities.

Context and option are tokenised together, the context's tokens must be a prefix of that, and the option's tokens are the
rest. Rows are padded on the right, which a causal model never looks at, so that a batch gives what single passes give up to
rounding. Logits are turned into log-probabilities in float32 whatever the model's precision.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import inspect
import logging
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
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

logger = logging.getLogger(__name__)

SUMMARY = "any causal model of the Hugging Face Hub or a local folder, on CPU, CUDA or MPS (extra: hf)"
MODELS: tuple[str, ...] = ()

_DTYPES = ("float32", "bfloat16", "float16")
_BATCH_TOKENS = {"cpu": 4096, "mps": 8192, "cuda": 32768}
_TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model", "tekken.json")
_HASHED = frozenset({".json", ".safetensors", ".bin", ".model", ".txt", ".jinja"})


class Row(NamedTuple):
    """One option after its context, as token ids."""

    ids: list[int]
    n_context: int


@dataclass
class TransformersBackend:
    """A loaded model."""

    network: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    device: str
    batch_tokens: int
    model: Model
    runtime: Runtime
    capabilities: frozenset[Capability] = frozenset({"option_logprobs"})
    reads_facts: bool = False
    _rows: dict[tuple[str, tuple[str, ...]], list[Row] | str] = field(default_factory=dict)

    def plan(self, requests: Sequence[Request]) -> Sequence[Sequence[int]]:
        """Batches of similar length, longest first, each within the token budget after padding."""
        rows = [self._encoded(request) for request in requests]
        sizes = [0 if isinstance(some, str) else max(len(row.ids) for row in some) for some in rows]
        counts = [0 if isinstance(some, str) else len(some) for some in rows]
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
        rows = [row for some in encoded if not isinstance(some, str) for row in some]
        scores = iter(self._score(rows))
        answers = []
        for some in encoded:
            if isinstance(some, str):
                answers.append(Response(status="failed", error=some))
                continue
            scored = [next(scores) for _ in some]
            answers.append(
                Response(
                    status="answered",
                    option_logprobs=tuple(score.logprob for score in scored),
                    option_end_logprobs=tuple(score.end_logprob for score in scored),
                    option_token_counts=tuple(len(row.ids) - row.n_context for row in some),
                    n_prompt_tokens=some[0].n_context,
                    n_completion_tokens=0,
                )
            )
        return answers

    def _encoded(self, request: Request) -> list[Row] | str:
        """The rows of a request, or why it has none."""
        key = (request.prompt, request.options)
        if key not in self._rows:
            self._rows[key] = self._encode(request)
        return self._rows[key]

    def _encode(self, request: Request) -> list[Row] | str:
        context = self._tokens(request.prompt)
        if not context:
            return "the context has no tokens and the tokenizer adds none at the start"
        rows = []
        for option in request.options:
            ids = self._tokens(request.prompt + option)
            if ids[: len(context)] != context:
                return f"the tokenizer merges the end of the context with option '{option}'"
            if len(ids) == len(context):
                return f"option '{option}' has no tokens"
            rows.append(Row(ids, len(context)))
        longest, room = max(len(row.ids) for row in rows), self._room()
        if room is not None and longest > room:
            return f"context and option take {longest} tokens, the model {room}"
        return rows

    def _tokens(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer(text)["input_ids"]
        # Some tokenizers close every text with an end token, which would stand between context and option.
        while len(ids) > 1 and ids[-1] == self.tokenizer.eos_token_id:
            ids = ids[:-1]
        return ids

    def _room(self) -> int | None:
        room = getattr(self.network.config.get_text_config(), "max_position_embeddings", None)
        return room if isinstance(room, int) and room > 0 else None

    def _score(self, rows: Sequence[Row]) -> list[_Score]:
        if not rows:
            return []
        torch = import_extra("torch", "hf")
        width = max(len(row.ids) for row in rows)
        ids = torch.zeros((len(rows), width), dtype=torch.long)
        mask = torch.zeros_like(ids)
        for index, row in enumerate(rows):
            ids[index, : len(row.ids)] = torch.tensor(row.ids)
            mask[index, : len(row.ids)] = 1
        # The token at position i is predicted at i - 1; the last position predicts the end token.
        places = [(index, place) for index, row in enumerate(rows) for place in range(row.n_context - 1, len(row.ids))]
        with torch.inference_mode():
            logprobs = self._logprobs(ids.to(self.device), mask.to(self.device), places)
            targets, end = self._targets(rows)
            picked = logprobs.gather(1, targets.to(logprobs.device)[:, None])[:, 0].double().cpu().tolist()
        scores, start = [], 0
        for row in rows:
            n = len(row.ids) - row.n_context
            tokens, last = picked[start : start + n], picked[start + n]
            scores.append(_Score(sum(tokens), last if end else None))
            start += n + 1
        return scores

    def _targets(self, rows: Sequence[Row]) -> tuple[torch.Tensor, bool]:
        """The token that each place should predict, and whether the model has an end token."""
        torch = import_extra("torch", "hf")
        end = self.tokenizer.eos_token_id
        filler = 0 if end is None else end
        targets = [token for row in rows for token in (*row.ids[row.n_context :], filler)]
        return torch.tensor(targets), end is not None

    def _logprobs(
        self, ids: torch.Tensor, mask: torch.Tensor, places: Sequence[tuple[int, int]]
    ) -> torch.Tensor:
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
        result: torch.Tensor = torch.log_softmax(logits[rows, at].float(), dim=-1)
        return result


class _Score(NamedTuple):
    """Of one option, in nats."""

    logprob: float
    end_logprob: float | None


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
    transformers = import_extra("transformers", "hf")
    folder = Path(model)
    local = folder.is_dir()
    if local:
        _check_folder(folder, options)
    elif folder.is_absolute() or model.startswith("."):
        raise ConfigError(f"model folder '{model}' does not exist; name a folder or an id of the Hub")
    device = _device(torch, options.device)
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(model, revision=options.revision)
        network = transformers.AutoModelForCausalLM.from_pretrained(
            model, revision=options.revision, dtype=_dtype(torch, options.dtype, device)
        )
    except (OSError, ValueError, KeyError) as error:
        reason = " ".join(str(error).split())[:300]
        raise ConfigError(f"model '{model}' cannot be loaded: {reason}; check the id, or give a local folder") from error
    network = network.to(device).eval()
    revision = _folder_revision(folder) if local else getattr(network.config, "_commit_hash", None)
    precision = str(network.dtype).removeprefix("torch.")
    model_id = check_model_id(options.name or (f"local/{folder.resolve().name}" if local else model))
    identity = {
        "backend": "transformers",
        "id": None if local else model,
        "revision": revision,
        "precision": precision,
        "device": device.partition(":")[0],
    }
    return TransformersBackend(
        network=network,
        tokenizer=tokenizer,
        device=device,
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
        torch.empty(0, device=wanted)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"--device {wanted} cannot be used: {reason}; use cpu, cuda, cuda:N or mps") from error
    return wanted


def _dtype(torch: Any, wanted: str | None, device: str) -> Any:
    if wanted is None:
        # Half precision is slow and coarse on a CPU; elsewhere the checkpoint's own precision is what it was trained in.
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
