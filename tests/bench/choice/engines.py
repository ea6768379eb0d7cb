"""The engines that are compared, each in a process of its own, so that its memory and its threads are its own.

lm-eval is called as its own command calls it: instances of one option each, a batch size, nothing of it replaced.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import importlib.metadata
import multiprocessing
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from evaluators.backend import Answers, ChoiceRequest, open_backend
from evaluators.backend_options import BackendOptions
from evaluators.models.tokenizer import load_tokenizer

LM_EVAL_BATCH = 32
MAX_MODEL_LEN = 512
TokenIds = tuple[tuple[int, ...], tuple[int, ...]]
"""Those of a prompt and of an option."""


class Engine(Protocol):
    """A loaded model."""

    def scores(self, requests: Sequence[ChoiceRequest]) -> list[tuple[float, ...]]:
        """Return the log-probability of each option of each request."""

    def token_ids(self, requests: Sequence[ChoiceRequest]) -> list[list[TokenIds]]:
        """Return what the engine makes of each option."""


class LmEval:
    """A language model class of lm-eval."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def scores(self, requests: Sequence[ChoiceRequest]) -> list[tuple[float, ...]]:
        from lm_eval.api.instance import Instance

        pairs = [(request.prompt, option) for request in requests for option in request.options]
        instances = [
            Instance(request_type="loglikelihood", doc={}, arguments=pair, idx=index)
            for index, pair in enumerate(pairs)
        ]
        values = iter(self._model.loglikelihood(instances, disable_tqdm=True))
        return [tuple(float(next(values)[0]) for _ in request.options) for request in requests]

    def token_ids(self, requests: Sequence[ChoiceRequest]) -> list[list[TokenIds]]:
        every = []
        for request in requests:
            pairs = [self._model._encode_pair(request.prompt, option) for option in request.options]
            every.append([(tuple(context), tuple(option)) for context, option in pairs])
        return every


class Biasboard:
    """A backend of this project."""

    def __init__(self, folder: Path, name: str, **options: Any) -> None:
        self._backend = open_backend(name, str(folder), BackendOptions(dtype="float32", **options))
        self._tokenizer = load_tokenizer(str(folder))

    def scores(self, requests: Sequence[ChoiceRequest]) -> list[tuple[float, ...]]:
        found: dict[int, tuple[float, ...]] = {}
        for event in self._backend.ask(requests, frozenset(range(len(requests)))):
            if not isinstance(event, Answers):
                continue
            for place, response in event.responses.items():
                values = [value for value in response.option_logprobs if value is not None]
                if response.status != "answered" or len(values) != len(requests[place].options):
                    raise RuntimeError(f"request {place} has no answer: {response}")
                found[place] = tuple(values)
        return [found[place] for place in range(len(requests))]

    def token_ids(self, requests: Sequence[ChoiceRequest]) -> list[list[TokenIds]]:
        every = []
        for request in requests:
            rows = self._tokenizer.rows(request)
            if isinstance(rows, str):
                raise RuntimeError(f"a request has no token ids: {rows}")
            every.append([(tuple(ids[: rows.n_context]), tuple(ids[rows.n_context :])) for ids in rows.ids])
        return every


def lm_eval_hf(folder: Path) -> Engine:
    from lm_eval.models.huggingface import HFLM

    return LmEval(HFLM(pretrained=str(folder), device="cpu", dtype="float32", batch_size=LM_EVAL_BATCH))


def lm_eval_vllm(folder: Path) -> Engine:
    name_vllm(folder)
    from lm_eval.models.vllm_causallms import VLLM

    # Not compiled, as the backend of this project on a CPU; in batches as large as they can be.
    options = {"dtype": "float32", "max_model_len": MAX_MODEL_LEN, "batch_size": "auto", "enforce_eager": True}
    return LmEval(VLLM(pretrained=str(folder), **options))


