"""Calls any causal language model of the Hub or of a local folder through the library transformers.

The backend gives exact log-probabilities of options, and generates texts. Options are packed, several to a row, if that
gives the same log-probabilities as plain scoring with one row per option. Both are compared on the first requests of
every run, and the settings of the result name the one that was used. Log-probabilities are computed in float32,
whatever the precision of the model.
"""

from __future__ import annotations

import importlib.metadata
import json
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from typing_extensions import override

from biasboard.ground import strict_json
from biasboard.ground.errors import ConfigError, import_extra
from evaluators.adapters import AdapterSet
from evaluators.backend import (
    Answers,
    Backend,
    BlockLimits,
    Capability,
    ChoiceRequest,
    Events,
    GenerateRequest,
    Request,
    Response,
    RunContext,
    Runtime,
    Sent,
    TokenCount,
    model_identity,
)
from evaluators.backend_options import BackendOptions
from evaluators.backends.transformers.budget import room_for_texts
from evaluators.backends.transformers.compare import difference
from evaluators.backends.transformers.generate import OUT_OF_MEMORY, generate
from evaluators.backends.transformers.load import DTYPES, Loaded, device_name, load_model, room_of, unknown_token
from evaluators.backends.transformers.lora import AdapterSlot, check_installed
from evaluators.backends.transformers.packed import PackedScorer, obstacle
from evaluators.backends.transformers.plain import Batch, PlainScorer
from evaluators.models.adapter_files import NO_ADAPTERS, ChosenAdapters, chosen_adapters
from evaluators.models.blocks import ask_in_blocks
from evaluators.models.ids import check_model_id
from evaluators.models.tokenizer import ModelTokenizer, Rows, local_name
from schemas.documents.result import Model

if TYPE_CHECKING:
    from transformers import PreTrainedModel

logger = logging.getLogger(__name__)


_BATCH_TOKENS = {"cpu": 1024, "mps": 8192, "cuda": 32768}
"""Number of tokens per batch, by type of device. On a CPU, the activations of so many float32 tokens stay in its cache;
in a precision of half the size, twice as many do."""
_LOGITS = {"cpu": 2**25, "mps": 2**26, "cuda": 2**28}
"""Maximum number of logits computed per batch in packed scoring, by type of device."""
_BLOCK = BlockLimits(n_texts=16384, n_characters=32_000_000)


class _Choice(NamedTuple):
    """A choice between packed and plain scoring for a block of requests."""

    longest: int
    """Number of tokens in the longest text among them."""
    left_out: str | None
    """Reason why packed scoring is left out; None if it is used."""


