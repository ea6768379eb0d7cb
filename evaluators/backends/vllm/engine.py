"""Runs one vLLM engine. All use of the library is in this file."""

from __future__ import annotations

import contextlib
import importlib.metadata
import logging
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from biasboard.ground.errors import ConfigError, RunError, import_extra
from evaluators.backend import GenerateRequest, Response, Runtime
from evaluators.models.model_files import SERVE_IT
from evaluators.models.option_trie import MOST_TOKEN_IDS, Node, TokenQuestion, split_wide

_CPU_BLOCK = 32
"""Number of tokens per block of the cache on a CPU, the minimum there. The default of 128 would leave most contexts out
of the prefix cache."""
# vLLM accepts only these ranks as the maximum for which it reserves memory.
_LORA_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
# Defaults; variables that the user has set take precedence. Without multiprocessing, the order of computation is always
# the same.
_ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
}
_ENDS = ("stop", "length")
"""Finish reasons of a text that ended by itself or at the largest number of tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """The settings of an engine, which are sent to worker processes."""

    model: str
    commit: str | None
    tokenizer: str
    tokenizer_commit: str | None
    dtype: str | None
    max_model_len: int | None = None
    tensor_parallel: int = 1
    gpu_memory: float | None = None
    lora_folder: str | None = None
    lora_rank: int = 0
    """Largest rank of the adapters; 0 if there are none."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Environment variables that assign devices or cores to a worker process."""


class Continuation(NamedTuple):
    """A request for a text."""

    request: GenerateRequest
    ids: tuple[int, ...]
    """Tokens of its prompt."""
    max_tokens: int
    """Largest number of tokens for which the context leaves room."""


class Work(NamedTuple):
    """Questions and continuations that are computed together."""

    questions: list[TokenQuestion]
    continuations: list[Continuation]
    adapter: str | None = None
    """Folder of the LoRA adapter; None for the one in the settings, if any."""


Done: TypeAlias = tuple[dict[Node, dict[int, float]], list[Response]]
"""The answers to a :class:`Work`: the log-probability of each token that may follow a node of the trie, in nats, and
the responses to the continuations, in their order."""


class ModelSpecs(NamedTuple):
    """The properties of a model and its devices that are known before the weights are loaded."""

    precision: str
    context_tokens: int
    """Maximum number of tokens in a text."""
    n_vocabulary: int
    device_type: str
    device_name: str
    n_devices: int
    """Number of GPUs; 1 on a CPU, which all engines share."""


def specs_of(settings: EngineSettings) -> ModelSpecs:
    """Check a model's configuration without loading the model.

    Raises:
        ConfigError: vLLM refuses the model or an option.
        MissingExtraError: vLLM is not installed.
    """
    _import_vllm("vllm")
    platform = _import_vllm("vllm.platforms").current_platform
    arguments = _arguments(settings, platform)
    with _refusals(settings.model):
        config = _import_vllm("vllm.engine.arg_utils").EngineArgs(**arguments).create_model_config()
        if config.runner_type != "generate":
            raise ConfigError(f"model '{settings.model}' is no causal language model for vLLM; give a decoder")
        return ModelSpecs(
            precision=str(config.dtype).removeprefix("torch."),
            context_tokens=config.max_model_len,
            n_vocabulary=config.get_vocab_size(),
            device_type=platform.device_type,
            device_name=platform.get_device_name() if not platform.is_cpu() else "cpu",
            n_devices=1 if platform.is_cpu() else int(platform.device_count()),
        )


