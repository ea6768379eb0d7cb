"""Opens a model, gives exact log-probabilities of options, in float32 whatever its precision, and generates texts."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from typing_extensions import override

from biasboard.ground.errors import ConfigError, import_extra
from evaluators.backend import (
    OF_LANGUAGE_MODELS,
    Backend,
    BlockLimits,
    Capability,
    Events,
    GenerateRequest,
    Request,
    RunContext,
    Runtime,
    TokenCount,
    ask_in_blocks,
    ask_with_thinking,
    check_model_id,
    identified_model,
)
from evaluators.backend_options import BackendOptions
from evaluators.backends.transformers.load import context_tokens_of, device_name, load_model
from evaluators.backends.transformers.option_scoring import OptionScorer
from evaluators.models.model_files import NO_ADAPTERS, ChosenAdapters, chosen_adapters, opening_arguments
from evaluators.models.tokenizer import ModelTokenizer, local_name
from schemas.documents.result import Model

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from evaluators.adapter_set import AdapterSet
    from evaluators.backends.transformers.encoder_decoder import EncoderDecoder
    from evaluators.backends.transformers.lora import AdapterSlot

_BATCH_TOKENS = {"cpu": 1024, "mps": 8192, "cuda": 32768}
"""Number of tokens per batch, by type of device. On a CPU, the activations of that many float32 tokens stay in its
cache; in half precision, twice as many do."""
# Limits memory: the token ids of a block, with a draft for each text, are held at once.
_BLOCK = BlockLimits(n_texts=16384, n_characters=32_000_000)


@dataclass
class TransformersBackend(Backend):
    """A causal language model loaded with transformers."""

    network: PreTrainedModel
    tokenizer: ModelTokenizer
    device: str
    batch_tokens: int
    """Maximum number of tokens in a batch of options."""
    model: Model
    thinking_tokens: int = 0
    """Tokens that each text may begin with before its answer."""
    wanted_tokens: int | None = None
    """The user's limit on tokens per batch; None to derive that of generated texts from the free memory."""
    scoring: str | None = None
    """The user's choice of ``packed`` or ``plain`` scoring; None for packed if both give the same values."""
    arguments: tuple[str, ...] = ()
    capabilities: frozenset[Capability] = OF_LANGUAGE_MODELS
    settings: dict[str, str] = field(default_factory=dict)
    block_limits: BlockLimits = _BLOCK
    """Limits on the requests that are tokenised and planned at a time."""
    chosen: ChosenAdapters = NO_ADAPTERS
    """Adapters with which the model answers."""
    _option_scorer: OptionScorer = field(init=False, repr=False)
    _slot: AdapterSlot | None = field(init=False, repr=False, default=None)
    """Holds one adapter at a time; None for a model that answers without."""
    _two_parts: EncoderDecoder | None = field(init=False, repr=False, default=None)
    """Way to ask a model with an encoder; None for a model that continues texts."""

    def __post_init__(self) -> None:
        # Imported where a model or a request needs them: most choose one of a few options.
        if self.network.config.is_encoder_decoder:
            from evaluators.backends.transformers.encoder_decoder import EncoderDecoder

            self._two_parts = EncoderDecoder(self.network, self.tokenizer, self.batch_tokens, self.model.precision)
        self._option_scorer = OptionScorer(
            self.network,
            self.tokenizer,
            self.device,
            self.model.precision,
            self.batch_tokens,
            self.scoring,
            self._packages,
            self.settings,
        )
        if self.chosen != NO_ADAPTERS:
            from evaluators.backends.transformers.lora import AdapterSlot

            self._slot = AdapterSlot(self.network)
            if self.chosen.single is not None:
                self._slot.use(Path(self.chosen.single.folder))

    @property
    @override
    def adapters(self) -> AdapterSet | None:
        return self.chosen.of_contexts

    @property
    @override
    def runtime(self) -> Runtime:
        return Runtime(
            device=device_name(self.device),
            packages=self._packages,
            settings=dict(self.settings),
            obstacles=self.tokenizer.obstacles,
        )

    @property
    def _packages(self) -> dict[str, str]:
        names = ("torch", "transformers", "tokenizers", *(("peft",) if self.chosen.rank else ()))
        return {name: importlib.metadata.version(name) for name in names}

    @override
    def begin(self, context: RunContext) -> None:
        # Choices between packed and plain scoring: a resumed run must keep them.
        self._option_scorer.choices, self._option_scorer.keep = dict(context.choices), context.keep_choice

    def ask(self, requests: Sequence[Request], missing: frozenset[int]) -> Events:
        """Answer the missing requests block by block; see ``Backend.ask``.

        Blocks limit how many tokens are in memory at once. In each block, options are scored before texts are
        generated.
        """
        ask = partial(ask_in_blocks, self._ask_block, self.block_limits)
        return ask_with_thinking(ask, requests, missing, self.thinking_tokens)

    def _ask_block(self, requests: Sequence[Request], missing: frozenset[int]) -> Events:
        if self.adapters is not None and self._slot is not None:
            # All requests of a block have the same adapter.
            self._slot.use(self.adapters.folder_of(requests[0].adapter))
        if self._two_parts is not None:
            self.settings["option_scoring"] = "plain"
            yield from self._two_parts.ask(requests, missing)
            return
        yield from self._option_scorer.ask(requests, missing)
        if any(isinstance(requests[index], GenerateRequest) for index in missing):
            from evaluators.backends.transformers.generation import generate, limits_for_texts

            limits = limits_for_texts(self.network, self.device, self.batch_tokens, self.wanted_tokens)
            if any(isinstance(request, GenerateRequest) and request.json_schema is not None for request in requests):
                # Tokens are not constrained to the schema, which only the prompt asks for; the result records this.
                self.settings["json_schema"] = "none"
            yield from generate(self.network, self.tokenizer, requests, missing, limits, settings=self.settings)

    @override
    def count_tokens(self, requests: Sequence[Request]) -> TokenCount:
        return self.tokenizer.count_tokens(requests)

    @property
    @override
    def context_tokens(self) -> int | None:
        return context_tokens_of(self.network)

    @override
    def needed_tokens(self, requests: Sequence[Request]) -> Sequence[int]:
        if self._two_parts is not None:
            return self._two_parts.needed_tokens(requests)
        return self.tokenizer.needed_tokens(requests)


