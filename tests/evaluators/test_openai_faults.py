"""The openai backend against an endpoint that fails: every request ends, none is asked again after it was answered.

What an endpoint asks for is waited for, what it bears is sent, and the console is told of outages: soon, again, and
when they are over.
"""

from __future__ import annotations

import asyncio
import email.utils
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer

from biasboard.ground.errors import ConfigError, RunError
from evaluators.backend import Answers, ChoiceRequest, GenerateRequest, Response
from evaluators.backend_options import BackendOptions
from evaluators.backends.openai.address import parse_address
from evaluators.backends.openai.client import Connection, _certificates, read_json
from evaluators.backends.openai.meanings import NoAnswerError, error_of
from evaluators.backends.openai.openai_backend import open_backend
from evaluators.backends.openai.pacing import Pacer, Patience
from evaluators.backends.openai.protocol import logprob, token_id, usage
from evaluators.runs.measure.recording import _warn_of_tokens, sound, storable
from evaluators.stores.store import read_answers
from schemas.folders.run_folder import read_result
from tests.commands import run, started
from tests.evaluators.fake_endpoint import MODEL, FakeEndpoint, Fault, Received
from tests.evaluators.invoking import evaluators, wait_for_answers
from tests.evaluators.made_data import made_items, write_dataset
from tests.evaluators.openai_runs import (
    SERVES,
    Asked,
    Raw,
    RawServer,
    chat,
    connected,
    error,
    first_tries,
    kept,
    made,
    models,
    number_in,
    of_items,
    opened,
    plain,
    served,
)

KEY = "sk-made-0123456789abcdef"
ADDRESS = parse_address("http://127.0.0.1:9/v1", None)
TALKATIVE = Patience(
    n_tries=1000, outage_seconds=30.0, longest_pause=0.1, fault_seconds=0.2, silent_seconds=0.1, repeat_seconds=0.3
)
PASSING: dict[str, Callable[[Received], Fault]] = {
    "429": lambda _: Fault(429, {}, error("slow down")),
    "cut in the middle": lambda _: Fault(cut=True, body=b'{"choices": ['),
}


@pytest.fixture
def endpoint(tokenizer: Tokenizer) -> Iterator[FakeEndpoint]:
    with FakeEndpoint(tokenizer, serves=SERVES) as served:
        yield served


@pytest.mark.slow
@pytest.mark.parametrize("name", PASSING)
def test_a_fault_that_passes_leaves_no_trace_but_the_count_and_one_that_does_not_fails_alone(
    name: str, endpoint: FakeEndpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    # Where a limit alone is met, it is waited for as long as others are answered.
    lost: set[int] = set() if name == "429" else {7}
    backend = opened(endpoint)
    passing, lasting = (first_tries(PASSING[name], n, of) for n, of in ((2, {1, 5, 6, 20}), (10**6, lost)))
    endpoint.before = lambda received: passing(received) or lasting(received)
    asked = Asked().of(backend, made(30))
    answered = {place: response.text for place, response in asked.responses.items() if place not in lost}
    assert answered == {place: f"You said: Say {place}" for place in range(30) if place not in lost}
    assert all("gave up after" in str(asked.responses[place].error) for place in lost)
    assert asked.n_attempts == endpoint.n_received
    assert {step.cost_usd for step in asked.sent} == {None}, "a price that nobody knows is no 0"
    tries = Counter(number for one in endpoint.received if (number := number_in(one)) not in lost)
    assert tries == {n: 3 if n in {1, 5, 6, 20} else 1 for n in {*range(30)} - lost}
    assert set(endpoint.answered.values()) == {1}
    assert capsys.readouterr().err == ""


@pytest.mark.slow
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


def test_no_key_of_an_address_is_shown_and_no_name_of_a_machine() -> None:
    with pytest.raises(ConfigError, match="OPENAI_API_KEY holds") as caught:
        parse_address("http://127.0.0.1:9/v1", "sk-one\nsk-two")
    assert "sk-" not in str(caught.value)
    path = "v1/0a1b2c3d4e5f60718293a4b5c6d7e8f9/sk-made-0123456789/openai"
    address = parse_address(f"https://gateway.example/{path}", None)
    assert address.url == f"https://gateway.example/{path}"
    assert address.shown == "https://gateway.example/v1/***/***/openai"
    assert address.clean(f"no route /{path} here") == "no route /v1/***/***/openai here"
    assert "0a1b2c3d" not in repr(address)
    for host in ("gpu:8000", "gpu.internal"):
        address = parse_address(f"http://{host}/v1", "", ())
        assert address.clean(f"{host} refused http://{host}/v1") == "the endpoint refused the endpoint"


def test_no_key_is_logged_or_raised(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    def echoing(received: Received) -> Fault | None:
        words = f"you sent {received.headers['authorization']}, with sk-another-key-9876543210"
        return None if number_in(received) < 0 else Fault(400, {}, error(words))

    with caplog.at_level("DEBUG"), FakeEndpoint(tokenizer, serves=SERVES) as endpoint:
        backend = opened(endpoint)
        endpoint.before = echoing
        asked = Asked().of(backend, made(2))
        endpoint.before = lambda received: Fault(401, {}, error(f"you sent {KEY}"))
        with pytest.raises(RunError) as caught:
            Asked().of(backend, made(2))
    raised = f"{caught!r} {caught.value} {caught.value.__cause__!r}"
    texts = f"{asked.responses} {raised} {vars(backend)} {backend.arguments} {backend.runtime} {caplog.text}"
    assert "you sent" in texts, "the case does not test what it is for"
    assert KEY not in texts
    assert "sk-another-key-9876543210" not in texts


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2.0),
        # In seconds, it would be longer than any wait that is taken.
        ({"retry-after-ms": "950"}, 0.95),
        ({"retry-after-ms": "200ms"}, 0.2),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1m1s20ms"}, 61.02),
        ({"x-ratelimit-remaining-tokens": "5", "x-ratelimit-reset-tokens": "1s"}, None),
        ({"retry-after": "Sun, 06 Nov 999999 08:49:37 GMT"}, None),
    ],
)
def test_a_wait_is_read_from_any_of_the_usual_headers(headers: dict[str, str], seconds: float | None) -> None:
    assert error_of(429, {}, str, headers).retry_after == pytest.approx(seconds)
    # A date has whole seconds.
    in_an_hour = {"retry-after": email.utils.formatdate(time.time() + 3600, usegmt=True)}
    assert error_of(429, {}, str, in_an_hour).retry_after == pytest.approx(3600, abs=2)


