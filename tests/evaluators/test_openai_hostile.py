"""The openai backend against servers that send what none should: no stack trace, no wait without end, no loss."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from biasboard.ground.errors import ConfigError
from evaluators.backend import ChoiceRequest, GenerateRequest, Response
from evaluators.backend_options import BackendOptions
from evaluators.backends.openai.client import _certificates, read_json
from evaluators.backends.openai.openai_backend import open_backend
from evaluators.backends.openai.protocol import logprob, token_id, usage
from evaluators.runs.measure.recording import _warn_of_tokens, sound, storable
from tests.evaluators.fake_endpoint import MODEL
from tests.evaluators.invoking import evaluators
from tests.evaluators.made_data import made_items, write_dataset
from tests.evaluators.openai_runs import (
    Asked,
    Raw,
    RawServer,
    chat,
    connected,
    kept,
    made,
    models,
    of_items,
    plain,
    served,
)


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


@pytest.mark.parametrize("given", ["9" * 400, "9" * 5000, "-5", "3.5", "1e400", "true", '"many"', "[]"])
def test_token_counts_that_are_none_are_unknown(given: str) -> None:
    answer = read_json(f'{{"usage": {{"prompt_tokens": {given}, "completion_tokens": 3}}}}'.encode())
    assert usage(answer) == (None, 3, 0)


def test_numbers_without_measure_are_no_numbers() -> None:
    assert usage({"usage": {"prompt_tokens": 9, "total_tokens": 3}}) == (9, None, 0)
    # Tokens of thinking that are counted in the total alone.
    assert usage({"usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 20}}) == (9, 11, 0)
    assert token_id(f"token_id:{'9' * 5000}") is None
    assert token_id("token_id:²") is None
    assert token_id("token_id:12") == 12
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


@pytest.mark.parametrize(("text", "n_used"), [("A", 1_000_000), ("A" * 5_000, 1)])
def test_tokens_that_no_answer_can_have_are_unknown_and_told_once(
    text: str, n_used: int, capsys: pytest.CaptureFixture[str]
) -> None:
    _warn_of_tokens.cache_clear()
    request = GenerateRequest(prompt="Say 1", max_tokens=16)
    for _ in range(2):
        answer = sound(request, Response(status="answered", text=text, n_completion_tokens=n_used))
        assert (answer.status, answer.text, answer.n_completion_tokens) == ("answered", text, None)
    assert capsys.readouterr().err.count("states numbers of tokens that its answers cannot have") == 1
    usual = Response(status="answered", text=text, n_completion_tokens=5_000)
    assert sound(request, usual) == usual


def test_a_reason_for_an_ending_is_no_longer_than_any() -> None:
    assert storable(Response(status="answered", text="A", finish_reason="s" * 3_000)).finish_reason == "s" * 100


def test_an_answer_that_no_tokens_can_hold_ends_the_run_soon(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "data", {"type1": made_items(30)})
    with of_items(lambda _: plain(chat("A" * 100_000))) as server:
        command = ["run", "--dataset", dataset, "--backend", "openai", "--model", MODEL, "--out", tmp_path / "runs"]
        result = evaluators(*command, "--base-url", server.url, "--prompt", "mcq2-generate-v1", "--concurrency", 1)
        assert server.n_received < 40
    assert result.exit_code == 3
    assert "the answer has 100,000 bytes, more than 16 tokens can hold; ask who runs the endpoint" in result.stderr
    assert not list((tmp_path / "runs").rglob("result.json"))


def test_probabilities_of_more_than_one_in_all_are_a_fault() -> None:
    request = ChoiceRequest(prompt="Who?", options=(" A", " B"), outcomes=("a", "b"))
    answer = sound(request, Response(status="answered", option_logprobs=(-0.1, -0.1)))
    assert answer.status == "failed"
    assert "probabilities that sum to 1.8" in str(answer.error)
