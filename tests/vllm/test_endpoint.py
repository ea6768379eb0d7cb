"""What vLLM's own server is told to be, rightly or wrongly: each mistake is one message, within ten seconds."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from biasboard.ground.errors import ConfigError
from evaluators.backend import GenerateRequest
from evaluators.backend_options import BackendOptions
from evaluators.backends.openai.openai_backend import OpenAIBackend, open_backend
from tests.evaluators.asking import all_answers_of
from tests.vllm.conftest import SERVED, Served

MOST_SECONDS = 10
MESSAGES = {
    "a wrong key": "check OPENAI_API_KEY",
    "a wrong model": f"the endpoint has: {SERVED}; name one of them with --model",
    "no /v1": "--base-url, which ends in /v1 for most",
}


def opened(served: Served, **options: Any) -> OpenAIBackend:
    return open_backend(SERVED, BackendOptions(base_url=served.url, **options))


@contextmanager
def soon() -> Iterator[None]:
    """Fail if what is inside takes too long."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began < MOST_SECONDS


@pytest.mark.parametrize("name", MESSAGES)
def test_a_mistake_is_one_message_in_seconds(name: str, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "a wrong key":
        monkeypatch.setenv("OPENAI_API_KEY", "sk-another-0123456789")
    model = "made-lama" if name == "a wrong model" else SERVED
    url = served.url.removesuffix("/v1") if name == "no /v1" else served.url
    backend = open_backend(model, BackendOptions(base_url=url))
    with soon(), pytest.raises(ConfigError) as caught:
        _ = backend.model
    assert MESSAGES[name] in str(caught.value)
    assert "\n" not in str(caught.value)


def test_completions_and_chat_are_found_out(served: Served, made_llama: Path) -> None:
    found = {
        (api, named): opened(served, api=api, tokenizer=str(made_llama) if named else None).probed.option_scoring
        for api in (None, "chat")
        for named in (False, True)
    }
    assert found[None, True] == "option_trie"
    assert found[None, False] == "first_token"
    assert found["chat", False] == found["chat", True] == "first_token"
    named = opened(served, api="chat", tokenizer=str(made_llama))
    assert named.completion_options() == ("--api completions, where the endpoint has completions",)


def test_a_server_that_stops_midway_is_told_of_and_waited_for(
    served: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    backend = opened(served, api="completions", concurrency=2)
    _ = backend.model
    requests = [GenerateRequest(prompt=f"The nurse said {number}", max_tokens=8) for number in range(40)]
    served.process.send_signal(signal.SIGSTOP)
    goes_on = threading.Timer(MOST_SECONDS, served.process.send_signal, [signal.SIGCONT])
    goes_on.start()
    try:
        answers = all_answers_of(backend, requests)
    finally:
        goes_on.cancel()
        served.process.send_signal(signal.SIGCONT)
    assert {answer.status for answer in answers} == {"answered"}
    assert (
        f"no answer from {backend.connection.address.host_and_port} for 8 s; 40 requests wait"
        in capsys.readouterr().err
    )
