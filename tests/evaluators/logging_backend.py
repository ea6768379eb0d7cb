"""A deterministic backend that writes down what it is asked; as a program, a run of it that kills itself.

``python logging_backend.py DATASET OUT LOG [KILL_AT_BATCH]``
"""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluators.backend import (
    OF_LANGUAGE_MODELS,
    Backend,
    Capability,
    Events,
    GenerateRequest,
    Request,
    Response,
    Runtime,
    TokenCount,
    ask_in_batches,
    identified_model,
)
from evaluators.runs.ask.pipeline import Finished, RunOptions, run
from evaluators.runs.plan.plan import Plan, select
from evaluators.task import prompt_of
from evaluators.tasks.coreference.coreference_task import TASK
from schemas.documents.record import ExchangeStatus
from schemas.documents.result import Model, Normalisation
from schemas.folders.dataset_folder import read_manifest


def identity_of(name: str, revision: str | None = "1", precision: str | None = None) -> dict[str, str | None]:
    """The parts of the identity of a model on the Hub."""
    unset = dict.fromkeys(("chat_template", "tokenizer", "scoring"))
    files = {"backend": "transformers", "model": f"{name}@{revision}"}
    return files | {"precision": precision, "device": "cpu"} | unset


@dataclass
class LoggingBackend(Backend):
    """Answers from the hash of the request; every request that is sent becomes a line of the log."""

    log: Path
    name: str = "tests/logging"
    batch: int = 16
    kill_at_batch: int | None = None
    status: Callable[[Request], ExchangeStatus] = lambda request: "answered"
    runtime: Runtime = field(default_factory=Runtime)
    capabilities: frozenset[Capability] = frozenset({"option_logprobs"})
    arguments: tuple[str, ...] = ("--model logging",)
    n_batches: int = 0
    pause: float = 0.0

    @property
    def model(self) -> Model:
        """Another name is another model; results of a backend that nobody knows would be claims."""
        identity = identity_of(self.name)
        return identified_model(self.name, identity, revision="1")

    def ask(self, requests: Sequence[Request], missing: frozenset[int]) -> Events:
        """Not in the order of the items, as a real backend would not either."""
        order = sorted(range(len(requests)), key=lambda index: requests[index].sha256)
        batches = [order[start : start + self.batch] for start in range(0, len(order), self.batch)]
        return ask_in_batches(batches, self.answer, requests, missing)

    def count_tokens(self, requests: Sequence[Request]) -> TokenCount:
        """Ten each, as the answers say, and texts as long as they may be."""
        texts = [request for request in requests if isinstance(request, GenerateRequest)]
        return TokenCount(10 * len(requests), sum(request.max_tokens for request in texts))

    def answer(self, requests: Sequence[Request]) -> Sequence[Response]:
        """Log, perhaps die, answer."""
        with self.log.open("a") as file:
            file.writelines(f"{request.sha256}\n" for request in requests)
        self.n_batches += 1
        if self.n_batches == self.kill_at_batch:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(self.pause)
        return [self._answer(request) for request in requests]

    def _answer(self, request: Request) -> Response:
        status = self.status(request)
        if status != "answered":
            return Response(status=status, error=f"made to be {status}")
        if isinstance(request, GenerateRequest):
            digest = request.sha256
            text = f" It is {digest[:4]}.\n" if digest[4] > "3" else ""
            finish = "length" if digest[5] > "b" else "stop"
            return Response(
                status="answered", text=text, finish_reason=finish, n_prompt_tokens=10, n_completion_tokens=3
            )
        digests = [hashlib.sha256(f"{self.name}{request.prompt}{option}".encode()) for option in request.options]
        n = len(digests)
        return Response(
            status="answered",
            option_logprobs=tuple(-int.from_bytes(digest.digest()[:2], "big") / 6553.6 for digest in digests),
            option_end_logprobs=(None,) * n,
            option_token_counts=(2,) * n,
            n_moved_tokens=0,
            n_prompt_tokens=10,
            n_completion_tokens=0,
        )


def finish(
    dataset: Path,
    out: Path,
    backend: Backend,
    *,
    prompt: str = "mcq2-v1",
    rate: float = 0.05,
    cache: Path | None = None,
    limit: int | None = None,
    normalisation: Normalisation = "sum",
    config: str | None = None,
) -> Finished:
    """A run of a backend on a config of a dataset, the first if none is named."""
    manifest = read_manifest(dataset)
    selection = select(dataset, manifest, config or manifest.splits[0].config, limit=limit)
    plan = Plan(selection, TASK, prompt_of(TASK, prompt), normalisation)
    return run(plan, backend, RunOptions(root=out, cache=cache, max_failure_rate=rate, command="tests"))


def ask(dataset: Path, out: Path, backend: Backend, **how: Any) -> Path:
    """The folder of such a run."""
    return finish(dataset, out, backend, **how).folder


if __name__ == "__main__":
    dataset, out, log, *rest = sys.argv[1:]
    backend = LoggingBackend(
        Path(log),
        kill_at_batch=int(rest[0]) if rest else None,
        pause=float(os.environ.get("BATCH_PAUSE", "0")),
        capabilities=OF_LANGUAGE_MODELS,
    )
    ask(Path(dataset), Path(out), backend, prompt=os.environ.get("PROMPT", "mcq2-v1"))
