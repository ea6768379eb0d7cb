"""The batch API of servers that send what none should: no wrong answer, no stack trace, no wait without end, no key."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from biasboard.ground.errors import BiasboardError, RunError
from evaluators.backend_options import BackendOptions
from evaluators.backends.openai.batch_api import BatchLimits
from evaluators.backends.openai.openai_backend import OpenAIBackend, open_backend
from tests.evaluators.fake_batch_api import FakeBatchEndpoint
from tests.evaluators.fake_endpoint import MODEL
from tests.evaluators.openai_runs import Asked, ask, made

CHAT = frozenset({"chat", "models"})
KEY = "sk-made-0123456789-abcdef"
ALL = frozenset(range(5))
Lines = list[dict[str, Any]]


def opened(endpoint: FakeBatchEndpoint, state: Path | None = None, seconds: float = 60.0) -> OpenAIBackend:
    backend = open_backend(MODEL, BackendOptions(base_url=endpoint.url, batch=True))
    backend.batch_limits = BatchLimits(poll_seconds=0.01, most_seconds=seconds)
    backend.state_path = state
    return backend


def _first(**response: Any) -> Callable[[Lines], Lines]:
    """A change of the first line's response."""
    return lambda lines: [{**lines[0], "response": {**lines[0]["response"], **response}}, *lines[1:]]