class Engine:
    """A model that vLLM has loaded."""

    def __init__(self, settings: EngineSettings) -> None:
        """Load the model and compute once with it.

        Raises:
            ConfigError: vLLM refuses the model or an option, or cannot compute with the model.
        """
        os.environ.update(settings.environment)
        self._vllm = _import_vllm("vllm")
        platform = _import_vllm("vllm.platforms").current_platform
        arguments = _arguments(settings, platform)
        with _refusals(settings.model):
            self._llm = self._vllm.LLM(**arguments)
            self._default_adapter = settings.lora_folder
            self._loras: dict[str, Any] = {}
            self._lora: Any = None
            # vLLM refuses some models only when it computes, for example if the device has no kernel for their
            # attention.
            self._compute(Work([TokenQuestion((0,), (0,))], []))
        self.runtime = Runtime(
            device="cpu" if platform.is_cpu() else platform.get_device_name(),
            # The CPU build is a different distribution of the same module, so ask the module for its version.
            packages={"vllm": self._vllm.__version__}
            | {name: importlib.metadata.version(name) for name in ("torch", "transformers", "tokenizers")},
            settings={
                "option_scoring": "option_trie",
                "batch_invariant": os.environ.get("VLLM_BATCH_INVARIANT", "0"),
                "prefix_caching": str(arguments["enable_prefix_caching"]).lower(),
                "enforce_eager": str(arguments["enforce_eager"]).lower(),
                "tensor_parallel": str(settings.tensor_parallel),
            },
        )

    def compute(self, work: Work) -> Done:
        """Answer the questions and continue the texts of ``work``.

        Raises:
            RunError: the engine failed and cannot be used any more.
        """
        try:
            with _quiet():
                return self._compute(work)
        # A library, a driver or a kernel may raise any exception, after which the engine is unusable.
        except Exception as error:
            raise RunError(
                f"vLLM broke down: {_first_line(error)}; what was answered is kept. If memory ran out, give a "
                "smaller --max-model-len or --gpu-memory, or more --tensor-parallel"
            ) from error

    def _compute(self, work: Work) -> Done:
        # Entries of earlier batches would change the last bits of this one, and a resumed run has had other batches
        # before.
        self._llm.reset_prefix_cache()
        folder = work.adapter or self._default_adapter
        if folder is not None and folder not in self._loras:
            # The engine identifies an adapter by a number.
            number = len(self._loras) + 1
            request = _import_vllm("vllm.lora.request").LoRARequest
            self._loras[folder] = request(f"adapter{number}", number, folder)
        self._lora = None if folder is None else self._loras[folder]
        logprobs = self._score(work.questions) if work.questions else {}
        return logprobs, self._generate(work.continuations) if work.continuations else []

    # All versions that the extra allows, 0.29 and newer, support logprob_token_ids.
    def _score(self, questions: Sequence[TokenQuestion]) -> dict[Node, dict[int, float]]:
        narrow = split_wide(questions)
        parameters = {
            tokens: self._parameters(max_tokens=1, logprob_token_ids=list(tokens), detokenize=False)
            for tokens in {question.tokens for question in narrow}
        }
        outputs = self._ask(
            [question.node for question in narrow], [parameters[question.tokens] for question in narrow]
        )
        logprobs: dict[Node, dict[int, float]] = {}
        for (node, tokens), output in zip(narrow, outputs, strict=True):
            returned = output.outputs[0].logprobs[0]
            logprobs.setdefault(node, {}).update((token, returned[token].logprob) for token in tokens)
        return logprobs

    def _generate(self, continuations: Sequence[Continuation]) -> list[Response]:
        parameters = []
        for request, _, max_tokens in continuations:
            form = {}
            if request.json_schema is not None:
                structured = importlib.import_module("vllm.sampling_params").StructuredOutputsParams
                form["structured_outputs"] = structured(json=request.json_schema)
            parameters.append(
                self._parameters(
                    max_tokens=max_tokens,
                    temperature=request.temperature,
                    top_p=request.top_p,
                    stop=list(request.stop),
                    seed=request.sampling_seed,
                    # 0 returns the chosen token alone; without it vLLM sums nothing.
                    logprobs=0 if request.with_logprob else None,
                    **form,
                )
            )
        responses = []
        outputs = self._ask([asked.ids for asked in continuations], parameters)
        for asked, output in zip(continuations, outputs, strict=True):
            text = output.outputs[0]
            if text.finish_reason not in _ENDS:
                # For example if no token of the vocabulary can begin a text of the schema.
                reason = f"the engine ended the text by itself ({text.finish_reason})"
                responses.append(Response(status="failed", error=reason))
                continue
            responses.append(
                Response(
                    status="answered",
                    text=text.text,
                    n_prompt_tokens=len(asked.ids),
                    n_completion_tokens=len(text.token_ids),
                    finish_reason=text.finish_reason,
                    text_logprob=None if text.cumulative_logprob is None else min(text.cumulative_logprob, 0.0),
                )
            )
        return responses

    def _parameters(self, **chosen: Any) -> Any:
        return self._vllm.SamplingParams(**{"temperature": 0.0, "top_p": 1.0, **chosen})

    def _ask(self, prompts: Sequence[Node], parameters: Sequence[Any]) -> list[Any]:
        outputs: list[Any] = self._llm.generate(
            [self._vllm.TokensPrompt(prompt_token_ids=list(ids)) for ids in prompts],
            list(parameters),
            lora_request=self._lora,
            use_tqdm=False,
        )
        return outputs


