"""The engines that are compared, each behind one function of requests.

lm-eval is called as its own command calls it: instances of one option each, a batch size, nothing of it replaced.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from evaluators.backend import Answers, Backend, ChoiceRequest, open_backend
from evaluators.backend_options import BackendOptions
from evaluators.models.tokenizer import load_tokenizer

Precision: TypeAlias = Literal["float32", "bfloat16", "float64"]
Scores: TypeAlias = tuple[float, ...]
"""Log-probability of every option of a request."""

LM_EVAL_BATCH = 32
MAX_MODEL_LEN = 512


class SplitIds(NamedTuple):
    """An option as an engine sees it."""

    context: list[int]
    option: list[int]


class Engine(Protocol):
    """A loaded model."""

    def scores(self, requests: Sequence[ChoiceRequest]) -> list[Scores]:
        """Log-probabilities of the options."""

    def token_ids(self, requests: Sequence[ChoiceRequest]) -> list[list[SplitIds]]:
        """What the engine makes of each option."""

    def settings(self) -> str:
        """How it computed, as far as it says; known after the first scores."""


class LmEval:
    """A language model class of lm-eval."""

    def __init__(self, model: Any, settings: str) -> None:
        self._model = model
        self._settings = settings

    def scores(self, requests: Sequence[ChoiceRequest]) -> list[Scores]:
        from lm_eval.api.instance import Instance

        pairs = [(request.prompt, option) for request in requests for option in request.options]
        instances = [
            Instance(request_type="loglikelihood", doc={}, arguments=pair, idx=index)
            for index, pair in enumerate(pairs)
        ]
        values = iter(self._model.loglikelihood(instances, disable_tqdm=True))
        return [tuple(float(next(values)[0]) for _ in request.options) for request in requests]

    def token_ids(self, requests: Sequence[ChoiceRequest]) -> list[list[SplitIds]]:
        return [
            [SplitIds(*self._model._encode_pair(request.prompt, option)) for option in request.options]
            for request in requests
        ]

    def settings(self) -> str:
        return self._settings


class Biasboard:
    """A backend of this project."""

    def __init__(self, backend: Backend, folder: Path) -> None:
        self._backend = backend
        self._tokenizer = load_tokenizer(str(folder))
        self._seconds_before = 0.0

    def scores(self, requests: Sequence[ChoiceRequest]) -> list[Scores]:
        found: dict[int, Scores] = {}
        start = time.perf_counter()
        self._seconds_before = 0.0
        for event in self._backend.ask(requests, frozenset(range(len(requests)))):
            self._seconds_before = self._seconds_before or time.perf_counter() - start
            if not isinstance(event, Answers):
                continue
            for place, response in event.responses.items():
                values = [value for value in response.option_logprobs if value is not None]
                if response.status != "answered" or len(values) != len(requests[place].options):
                    raise RuntimeError(f"request {place} has no answer: {response}")
                found[place] = tuple(values)
        return [found[place] for place in range(len(requests))]

    def token_ids(self, requests: Sequence[ChoiceRequest]) -> list[list[SplitIds]]:
        every = []
        for request in requests:
            rows = self._tokenizer.rows(request)
            if isinstance(rows, str):
                raise RuntimeError(f"a request has no token ids: {rows}")
            every.append([SplitIds(ids[: rows.n_context], ids[rows.n_context :]) for ids in rows.ids])
        return every

    def settings(self) -> str:
        chosen = [f"{name}={value}" for name, value in sorted(self._backend.runtime.settings.items())]
        return ", ".join([*chosen, f"first batch after {self._seconds_before:.1f} s"])


class PlainLoop:
    """One forward pass per option, as the definition reads. Shares no code with the backends."""

    def __init__(self, folder: Path, precision: Precision) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self._tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        network: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, precision))
        self._network = network.eval()

    def scores(self, requests: Sequence[ChoiceRequest]) -> list[Scores]:
        return [tuple(map(self._logprob, options)) for options in self.token_ids(requests)]

    def _logprob(self, option: SplitIds) -> float:
        import torch

        ids = torch.tensor([option.context + option.option])
        with torch.inference_mode():
            logits = self._network(ids).logits[0]
            # In bfloat16 the sum would be rounded, in float64 nothing may be lost.
            logprobs = torch.log_softmax(logits.float() if logits.dtype == torch.bfloat16 else logits, dim=-1)
        first = len(option.context)
        return sum(float(logprobs[first + place - 1, token]) for place, token in enumerate(option.option))

    def token_ids(self, requests: Sequence[ChoiceRequest]) -> list[list[SplitIds]]:
        every = []
        for request in requests:
            n_context = len(self._tokenizer(request.prompt)["input_ids"])
            whole = [self._tokenizer(request.prompt + option)["input_ids"] for option in request.options]
            every.append([SplitIds(ids[:n_context], ids[n_context:]) for ids in whole])
        return every

    def settings(self) -> str:
        return "one option at a time"


def _lm_eval_hf(folder: Path, precision: Precision) -> Engine:
    from lm_eval.models.huggingface import HFLM

    model = HFLM(pretrained=str(folder), device="cpu", dtype=precision, batch_size=LM_EVAL_BATCH)
    return LmEval(model, f"batch_size={LM_EVAL_BATCH}")


def _lm_eval_vllm(folder: Path, precision: Precision) -> Engine:
    _name_vllm()
    from lm_eval.models.vllm_causallms import VLLM

    # Not compiled, as the backend of this project on a CPU; in batches as large as they can be.
    model = VLLM(
        pretrained=str(folder),
        dtype=precision,
        max_model_len=MAX_MODEL_LEN,
        batch_size="auto",
        enforce_eager=True,
    )
    return LmEval(model, "batch_size=auto, prompt_logprobs")


def _name_vllm() -> None:
    """Let lm-eval find the version of a vLLM whose distribution has another name, as that of the CPU build."""
    try:
        importlib.metadata.version("vllm")
    except importlib.metadata.PackageNotFoundError:
        # First, as it finds out by its distribution's name what it was built for.
        version = importlib.import_module("vllm").__version__
        named = Path(os.environ["BIASBOARD_BENCH_FOLDER"]) / "named-vllm"
        metadata = named / f"vllm-{version}.dist-info" / "METADATA"
        metadata.parent.mkdir(parents=True, exist_ok=True)
        metadata.write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n", encoding="utf-8")
        sys.path.append(str(named))


def _backend(name: str, **options: Any) -> Callable[[Path, Precision], Engine]:
    def opened(folder: Path, precision: Precision) -> Engine:
        chosen = BackendOptions(dtype=precision, **options)
        return Biasboard(open_backend(name, str(folder), chosen), folder)

    return opened


ENGINES: dict[str, Callable[[Path, Precision], Engine]] = {
    "lm-eval hf": _lm_eval_hf,
    "lm-eval vllm": _lm_eval_vllm,
    "transformers packed": _backend("transformers", device="cpu", scoring="packed"),
    "transformers plain": _backend("transformers", device="cpu", scoring="plain"),
    "vllm": _backend("vllm", max_model_len=MAX_MODEL_LEN),
    "plain loop": PlainLoop,
}
OURS = frozenset({"transformers packed", "transformers plain", "vllm"})


def vllm_missing() -> str | None:
    """Why vLLM cannot be compared; None if it can."""
    if importlib.util.find_spec("vllm") is None:
        return "vllm is not installed"
    if importlib.util.find_spec("evaluators.backends.vllm.vllm_backend") is None:
        return "this version has no vllm backend"
    return None
