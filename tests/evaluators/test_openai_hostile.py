"""The openai backend against servers that send what none should: no stack trace, no wait without end, no loss."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer
from typer.testing import Result

from biasboard.ground.errors import ConfigError, RunError
from evaluators.backend_options import BackendOptions
from evaluators.backends.openai.address import Address
from evaluators.backends.openai.client import _certificates
from evaluators.backends.openai.openai_backend import open_backend
from evaluators.backends.openai.protocol import logprob, token_id, usage
from evaluators.runs.measure.recording import _warn_of_tokens
from schemas.documents.record import Exchange
from schemas.folders.run_folder import read_run
from tests.evaluators.fake_endpoint import MODEL, FakeEndpoint, Received
from tests.evaluators.invoking import evaluators
from tests.evaluators.made_data import made_items, write_dataset
from tests.evaluators.openai_runs import Asked, Raw, RawServer, chat, connected, kept, made, models, of_items, plain

SMUGGLED: dict[str, bytes] = {
    "an answer": kept(chat("smuggled")),
    "half an answer": kept(chat("smuggled"))[:-9],
    "one letter": b"x",
}


@pytest.mark.parametrize("name", SMUGGLED)
def test_what_follows_an_answer_is_no_answer_to_the_next_request(name: str) -> None:
    with of_items(lambda prompt: Raw(kept(chat(f"It is {prompt}")) + SMUGGLED[name], stays=True)) as server:
        asked = Asked().of(connected(server, concurrency=1, timeout=5.0), made(4))
    assert [asked.responses[place].text for place in range(4)] == [f"It is Say {place}" for place in range(4)]


ENVIRONMENTS: dict[str, tuple[str, str, str]] = {
    "a proxy of another kind": ("HTTP_PROXY", "socks://127.0.0.1:9", "HTTP_PROXY: Unknown scheme for proxy"),
    "a proxy with a password": ("http_proxy", "ftp://me:pass-word-5@127.0.0.1", "http_proxy: Unknown scheme for proxy"),
    "a proxy that needs a library": ("ALL_PROXY", "socks5://127.0.0.1:9", "ALL_PROXY: Using SOCKS proxy"),
    "a proxy that is not there": ("HTTP_PROXY", "http://127.0.0.1:9", "refused, by the proxy in HTTP_PROXY"),
    "certificates that are not there": ("SSL_CERT_FILE", "/not/there", "SSL_CERT_FILE: cannot be read ("),
    "a folder of certificates": ("SSL_CERT_FILE", "/", "SSL_CERT_FILE: cannot be read ("),
    "certificates that are none": ("SSL_CERT_FILE", __file__, "SSL_CERT_FILE: cannot be read ("),
    "an unfinished host": ("OPENAI_BASE_URL", "http://[", "--base-url (or OPENAI_BASE_URL) is not valid"),
    "a host that is none": ("OPENAI_BASE_URL", "http://\u2603/v1", "--base-url (or OPENAI_BASE_URL) is not valid"),
    "a host of other letters": ("OPENAI_BASE_URL", "http://\u2100/v1", "--base-url (or OPENAI_BASE_URL) is not valid"),
    "a path without end": ("OPENAI_BASE_URL", f"http://h/{'x' * 70_000}", "--base-url (or OPENAI_BASE_URL) is not"),
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


@pytest.mark.slow
def test_a_server_that_drips_from_the_start_is_given_up_before_the_first_item() -> None:
    with RawServer(lambda path, sent: Raw(plain(chat()).content, pause=0.2)) as server:
        backend = open_backend(MODEL, BackendOptions(base_url=server.url, timeout=1.0))
        began = time.monotonic()
        with pytest.raises(ConfigError, match="no answer within 1 s"):
            _ = backend.model
        assert server.n_received == 2, "the same was tried again"
    assert time.monotonic() - began < 9


@pytest.mark.parametrize(
    "usage_text",
    ["9" * 400, "9" * 5000, "-5", "3.5", "1e400", "true", '"many"', "null", "[]"],
    ids=lambda text: text[:6] + str(len(text)),
)
def test_token_counts_that_are_none_are_unknown(usage_text: str) -> None:
    body = json.dumps(chat()).replace('"prompt_tokens": 9', f'"prompt_tokens": {usage_text}').encode()
    with of_items(lambda _: plain(body)) as server:
        asked = Asked().of(connected(server), made(3))
    assert asked.statuses() == {"answered": 3}
    assert {response.n_prompt_tokens for response in asked.responses.values()} == {None}
    assert {response.n_completion_tokens for response in asked.responses.values()} == {3}


def test_numbers_without_measure_are_no_numbers() -> None:
    assert usage({"usage": {"prompt_tokens": 9, "total_tokens": 3}}) == (9, None, 0)
    assert token_id(f"token_id:{'9' * 5000}") is None
    assert token_id("token_id:²") is None
    assert token_id("token_id:12") == 12
    assert logprob(-1e308, what="it") == float("-inf")


def test_a_wait_without_measure_ends_the_run() -> None:
    spent = f"x-ratelimit-remaining-tokens: 0\r\nx-ratelimit-reset-tokens: {'9' * 400}s\r\n"
    with of_items(lambda _: plain(chat(), more=spent)) as server, pytest.raises(RunError, match="asks to wait"):
        Asked().of(connected(server), made(30))


@pytest.mark.parametrize(
    ("said", "warned"),
    [
        ("other/model", True),
        ("made/model-mini", True),
        (MODEL, False),
        ("made/model-2024-08-06", False),
        ("model:latest", False),
        ("MADE/Model", False),
        ("/srv/models/model.gguf", False),
    ],
)
def test_an_answer_in_another_name_is_recorded_and_warned_of_once(
    said: str, warned: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    with of_items(lambda _: plain(chat(model=said))) as server:
        backend = connected(server)
        before = backend.model
        Asked().of(backend, made(9))
        Asked().of(backend, made(2))
        settings = backend.runtime.settings
        place = server.url.split("/")[2]
    assert backend.model == before, "the name of the answer entered the identity"
    lines = [line for line in capsys.readouterr().err.splitlines() if "answers as" in line]
    assert len(lines) == warned
    if warned:
        assert lines[0].startswith(f"warning: {place} answers as '{said}' and was asked for '{MODEL}'")
    if said != MODEL:
        assert said.rpartition("/srv/models/")[2] in settings["models_that_answered"]
        assert "/srv" not in settings["models_that_answered"]
    else:
        assert "models_that_answered" not in settings


START: dict[str, tuple[Callable[[str], Raw], str]] = {
    "a page everywhere": (lambda path: plain(b"<html></html>", kind="text/html"), "does not answer for model"),
    "nested everywhere": (lambda path: plain(b"[" * 200_000), "nested too deep"),
    "redirects": (lambda path: plain(b"", 301, more=f"location: {path}/\r\n"), "give the address behind them"),
    "a wrong key": (lambda path: plain({"error": "Unauthorized"}, 401), "check OPENAI_API_KEY"),
    "forbidden": (lambda path: plain(b"no", 403), "check OPENAI_API_KEY"),
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
        backend = open_backend(MODEL, BackendOptions(base_url=url))
        began = time.monotonic()
        with pytest.raises(ConfigError) as caught:
            _ = backend.model
        assert time.monotonic() - began < 10
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("is_openai", [False, True])
def test_a_tokenizer_is_named_where_there_may_be_completions(is_openai: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    with RawServer(lambda path, sent: plain(models() if path.endswith("models") else chat())) as server:
        backend = open_backend(MODEL, BackendOptions(base_url=server.url))
        monkeypatch.setattr(Address, "is_openai", is_openai)
        assert ("--tokenizer" in backend.runtime.obstacles.get("echo", "")) is not is_openai


def asked_of(folder: Path, answer: dict[str, Any]) -> tuple[Result, list[Exchange]]:
    """A run of 60 items, and the exchanges that it stored."""
    dataset = write_dataset(folder / "data", {"type1": made_items(30)})
    with of_items(lambda _: plain(answer)) as server:
        command = ["run", "--dataset", dataset, "--backend", "openai", "--model", MODEL, "--out", folder / "runs"]
        result = evaluators(*command, "--base-url", server.url, "--prompt", "mcq2-generate-v1", "--concurrency", 1)
    stored = [records for path in (folder / "runs").rglob("result.json") for records in read_run(path.parent).records]
    return result, [exchange for record in stored for exchange in record.exchanges]


USED: dict[str, dict[str, Any]] = {
    "a million tokens": chat("A", usage={"prompt_tokens": 9, "completion_tokens": 1_000_000}),
    "a million tokens in all": chat("A", usage={"prompt_tokens": 9, "total_tokens": 1_000_009}),
    "one token for 5 kB": chat("A" + " " * 5_000, usage={"prompt_tokens": 9, "completion_tokens": 1}),
}


@pytest.mark.parametrize("name", USED)
def test_tokens_that_no_answer_can_have_are_unknown_and_told(name: str, tmp_path: Path) -> None:
    _warn_of_tokens.cache_clear()
    result, exchanges = asked_of(tmp_path, USED[name])
    assert result.exit_code == 0, result.output
    assert {exchange.n_completion_tokens for exchange in exchanges} == {None}
    assert result.stderr.count("warning: the endpoint states numbers of tokens that its answers cannot have") == 1


def test_an_answer_that_no_tokens_can_hold_ends_the_run_soon(tmp_path: Path) -> None:
    result, exchanges = asked_of(tmp_path, chat("A" * 100_000))
    assert (result.exit_code, exchanges) == (3, [])
    assert "the answer has 100,000 bytes, more than 16 tokens can hold; ask who runs the endpoint" in result.stderr


def test_a_reason_for_an_ending_is_no_longer_than_any(tmp_path: Path) -> None:
    choice = {"index": 0, "finish_reason": "s" * 3_000_000, "message": {"content": "A"}}
    result, exchanges = asked_of(tmp_path, chat() | {"choices": [choice]})
    assert result.exit_code == 0, result.output
    assert {exchange.finish_reason for exchange in exchanges} == {"s" * 100}
    assert sum(path.stat().st_size for path in tmp_path.rglob("*")) < 1_000_000


def test_probabilities_that_verification_refuses_end_the_run_soon(
    folder: Path, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    def alter(received: Received, answer: dict[str, Any]) -> dict[str, Any]:
        for choice in answer["choices"] if "logprobs" in received.body else ():
            choice["logprobs"]["top_logprobs"] = [dict.fromkeys(choice["logprobs"]["top_logprobs"][0], -0.1)]
        return answer

    dataset = write_dataset(tmp_path / "data", {"type1": made_items(300)})
    with FakeEndpoint(tokenizer, alter=alter, serves=frozenset({"option_trie", "lists", "models"})) as endpoint:
        command = ["run", "--dataset", dataset, "--backend", "openai", "--model", MODEL, "--out", tmp_path / "runs"]
        more = ["--base-url", endpoint.url, "--tokenizer", folder, "--prompt", "intrinsic-v1", "--concurrency", 1]
        result = evaluators(*command, *more)
        assert endpoint.n_received < 40
    assert result.exit_code == 3
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert "each so far; last error: its options have probabilities that sum to 1." in line
    assert "and they exclude each other" in line
