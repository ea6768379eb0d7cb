"""The openai backend against an endpoint that fails: every request ends, none is asked again after it was answered.

What an endpoint asks for is waited for, what it bears is sent, and the console is told of outages: soon, again, and
when they are over.
"""

from __future__ import annotations

import asyncio
import email.utils
import json
import os
import re
import signal
import socket
import sqlite3
import sys
import threading
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer

from biasboard.ground.errors import ConfigError, RunError
from evaluators.backend import Answers, GenerateRequest
from evaluators.backend_options import BackendOptions
from evaluators.backends.openai.address import parse_address
from evaluators.backends.openai.client import Connection
from evaluators.backends.openai.meanings import NoAnswerError
from evaluators.backends.openai.openai_backend import open_backend
from evaluators.backends.openai.pacing import Pacer, Patience
from schemas.folders.run_folder import read_result
from tests.commands import run, started
from tests.evaluators.fake_endpoint import MODEL, FakeEndpoint, Fault, Received
from tests.evaluators.invoking import wait_for_answers
from tests.evaluators.made_data import made_items, write_dataset
from tests.evaluators.openai_runs import SERVES, Asked, error, first_tries, made, number_in, opened
from tests.terminal import on_terminal

KEY = "sk-made-0123456789abcdef"
ADDRESS = parse_address("http://127.0.0.1:9/v1", None)
TALKATIVE = Patience(
    n_tries=1000, outage_seconds=30.0, longest_pause=0.1, fault_seconds=0.3, silent_seconds=0.4, repeat_seconds=0.5
)
PASSING: dict[str, Callable[[Received], Fault]] = {
    "429 with Retry-After": lambda _: Fault(429, {"retry-after": "0.2"}, error("slow down")),
    "429 without": lambda _: Fault(429, {}, error("slow down")),
    "429 with a limit's reset": lambda _: Fault(
        429, {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "200ms"}, error("slow down")
    ),
    # In seconds, it would be longer than any wait that is taken.
    "429 with a wait in ms": lambda _: Fault(429, {"retry-after-ms": "950"}, error("slow down")),
    "429 with a wait in ms, and a unit": lambda _: Fault(429, {"retry-after-ms": "200ms"}, error("slow down")),
    "500": lambda _: Fault(500, {}, b"<html>oops</html>"),
    "503": lambda _: Fault(503, {}, error("loading")),
    "cut in the middle": lambda _: Fault(cut=True, body=b'{"choices": ['),
    "cut before the answer": lambda _: Fault(cut=True, body=b""),
    "not JSON": lambda _: Fault(body=b'{"choices": [{"index": 0, "mess'),
}


@pytest.fixture
def endpoint(tokenizer: Tokenizer) -> Iterator[FakeEndpoint]:
    with FakeEndpoint(tokenizer, serves=SERVES) as served:
        yield served


@pytest.mark.slow
@pytest.mark.parametrize("name", PASSING)
def test_a_fault_that_passes_leaves_no_trace_but_the_count_and_one_that_does_not_fails_alone(
    name: str, endpoint: FakeEndpoint
) -> None:
    lost = {7} if name in ("500", "cut in the middle", "not JSON") else set()
    backend = opened(endpoint)
    passing, lasting = (first_tries(PASSING[name], n, of) for n, of in ((2, {1, 5, 6, 20}), (10**6, lost)))
    endpoint.before = lambda received: passing(received) or lasting(received)
    asked = Asked().of(backend, made(30))
    answered = {place: response.text for place, response in asked.responses.items() if place not in lost}
    assert answered == {place: f"You said: Say {place}" for place in range(30) if place not in lost}
    assert all("gave up after" in str(asked.responses[place].error) for place in lost)
    assert asked.n_attempts == endpoint.n_received
    tries = Counter(number for one in endpoint.received if (number := number_in(one)) not in lost)
    assert tries == {n: 3 if n in {1, 5, 6, 20} else 1 for n in {*range(30)} - lost}
    assert set(endpoint.answered.values()) == {1}


