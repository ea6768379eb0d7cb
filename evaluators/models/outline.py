"""A local model of which only the tokenizer and the size of the context are read, to estimate what asking it takes.

Loading weights takes gigabytes and minutes, and importing torch alone seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from typing_extensions import override

from biasboard.ground import strict_json
from biasboard.ground.errors import ConfigError
from evaluators.backend import (
    OF_LANGUAGE_MODELS,
    Backend,
    Capability,
    Events,
    Request,
    Runtime,
    TokenCount,
    check_model_id,
)
from evaluators.backend_options import BackendOptions
from evaluators.models.model_files import CONFIG, check_folder, hub_commit, is_loader, settings_of
from evaluators.models.tokenizer import ModelTokenizer, load_tokenizer
from schemas.documents.result import Model


@dataclass
class Outline(Backend):
    """A model that can be planned for and not asked."""

    model: Model
    tokenizer: ModelTokenizer
    context_tokens: int | None
    capabilities: frozenset[Capability] = OF_LANGUAGE_MODELS
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
        hub_commit(model, options.revision, needed=CONFIG, what="model")
    else:
        check_folder(folder, needed=CONFIG, what="model")
    config = settings_of(model, CONFIG, options.revision) or {}
    text_config = config.get("text_config") or config
    size = text_config.get("max_position_embeddings") or text_config.get("n_positions")
    name = options.name or (f"local/{folder.resolve().name}" if folder.is_dir() else model)
    named, revision = options.tokenizer or model, None if options.tokenizer else options.revision
    # AutoTokenizer takes the same class, but importing it imports torch, which takes three seconds.
    wanted = (settings_of(named, "tokenizer_config.json", revision) or {}).get("tokenizer_class")
    loader = wanted if isinstance(wanted, str) and is_loader(wanted) else "AutoTokenizer"
    tokenizer = load_tokenizer(named, revision, **options.chat_settings, loader=loader)
    return Outline(
        model=Model(
            id=check_model_id(name),
            revision=None,
            backend=backend,
            precision=None,
            chat_template_sha256=tokenizer.chat_template_sha256,
            endpoint="local",
            identity_sha256=strict_json.sha256({"outline": name}),
        ),
        tokenizer=tokenizer,
        capabilities=tokenizer.capabilities,
        runtime=Runtime(obstacles=tokenizer.obstacles),
        context_tokens=options.max_model_len or (size if isinstance(size, int) and size > 0 else None),
    )
