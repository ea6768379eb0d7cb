"""The openai backend against an endpoint that fails: every request ends, none is asked again after it was answered."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from biasboard.ground.errors import ConfigError, RunError
from evaluators.backend import Answers
from evaluators.backend_options import BackendOptions
from evaluators.backends.openai.address import parse_address
from evaluators.backends.openai.openai_backend import open_backend
from tests.evaluators.fake_endpoint import MODEL, FakeEndpoint, Fault, Received
from tests.evaluators.openai_runs import SERVES, Asked, error, first_tries, made, number_in, opened

KEY = "sk-made-0123456789abcdef"


PASSING: dict[str, Callable[[Received], Fault]] = {
    "429 with Retry-After": lambda received: Fault(429, {"retry-after": "0.2"}, error("slow down")),
    "429 without": lambda received: Fault(429, {}, error("slow down")),
    "429 with a limit's reset": lambda received: Fault(
        429, {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "200ms"}, error("slow down")
    ),
    "429 with a wait in ms, and a unit": lambda received: Fault(429, {"retry-after-ms": "200ms"}, error("slow down")),
    "500": lambda received: Fault(500, {}, b"<html>oops</html>"),
    "503": lambda received: Fault(503, {}, error("loading")),
    "408": lambda received: Fault(408),
    "cut in the middle": lambda received: Fault(cut=True, body=b'{"choices": ['),
    "cut before the answer": lambda received: Fault(cut=True, body=b""),
    "not JSON": lambda received: Fault(body=b'{"choices": [{"index": 0, "mess'),
    "no object": lambda received: Fault(body=b"[]"),
    "empty": lambda received: Fault(body=b""),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PASSING)
def test_a_fault_that_passes_leaves_no_trace_but_the_count(name: str, tokenizer: Tokenizer) -> None:
    with FakeEndpoint(tokenizer, serves=SERVES) as endpoint:
        backend = opened(endpoint)
        endpoint.before = first_tries(PASSING[name], 2, {1, 5, 6, 20})
        asked = Asked().of(backend, made(30))
        assert asked.statuses() == {"answered": 30}
        assert {place: response.text for place, response in asked.responses.items()} == {
            place: f"You said: Say {place}" for place in range(30)
        }
        assert asked.n_attempts == endpoint.n_received
        assert Counter(map(number_in, endpoint.received)) == {n: 3 if n in {1, 5, 6, 20} else 1 for n in range(30)}
        assert set(endpoint.answered.values()) == {1}


@pytest.mark.parametrize("name", ["500", "cut in the middle", "not JSON"])
def test_a_request_that_never_succeeds_fails_alone(name: str, tokenizer: Tokenizer) -> None:
    with FakeEndpoint(tokenizer, serves=SERVES) as endpoint:
        backend = opened(endpoint)
        endpoint.before = first_tries(PASSING[name], 10**6, {7})
        asked = Asked().of(backend, made(30))
        assert asked.statuses() == {"answered": 29, "failed": 1}
        assert "gave up after" in str(asked.responses[7].error)
        assert asked.n_attempts == endpoint.n_received
        assert set(endpoint.answered.values()) == {1}


@pytest.mark.slow
def test_a_server_that_hangs_is_left_alone(tokenizer: Tokenizer) -> None:
    with FakeEndpoint(tokenizer, serves=SERVES) as endpoint:
        backend = opened(endpoint, timeout=0.5)
        endpoint.before = first_tries(lambda received: Fault(hang=True), 1, {3})
        asked = Asked().of(backend, made(10))
        assert asked.statuses() == {"answered": 10}
        assert asked.n_attempts == endpoint.n_received


def test_a_request_that_is_refused_is_not_sent_again(tokenizer: Tokenizer) -> None:
    def before(received: Received) -> Fault | None:
        filtered = json.dumps({"error": {"message": "policy", "code": "content_filter"}}).encode()
        return {2: Fault(400, {}, error("too long")), 4: Fault(422), 5: Fault(400, {}, filtered)}.get(
            number_in(received)
        )

    with FakeEndpoint(tokenizer, serves=SERVES) as endpoint:
        backend = opened(endpoint)
        endpoint.before = before
        asked = Asked().of(backend, made(8))
        assert [asked.responses[place].status for place in (2, 4, 5)] == ["failed", "failed", "refused"]
        assert "too long" in str(asked.responses[2].error)
        assert asked.statuses() == {"answered": 5, "failed": 2, "refused": 1}
        assert len(endpoint.received) == 8


@pytest.mark.parametrize(
    ("status", "body", "remedy"),
    [
        (401, error("bad key"), "OPENAI_API_KEY"),
        (403, error("not allowed"), "OPENAI_API_KEY"),
        (404, error("no such model"), "--model"),
        (429, json.dumps({"error": {"message": "quota", "code": "insufficient_quota"}}).encode(), "credit"),
    ],
)
def test_what_no_request_survives_ends_the_run_and_keeps_the_answers(
    status: int, body: bytes, remedy: str, tokenizer: Tokenizer
) -> None:
    with FakeEndpoint(tokenizer, serves=SERVES) as endpoint:
        backend = opened(endpoint, concurrency=1)
        # The sixth call, and from then on what was answered before too.
        endpoint.before = lambda received: Fault(status, {}, body) if len(endpoint.received) > 5 else None
        asked = Asked()
        with pytest.raises(RunError, match=remedy):
            asked.of(backend, made(30))
        assert set(asked.responses) == set(range(5))
        assert asked.n_attempts == endpoint.n_received


@pytest.mark.parametrize(
    ("status", "body", "ends_as"),
    [
        (401, error("bad key"), "failed"),
        (403, error("not allowed"), "refused"),
        (404, error("no server may answer this"), "failed"),
        (307, b"", "failed"),
        (429, json.dumps({"error": {"message": "quota", "code": "insufficient_quota"}}).encode(), "failed"),
    ],
)
def test_an_error_of_one_request_is_no_error_of_all(
    status: int, body: bytes, ends_as: str, tokenizer: Tokenizer
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


@pytest.mark.parametrize("status", [401, 403])
def test_a_wrong_key_is_found_before_the_first_request(status: int, tokenizer: Tokenizer) -> None:
    with FakeEndpoint(tokenizer, serves=SERVES, before=lambda received: Fault(status, {}, error("no"))) as endpoint:
        backend = open_backend(MODEL, BackendOptions(base_url=endpoint.url))
        with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
            _ = backend.model


def test_a_model_that_is_not_there_is_named_with_those_that_are(tokenizer: Tokenizer) -> None:
    with FakeEndpoint(tokenizer) as endpoint:
        backend = open_backend("made/other", BackendOptions(base_url=endpoint.url))
        with pytest.raises(ConfigError, match=f"'made/other'.*{MODEL}"):
            _ = backend.model


@pytest.mark.slow
def test_nobody_there_is_a_config_error(tokenizer: Tokenizer) -> None:
    with FakeEndpoint(tokenizer) as endpoint:
        url = endpoint.url
    backend = open_backend(MODEL, BackendOptions(base_url=url))
    with pytest.raises(ConfigError, match="--base-url"):
        _ = backend.model


@pytest.mark.slow
def test_everything_at_once_ends_in_the_right_statuses(tokenizer: Tokenizer) -> None:
    rng = np.random.default_rng(3)
    kinds = [*PASSING.values(), lambda received: Fault(hang=True)]
    fate = {number: kinds[rng.integers(len(kinds))] for number in range(200) if rng.random() < 0.2}
    refused = {number for number in range(200) if number % 57 == 0}
    passing = {number: first_tries(kind, int(rng.integers(1, 3)), {number}) for number, kind in fate.items()}

    def before(received: Received) -> Fault | None:
        number = number_in(received)
        if number in refused:
            return Fault(400, {}, error("no"))
        return passing[number](received) if number in passing else None

    with FakeEndpoint(tokenizer, serves=SERVES) as endpoint:
        backend = opened(endpoint, timeout=1.0, concurrency=32)
        endpoint.before = before
        asked = Asked().of(backend, made(200))
        assert {place for place, response in asked.responses.items() if response.status == "failed"} == refused
        assert asked.statuses()["answered"] == 200 - len(refused)
        assert asked.n_attempts == endpoint.n_received
        assert set(endpoint.answered.values()) == {1}


def test_closing_ends_what_is_under_way_and_the_thread(tokenizer: Tokenizer) -> None:
    def threads() -> Iterator[str]:
        return (thread.name for thread in threading.enumerate() if thread.name == "openai-endpoint")

    with FakeEndpoint(tokenizer, serves=SERVES, delay=0.01) as endpoint:
        backend = opened(endpoint)
        steps = backend.ask(made(1000), frozenset(range(1000)))
        next(step for step in steps if isinstance(step, Answers))
        assert list(threads())
        steps.close()
        assert not list(threads())
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


def test_only_what_is_missing_is_asked(tokenizer: Tokenizer) -> None:
    with FakeEndpoint(tokenizer, serves=SERVES) as endpoint:
        backend = opened(endpoint)
        places = {
            place
            for step in backend.ask(made(9), frozenset({2, 8}))
            if isinstance(step, Answers)
            for place in step.responses
        }
        assert places == {2, 8}
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