def _body(text: str, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    return {"model": MODEL, "choices": [choice], **more}


def _other(line: dict[str, Any]) -> dict[str, Any]:
    return {**line, "response": {"status_code": 200, "body": _body("another answer")}}


NO_IDS: tuple[Any, ...] = (None, 7, [], {}, "\x1b[31m", "-", "x" * 100_000)
HARMLESS: dict[str, Callable[[Lines], Lines]] = {
    "lines that nobody asked for": lambda lines: [
        *(_other(one) | {"custom_id": f"x-{n}"} for n, one in enumerate(lines)),
        *lines,
    ],
    "numbers of calls that nobody made": lambda lines: [
        *lines,
        *(_other(one) | {"custom_id": one["custom_id"][:-1] + "7"} for one in lines),
    ],
    "the same lines twice": lambda lines: [*lines, *lines],
    "another order": lambda lines: lines[::-1],
    "ids of every kind": lambda lines: [*(_other(lines[0]) | {"custom_id": one} for one in NO_IDS), *lines],
    "ids in a list": lambda lines: [*lines, _other(lines[0]) | {"custom_id": [lines[0]["custom_id"]]}],
    "the key in an id": lambda lines: [*lines, {"custom_id": KEY, "response": KEY}],
    "lines that are no objects": lambda lines: [*lines, [], None, 7, "x"],  # type: ignore[list-item]
}
"""What changes no answer."""

SPOILT: dict[str, Callable[[Lines], Lines]] = {
    "no line": lambda lines: lines[1:],
    "two lines with different contents": lambda lines: [*lines, _other(lines[0])],
    "another line before": lambda lines: [_other(lines[0]), *lines],
    "an error with status 200": _first(body={"error": {"message": "no", "code": 500}}),
    "a text as body": _first(body="no"),
    "a list as body": _first(body=[_body("one"), _body("two")]),
    "no body": _first(body=None),
    "a status in letters": _first(status_code="200"),
    "a status that is none": _first(status_code=True),
    "status 500 with an answer": _first(status_code=500),
    "a list as response": lambda lines: [{**lines[0], "response": [lines[0]["response"]]}, *lines[1:]],
    "no response": lambda lines: [{**lines[0], "response": None}, *lines[1:]],
    "an error beside an answer": lambda lines: [
        {**lines[0], "error": {"message": "cancelled"}, "response": None},
        *lines[1:],
    ],
    "an error beside a whole answer": lambda lines: [{**lines[0], "error": {"message": "cancelled"}}, *lines[1:]],
    "nested errors": lambda lines: [
        {**lines[0], "error": json.loads("[" * 60 + "]" * 60), "response": None},
        *lines[1:],
    ],
    "lists in 100 lists": _first(body=json.loads("[" * 100 + "]" * 100)),
    "no choice": _first(body={"choices": []}),
    "two choices": _first(body=_body("x") | {"choices": [*_body("x")["choices"], *_body("y")["choices"]]}),
}
"""What costs one answer."""


@pytest.mark.parametrize("name", [*HARMLESS, *SPOILT])
def test_lines_that_no_server_should_send_change_no_other_answer(name: str, tokenizer: Tokenizer) -> None:
    edit = (HARMLESS | SPOILT)[name]
    with FakeBatchEndpoint(tokenizer, serves=CHAT, edit=edit) as endpoint:
        found, _ = ask(opened(endpoint), made(5))
    right = ALL if name in HARMLESS else ALL - {0}
    assert {place: found[place].text for place in right} == {place: f"You said: Say {place}" for place in right}
    if name in SPOILT:
        assert found[0].status in ("failed", "refused")
        assert found[0].text is None
        assert len(str(found[0].error)) < 500


FILES: dict[str, Callable[[bytes], bytes]] = {
    "a mark of UTF-8": lambda content: b"\xef\xbb\xbf" + content,
    "lines of Windows": lambda content: content.replace(b"\n", b"\r\n"),
    "empty lines": lambda content: content.replace(b"\n", b"\n\n\n"),
    "bytes that are no text": lambda content: b"\xff\xfe\n" + content + b"\x00\n",
    "a line without end": lambda content: content + b'{"custom_id": "x',
    "a nested line": lambda content: b"[" * 200_000 + b"\n" + content,
    "numbers without measure": lambda content: content.replace(
        b'"prompt_tokens":', b'"x": NaN, "prompt_tokens": 1%b, "y":' % (b"0" * 5000)
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_read_line_by_line(name: str, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeBatchEndpoint(tokenizer, serves=CHAT) as endpoint:
        usual = endpoint._output
        monkeypatch.setattr(endpoint, "_output", lambda file: FILES[name](usual(file)))
        found, _ = ask(opened(endpoint), made(5))
    assert [found[place].text for place in range(5)] == [f"You said: Say {place}" for place in range(5)]


IDS: dict[str, Any] = {
    "a path above": "../../models",
    "a path below the root": "/etc/passwd",
    "a query": "batch-0?x=1",
    "a part of a page": "batch-0#x",
    "an address": "http://127.0.0.1:9/x",
    "escapes of a path": "%2e%2e%2fmodels",
    "escape signs": "batch\x1b[31m",
    "a line break": "batch\n::error::x",
    "a space": "batch 0",
    "5,000 letters": "x" * 5000,
    "the key": KEY,
    "a list": ["batch-0"],
    "null": None,
    "true": True,
    "empty": "",
}
PLACES = ("POST /files", "POST /batches", "GET /batches/batch-0")
NO_FILE = ((PLACES[2], None), (PLACES[2], ""))


# A batch may have no file of errors.
@pytest.mark.parametrize(
    ("place", "name"), [(place, name) for place in PLACES for name in IDS if (place, IDS[name]) not in NO_FILE]
)
def test_ids_that_are_none_end_the_run(
    place: str, name: str, tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    state = tmp_path / "pending.json"
    answer = {"status": "completed", "output_file_id": IDS[name]} if place == PLACES[2] else {"id": IDS[name]}
    with (
        FakeBatchEndpoint(tokenizer, serves=CHAT, spoilt={place: answer}) as endpoint,
        pytest.raises(RunError, match="as the id of") as caught,
    ):
        Asked().of(opened(endpoint, state), made(5))
    assert KEY not in str(caught.value)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500
    assert not state.is_file() or KEY not in state.read_text()


ENDLESS: dict[str, dict[str, Any]] = {
    "in progress for ever": {"status": "in_progress"},
    "cancelling for ever": {"status": "cancelling"},
    "a state that is none": {"status": "made\x1b[31m"},
    "a state of 1 MB": {"status": "x" * 1_000_000},
}


@pytest.mark.parametrize("name", ENDLESS)
def test_a_batch_that_does_not_end_is_given_up_and_kept(name: str, tokenizer: Tokenizer, tmp_path: Path) -> None:
    state = tmp_path / "pending.json"
    spoilt = {"GET /batches/batch-0": ENDLESS[name]}
    with FakeBatchEndpoint(tokenizer, serves=CHAT, spoilt=spoilt) as endpoint:
        backend = opened(endpoint, state, seconds=0.1)
        with pytest.raises(RunError, match="has not ended") as caught:
            Asked().of(backend, made(5))
        endpoint.spoilt = {}
        found, _ = ask(opened(endpoint, state), made(5))
        assert len(endpoint.uploads) == 1
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500
    assert len(found) == 5


def test_a_file_that_is_too_large_is_not_read(tokenizer: Tokenizer) -> None:
    with (
        FakeBatchEndpoint(tokenizer, serves=CHAT, spoilt={"GET /files/out-0/content": b" " * 12_000_000}) as endpoint,
        pytest.raises(RunError, match="larger than 9 MB"),
    ):
        Asked().of(opened(endpoint), made(5))


@pytest.mark.parametrize("name", ["Completed", " completed ", "COMPLETED"])
def test_a_state_in_another_spelling_is_one(name: str, tokenizer: Tokenizer) -> None:
    ended = {"status": name, "output_file_id": "out-0"}
    with FakeBatchEndpoint(tokenizer, serves=CHAT, spoilt={"GET /batches/batch-0": ended}) as endpoint:
        found, _ = ask(opened(endpoint, seconds=1.0), made(5))
    assert {response.status for response in found.values()} == {"answered"}


@pytest.mark.parametrize("state", ["expired", "cancelled"])
def test_what_a_batch_answered_before_it_ended_early_is_kept(state: str, tokenizer: Tokenizer) -> None:
    with FakeBatchEndpoint(tokenizer, serves=CHAT, ends_as=state, edit=lambda lines: lines[:3]) as endpoint:
        found, _ = ask(opened(endpoint), made(5))
    assert [found[place].status for place in range(5)] == ["answered"] * 3 + ["failed"] * 2


ECHOED: dict[str, dict[str, Any]] = {
    "the text": _body(f"It is {KEY}"),
    "the reasoning": {"choices": [{"index": 0, "message": {"content": "A", "reasoning": KEY}}]},
    "finish_reason": {"choices": [{"index": 0, "finish_reason": KEY, "message": {"content": "A"}}]},
    "the model": _body("A", model=KEY),
    "the fingerprint": _body("A", system_fingerprint=KEY),
    "an error": {"error": {"message": f"not {KEY}", "code": KEY}},
    "a refusal": {"choices": [{"index": 0, "message": {"refusal": f"not {KEY}"}}]},
}


@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize("name", ECHOED)
def test_a_key_in_a_file_reaches_nothing(
    name: str, status: int, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    edit = _first(body=ECHOED[name], status_code=status)
    with FakeBatchEndpoint(tokenizer, serves=CHAT, edit=edit) as endpoint:
        backend = opened(endpoint)
        found, _ = ask(backend, made(5))
    said = capsys.readouterr()
    assert KEY not in f"{found} {backend.runtime} {backend.model} {said.out} {said.err}"


@pytest.mark.parametrize(
    "errors",
    [
        [{"message": KEY}],
        {"data": [{"message": {KEY: KEY}}]},
        {"data": [json.loads("[" * 60 + "]" * 60)]},
        {"data": [KEY] * 9999},
    ],
    ids=["a list", "an object", "nested", "many"],
)
def test_errors_of_a_batch_are_one_line(errors: Any, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    failed = {"status": "failed", "errors": errors}
    with (
        FakeBatchEndpoint(tokenizer, serves=CHAT, spoilt={"GET /batches/batch-0": failed}) as endpoint,
        pytest.raises(RunError, match="was not accepted") as caught,
    ):
        Asked().of(opened(endpoint), made(5))
    assert KEY not in str(caught.value)
    assert len(str(caught.value)) < 600


STATES: dict[str, bytes] = {
    "random bytes": b"\xff\x00\x80",
    "a list": b"[]",
    "a text": b'"x"',
    "no batches": b'{"model": "MODEL"}',
    "batches that are none": b'{"model": "MODEL", "batches": [1, null]}',
    "fields of another version": b'{"model": "MODEL", "batches": [{"file_id": "f", "other": 1}]}',
    "fields of another kind": b'{"model": "MODEL", "batches": [{"file_id": 1, "batch_id": [], "requests": "x"}]}',
    "another run": b'{"model": "another", "batches": []}',
}


@pytest.mark.parametrize("name", STATES)
def test_a_state_that_is_none_is_named(name: str, tokenizer: Tokenizer, tmp_path: Path) -> None:
    state = tmp_path / "pending.json"
    with FakeBatchEndpoint(tokenizer, serves=CHAT) as endpoint:
        backend = opened(endpoint, state)
        state.write_bytes(STATES[name].replace(b"MODEL", backend.model.identity_sha256.encode()))
        with pytest.raises(BiasboardError) as caught:
            Asked().of(backend, made(5))
        assert not endpoint.uploads
    assert str(state) in str(caught.value)