@pytest.mark.parametrize(
    ("status", "body", "remedy", "ends_as"),
    [
        (401, error("bad key"), "OPENAI_API_KEY", "failed"),
        (403, error("not allowed"), "OPENAI_API_KEY", "refused"),
        (404, error("no such model"), "--model", "failed"),
        (307, b"", "--base-url", "failed"),
        (429, json.dumps({"error": {"message": "quota", "code": "insufficient_quota"}}).encode(), "credit", "failed"),
    ],
)
def test_an_error_of_one_request_is_no_error_of_all_and_one_of_all_ends_the_run(
    status: int, body: bytes, remedy: str, ends_as: str, tokenizer: Tokenizer
) -> None:
    with FakeEndpoint(tokenizer, serves=SERVES) as endpoint:
        backend = opened(endpoint, concurrency=1)
        endpoint.before = lambda received: Fault(status, {}, body) if number_in(received) == 5 else None
        asked = Asked().of(backend, made(30))
        assert asked.n_attempts == endpoint.n_received
        # Another request was asked once, to see whether all are concerned, and what is forbidden was asked again.
        assert len(endpoint.received) == (32 if status == 403 else 31)
        assert asked.statuses() == {"answered": 29, ends_as: 1}
        assert f"HTTP {status}" in str(asked.responses[5].error)
    with FakeEndpoint(tokenizer, serves=SERVES) as endpoint:
        backend = opened(endpoint, concurrency=1)
        # The sixth call, and from then on what was answered before too.
        endpoint.before = lambda received: Fault(status, {}, body) if len(endpoint.received) > 5 else None
        asked = Asked()
        with pytest.raises(RunError, match=remedy):
            asked.of(backend, made(30))
        assert set(asked.responses) == set(range(5))
        assert asked.n_attempts == endpoint.n_received


def test_closing_ends_what_is_under_way_and_the_thread(tokenizer: Tokenizer) -> None:
    def threads() -> list[str]:
        return [thread.name for thread in threading.enumerate() if thread.name.startswith("openai-endpoint")]

    with FakeEndpoint(tokenizer, serves=SERVES, delay=0.01) as endpoint:
        backend = opened(endpoint)
        steps = backend.ask(made(1000), frozenset(range(1000)))
        next(step for step in steps if isinstance(step, Answers))
        assert threads()
        steps.close()
        assert not threads()
        # Requests that were sent before may be read after: a slow server is done once every connection has ended.
        deadline = time.monotonic() + 30
        while endpoint.n_connections and time.monotonic() < deadline:
            time.sleep(0.01)
        assert endpoint.n_connections == 0
        n_received = endpoint.n_received
        assert n_received < 1000
        time.sleep(0.1)
        assert endpoint.n_received == n_received
        # The rest can be asked afterwards.
        assert Asked().of(backend, made(20)).statuses() == {"answered": 20}


def test_only_what_is_missing_is_asked(endpoint: FakeEndpoint) -> None:
    backend = opened(endpoint)
    assert {*Asked().of(backend, made(9), frozenset({2, 8})).responses} == {2, 8}
    assert sorted(map(number_in, endpoint.received)) == [2, 8]
    assert list(backend.ask(made(9), frozenset())) == []