@pytest.mark.slow
def test_a_limit_that_is_used_up_is_waited_for(endpoint: FakeEndpoint) -> None:
    spent = {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "300ms"}
    backend = opened(endpoint, concurrency=1)
    endpoint.headers = lambda received: spent if number_in(received) == 2 else {}
    assert Asked().of(backend, made(5)).statuses() == {"answered": 5}
    times = [received.seconds for received in endpoint.received]
    assert times[3] - times[2] >= 0.3


def test_a_wait_or_an_outage_that_is_too_long_ends_the_run_with_the_last_words() -> None:
    pacer = Pacer(Connection(ADDRESS, 1.0, 1), Patience())
    with pytest.raises(RunError, match="asks to wait 86400 s"):
        pacer.failed(NoAnswerError("busy", "limited", status=429, retry_after=86400.0), time.monotonic())
    with pytest.raises(RunError, match="asks to wait inf s"):
        pacer.answered(float("inf"))
    loading = NoAnswerError("HTTP 503: loading the model", "passing", status=503)
    pacer = Pacer(Connection(ADDRESS, 1.0, 1), Patience(outage_seconds=0.05))
    pacer.failed(loading, time.monotonic())
    time.sleep(0.1)
    with pytest.raises(RunError, match=r"HTTP 503: loading the model\. .* run the same command again when it is back"):
        pacer.failed(loading, time.monotonic())
    # Nor may waits that it asks for follow each other for ever.
    busy = NoAnswerError("busy", "limited", status=429, retry_after=1.5)
    pacer = Pacer(Connection(ADDRESS, 1.0, 1), Patience(outage_seconds=1.0, longest_retry_after=2.0))
    with pytest.raises(RunError, match="answered nothing for 4 s"):
        pacer.failed(busy, time.monotonic() - 3.5)


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
        backend = opened(endpoint, concurrency=12)
        Asked().of(backend, made(54))
        assert endpoint.most_at_a_time == 12
        endpoint.delay = 0.02

        def before(received: Received) -> Fault | None:
            under_way.append(endpoint._under_way)
            return Fault(429) if endpoint._under_way > 3 else None

        endpoint.before = before
        asked = Asked().of(backend, made(120))
        assert asked.statuses() == {"answered": 120}
    # It settles around what the endpoint bears instead of trying 12 every time.
    assert np.mean(under_way[60:]) < 5