OPTIONS = (
    *("name", "revision", "dtype", "tokenizer", "chat", "chat_template_args", "system_prompt", "thinking_tokens"),
    *("device", "batch_tokens", "scoring", "lora"),
)


def open_backend(model: str, options: BackendOptions) -> TransformersBackend:
    """Load a model and its tokenizer.

    Args:
        model: Id on the Hub, or path of a local folder.
        options: Revision, precision, device, tokenizer, chat template, way of scoring, token budget of a batch, and
            adapters. Options of other backends are refused.

    Raises:
        ConfigError: the model or an adapter cannot be found or loaded, or an option is unknown.
        MissingExtraError: torch, transformers or peft is not installed.
    """
    options.refuse_others("transformers", but=OPTIONS)
    if options.scoring not in (None, "packed", "plain"):
        raise ConfigError(f"--scoring {options.scoring} does not exist; have: packed, plain")
    chosen = chosen_adapters(options)
    if chosen != NO_ADAPTERS:
        from evaluators.backends.transformers.lora import EXTRA

        import_extra("peft", EXTRA)
    loaded = load_model(model, options)
    if chosen.of_contexts is not None:
        chosen.of_contexts.check_base(
            loaded.files.identity,
            tokenizer_sha256=loaded.other_tokenizer_sha256,
            chat_template_sha256=loaded.tokenizer.chat_template_sha256,
        )
    device = loaded.device
    kind = device.partition(":")[0]
    batch_tokens = _BATCH_TOKENS.get(kind, 8192)
    if kind == "cpu" and loaded.network.dtype.itemsize == 2:
        batch_tokens *= 2
    thinking_tokens = loaded.tokenizer.thinking_tokens(options.thinking_tokens)
    conditions = options.chat_conditions(thinking_tokens)
    identity = {
        "backend": "transformers",
        "model": loaded.files.identity,
        "precision": loaded.precision,
        # The kind of device, not its number: cuda:0 and cuda:1 give the same answers.
        "device": kind,
        "chat_template": loaded.tokenizer.chat_template_sha256,
        "tokenizer": loaded.other_tokenizer_sha256,
        # Users who request plain scoring must not get stored answers of packed scoring.
        "scoring": "plain" if options.scoring == "plain" else None,
        # Absent without an adapter, so that the identities of other models stay as they were.
        **({} if chosen.single is None else {"adapter": chosen.single.files.identity}),
        **({} if chosen.of_contexts is None else {"adapters": chosen.of_contexts.sha256}),
        **conditions,
    }
    arguments = {
        "tokenizer": None if options.tokenizer is None else local_name(options.tokenizer),
        "device": options.device,
        "batch-tokens": options.batch_tokens,
        "scoring": options.scoring,
        **chosen.arguments(),
        "chat": options.chat,
        **options.chat_arguments,
    }
    return TransformersBackend(
        network=loaded.network,
        tokenizer=loaded.tokenizer,
        device=device,
        scoring=options.scoring,
        arguments=opening_arguments(loaded.files, options, loaded.precision, arguments),
        batch_tokens=options.batch_tokens or batch_tokens,
        wanted_tokens=options.batch_tokens,
        settings=loaded.settings,
        chosen=chosen,
        thinking_tokens=thinking_tokens,
        capabilities=loaded.tokenizer.capabilities,
        model=identified_model(
            check_model_id(options.name or chosen.model_id(loaded.files)),
            identity,
            revision=chosen.revision(loaded.files),
            precision=loaded.precision,
            chat_template_sha256=loaded.tokenizer.chat_template_sha256,
            conditions=conditions,
        ),
    )
