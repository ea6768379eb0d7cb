"""What the tests of the real vLLM engine share: models that are made here, and one engine and one server for all."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evaluators.backend import ChoiceRequest
from evaluators.backend_options import BackendOptions
from evaluators.backends.vllm.vllm_backend import VllmBackend, open_backend
from tests.evaluators.made_data import made_items, save_tiny_llama

HERE = Path(__file__).parent
HEAD_SIZE = 64
START_SECONDS = 240
SERVED = "made-llama"
KEY = "sk-made-0123456789abcdef"
CHAT_TEMPLATE = "<s>{% for message in messages %}The {{ message.role }}: {{ message.content }}{% endfor %} The nurse: "


def pytest_configure() -> None:
    """Little memory, and no question to the network which address this machine has."""
    os.environ.update(VLLM_CPU_KVCACHE_SPACE="1", VLLM_HOST_IP="127.0.0.1")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The engine and its parts warn of each other, at moments that no test chooses."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("default"))


@pytest.fixture(scope="session")
def made_llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that the CPU build can compute with, and a chat template."""
    folder = save_tiny_llama(tmp_path_factory.mktemp("models") / SERVED, head_size=HEAD_SIZE, knows_every_sign=True)
    (folder / "chat_template.jinja").write_text(CHAT_TEMPLATE, encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def engine(made_llama: Path) -> VllmBackend:
    """The backend, in process, with end tokens."""
    return open_backend(str(made_llama), BackendOptions(dtype="float32", end_logprobs=True))


def load_plain(folder: Path) -> Any:
    """A model as transformers computes it, one text at a time, in float32: what engines are compared with."""
    import torch
    import transformers

    network: Any = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return network.eval()


def plain_logprob(network: Any, ids: list[int], n_context: int) -> float:
    """Of the tokens after the context: one pass, token after token."""
    import torch

    with torch.no_grad():
        logprobs = torch.log_softmax(network(torch.tensor([ids])).logits[0].double(), dim=-1)
    return sum(float(logprobs[place - 1, ids[place]]) for place in range(n_context, len(ids)))


@pytest.fixture(scope="session")
def server(made_llama: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of vLLM's own server of the same model, which wants a key; all tests have it in their environment."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    arguments = ["--model", str(made_llama), "--served-model-name", SERVED, "--host", "127.0.0.1", "--port", str(port)]
    arguments += ["--dtype", "float32", "--enforce-eager", "--generation-config", "vllm", "--block-size", "32"]
    log = tmp_path_factory.mktemp("server") / "log.txt"
    os.environ["OPENAI_API_KEY"] = KEY
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "vllm.entrypoints.openai.api_server", *arguments, "--api-key", KEY],
            env={**os.environ, "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            _wait_for(f"http://127.0.0.1:{port}/health", process, log)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            del os.environ["OPENAI_API_KEY"]
            process.terminate()
            process.wait(timeout=60)


def _wait_for(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.5)
    raise AssertionError(f"the server did not start:\n{log.read_text(encoding='utf-8')[-4000:]}")


_HEADER = "The guard waited for the nurse. The nurse could leave. Who could leave? The nurse. "


def choices(n: int) -> list[ChoiceRequest]:
    """Different requests, in turn: options of one token, of several, the beginning of one another, after a header."""
    shapes = _shapes()
    return [next(shapes) for _ in range(n)]


def _shapes() -> Iterator[ChoiceRequest]:
    for index, item in enumerate(made_items(1000)):
        start, end = item.sentence[: item.pronoun_start - 1], item.sentence[item.pronoun_start + len(item.pronoun) :]
        first, second = item.occupations
        shape = index % 4
        if shape == 0:
            yield _choice(start, " he", " she")
        elif shape == 1:
            yield _choice(f"{item.sentence} '{item.pronoun.title()}' refers to", f" the {first}.", f" the {second}.")
        elif shape == 2:
            yield _choice(start, f" {item.pronoun}", f" {item.pronoun} could", f" {item.pronoun}{end}", " the")
        else:
            yield _choice(f"{_HEADER}{item.sentence} Who could leave?", f" The {first}", f" The {second}", " Both")


def _choice(prompt: str, *options: str) -> ChoiceRequest:
    return ChoiceRequest(prompt=prompt, options=options, outcomes=tuple(option.strip() for option in options))
