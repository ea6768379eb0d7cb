"""The openai backend against endpoints that say the key which they were sent: it reaches no file and no console."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest

from biasboard.ground.kinds import BACKENDS
from biasboard.ground.plain_text import masked
from evaluators.backend import Response
from evaluators.backend_options import BackendOptions
from evaluators.backends.openai import openai_backend
from evaluators.backends.openai.address import parse_address
from evaluators.backends.openai.pacing import Patience
from evaluators.runs.measure.recording import storable
from tests.evaluators.fake_endpoint import MODEL
from tests.evaluators.invoking import evaluators
from tests.evaluators.made_data import made_items, write_dataset
from tests.evaluators.openai_runs import Raw, chat, choice, deltas, ended, of_items, plain, streamed

KEY = "sk-made/Key+0123456789-abcDEF"
PASSWORD = "wonderland"
OTHER = "team-secret-9"
STREAM = "text/event-stream"


ECHOES: dict[str, Callable[[str], Raw]] = {
    "in the text": lambda key: plain(chat(f"The nurse has {key}")),
    "in the reasoning": lambda key: plain(ended("stop", "The nurse", reasoning_content=f"They said \ud800{key}")),
    "in parts of the text": lambda key: plain(ended("stop", [{"type": "text", "text": part} for part in _halves(key)])),
    "as finish_reason": lambda key: plain(ended(key, "The nurse")),
    "as names": lambda key: plain(chat(model=key, system_fingerprint=key, **{key: key})),
    "far in an error": lambda key: plain({"error": {"message": "x" * 390 + key, "code": key, "param": key}}, 400),
    "in an error that is no JSON": lambda key: plain(b'<p>"' + _escaped(key).encode() + b'" {', 400),
    "in an answer that is no JSON": lambda key: plain(key.encode(), kind=f"text/{key}"),
    "as a redirect": lambda key: plain(b"", 307, more=f"location: /{key}\r\nx-request-id: {key}\r\n"),
    "in tokens": lambda key: plain(_with_tokens(key)),
    "streamed letter by letter": lambda key: streamed(*deltas(*({"content": sign} for sign in key))),
    "streamed as an error": lambda key: plain(f'event: error\ndata: {{"a": "{key}"}}\n\n'.encode(), kind=STREAM),
}


def _halves(key: str) -> tuple[str, str]:
    return key[: len(key) // 2], key[len(key) // 2 :]


def _escaped(key: str) -> str:
    return "".join(f"\\u{ord(sign):04x}" for sign in key)


def _with_tokens(key: str) -> dict[str, Any]:
    entry = {"token": key, "logprob": -0.5, "bytes": list(key.encode())}
    return choice(logprobs={"content": [{**entry, "top_logprobs": [entry]}]})


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give up soon what may pass."""
    opener = openai_backend.open_backend

    def opened(*arguments: Any) -> openai_backend.OpenAIBackend:
        backend = opener(*arguments)
        backend.patience = Patience(n_tries=2, call_seconds=0.0, outage_seconds=4.0, longest_pause=0.05)
        return backend

    monkeypatch.setattr(openai_backend, "open_backend", opened)


def written(folder: Path, answer: Raw) -> dict[str, str]:
    """All that a run leaves and says whose endpoint answers so."""
    dataset = write_dataset(folder / "data", {"type1": made_items(1)})
    with of_items(lambda _: answer) as server:
        command = ["run", "--dataset", dataset, "--backend", "openai", "--model", MODEL, "--out", folder / "runs"]
        how = ["--base-url", server.url, "--prompt", "mcq2-generate-v1", "--max-failure-rate", 1, "--concurrency", 1]
        result = evaluators(*command, *how, env={"OPENAI_API_KEY": KEY})
        assert server.n_received > 4, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    files = [path for path in (folder / "runs").rglob("*") if path.is_file()]
    texts = {path.name: path.read_bytes().decode("utf-8", "replace") for path in files}
    tables = {f"{path.name} read": str(pq.read_table(path).to_pylist()) for path in files if path.suffix == ".parquet"}
    return {"console": result.output + result.stderr, **texts, **tables}


@pytest.mark.slow
@pytest.mark.parametrize("name", ECHOES)
def test_a_key_that_is_said_reaches_nothing(name: str, tmp_path: Path) -> None:
    # In whatever case, and with whatever between its letters that nobody sees.
    spread = re.compile(r"[\s\u200b\u00ad]*".join(map(re.escape, KEY)), re.IGNORECASE)
    found = written(tmp_path, ECHOES[name](KEY))
    assert [place for place, text in found.items() if spread.search(text)] == []


SPELT: dict[str, Callable[[str], str]] = {
    "in capitals": str.upper,
    "in base64": lambda key: base64.b64encode(key.encode()).decode(),
    "in base64 for URLs": lambda key: base64.urlsafe_b64encode(f"x{key}x".encode()).decode(),
    "in hexadecimal": lambda key: key.encode().hex(),
    "escaped as in JSON": _escaped,
    "with escaped slashes": lambda key: key.replace("/", "\\/"),
    "as entities": lambda key: "".join(f"&#x{ord(sign):x};" for sign in key),
    "with signs that nobody sees": "\u200b".join,
    "escaped as in Python": lambda key: "".join(f"\\x{ord(sign):x}" for sign in key),
    "escaped as in JavaScript": lambda key: "".join(f"\\u{{{ord(sign):x}}}" for sign in key),
    "in a URL within a URL": lambda key: quote(quote(key, safe=""), safe=""),
}


@pytest.mark.parametrize("name", SPELT)
def test_a_key_in_another_spelling_is_hidden_too(name: str) -> None:
    found = masked(f"It is {SPELT[name](KEY)}, so", frozenset({KEY}))
    # The first and last signs of base64 also hold bits of what stands beside it.
    assert re.fullmatch(r"It is \w{0,10}\*\*\*[\w=]{0,4}, so", found)


def test_other_secrets_are_hidden_like_the_key_and_what_is_none_stays_in_answers() -> None:
    for secret, url, headers in (
        (PASSWORD, f"http://alice:{PASSWORD}@gateway", ()),
        ("YWxpY2U6d29uZGVybGFuZA==", f"http://alice:{PASSWORD}@gateway", ()),
        (OTHER, f"http://gateway?key={OTHER}", ()),
        (OTHER, "http://gateway", (f"X-Auth=Bearer {OTHER}",)),
    ):
        address = parse_address(url, None, headers)
        assert address.without_keys({secret: [f"It is {secret}."]}) == {"***": ["It is ***."]}
    told = "The empty room; alice is a nurse with basic arithmetic, 2026-01 and an-unset-key."
    named = ("anthropic-version=2023-06-01", "X-Title=nurse", "X-Kind=room")
    for key in ("EMPTY", "dummy", "ollama", None):
        address = parse_address("http://alice:pass-word-5@10.0.0.1/v1?api-version=2026-01", key, named)
        assert address.without_keys({"told": [told, 3, None]}) == {"told": [told, 3, None]}


def test_answers_of_every_backend_are_stored_without_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MADE_PROVIDER_KEY", KEY)
    backend = BACKENDS.get("baseline")("always-he", BackendOptions())
    told = Response(status="answered", text=f"1{KEY}", thinking=f"2{KEY}", finish_reason=f"3{KEY}", error=f"4{KEY}")
    kept = storable(told, backend.without_keys)
    assert (kept.text, kept.thinking, kept.finish_reason, kept.error) == ("1***", "2***", "3***", "4***")