def _import_vllm(module: str) -> Any:
    """Import a module of vLLM after setting the environment variables that vLLM reads only once."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    with _quiet():
        imported = import_extra(module, "vllm")
    # vLLM itself applies this level only later.
    logging.getLogger("vllm").setLevel(os.environ["VLLM_LOGGING_LEVEL"].upper())
    return imported


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Ignore the warnings of vLLM and its dependencies."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _arguments(settings: EngineSettings, platform: Any) -> dict[str, Any]:
    """Return the engine's arguments, including those that the model or a default of vLLM would otherwise decide."""
    arguments: dict[str, Any] = {
        "model": settings.model,
        "revision": settings.commit,
        "tokenizer": settings.tokenizer,
        "tokenizer_revision": settings.tokenizer_commit,
        "dtype": settings.dtype or "auto",
        "max_model_len": settings.max_model_len,
        "tensor_parallel_size": settings.tensor_parallel,
        "seed": 0,
        # Sampling parameters come from the request, not from the model's generation config; its end tokens still apply.
        "generation_config": "vllm",
        "logprobs_mode": "raw_logprobs",
        "max_logprobs": MOST_TOKEN_IDS,
        # This cache serves the trie. Log-probabilities of prompt tokens would score an option in one request but cannot
        # use it: forcing the cache on for such requests crashed or returned stale rows.
        "enable_prefix_caching": True,
        "enforce_eager": platform.is_cpu(),
        "use_tqdm_on_load": False,
        "disable_log_stats": True,
    }
    if platform.is_cpu():
        arguments["block_size"] = _CPU_BLOCK
        arguments["dtype"] = settings.dtype or "float32"
        if settings.gpu_memory is None:
            os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "2")  # In GiB.
    if settings.gpu_memory is not None:
        arguments["gpu_memory_utilization"] = settings.gpu_memory
    if settings.lora_rank:
        if settings.lora_rank > _LORA_RANKS[-1]:
            raise ConfigError(
                f"LoRA rank {settings.lora_rank} is more than vLLM's {_LORA_RANKS[-1]}; merge the adapter"
            )
        rank = next(rank for rank in _LORA_RANKS if rank >= settings.lora_rank)
        # One at a time, because all requests of a Work have the same adapter.
        arguments.update(enable_lora=True, max_loras=1, max_lora_rank=rank)
    return arguments


@contextlib.contextmanager
def _refusals(model: str) -> Iterator[None]:
    """Turn any exception of vLLM into a ConfigError with a one-line message."""
    try:
        with _quiet():
            yield
    except ConfigError:
        raise
    # vLLM may raise any exception. Before the first request, it concerns the model or the options.
    except Exception as error:
        raise ConfigError(f"vLLM refuses model '{model}': {_first_line(error)}; {_remedy(str(error))}") from error


def _remedy(reason: str) -> str:
    lower = reason.lower()
    # The CPU build has kernels for heads of size 32 and more; tinystories-656k has heads of size 16.
    if "head_dim" in lower or "head size" in lower or "head_size" in lower:
        return "its attention heads have a size that this build of vLLM has no kernel for; use --backend transformers"
    if "custom code" in lower:
        return SERVE_IT
    if "max_model_len" in lower:
        return "give another --max-model-len"
    if "memory" in lower:
        return "give a smaller --max-model-len, another --gpu-memory, or more GPUs with --tensor-parallel"
    return "check the model and the options, or use --backend transformers"


def _first_line(error: BaseException) -> str:
    """Return the message of an error in one line, without the frame that pydantic adds."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if len(lines) > 1 and "validation error" in lines[0]:
        lines = [lines[1].removeprefix("Value error, ").partition(" [type=")[0], *lines[2:]]
    message = lines[0] if lines else type(error).__name__
    return message[:300].rstrip(".")