@pytest.mark.parametrize("key", ["sk-caf\u00e9-0123456789", "sk-one\nsk-two", "sk-one sk-two", "sk-\u202e0123"])
def test_a_key_that_can_be_none_is_not_sent_and_not_shown(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(ConfigError) as caught:
        open_backend(MODEL, BackendOptions(base_url="http://127.0.0.1:9/v1"))
    said = "OPENAI_API_KEY holds a space, a line break or a letter that no key has; copy the key again"
    assert str(caught.value) == said


def test_a_key_in_the_path_of_the_address_is_not_shown() -> None:
    path = "v1/0a1b2c3d4e5f60718293a4b5c6d7e8f9/sk-made-0123456789/openai"
    address = parse_address(f"https://gateway.example/{path}", None)
    assert address.url == f"https://gateway.example/{path}"
    assert address.shown == "https://gateway.example/v1/***/***/openai"
    assert address.clean(f"no route /{path} here") == "no route /v1/***/***/openai here"
    assert "0a1b2c3d" not in repr(address)


@pytest.mark.parametrize("host", ["gpu", "gpu:8000", "gpu.internal", "[::1]:8000"])
def test_what_may_be_published_does_not_name_the_machine(host: str) -> None:
    address = parse_address(f"http://{host}/v1", "", ())
    assert address.clean(f"{host} refused http://{host}/v1") == "the endpoint refused the endpoint"


def test_no_key_and_nothing_secret_gets_out(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    secrets = [KEY]
    is_over: list[int] = []

    def echoing(received: Received) -> Fault | None:
        told = {name: value for name, value in received.headers.items() if name == "authorization"}
        message = f"you sent {told}, with sk-another-key-9876543210 and {', '.join(secrets)}"
        is_over.extend([received.number] if number_in(received) == 5 else ())
        status = 401 if is_over else {3: 400}.get(number_in(received))
        return None if status is None else Fault(status, {}, error(message))

    with caplog.at_level("DEBUG"), FakeEndpoint(tokenizer, serves=SERVES) as endpoint:
        plain = opened(endpoint, concurrency=1)
        assert endpoint.n_received
        assert plain.arguments
        endpoint.before = echoing
        asked = Asked()
        with pytest.raises(RunError) as caught:
            asked.of(plain, made(9))
        with_password = endpoint.url.replace("http://", "http://user-name:pass-word-5@") + "?key=query-secret"
        secrets += ["pass-word-5", "query-secret"]
        endpoint.before = lambda received: None
        is_over.clear()
        other = open_backend(MODEL, BackendOptions(base_url=with_password, concurrency=1))
        assert other.model == plain.model
        endpoint.before = echoing
        with pytest.raises(RunError) as caught_too:
            Asked().of(other, made(9))
        assert endpoint.received[-1].headers["authorization"].startswith("Basic ")
        texts = [
            *(str(response) for response in asked.responses.values()),
            *(str(error) + repr(error.value) + repr(error.value.__cause__) for error in (caught, caught_too)),
            *(repr(vars(backend)) + str(backend.arguments) + str(backend.runtime) for backend in (plain, other)),
            caplog.text,
        ]
    assert "you sent" in "".join(texts), "the case does not test what it is for"
    for secret in (*secrets, "sk-another-key-9876543210", "dXNlci1uYW1l"):
        assert [text for text in texts if secret in text] == []


@pytest.mark.slow
@pytest.mark.parametrize("as_date", [False, True])
def test_retry_after_is_waited_for_by_everybody(as_date: bool, endpoint: FakeEndpoint) -> None:
    limited: list[float] = []

    def before(received: Received) -> Fault | None:
        if number_in(received) < 0 or limited:
            return None
        limited.append(received.seconds)
        after = email.utils.formatdate(time.time() + 3, usegmt=True) if as_date else "2"
        return Fault(429, {"retry-after": after})

    backend = opened(endpoint, concurrency=4)
    endpoint.before = before
    assert Asked().of(backend, made(60)).statuses() == {"answered": 60}
    # A date has whole seconds: of three, two are sure. What was under way may still come in.
    too_early = [one for one in endpoint.received if 0 < one.seconds - limited[0] < 1.9]
    assert len(too_early) <= 3


@pytest.mark.slow
def test_a_limit_that_is_used_up_is_waited_for(endpoint: FakeEndpoint) -> None:
    spent = {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1s20ms"}
    backend = opened(endpoint, concurrency=1)
    endpoint.headers = lambda received: spent if number_in(received) == 2 else {}
    assert Asked().of(backend, made(5)).statuses() == {"answered": 5}
    times = [received.seconds for received in endpoint.received]
    assert times[3] - times[2] >= 1.0


@pytest.mark.parametrize(
    ("before", "headers", "words"),
    [
        (Fault(429, {"retry-after": "86400"}), {}, "asks to wait 86400 s"),
        (None, {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": f"{'9' * 400}s"},
            "asks to wait inf s"),
    ],
)  # fmt: skip
def test_a_wait_that_is_too_long_ends_the_run(
    before: Fault | None, headers: dict[str, str], words: str, endpoint: FakeEndpoint
) -> None:
    backend = opened(endpoint)
    endpoint.before, endpoint.headers = lambda _: before, lambda _: headers
    with pytest.raises(RunError, match=words):
        Asked().of(backend, made(5))


def test_a_limit_that_one_request_alone_meets_is_given_up(endpoint: FakeEndpoint) -> None:
    backend = opened(endpoint, Patience(n_limited=4, call_seconds=0.2, longest_pause=0.02), concurrency=4)
    endpoint.before = lambda received: Fault(429, {}, error("slow down")) if number_in(received) == 3 else None
    asked = Asked().of(backend, made(20))
    assert asked.n_attempts == endpoint.n_received
    assert asked.statuses() == {"answered": 19, "failed": 1}
    assert "slow down" in str(asked.responses[3].error)


@pytest.mark.slow
def test_as_many_calls_as_asked_for_and_fewer_when_it_is_too_much(tokenizer: Tokenizer) -> None:
    under_way: list[int] = []

    # Slow enough that the client, however slow itself, has sent all that it may before the first answer comes.
    with FakeEndpoint(tokenizer, serves=SERVES, delay=0.4) as endpoint:
        backend = opened(endpoint, concurrency=24)
        Asked().of(backend, made(150))
        assert endpoint.most_at_a_time == 24
        endpoint.delay = 0.02

        def before(received: Received) -> Fault | None:
            under_way.append(endpoint._under_way)
            return Fault(429) if endpoint._under_way > 6 else None

        endpoint.before = before
        asked = Asked().of(backend, made(600))
        assert asked.statuses() == {"answered": 600}
    # It settles around what the endpoint bears instead of trying 24 every time.
    assert np.mean(under_way[300:]) < 9


def test_a_pause_in_which_the_limit_falls_ends_with_one_call_at_a_time() -> None:
    down, most = NoAnswerError("down", "passing", status=503, overload=True), 64
    under_way: list[int] = []

    async def call(pacer: Pacer) -> None:
        await pacer.start()
        under_way.append(pacer.n_under_way)
        await asyncio.sleep(0.01)
        pacer.end()

    async def simulated() -> None:
        pacer = Pacer(Connection(ADDRESS, 1.0, most), Patience(longest_pause=0.05))
        for _ in range(most):
            pacer.answered()
        # All calls wait for a limit that is used up, and meanwhile the endpoint goes down.
        pacer.answered(0.3)
        waiting = [asyncio.create_task(call(pacer)) for _ in range(most)]
        for _ in range(8):
            await asyncio.sleep(0.01)
            pacer.failed(down, time.monotonic())
        await asyncio.gather(*waiting)

    asyncio.run(simulated())
    assert len(under_way) == most
    assert max(under_way) == 1


def test_waits_that_an_endpoint_asks_for_do_not_follow_each_other_for_ever() -> None:
    busy = NoAnswerError("busy", "limited", status=429, retry_after=1.5)
    pacer = Pacer(Connection(ADDRESS, 1.0, 1), Patience(outage_seconds=1.0, longest_retry_after=2.0))
    with pytest.raises(RunError, match="answered nothing for 4 s"):
        pacer.failed(busy, time.monotonic() - 3.5)


def test_an_outage_that_is_too_long_ends_the_run_with_the_last_words() -> None:
    loading = NoAnswerError("HTTP 503: loading the model", "passing", status=503)
    pacer = Pacer(Connection(ADDRESS, 1.0, 1), Patience(outage_seconds=0.05))
    pacer.failed(loading, time.monotonic())
    time.sleep(0.1)
    with pytest.raises(RunError, match=r"HTTP 503: loading the model\. .* run the same command again when it is back"):
        pacer.failed(loading, time.monotonic())


@pytest.mark.slow
def test_memory_is_flat_however_much_is_queued(tokenizer: Tokenizer) -> None:
    n = 100_000
    requests = [GenerateRequest(prompt=f"Say {number}", max_tokens=3) for number in range(n)]
    with FakeEndpoint(tokenizer, serves=SERVES, keeps=0) as endpoint:
        backend = opened(endpoint)
        endpoint.n_received = 0
        steps = backend.ask(requests, frozenset(range(n)))
        n_answered = 0
        peaks = []
        for bound in (300, 800):
            for step in steps:
                n_answered += len(step.responses) if isinstance(step, Answers) else 0
                if n_answered >= bound:
                    break
            if not tracemalloc.is_tracing():
                tracemalloc.start()
            peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        # While nobody takes an answer, what is under way ends, and nothing else begins.
        time.sleep(1.0)
        n_begun = endpoint.n_received
        time.sleep(0.5)
        assert endpoint.n_received == n_begun
        steps.close()
        # Five hundred answers more, and not more than a few megabytes were ever held for them.
        assert peaks[-1] < 8_000_000
        # What was not handed over was under way: nothing ran ahead of what was taken.
        assert endpoint.n_received <= n_answered + 2 * 64


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
    # The first may still tell of a call that was cut off.
    assert [line for line in outages[1:] if "connection re" not in line] == []
    assert all(re.search(r"; \d+ requests wait; tried again ", line) for line in outages)
    assert all("given up after 30 s; Ctrl-C keeps the answers" in line for line in outages)
    (back,) = [line for line in told if "answers again" in line]
    assert told.index(back) > told.index(outages[-1])


def test_a_wait_that_the_endpoint_asks_for_is_told_as_long_as_it_is(
    endpoint: FakeEndpoint, capsys: pytest.CaptureFixture[str]
) -> None:
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


def test_a_fault_that_passes_is_not_told(endpoint: FakeEndpoint, capsys: pytest.CaptureFixture[str]) -> None:
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
    lines = [line.strip() for line in on_terminal([sys.executable, "-c", program]).replace("\r", "\n").splitlines()]
    assert [line for line in lines if "of its own" in line] == [f"a line of its own, number {n}" for n in (5, 15, 25)]
    assert any("30/30" in line for line in lines)


@pytest.mark.slow
def test_killed_and_resumed_nothing_that_was_answered_is_asked_again(tokenizer: Tokenizer, tmp_path: Path) -> None:
    dataset, out = write_dataset(tmp_path / "pairs", {"type2": made_items(60)}), tmp_path / "runs"
    answered: Counter[str] = Counter()

    def lettered(received: Received, answer: dict[str, Any]) -> dict[str, Any]:
        answered[json.dumps(received.body)] += "The clock on the wall" not in str(received.body)
        # A refusal is an answer too.
        refusal = "I will not say that." if received.number % 7 == 0 else None
        answer["choices"][0]["message"] = {"role": "assistant", "content": "A", "refusal": refusal}
        return answer

    with FakeEndpoint(tokenizer, serves=SERVES, alter=lettered, delay=0.002) as endpoint:
        endpoint.before = lambda received: Fault(500, {}, error("failed")) if received.number % 12 == 5 else None
        model = ("--backend", "openai", "--model", MODEL, "--base-url", endpoint.url, "--concurrency", 4)
        command = ("-m", "biasboard", "run", "--dataset", dataset, *model, "--prompt", "mcq2-generate-v1", "--out", out)
        with started(*command) as first:
            wait_for_answers(out, first, at_least=12)
            first.kill()
        n_answered = answered.total()
        (store,) = out.rglob("responses.sqlite")
        with closing(sqlite3.connect(store)) as connection:
            (n_stored,) = connection.execute("SELECT COUNT(*) FROM responses").fetchone()
        assert not list(out.rglob("result.json")), "it was over before it could be killed"
        run(*command, status=0)
    # Only what was on its way when the process was killed is asked again.
    assert answered.total() - len(+answered) == n_answered - n_stored <= 4
    (path,) = out.rglob("result.json")
    assert read_result(path.parent).counts.refused > 0
    assert read_result(path.parent).counts.failed == 0