@pytest.mark.slow
def test_a_pause_in_which_the_limit_falls_ends_with_one_call_at_a_time() -> None:
    down, most = NoAnswerError("down", "passing", status=503, overload=True), 16
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


@pytest.mark.slow
def test_an_overload_halves_the_calls_at_a_time_and_a_wait_that_is_asked_for_holds_them_all() -> None:
    busy = NoAnswerError("busy", "limited", status=429, overload=True, retry_after=0.2)

    async def simulated() -> list[float]:
        pacer = Pacer(Connection(ADDRESS, 1.0, 16), Patience())
        for _ in range(16):
            pacer.answered()
        began = time.monotonic()
        # Calls that were under way together fail together, and from the half on a round of answers adds one call.
        for _ in range(2):
            pacer.failed(busy, began)
        for _ in range(8):
            pacer.answered()
        calls = [asyncio.create_task(pacer.start()) for _ in range(16)]
        begun, _ = await asyncio.wait(calls, timeout=0.5)
        return [call.result() - began for call in begun]

    waits = asyncio.run(simulated())
    assert len(waits) == 8
    assert min(waits) >= 0.2


@pytest.mark.slow
def test_nothing_runs_ahead_of_what_is_taken(endpoint: FakeEndpoint) -> None:
    backend = opened(endpoint, concurrency=8)
    endpoint.n_received = 0
    with closing(backend.ask(made(2000), frozenset(range(2000)))) as steps:
        n_answered = 0
        for step in steps:
            n_answered += len(step.responses) if isinstance(step, Answers) else 0
            if n_answered >= 30:
                break
        # While nobody takes an answer, what is under way ends, and nothing else begins.
        time.sleep(0.1)
        n_begun = endpoint.n_received
        time.sleep(0.1)
        assert endpoint.n_received == n_begun <= n_answered + 2 * 8


@pytest.mark.slow
def test_an_outage_is_told_of_again_and_again_until_it_is_over(
    endpoint: FakeEndpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    backend = opened(endpoint, TALKATIVE, concurrency=4)
    end = time.monotonic() + 0.9
    endpoint.before = lambda _: Fault(503, {}, error("loading")) if time.monotonic() < end else None
    assert Asked().of(backend, made(9)).statuses() == {"answered": 9}
    told = capsys.readouterr().err.splitlines()
    *outages, back = told
    assert len(outages) >= 2
    place = endpoint.url.split("/")[2]
    words = rf"no answer from {place} for \d s: HTTP 503: loading; 9 requests wait; .* given up after 30 s; Ctrl-C"
    assert all(re.match(words, line) for line in outages)
    assert back.startswith(f"{place} answers again, after ")


def test_a_wait_and_a_silence_are_told_as_long_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    async def started() -> Pacer:
        pacer = Pacer(Connection(ADDRESS, 3.0, 4), TALKATIVE)
        await pacer.start()
        return pacer

    silent = asyncio.run(started())
    silent.look(4)
    assert capsys.readouterr().err == "", "a server that is slow is no silent one"
    time.sleep(0.15)
    silent.look(4)
    assert "no answer from 127.0.0.1:9 for 0 s; 4 requests wait, each up to 3 s; Ctrl-C" in capsys.readouterr().err
    silent.look(4)
    assert capsys.readouterr().err == "", "it was told again at once"
    limited = Pacer(Connection(ADDRESS, 3.0, 4), TALKATIVE)
    limited.answered(899.0)
    limited.look(3)
    assert "asks to wait 899 s (its rate limit is used up); 3 requests wait; Ctrl-C" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["refused", "no handshake"])
def test_a_server_that_is_not_there_is_one_error_in_seconds(kind: str) -> None:
    with ExitStack() as sockets:
        listening = sockets.enter_context(socket.socket())
        listening.bind(("127.0.0.1", 0))
        if kind == "no handshake":
            # With a full queue, the system answers no further attempt to connect.
            listening.listen(0)
            for _ in range(4):
                waiting = sockets.enter_context(socket.socket())
                waiting.setblocking(False)
                waiting.connect_ex(listening.getsockname())
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        with pytest.raises(ConfigError) as caught:
            _ = open_backend(MODEL, BackendOptions(base_url=url, timeout=0.4)).model
    reason = "connection refused" if kind == "refused" else "no connection within 0.4 s"
    assert f"cannot be reached: {reason}; start the server, or check --base-url" in str(caught.value)


