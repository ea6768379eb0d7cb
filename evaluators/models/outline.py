"""A local model of which only the tokenizer and the size of the context are read, to estimate what asking it takes.

Loading weights takes gigabytes and minutes, and importing torch alone seconds.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from typing_extensions import override

from biasboard.ground import strict_json
from biasboard.ground.errors import ConfigError, DataError
from evaluators.backend import Backend, Capability, Events, Request, Runtime, TokenCount, check_model_id
from evaluators.backend_options import BackendOptions
from evaluators.models.model_files import hub_commit
from evaluators.models.pretrained import is_loader
from evaluators.models.tokenizer import ModelTokenizer, load_tokenizer
from schemas.documents.result import Model

_CONFIG, _SETTINGS = "config.json", "tokenizer_config.json"


@dataclass
class Outline(Backend):
    """A model that can be planned for and not asked."""

    model: Model
    tokenizer: ModelTokenizer
    context_tokens: int | None
    capabilities: frozenset[Capability] = frozenset({"option_logprobs", "generation"})
    arguments: tuple[str, ...] = ()
    runtime: Runtime = field(default_factory=Runtime)

    @override
    def ask(self, requests: Sequence[Request], missing: frozenset[int]) -> Events:
        raise ConfigError(f"only the tokenizer of {self.model.id} was read; open the model to ask it")

    @override
    def count_tokens(self, requests: Sequence[Request]) -> TokenCount:
        return self.tokenizer.count_tokens(requests)

    @override
    def needed_tokens(self, requests: Sequence[Request]) -> Sequence[int]:
        return self.tokenizer.needed_tokens(requests)


def outline_of(backend: str, model: str, options: BackendOptions) -> Outline:
    """Read the tokenizer and the context of a model of the Hub or of a folder, without its weights.

    Args:
        backend: Backend that would load it.
        model: Id on the Hub, or path of a local folder.
        options: Revision, tokenizer and chat template.

    Raises:
        ConfigError: the model or its tokenizer cannot be found.
    """
    folder = Path(model)
    if not folder.is_dir():
        hub_commit(model, options.revision, needed=_CONFIG, what="model")
    elif not (folder / _CONFIG).is_file():
        raise ConfigError(f"model folder '{model}' has no {_CONFIG}; save the model there with save_pretrained")
    config = _json(model, _CONFIG, options.revision) or {}
    text_config = config.get("text_config") or config
    size = text_config.get("max_position_embeddings") or text_config.get("n_positions")
    name = options.name or (f"local/{folder.resolve().name}" if folder.is_dir() else model)
    return Outline(
        model=Model(
            id=check_model_id(name),
            revision=None,
            backend=backend,
            precision=None,
            chat_template_sha256=(tokenizer := _tokenizer(model, options)).chat_template_sha256,
            endpoint="local",
            identity_sha256=strict_json.sha256({"outline": name}),
        ),
        tokenizer=tokenizer,
        context_tokens=options.max_model_len or (size if isinstance(size, int) and size > 0 else None),
    )


def _tokenizer(model: str, options: BackendOptions) -> ModelTokenizer:
    name, revision = options.tokenizer or model, None if options.tokenizer else options.revision
    # AutoTokenizer takes the same class, but importing it imports torch, which takes three seconds.
    wanted = (_json(name, _SETTINGS, revision) or {}).get("tokenizer_class")
    loader = wanted if isinstance(wanted, str) and is_loader(wanted) else "AutoTokenizer"
    return load_tokenizer(name, revision, chat=bool(options.chat), loader=loader)


def _json(name: str, file: str, revision: str | None) -> dict[str, Any] | None:
    """Return a file of settings; None if there is none."""
    path = _file(name, file, revision)
    if path is None:
        return None
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read as JSON ({error}); save the model again") from error
    return settings if isinstance(settings, dict) else {}


def _file(name: str, file: str, revision: str | None) -> Path | None:
    """Return the path of a file of a model, downloaded from the Hub if it is not a folder; None if there is none."""
    folder = Path(name)
    if folder.is_dir():
        return folder / file if (folder / file).is_file() else None
    import huggingface_hub
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

    try:
        return Path(huggingface_hub.hf_hub_download(name, file, revision=revision))
    except (EntryNotFoundError, LocalEntryNotFoundError):
        return None