@dataclass
class TransformersBackend(Backend):
    """A causal language model loaded with transformers."""

    network: PreTrainedModel
    tokenizer: ModelTokenizer
    device: str
    batch_tokens: int
    """Maximum number of tokens in a batch of options."""
    model: Model
    wanted_tokens: int | None = None
    """Maximum number of tokens side by side that the user chose; None to derive that of texts from the free memory."""
    scoring: str | None = None
    """Way to score options, ``packed`` or ``plain``; None for packed if it gives the same values as plain."""
    arguments: tuple[str, ...] = ()
    capabilities: frozenset[Capability] = frozenset({"option_logprobs", "generation"})
    settings: dict[str, str] = field(default_factory=dict)
    block_limits: BlockLimits = _BLOCK
    """Limits on the requests that are tokenised and planned at a time."""
    chosen: ChosenAdapters = NO_ADAPTERS
    """Adapters with which the model answers."""
    _choices: dict[str, str] = field(default_factory=dict, repr=False)
    """Choices between packed and plain scoring in this run: JSON of a :class:`_Choice`, by the hash of the requests."""
    _keep: Callable[[str, str], None] | None = field(default=None, repr=False)
    """Function that keeps such a choice for the time after an interruption; None to forget it."""
    _slot: AdapterSlot = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._slot = AdapterSlot(self.network)
        if self.chosen.single is not None:
            self._slot.use(Path(self.chosen.single.folder))

    @property
    def adapters(self) -> AdapterSet | None:
        """The adapters, one for each context; None if the model answers alone or with one for everything."""
        return self.chosen.of_contexts

    @property
    def runtime(self) -> Runtime:
        """The device, the versions of the libraries, and settings such as how options were scored."""
        names = ("torch", "transformers", "tokenizers", *(("peft",) if self.chosen.rank else ()))
        packages = {name: importlib.metadata.version(name) for name in names}
        return Runtime(device=device_name(self.device), packages=packages, settings=dict(self.settings))

    @override
    def begin(self, context: RunContext) -> None:
        # Between packed and plain scoring: a run that goes on must choose alike.
        self._choices, self._keep = dict(context.choices), context.keep_choice

    def ask(self, requests: Sequence[Request], missing: frozenset[int]) -> Events:
        """Answer the missing requests block by block; see ``Backend.ask``.

        With blocks, the tokens of a large run are not all in memory at once. In each block, options are scored before
        texts are generated.
        """
        return ask_in_blocks(self._ask_block, self.block_limits, requests, missing)

    def _ask_block(self, requests: Sequence[Request], missing: frozenset[int]) -> Events:
        if self.adapters is not None:
            # All requests of a block have the same one.
            self._slot.use(self.adapters.folder_of(requests[0].adapter))
        choices = [index for index, request in enumerate(requests) if isinstance(request, ChoiceRequest)]
        if choices:
            yield from self._ask_choices(requests, choices, missing)
        if any(isinstance(requests[index], GenerateRequest) for index in missing):
            room = room_for_texts(self.network, self.device, self.batch_tokens, self.wanted_tokens)
            if any(isinstance(request, GenerateRequest) and request.json_schema is not None for request in requests):
                self.settings["json_schema"] = "none"
            yield from generate(self.network, self.tokenizer, requests, missing, room, settings=self.settings)

    def count_tokens(self, requests: Sequence[Request]) -> TokenCount:
        """Return the number of tokens in the prompts, and the maximum number that may be generated."""
        return self.tokenizer.count_tokens(requests)

    @property
    def context_tokens(self) -> int | None:
        """The largest number of tokens that the model takes, prompt and answer together."""
        return room_of(self.network)

    def needed_tokens(self, requests: Sequence[Request]) -> Sequence[int]:
        """Return the least number of tokens that each request needs."""
        return self.tokenizer.needed_tokens(requests)

    def _ask_choices(self, requests: Sequence[Request], choices: Sequence[int], missing: frozenset[int]) -> Events:
        asked = [request for request in requests if isinstance(request, ChoiceRequest)]
        encoded: list[Rows | None] = [None] * len(requests)
        unfit: dict[int, Response] = {}
        for index, rows in zip(choices, self.tokenizer.rows_of_all(asked, room_of(self.network)), strict=True):
            reason = rows if isinstance(rows, str) else unknown_token(self.network, rows.ids)
            if isinstance(rows, Rows) and reason is None:
                encoded[index] = rows
            elif index in missing:
                unfit[index] = Response(status="failed", error=reason)
        if unfit:
            yield Answers(unfit, 0.0)
        scorer, plan = self._planned(encoded, [f"{request.sha256}{request.adapter or ''}" for request in asked])
        for batch in plan:
            # A batch is stored as a whole. If only a part of it is missing, that part failed before and is asked again.
            trees = [tuple(index for index in tree if index in missing) for tree in batch.rows]
            left = Batch(tuple(tree for tree in trees if tree), batch.n_prefix)
            if left.rows:
                yield Sent(sum(map(len, left.rows)))
                start = time.perf_counter()
                responses = self._answer(scorer, left, encoded)
                yield Answers(responses, time.perf_counter() - start)

    def _answer(
        self, scorer: PackedScorer | PlainScorer, batch: Batch, encoded: Sequence[Rows | None]
    ) -> dict[int, Response]:
        """Score one batch. If memory runs out, score its halves, down to single requests."""
        torch = import_extra("torch", "hf")
        trees = [[rows for index in tree if (rows := encoded[index]) is not None] for tree in batch.rows]
        try:
            scores = scorer.score(trees, batch.n_prefix)
        except torch.OutOfMemoryError:
            indices = [index for tree in batch.rows for index in tree]
            if len(indices) == 1:
                return {indices[0]: Response(status="failed", error=OUT_OF_MEMORY)}
            logger.warning("out of memory with %d requests in a batch; halving it", len(indices))
        else:
            asked = ((index, rows) for tree in batch.rows for index in tree if (rows := encoded[index]) is not None)
            return {
                index: rows.response(
                    [score.logprob for score in of_options],
                    [score.end_logprob for score in of_options],
                    precision=self.model.precision,
                )
                for (index, rows), of_options in zip(asked, scores, strict=True)
            }
        # Retry outside the except block, where the failed pass no longer holds its memory.
        parts = batch.rows if len(batch.rows) > 1 else tuple((index,) for index in batch.rows[0])
        middle = len(parts) // 2
        halves = [Batch(parts[:middle], batch.n_prefix), Batch(parts[middle:], batch.n_prefix)]
        return {index: answer for half in halves for index, answer in self._answer(scorer, half, encoded).items()}

    def _planned(
        self, encoded: Sequence[Rows | None], hashes: Sequence[str]
    ) -> tuple[PackedScorer | PlainScorer, list[Batch]]:
        """Choose how options are scored, note it in the settings, and plan the batches.

        Packed and plain scoring are compared on the first requests, and again when texts get longer. A run that was
        stopped goes on with what it chose.

        Args:
            encoded: Token ids of each request; None for a request that is not scored.
            hashes: Hash of each request, with the name of its adapter.

        Returns:
            The scorer and its batches.

        Raises:
            ConfigError: ``--scoring packed`` was asked for and cannot be used.
        """
        plain = PlainScorer(self.network, self.tokenizer.end_id, self.batch_tokens)
        self.settings["option_scoring"] = "plain"
        if self.scoring == "plain":
            return plain, plain.plan(encoded)
        vocabulary = self.network.config.get_text_config().vocab_size
        places = max(64, _LOGITS.get(self.device.partition(":")[0], 2**26) // vocabulary)
        packed = PackedScorer(self.network, self.tokenizer.end_id, self.batch_tokens, places)
        longest = max((len(ids) for rows in encoded if rows is not None for ids in rows.ids), default=0)
        reason = obstacle(self.network, longest)
        plan = packed.plan(encoded) if reason is None else []
        if plan:
            reason = self._chosen(hashes, longest, partial(difference, packed, plain, encoded, plan))
        if reason is None:
            self.settings["option_scoring"] = "packed"
            self.settings.pop("packed_scoring_left_out", None)
            return packed, plan
        if self.scoring == "packed":
            raise ConfigError(f"--scoring packed cannot be used: {reason}; leave it out")
        self.settings["packed_scoring_left_out"] = reason
        return plain, plain.plan(encoded)

    def _chosen(self, hashes: Sequence[str], longest: int, compare: Callable[[str], str | None]) -> str | None:
        """Return why packed scoring is left out for a block of requests; None if it is used.

        Args:
            hashes: Hashes of the requests.
            longest: Number of tokens in the longest text among them.
            compare: Function that compares packed and plain scoring on the requests in a precision.
        """
        # Another device or library may compute otherwise, so that a choice made with it says nothing here.
        key = strict_json.sha256([self.device, dict(self.runtime.packages), list(hashes)])
        if key not in self._choices:
            earlier = [_Choice(**json.loads(text)) for text in self._choices.values()]
            packs_up_to = max((choice.longest for choice in earlier if choice.left_out is None), default=0)
            reason = compare(str(self.model.precision)) if longest > packs_up_to else None
            self._choices[key] = json.dumps({"longest": longest, "left_out": reason})
            if self._keep is not None:
                self._keep(key, self._choices[key])
        return _Choice(**json.loads(self._choices[key])).left_out


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
    options.refuse_others("transformers", but=_USED)
    if options.scoring not in (None, "packed", "plain"):
        raise ConfigError(f"--scoring {options.scoring} does not exist; have: packed, plain")
    chosen = chosen_adapters(options)
    if chosen.rank:
        check_installed()
    loaded = load_model(model, options)
    chosen.check_base(
        loaded.files,
        tokenizer_sha256=loaded.other_tokenizer_sha256,
        chat_template_sha256=loaded.tokenizer.chat_template_sha256,
    )
    device = loaded.device
    identity = _identity(loaded, options, chosen)
    return TransformersBackend(
        network=loaded.network,
        tokenizer=loaded.tokenizer,
        device=device,
        scoring=options.scoring,
        arguments=_arguments(options, loaded, chosen),
        batch_tokens=options.batch_tokens or _batch_tokens(device, loaded.network.dtype.itemsize),
        wanted_tokens=options.batch_tokens,
        settings={"threads": str(loaded.n_threads)} if device == "cpu" else {},
        chosen=chosen,
        model=Model(
            id=check_model_id(options.name or chosen.model_id(loaded.files)),
            revision=chosen.revision(loaded.files),
            backend="transformers",
            precision=loaded.precision,
            chat_template_sha256=loaded.tokenizer.chat_template_sha256,
            endpoint="local",
            identity_sha256=model_identity(identity),
            identity=identity,
        ),
    )


def _identity(loaded: Loaded, options: BackendOptions, chosen: ChosenAdapters) -> dict[str, str | None]:
    """Return everything about the model that can change an answer."""
    identity = {
        "backend": "transformers",
        "model": loaded.files.identity,
        "precision": loaded.precision,
        "device": loaded.device.partition(":")[0],
        "chat_template": loaded.tokenizer.chat_template_sha256,
        "tokenizer": loaded.other_tokenizer_sha256,
        # A user who asks for plain scoring must not get stored answers that packed scoring found.
        "scoring": "plain" if options.scoring == "plain" else None,
    }
    # Left out without an adapter, so that the identities of models alone stay as they were.
    if chosen.single is not None:
        identity["adapter"] = chosen.single.files.identity
    if chosen.of_contexts is not None:
        identity["adapters"] = chosen.of_contexts.sha256
    return identity


def _batch_tokens(device: str, itemsize: int) -> int:
    kind = device.partition(":")[0]
    most = _BATCH_TOKENS.get(kind, 8192)
    return 2 * most if kind == "cpu" and itemsize == 2 else most


_USED = ("name", "revision", "dtype", "tokenizer", "chat", "device", "batch_tokens", "scoring", "lora")


def _arguments(options: BackendOptions, loaded: Loaded, chosen: ChosenAdapters) -> tuple[str, ...]:
    """Return the options that open the same model again. A local folder is given by its name, without its path."""
    known = {
        "model": loaded.files.public_name,
        "name": options.name,
        "revision": loaded.files.commit,
        "dtype": loaded.precision if loaded.precision in DTYPES else None,
        "tokenizer": None if options.tokenizer is None else local_name(options.tokenizer),
        "device": options.device,
        "batch-tokens": options.batch_tokens,
        "scoring": options.scoring,
        **chosen.arguments(),
    }
    chat = ("--chat",) if options.chat else ()
    return (*(f"--{name} {value}" for name, value in known.items() if value is not None), *chat)
