"""What the console is told while an endpoint does not answer: soon, again, and when it is back."""

from __future__ import annotations

import os
import pty
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from biasboard.ground.errors import ConfigError, RunError
from evaluators.backend_options import BackendOptions
from evaluators.backends.openai.openai_backend import open_backend
from evaluators.backends.openai.pacing import Patience
from tests.evaluators.fake_endpoint import MODEL, FakeEndpoint, Fault, Received
from tests.evaluators.openai_runs import SERVES, Asked, error, made, number_in, opened

REPOSITORY = Path(__file__).parents[2]
TALKATIVE = Patience(
    n_tries=1000, outage_seconds=30.0, longest_pause=0.1, fault_seconds=0.3, silent_seconds=0.4, repeat_seconds=0.5
)


@pytest.mark.slow
def test_a_server_that_is_stopped_is_told_of_again_and_again_until_it_is_back(
    tokenizer: Tokenizer, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = Asked()
    with FakeEndpoint(tokenizer, serves=SERVES, delay=0.01) as endpoint:
        backend = opened(endpoint, TALKATIVE, concurrency=4)
        port, place = endpoint.port, endpoint.url.split("/")[2]
        thread = threading.Thread(target=lambda: asked.of(backend, made(400)))
        thread.start()
        while endpoint.n_received < 60:
            time.sleep(0.01)
    time.sleep(2.5)
    with FakeEndpoint(tokenizer, serves=SERVES, port=port):
        thread.join()
    assert asked.statuses() == {"answered": 400}
    told = capsys.readouterr().err.splitlines()
    outages = [line for line in told if line.startswith(f"no answer from {place} for ")]
    assert len(outages) >= 3
    assert all("connection re" in line for line in outages)
    assert all(re.search(r"; \d+ requests wait; tried again ", line) for line in outages)
    assert all("given up after 30 s; Ctrl-C keeps the answers" in line for line in outages)
    (back,) = [line for line in told if "answers again" in line]
    assert told.index(back) > told.index(outages[-1])


def test_a_wait_that_the_endpoint_asks_for_is_told_as_long_as_it_is(
    tokenizer: Tokenizer, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeEndpoint(tokenizer, serves=SERVES) as endpoint:
        backend = opened(endpoint, TALKATIVE, timeout=3.0, concurrency=1)
        endpoint.headers = lambda received: {
            "x-ratelimit-remaining-requests": "0",
            "x-ratelimit-reset-requests": "14m59s",
        }
        steps = backend.ask(made(4), frozenset(range(4)))
        thread = threading.Timer(2.0, lambda: os.kill(os.getpid(), signal.SIGINT))
        # A process that runs tests beside others may ignore the signal.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            thread.start()
            with pytest.raises(KeyboardInterrupt):
                for _ in steps:
                    pass
        finally:
            signal.signal(signal.SIGINT, before)
    told = capsys.readouterr().err.splitlines()
    assert told
    assert all(
        re.search(r" asks to wait 89\d s \(its rate limit is used up\); 3 requests wait; ", line) for line in told
    )


@pytest.mark.slow
def test_a_server_that_hangs_is_told_of_and_a_slow_one_is_not(
    tokenizer: Tokenizer, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeEndpoint(tokenizer, serves=SERVES, delay=0.3) as endpoint:
        backend = opened(endpoint, TALKATIVE, concurrency=4, timeout=3.0)
        assert Asked().of(backend, made(12)).statuses() == {"answered": 12}
        assert "no answer" not in capsys.readouterr().err
        hung: list[float] = []

        def before(received: Received) -> Fault | None:
            if number_in(received) >= 4 and len(hung) < 4:
                hung.append(received.seconds)
                return Fault(hang=True)
            return None

        endpoint.before = before
        assert Asked().of(backend, made(8)).statuses() == {"answered": 8}
    told = capsys.readouterr().err.splitlines()
    assert [line for line in told if "; 4 requests wait, each up to 3 s" in line]


@pytest.mark.slow
def test_an_overloaded_server_is_told_of_with_its_words(
    tokenizer: Tokenizer, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeEndpoint(tokenizer, serves=SERVES) as endpoint:
        patience = Patience(n_tries=1000, outage_seconds=1.0, longest_pause=0.05, fault_seconds=0.2)
        backend = opened(endpoint, patience)
        endpoint.before = lambda received: Fault(503, {}, error("loading the model"))
        with pytest.raises(RunError, match="run the same command again when it is back"):
            Asked().of(backend, made(5))
    assert "HTTP 503: loading the model; 5 requests wait" in capsys.readouterr().err


def test_a_fault_that_passes_is_not_told(tokenizer: Tokenizer, capsys: pytest.CaptureFixture[str]) -> None:
    with FakeEndpoint(tokenizer, serves=SERVES) as endpoint:
        backend = opened(endpoint)
        endpoint.before = lambda received: Fault(500) if received.number % 7 == 0 else None
        assert Asked().of(backend, made(50)).statuses() == {"answered": 50}
    assert capsys.readouterr().err == ""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["refused", "no handshake"])
def test_a_server_that_is_not_there_is_one_error_in_seconds(kind: str) -> None:
    full = []
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        if kind == "no handshake":
            # With a full queue, the system answers no further attempt to connect.
            listening.listen(0)
            for _ in range(4):
                waiting = socket.socket()
                waiting.setblocking(False)
                waiting.connect_ex(listening.getsockname())
                full.append(waiting)
        port = listening.getsockname()[1]
        backend = open_backend(MODEL, BackendOptions(base_url=f"http://127.0.0.1:{port}/v1"))
        began = time.monotonic()
        with pytest.raises(ConfigError) as caught:
            _ = backend.model
        assert time.monotonic() - began < 10
    for waiting in full:
        waiting.close()
    reason = "connection refused" if kind == "refused" else "no connection within 4 s"
    assert f"cannot be reached: {reason}; start the server, or check --base-url" in str(caught.value)


def test_a_line_does_not_garble_the_bar() -> None:
    program = (
        "import time\nfrom biasboard.ground.progress import note, progress\n"
        "with progress('asking', 30) as advance:\n"
        "    for number in range(30):\n        advance(1)\n        time.sleep(0.01)\n"
        "        if number % 10 == 5:\n            note(f'a line of its own, number {number}')\n"
    )
    main, other = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "PYTHONPATH": str(REPOSITORY)}
    with subprocess.Popen([sys.executable, "-c", program], stdout=other, stderr=other, env=environment) as process:
        os.close(other)
        written = b""
        try:
            while part := os.read(main, 65536):
                written += part
        except OSError:  # Linux ends a terminal whose other side is closed with an error.
            pass
    os.close(main)
    assert process.returncode == 0
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written.decode()).replace("\r", "\n")
    lines = [line.strip() for line in plain.splitlines()]
    assert [line for line in lines if "of its own" in line] == [f"a line of its own, number {n}" for n in (5, 15, 25)]
    assert any("30/30" in line for line in lines)
