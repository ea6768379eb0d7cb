"""Calls any causal language model through vLLM, with an engine in this process or several in processes of their own.

Prompts are sent as token ids. Options are scored edge by edge along the trie of all options: every inner node is one
request for the log-probabilities of the tokens that follow it, so that the engine can use its prefix cache.
Log-probabilities are those of the model, at temperature 1 and in float32.

The model is loaded at the first request; before that, only its configuration and tokenizer are.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from typing_extensions import override

from biasboard.ground.errors import ConfigError
from evaluators.adapter_set import AdapterSet
from evaluators.backend import (
    OF_LANGUAGE_MODELS,
    Answers,
    Backend,
    BlockLimits,
    Capability,
    ChoiceRequest,
    Events,
    GenerateRequest,
    Request,
    Response,
    Runtime,
    Sent,
    TokenCount,
    ask_with_thinking,
    check_model_id,
    identified_model,
    plan_blocks,
)
from evaluators.backend_options import BackendOptions
from evaluators.backends.vllm.engine import Continuation, Done, EngineSettings, ModelSpecs, Work, specs_of
from evaluators.backends.vllm.pool import InProcess, Workers, environments_of
from evaluators.models.model_files import chosen_adapters, find_files, find_model, opening_arguments
from evaluators.models.option_trie import end_logprobs, option_logprobs, questions
from evaluators.models.tokenizer import ModelTokenizer, TokenRows, load_tokenizer, unknown_token
from schemas.documents.result import Model

OPTIONS = (
    *("name", "revision", "dtype", "tokenizer", "chat", "tensor_parallel", "data_parallel", "max_model_len"),
    *("gpu_memory", "lora", "end_logprobs", "chat_template_args", "system_prompt", "thinking_tokens"),
)
_CHUNK_TEXTS = 4096


_Encoded: TypeAlias = list[TokenRows | Continuation | str]
"""Tokens to score or to continue for each request of a chunk, or an error message if it cannot be computed."""


@dataclass
class VllmBackend(Backend):
    """A causal language model that vLLM has loaded, or loads with the first request."""

    settings: EngineSettings
    environments: Sequence[dict[str, str]]
    """Environment variables of each worker process; empty for an engine in this one."""
    tokenizer: ModelTokenizer
    specs: ModelSpecs
    model: Model
    thinking_tokens: int = 0
    """Tokens that each text may begin with before its answer."""
    with_end: bool = False
    """True if the end token is scored after every option, at the cost of about one more request per option."""
    arguments: tuple[str, ...] = ()
    capabilities: frozenset[Capability] = OF_LANGUAGE_MODELS
    chunk_texts: int = _CHUNK_TEXTS
    """Maximum number of options and generations that are computed together."""
    adapters: AdapterSet | None = None
    """Adapters, one for each context; None if the model answers alone or with one adapter for everything."""
    loaded: InProcess | Workers | None = field(default=None, repr=False)
    """Engines of the model; None until it is loaded."""

    @property
    def runtime(self) -> Runtime:
        """The device, versions and settings of the engines; only the device before the first request."""
        runtime = Runtime(device=self.specs.device_name) if self.loaded is None else self.loaded.runtime
        return replace(runtime, obstacles={**runtime.obstacles, **self.tokenizer.obstacles})

    def pool(self) -> InProcess | Workers:
        """Return the engines, and load the model on the first call.

        Raises:
            ConfigError: vLLM refuses the model or an option.
        """
        if self.loaded is None:
            self.loaded = Workers(self.settings, self.environments) if self.environments else InProcess(self.settings)
        return self.loaded

    @property
    @override
    def block_limits(self) -> BlockLimits:
        return BlockLimits(self.chunk_texts, n_characters=4_000_000)

    def ask(self, requests: Sequence[Request], missing: frozenset[int]) -> Events:
        """Answer the missing requests chunk by chunk; see ``Backend.ask``."""
        return ask_with_thinking(self._ask, requests, missing, self.thinking_tokens)

    def _ask(self, requests: Sequence[Request], missing: frozenset[int]) -> Events:
        # Planned by all requests, answered or not, so that a resumed run computes the same together.
        chunks = [
            chunk
            for whole in plan_blocks(requests, self.block_limits)
            if (chunk := [index for index in whole if index in missing])
        ]
        if not chunks:
            return
        # Loading the model, which takes minutes, is no time of an answer.
        pool = self.pool()
        start = time.perf_counter()
        for (indices, encoded), done in pool.run(self._prepared(requests, chunks)):
            if done is None:
                yield Sent(len(indices))
                continue
            answers = dict(zip(indices, self._responses(encoded, done), strict=True))
            yield Answers(answers, time.perf_counter() - start)
            start = time.perf_counter()

    def _prepared(
        self, requests: Sequence[Request], chunks: Sequence[list[int]]
    ) -> Iterator[tuple[tuple[list[int], _Encoded], Work]]:
        """Yield chunks, encoded and with their work; each is prepared while the one before it is computed."""
        with ThreadPoolExecutor(max_workers=1) as thread:
            ahead = thread.submit(self._prepare, requests, chunks[0])
            for chunk in chunks[1:]:
                ready, ahead = ahead, thread.submit(self._prepare, requests, chunk)
                yield ready.result()
            yield ahead.result()

    @override
    def count_tokens(self, requests: Sequence[Request]) -> TokenCount:
        return self.tokenizer.count_tokens(requests)

    @property
    @override
    def context_tokens(self) -> int:
        return self.specs.context_tokens

    @override
    def needed_tokens(self, requests: Sequence[Request]) -> Sequence[int]:
        return self.tokenizer.needed_tokens(requests)

    def _prepare(self, requests: Sequence[Request], chunk: list[int]) -> tuple[tuple[list[int], _Encoded], Work]:
        asked = [requests[index] for index in chunk]
        choices = [request for request in asked if isinstance(request, ChoiceRequest)]
        scored = (
            rows if isinstance(rows, str) else unknown_token(rows.ids, self.specs.n_vocabulary) or rows
            for rows in self.tokenizer.rows_of_all(choices, self.specs.context_tokens)
        )
        encoded: _Encoded = [
            self._continuation(request) if isinstance(request, GenerateRequest) else next(scored) for request in asked
        ]
        rows = [request for request in encoded if isinstance(request, TokenRows)]
        nodes = questions(
            rows, end_id=self.tokenizer.end_id if self.with_end else None, context_tokens=self.specs.context_tokens
        )
        # All requests of a chunk have the same adapter.
        folder = None if self.adapters is None else str(self.adapters.folder_of(asked[0].adapter))
        continuations = [request for request in encoded if isinstance(request, Continuation)]
        return (chunk, encoded), Work(nodes, continuations, folder)

    def _continuation(self, request: GenerateRequest) -> Continuation | str:
        """Return the continuation to generate for a request, or an error message if there can be none."""
        ids = tuple(self.tokenizer.context_ids(request.prompt))
        if not ids:
            return "the prompt has no tokens, and the tokenizer adds none at the start"
        n_left = self.specs.context_tokens - len(ids)
        if n_left < 1:
            limit = self.specs.context_tokens
            return f"the prompt takes {len(ids)} tokens and leaves none of the model's {limit} for an answer"
        return unknown_token([ids], self.specs.n_vocabulary) or Continuation(
            request, ids, min(request.max_tokens, n_left)
        )

    def _responses(self, encoded: _Encoded, done: Done) -> Iterator[Response]:
        edges, generated = done[0], iter(done[1])
        for asked in encoded:
            if isinstance(asked, str):
                yield Response(status="failed", error=asked)
            elif isinstance(asked, Continuation):
                yield next(generated)
            else:
                logprobs = option_logprobs(asked, edges)
                ends: tuple[float | None, ...] = (None,) * len(logprobs)
                if self.with_end and self.tokenizer.end_id is not None:
                    ends = end_logprobs(asked, edges, self.tokenizer.end_id)
                yield asked.response(logprobs, ends, precision=self.model.precision)


def open_backend(model: str, options: BackendOptions) -> VllmBackend:
    """Check a model and its devices, without loading the model.

    Raises:
        ConfigError: the model or the adapter cannot be found, vLLM refuses the model, or an option cannot be satisfied.
        MissingExtraError: vLLM is not installed.
    """
    options.refuse_others("vllm", but=OPTIONS)
    options.check_dtype()
    if options.gpu_memory is not None and not 0 < options.gpu_memory <= 1:
        raise ConfigError(f"--gpu-memory {options.gpu_memory:g} is no share; give a number above 0, at most 1")
    files = find_model(model, options.revision, own_tokenizer=options.tokenizer is None)
    chosen = chosen_adapters(options)
    tokenizer_files = (
        files
        if options.tokenizer is None
        else find_files(options.tokenizer, None, needed="tokenizer_config.json", what="tokenizer")
    )
    settings = EngineSettings(
        model=files.location,
        commit=files.commit,
        tokenizer=tokenizer_files.location,
        tokenizer_commit=tokenizer_files.commit,
        dtype=options.dtype,
        max_model_len=options.max_model_len,
        tensor_parallel=options.tensor_parallel or 1,
        gpu_memory=options.gpu_memory,
        lora_folder=None if chosen.single is None else chosen.single.folder,
        lora_rank=chosen.rank,
    )
    specs = specs_of(settings)
    environments = environments_of(specs, options)
    tokenizer = load_tokenizer(tokenizer_files.location, tokenizer_files.commit, **options.chat_settings)
    thinking_tokens = tokenizer.thinking_tokens(options.thinking_tokens)
    conditions = options.chat_conditions(thinking_tokens)
    if chosen.of_contexts is not None:
        chosen.of_contexts.check_base(
            files.identity,
            tokenizer_sha256=None if options.tokenizer is None else tokenizer.sha256,
            chat_template_sha256=tokenizer.chat_template_sha256,
        )
    identity = {
        "backend": "vllm",
        "model": files.identity,
        "adapter": None if chosen.single is None else chosen.single.files.identity,
        "tokenizer": None if options.tokenizer is None else tokenizer_files.identity,
        "chat_template_sha256": tokenizer.chat_template_sha256,
        "precision": specs.precision,
        "device": specs.device_type,
        "end_logprobs": "true" if options.end_logprobs else None,
        # Absent without adapters, so that the identities of other models stay as they were.
        **({} if chosen.of_contexts is None else {"adapters": chosen.of_contexts.sha256}),
        **conditions,
    }
    arguments = {
        "tokenizer": None if options.tokenizer is None else tokenizer_files.public_name,
        **chosen.arguments(),
        "max-model-len": options.max_model_len,
        "tensor-parallel": options.tensor_parallel,
        "data-parallel": options.data_parallel,
        "chat": options.chat,
        "end-logprobs": options.end_logprobs,
        **options.chat_arguments,
    }
    return VllmBackend(
        settings=settings,
        environments=environments,
        tokenizer=tokenizer,
        specs=specs,
        thinking_tokens=thinking_tokens,
        capabilities=tokenizer.capabilities,
        with_end=bool(options.end_logprobs),
        chunk_texts=512 if specs.device_type == "cpu" else _CHUNK_TEXTS,
        arguments=opening_arguments(files, options, specs.precision, arguments),
        adapters=chosen.of_contexts,
        model=identified_model(
            check_model_id(options.name or chosen.model_id(files)),
            identity,
            revision=chosen.revision(files),
            precision=specs.precision,
            chat_template_sha256=tokenizer.chat_template_sha256,
            conditions=conditions,
        ),
    )