@pytest.mark.slow
def test_killed_and_resumed_nothing_that_was_stored_is_asked_again(tokenizer: Tokenizer, tmp_path: Path) -> None:
    dataset, out = write_dataset(tmp_path / "pairs", {"type2": made_items(30)}), tmp_path / "runs"

    def lettered(received: Received, answer: dict[str, Any]) -> dict[str, Any]:
        # A refusal is an answer too.
        refusal = "I will not say that." if received.number % 7 == 0 else None
        answer["choices"][0]["message"] = {"role": "assistant", "content": "A", "refusal": refusal}
        return answer

    def answered() -> list[int]:
        return [n for text, n in server.answered.items() if "The clock on the wall" not in text]

    with FakeEndpoint(tokenizer, serves=SERVES, alter=lettered, delay=0.005) as server:
        model = ("--backend", "openai", "--model", MODEL, "--base-url", server.url, "--concurrency", 4)
        command = ("-m", "biasboard", "run", "--dataset", dataset, *model, "--prompt", "mcq2-generate-v1", "--out", out)
        with started(*command) as first:
            wait_for_answers(out, first, at_least=12)
            first.kill()
        time.sleep(0.1)
        (store,), n_answered = out.rglob("responses.sqlite"), sum(answered())
        n_lost = n_answered - len(read_answers(store))
        assert not list(out.rglob("result.json")), "it was over before it could be killed"
        run(*command, status=0)
        assert sum(n - 1 for n in answered()) == n_lost <= 4, "more than what was on its way"
    assert read_result(next(out.rglob("result.json")).parent).counts.refused > 0


def test_what_follows_an_answer_is_no_answer_to_the_next_request() -> None:
    smuggled = kept(chat("smuggled"))
    with of_items(lambda prompt: Raw(kept(chat(f"It is {prompt}")) + smuggled, stays=True)) as server:
        asked = Asked().of(connected(server, concurrency=1, timeout=5.0), made(4))
    assert [asked.responses[place].text for place in range(4)] == [f"It is Say {place}" for place in range(4)]


ENVIRONMENTS: dict[str, tuple[str, str, str]] = {
    "a proxy with a password": ("http_proxy", "ftp://me:pass-word-5@127.0.0.1", "http_proxy: Unknown scheme for proxy"),
    "a proxy that needs a library": ("ALL_PROXY", "socks5://127.0.0.1:9", "ALL_PROXY: Using SOCKS proxy"),
    "a proxy that is not there": ("HTTP_PROXY", "http://127.0.0.1:9", "refused, by the proxy in HTTP_PROXY"),
    "certificates that are not there": ("SSL_CERT_FILE", "/not/there", "SSL_CERT_FILE: cannot be read ("),
    "an unfinished host": ("OPENAI_BASE_URL", "http://[", "--base-url (or OPENAI_BASE_URL) is not valid"),
    "a host that is none": ("OPENAI_BASE_URL", "http://\u2603/v1", "--base-url (or OPENAI_BASE_URL) is not valid"),
}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_what_the_environment_says_wrong_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    variable, value, message = ENVIRONMENTS[name]
    for other in ("SSL_CERT_DIR", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(other, raising=False)
    _certificates.cache_clear()
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError) as caught:
        _ = open_backend(MODEL, BackendOptions()).model
    _certificates.cache_clear()
    assert message in str(caught.value)
    assert "pass-word-5" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_server_that_drips_from_the_start_is_given_up_before_the_first_item() -> None:
    with served(lambda sent: Raw(plain(chat()).content, pause=0.2)) as server:
        with pytest.raises(ConfigError, match=r"no answer within 0\.1 s"):
            _ = connected(server, timeout=0.1).model
        assert server.n_received == 2, "the same was tried again"