def name_vllm(folder: Path) -> None:
    """Let lm-eval find the version of a vLLM whose distribution has another name, as that of the CPU build."""
    try:
        importlib.metadata.version("vllm")
    except importlib.metadata.PackageNotFoundError:
        # First, as it finds out by its distribution's name what it was built for.
        version = importlib.import_module("vllm").__version__
        metadata = folder / "named-vllm" / f"vllm-{version}.dist-info" / "METADATA"
        metadata.parent.mkdir(parents=True, exist_ok=True)
        metadata.write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n", encoding="utf-8")
        sys.path.append(str(folder / "named-vllm"))


ENGINES: dict[str, Callable[[Path], Engine]] = {
    "lm-eval hf": lm_eval_hf,
    "transformers packed": lambda folder: Biasboard(folder, "transformers", device="cpu", scoring="packed"),
    "transformers plain": lambda folder: Biasboard(folder, "transformers", device="cpu", scoring="plain"),
    "lm-eval vllm": lm_eval_vllm,
    "vllm": lambda folder: Biasboard(folder, "vllm", max_model_len=MAX_MODEL_LEN),
}


class Measured(NamedTuple):
    """Requests have been scored."""

    scores: list[tuple[float, ...]]
    seconds: float
    peak: float
    """Most memory in use while they were scored, or the model was loaded, in MiB."""

    @property
    def rate(self) -> float:
        """Options per second."""
        return sum(map(len, self.scores)) / self.seconds


class Worker:
    """The parent's end of a process that loads an engine at once; ``close`` ends it.

    Each call raises RuntimeError if the engine did not start or could not answer.
    """

    def __init__(self, engine: str, folder: Path) -> None:
        self._log = folder / f"{engine}.log"
        context = multiprocessing.get_context("spawn")
        self._connection, other = context.Pipe()
        self._process = context.Process(target=serve, args=(other, engine, folder, self._log))
        self._process.start()
        other.close()

    def scores(self, requests: Sequence[ChoiceRequest]) -> Measured:
        measured: Measured = self._call("scores", requests)
        return measured

    def token_ids(self, requests: Sequence[ChoiceRequest]) -> list[list[TokenIds]]:
        ids: list[list[TokenIds]] = self._call("token_ids", requests)
        return ids

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        self._process.join(timeout=20)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def _call(self, command: str, requests: Sequence[ChoiceRequest]) -> Any:
        try:
            self._connection.send((command, list(requests)))
            answer = self._connection.recv()
        except (EOFError, OSError):
            self._process.join(timeout=20)
            tail = self._log.read_text(errors="replace").splitlines()[-15:]
            raise RuntimeError("\n".join([f"its process ended with {self._process.exitcode}", *tail])) from None
        return answer


def serve(connection: Connection, name: str, folder: Path, log: Path) -> None:
    # Engines write to both streams at will; what they say is shown only when they fail.
    with log.open("wb") as stream:
        os.dup2(stream.fileno(), sys.stdout.fileno())
        os.dup2(stream.fileno(), sys.stderr.fileno())
    try:
        engine, loading_peak = ENGINES[name](folder / "model"), None
        while True:
            command, requests = connection.recv()
            if command == "token_ids":
                connection.send(engine.token_ids(requests))
                continue
            if loading_peak is not None:
                forget_peak()
            start = time.perf_counter()
            scores = engine.scores(requests)
            seconds, peak = time.perf_counter() - start, peak_of_memory()
            # Some engines load their model only now.
            loading_peak = peak if loading_peak is None else loading_peak
            connection.send(Measured(scores, seconds, max(loading_peak, peak)))
    except EOFError:
        return
    except Exception:
        traceback.print_exc()
        sys.exit(1)


def forget_peak() -> None:
    """Let the kernel count the peak of memory anew, from what is in use and not from what the allocator kept."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_of_memory() -> float:
    # Not getrusage: its peak survives exec, and would be that of the process which started this one.
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 2**10