def test_numbers_that_are_none_or_without_measure_are_unknown() -> None:
    for given in ("9" * 400, "9" * 5000, "-5", "3.5", "1e400", "true", '"many"', "[]"):
        answer = read_json(f'{{"usage": {{"prompt_tokens": {given}, "completion_tokens": 3}}}}'.encode())
        assert usage(answer) == (None, 3, 0), given
    assert usage({"usage": {"prompt_tokens": 9, "total_tokens": 3}}) == (9, None, 0)
    # Tokens of thinking that are counted in the total alone.
    assert usage({"usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 20}}) == (9, 11, 0)
    assert (token_id(f"token_id:{'9' * 5000}"), token_id("token_id:²"), token_id("token_id:12")) == (None, None, 12)
    assert logprob(-1e308, what="it") == float("-inf")


def test_an_answer_in_another_name_is_recorded_and_warned_of_once(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["other/model"]
    with of_items(lambda _: plain(chat(model=names[-1]))) as server:
        backend = connected(server)
        before = backend.model
        for names[-1] in ("other/model", "other/model", "/srv/models/model.gguf", f"x at {server.url}"):
            Asked().of(backend, made(2))
    assert backend.model == before, "the name of the answer entered the identity"
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "answers as" in line]
    assert f"answers as 'other/model' and was asked for '{MODEL}'; results record it" in line
    # The test calls were answered in the model's own name; a path or an address may tell of the machine.
    answered = f"{MODEL}, model.gguf, other/model, x at the endpoint"
    assert backend.runtime.settings["models_that_answered"] == answered


def test_several_versions_behind_one_name_are_warned_of_when_the_second_answers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = [MODEL]
    with of_items(lambda _: plain(chat(model=names[-1]))) as server:
        backend = connected(server)
        Asked().of(backend, made(2))
        names += [f"{MODEL}-2025-06-01"]
        assert "answers as" not in capsys.readouterr().err
        Asked().of(backend, made(3)[2:])
        (line,) = [line for line in capsys.readouterr().err.splitlines() if "answers as" in line]
    assert f"answers as '{names[0]}' and '{names[1]}' and was asked for '{MODEL}'" in line


START: dict[str, tuple[Callable[[str], Raw], str]] = {
    "redirects": (lambda path: plain(b"", 301, more=f"location: {path}/\r\n"), "give the address behind them"),
    "a wrong key": (lambda path: plain({"error": "Unauthorized"}, 401), "check OPENAI_API_KEY"),
    "a wrong model": (lambda path: (plain(models("made/other", "zzz", "made/modell",
        "aaa")) if path.endswith("models") else plain({"error": {"message": "The model does not exist", "code": 404}},
        404)), "the endpoint has: made/modell, made/other, "),
    "closes at once": (lambda path: Raw(b""), "check --base-url"),
    "no /v1": (lambda path: plain({"detail": "Not Found"}, 404), "--base-url, which ends in /v1 for most"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", START)
def test_what_is_wrong_from_the_start_is_one_line_in_seconds(name: str) -> None:
    answer, message = START[name]
    with RawServer(lambda path, sent: answer(path)) as server:
        url = server.url.removesuffix("/v1") if name == "no /v1" else server.url
        with pytest.raises(ConfigError) as caught:
            _ = open_backend(MODEL, BackendOptions(base_url=url)).model
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_tokens_that_no_answer_can_have_are_unknown_and_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    request = GenerateRequest(prompt="Say 1", max_tokens=16)
    for text, n_used in (("A", 1_000_000), ("A" * 5_000, 1)):
        _warn_of_tokens.cache_clear()
        for _ in range(2):
            answer = sound(request, Response(status="answered", text=text, n_completion_tokens=n_used))
            assert (answer.status, answer.text, answer.n_completion_tokens) == ("answered", text, None)
        assert capsys.readouterr().err.count("states numbers of tokens that its answers cannot have") == 1
        usual = Response(status="answered", text=text, n_completion_tokens=5_000)
        assert sound(request, usual) == usual


def test_an_answer_that_no_tokens_can_hold_ends_the_run_soon(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "data", {"type1": made_items(30)})
    with of_items(lambda _: plain(chat("A" * 100_000))) as server:
        command = ["run", "--dataset", dataset, "--backend", "openai", "--model", MODEL, "--out", tmp_path / "runs"]
        result = evaluators(*command, "--base-url", server.url, "--prompt", "mcq2-generate-v1", "--concurrency", 1)
        assert server.n_received < 40
    assert result.exit_code == 3
    assert "the answer has 100,000 bytes, more than 16 tokens can hold; ask who runs the endpoint" in result.stderr
    assert not list((tmp_path / "runs").rglob("result.json"))


def test_probabilities_of_more_than_one_in_all_are_a_fault_and_no_reason_to_end_is_long() -> None:
    request = ChoiceRequest(prompt="Who?", options=(" A", " B"), outcomes=("a", "b"))
    answer = sound(request, Response(status="answered", option_logprobs=(-0.1, -0.1)))
    assert answer.status == "failed"
    assert "probabilities that sum to 1.8" in str(answer.error)
    assert storable(Response(status="answered", text="A", finish_reason="s" * 3_000)).finish_reason == "s" * 100
