"""The openai backend through a batch API, also of servers that send what none should."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from biasboard.ground.errors import BiasboardError, ConfigError, RunError
from evaluators.backend import Answers, ChoiceRequest, GenerateRequest, Sent
from evaluators.backend_options import BackendOptions
from evaluators.backends.openai.batch_api import BatchLimits
from evaluators.backends.openai.openai_backend import OpenAIBackend, open_backend
from tests.evaluators.fake_endpoint import MODEL, FakeEndpoint, Received
from tests.evaluators.openai_runs import Asked, ask, made


@dataclass
class FakeBatchEndpoint(FakeEndpoint):
    """A server with a batch API: files and batches, worked through when they are looked at."""

    forbids_looking: bool = False
    ends_as: str = "completed"
    edit: Callable[[list[dict[str, Any]]], list[dict[str, Any]]] = lambda lines: lines
    """What becomes of the output."""
    spoilt: dict[str, Any] = field(default_factory=dict)
    """What is answered instead, by method and path."""
    uploads: list[list[dict[str, Any]]] = field(default_factory=list)
    batches: dict[str, dict[str, Any]] = field(default_factory=dict)
    answers: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Lines of the output, by the number of the input."""

    def other(self, method: str, path: str, content: bytes) -> tuple[int, Any]:
        """Files and batches."""
        if (name := f"{method} {path.partition('?')[0]}") in self.spoilt:
            return 200, self.spoilt[name]
        if (method, path) == ("POST", "/files"):
            # The lines of the one file in a multipart form.
            lines = [line for line in content.decode().split("\n") if line.startswith("{")]
            self.uploads.append([json.loads(line) for line in lines])
            return 200, {"id": f"file-{len(self.uploads) - 1}", "object": "file", "purpose": "batch", "filename": "x"}
        if (method, path) == ("POST", "/batches"):
            batch_id = f"batch-{len(self.batches)}"
            self.batches[batch_id] = {**json.loads(content), "id": batch_id, "status": "validating", "looks": 0}
            return 200, self.batches[batch_id]
        if path.startswith("/batches?"):
            return 200, {"data": list(self.batches.values())}
        if path.startswith("/batches/") and self.forbids_looking:
            return 401, {"error": {"message": "the key has expired"}}
        if path.startswith("/batches/"):
            batch = self.batches.get(path.rpartition("/")[2])
            return (404, {"error": {"message": "no such batch"}}) if batch is None else (200, self._looked_at(batch))
        if path.startswith("/files/"):
            return 200, self._output(path.split("/")[2])
        return super().other(method, path, content)

    def _looked_at(self, batch: dict[str, Any]) -> dict[str, Any]:
        batch["looks"] += 1
        if batch["looks"] > 1 and batch["status"] != self.ends_as:
            batch["status"] = self.ends_as
            number = batch["input_file_id"].removeprefix("file-")
            if self.ends_as == "failed":
                batch["errors"] = {"data": [{"message": "line 1 is no request"}]}
            else:
                batch |= {"output_file_id": f"out-{number}", "error_file_id": f"err-{number}"}
        return batch

    def _output(self, name: str) -> bytes:
        kind, _, number = name.partition("-")
        if number not in self.answers:
            self.answers[number] = self._work(int(number))
        lines = [line for line in self.answers[number] if (line["response"]["status_code"] == 200) == (kind == "out")]
        edited = self.edit(lines) if kind == "out" else lines
        return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in edited).encode()

    def _work(self, number: int) -> list[dict[str, Any]]:
        lines = []
        for place, line in enumerate(self.uploads[number]):
            status, answer = self.answer(Received(place, line["url"].removeprefix("/v1"), line["body"], {}, 0.0))
            response = {"status_code": status, "request_id": "made", "body": answer}
            lines.append({"id": "made", "custom_id": line["custom_id"], "response": response, "error": None})
        return lines


CHAT = frozenset({"chat", "top_logprobs", "models"})
KEY = "sk-made-0123456789-abcdef"
REQUESTS = made(20)
EVERY = frozenset(range(20))
Lines = list[dict[str, Any]]
Edit = Callable[[Lines], Lines]


def opened(
    endpoint: FakeBatchEndpoint, state: Path | None = None, seconds: float = 60.0, **options: Any
) -> OpenAIBackend:
    backend = open_backend(MODEL, BackendOptions(base_url=endpoint.url, batch=True, **options))
    backend.batch_limits = BatchLimits(poll_seconds=0.01, most_seconds=seconds)
    backend.state_path = state
    return backend


@pytest.mark.slow
def test_generations_and_choices_come_back_through_files(tokenizer: Tokenizer, tmp_path: Path) -> None:
    letters = ChoiceRequest(prompt="A or B?", options=(" A", " B"), outcomes=("a", "b"))
    # A line of a file ends at a line feed alone.
    odd = GenerateRequest(prompt="Say\u2028it\x85now", max_tokens=3)
    with FakeBatchEndpoint(tokenizer, serves=CHAT) as endpoint:
        backend = opened(endpoint, tmp_path / "batch.json")
        found, n_attempts = ask(backend, [*REQUESTS, letters, odd])
        # Two to find out what it can do, and a line per request.
        assert n_attempts == endpoint.n_received + len(endpoint.uploads[0])
        assert len(endpoint.uploads[0]) == 22
        assert {batch["endpoint"] for batch in endpoint.batches.values()} == {"/v1/chat/completions"}
    assert [found[place].text for place in range(20)] == [f"You said: Say {number}" for number in range(20)]
    assert found[20].option_logprobs == pytest.approx((-0.7, -1.2))
    assert found[21].text == f"You said: {odd.prompt}"
    assert not (tmp_path / "batch.json").exists()


def test_options_that_take_several_calls_are_refused(folder: Path, tokenizer: Tokenizer) -> None:
    options = (" the engineer", " the nurse", " he")
    request = ChoiceRequest(prompt="The nurse waited for", options=options, outcomes=options)
    with FakeBatchEndpoint(tokenizer, serves=frozenset({"option_trie", "models"})) as endpoint:
        with pytest.raises(ConfigError, match="--batch sends one call per request"):
            ask(opened(endpoint, None, tokenizer=str(folder)), [request], frozenset({0}))
        assert endpoint.uploads == []


def test_what_a_batch_answered_before_it_ended_is_kept_and_errors_have_a_file(tokenizer: Tokenizer) -> None:
    # In any order, repeated or not at all.
    with FakeBatchEndpoint(
        tokenizer, serves=CHAT, edit=lambda lines: [*reversed(lines[1:]), lines[3]], ends_as="expired"
    ) as endpoint:
        found, _ = ask(opened(endpoint), REQUESTS)
    assert found[0].status == "failed"
    assert "run the same command again" in str(found[0].error)
    assert [found[place].text for place in range(1, 20)] == [f"You said: Say {number}" for number in range(1, 20)]
    requests = [*REQUESTS[:3], GenerateRequest(prompt="Say 3", max_tokens=3, json_schema='{"type": "object"}')]
    with FakeBatchEndpoint(tokenizer, serves=CHAT, refuses=frozenset({"response_format"})) as endpoint:
        found, _ = ask(opened(endpoint), requests)
    assert [found[place].status for place in range(4)] == ["answered", "answered", "answered", "failed"]
    assert "'response_format'" in str(found[3].error)


@pytest.mark.slow
@pytest.mark.parametrize("batch_id_is_known", [True, False])
def test_a_killed_run_finds_its_batch_again(batch_id_is_known: bool, tokenizer: Tokenizer, tmp_path: Path) -> None:
    state = tmp_path / "batch.json"
    n_attempts = 0
    with FakeBatchEndpoint(tokenizer, serves=CHAT, forbids_looking=True) as endpoint:
        steps = opened(endpoint, state).ask(REQUESTS, EVERY)
        with pytest.raises(RunError, match="expired") if batch_id_is_known else nullcontext():
            for step in steps:
                assert isinstance(step, Sent)
                n_attempts += step.n_attempts
                # It is uploaded, but not yet created.
                if step.n_attempts == 20 and not batch_id_is_known:
                    break
        steps.close()
        assert state.is_file()
        assert len(endpoint.batches) == batch_id_is_known
        endpoint.forbids_looking = False
        again = opened(endpoint, state)
        # Some answers of it may have been stored before the kill.
        found, more_attempts = ask(again, REQUESTS, EVERY - {4, 5})
        assert (len(endpoint.uploads), len(endpoint.batches)) == (1, 1)
        # Nothing but what finding out took.
        assert n_attempts + more_attempts == 20 + endpoint.n_received
    assert {place: response.text for place, response in found.items()} == {
        place: f"You said: Say {place}" for place in EVERY - {4, 5}
    }
    assert not state.exists()


@pytest.mark.parametrize("batch_id_is_known", [True, False])
def test_a_batch_is_not_forgotten_before_its_answers_are_stored(
    batch_id_is_known: bool, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    state = tmp_path / "batch.json"
    with FakeBatchEndpoint(tokenizer, serves=CHAT) as endpoint:
        steps = opened(endpoint, state).ask(REQUESTS, EVERY)
        next(step for step in steps if isinstance(step, Answers))
        steps.close()  # As if killed while the answers are stored.
        assert state.is_file()
        if not batch_id_is_known:  # As if killed after the endpoint had created the batch, and before it said so.
            state.write_text(state.read_text(encoding="utf-8").replace('"batch-0"', "null"), encoding="utf-8")
        found, _ = ask(opened(endpoint, state), REQUESTS)
        assert (len(endpoint.uploads), len(endpoint.batches)) == (1, 1)
    assert len(found) == 20


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "sizes"), [({"lines": 7}, [7, 7, 6]), ({"bytes": 1000}, [*[3] * 6, 2])])
def test_large_runs_are_split(limit: dict[str, int], sizes: list[int], tokenizer: Tokenizer) -> None:
    with FakeBatchEndpoint(tokenizer, serves=CHAT) as endpoint:
        backend = opened(endpoint)
        backend.batch_limits = BatchLimits(poll_seconds=0.01, **limit)
        found, _ = ask(backend, REQUESTS)
    assert len(found) == 20
    assert [len(lines) for lines in endpoint.uploads] == sizes


@pytest.mark.slow
def test_the_discount_of_the_batch_api_is_counted(tokenizer: Tokenizer, tmp_path: Path) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text(f'["{MODEL}"]\ninput = 1000\noutput = 2000\nbatch_discount = 0.5\n')
    with FakeBatchEndpoint(tokenizer, serves=CHAT) as endpoint:
        backend = opened(endpoint, tmp_path / "batch.json", prices=prices)
        assert backend.capabilities
        of_probing = endpoint.n_prompt_tokens
        steps = list(backend.ask(REQUESTS, EVERY))
        n_prompt = endpoint.n_prompt_tokens - of_probing
        with pytest.raises(RunError, match="does not cover the batch"):
            ask(opened(endpoint, prices=prices, max_cost=0.25), REQUESTS)
        assert len(endpoint.uploads) == 1
    costs = [step.cost_usd for step in steps if isinstance(step, Sent)][1:]
    assert None not in costs
    # Three tokens each are answered.
    assert sum(cost or 0 for cost in costs) == pytest.approx(0.5 * (n_prompt * 1000 + 20 * 3 * 2000) / 1e6)


def _first(**response: Any) -> Edit:
    """A change of the first line's response."""
    return lambda lines: [{**lines[0], "response": {**lines[0]["response"], **response}}, *lines[1:]]


def _body(text: str, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    return {"model": MODEL, "choices": [choice], **more}


def _other(line: dict[str, Any]) -> dict[str, Any]:
    return {**line, "response": {"status_code": 200, "body": _body("another answer")}}


HARMLESS: dict[str, Edit] = {
    "lines that nobody asked for": lambda lines: [*(_other(one) | {"custom_id": f"x-{n}"} for n,
        one in enumerate(lines)), *lines],
    "ids of every kind": lambda lines: [*(_other(lines[0]) | {"custom_id": one} for one in (None, 7, ["x"])), *lines],
    "lines that are no objects": lambda lines: [*lines, [], None, 7, "x"],  # type: ignore[list-item]
}  # fmt: skip
"""What changes no answer."""

SPOILT: dict[str, Edit] = {
    "two lines with different contents": lambda lines: [*lines, _other(lines[0])],
    "an error with status 200": _first(body={"error": {"message": "no", "code": 500}}),
    "a text as body": _first(body="no"),
    "a status in letters": _first(status_code="200"),
    "no response": lambda lines: [{**lines[0], "response": None}, *lines[1:]],
    "an error beside a whole answer": lambda lines: [{**lines[0], "error": {"message": "cancelled"}}, *lines[1:]],
}
"""What costs one answer."""


@pytest.mark.parametrize("name", [*HARMLESS, *SPOILT])
def test_lines_that_no_server_should_send_change_no_other_answer(name: str, tokenizer: Tokenizer) -> None:
    edit = (HARMLESS | SPOILT)[name]
    with FakeBatchEndpoint(tokenizer, serves=CHAT, edit=edit) as endpoint:
        found, _ = ask(opened(endpoint), made(5))
    right = range(0 if name in HARMLESS else 1, 5)
    assert {place: found[place].text for place in right} == {place: f"You said: Say {place}" for place in right}
    if name in SPOILT:
        assert found[0].status in ("failed", "refused")
        assert found[0].text is None
        assert len(str(found[0].error)) < 500


def test_a_file_is_read_line_by_line(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = b"\n\n" + b"[" * 200_000 + b"\n\xff\xfe\x00\n" + b'{"custom_id": "x'
    with FakeBatchEndpoint(tokenizer, serves=CHAT) as endpoint:
        usual = endpoint._output
        windows = b"\xef\xbb\xbf%s"
        monkeypatch.setattr(endpoint, "_output", lambda file: windows % usual(file).replace(b"\n", b"\r\n") + odd)
        found, _ = ask(opened(endpoint), made(5))
    assert [found[place].text for place in range(5)] == [f"You said: Say {place}" for place in range(5)]


FILE, BATCH, LOOK = "POST /files", "POST /batches", "GET /batches/batch-0"
WRONG: dict[str, tuple[str, Any, str]] = {
    "a path as id": (BATCH, {"id": "../../models"}, "as the id of a batch"),
    "5,000 letters as id": (LOOK, {"status": "completed", "output_file_id": "x" * 5000}, "as the id of a file"),
    "the key as id": (BATCH, {"id": KEY}, "as the id of a batch"),
    "true as id": (BATCH, {"id": True}, "gives True as the id of a batch"),
    "a file without id": (FILE, {"object": "file"}, "gives None as the id of an uploaded file"),
    "no status": (LOOK, {"id": "batch-0"}, "gives None as the status of batch batch-0"),
    "errors in a text": (LOOK, {"status": "failed", "errors": "no"}, "no reason given"),
    "errors that are texts": (LOOK, {"status": "failed", "errors": {"data": ["a quota", KEY]}}, "a quota; "),
    "many errors": (LOOK, {"status": "failed", "errors": {"data": [KEY] * 9999}}, "was not accepted"),
    "a batch without end": (LOOK, {"status": "made\x1b[31m"}, "has not ended"),
    "a file that is too large": ("GET /files/out-0/content", b" " * 12_000_000, "larger than 9 MB"),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_answer_that_none_should_give_is_one_line_and_the_next_run_goes_on(
    name: str, tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    (call, answer, why), state = WRONG[name], tmp_path / "batch.json"
    with FakeBatchEndpoint(tokenizer, serves=CHAT, spoilt={call: answer}) as endpoint:
        with pytest.raises(RunError, match=why) as caught:
            ask(opened(endpoint, state, seconds=0.5), made(5))
        assert KEY not in str(caught.value)
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < 600
        assert not state.is_file() or KEY not in state.read_text()
        endpoint.spoilt.clear()
        found, _ = ask(opened(endpoint, state), made(5))
        assert len(endpoint.uploads) == 1 or name != "a batch without end"
    assert len(found) == 5


def test_a_key_in_a_file_reaches_nothing(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    bodies = iter([_body(f"It is {KEY}", model=KEY), {"error": {"message": f"not {KEY}", "code": KEY}}])
    with FakeBatchEndpoint(
        tokenizer,
        serves=CHAT,
        edit=lambda lines: [{**line, "response": {"status_code": 200, "body": next(bodies)}} for line in lines],
    ) as endpoint:
        backend = opened(endpoint)
        found, _ = ask(backend, made(2))
    said = capsys.readouterr()
    assert [response.status for response in found.values()] == ["answered", "failed"]
    assert KEY not in f"{found} {backend.runtime} {backend.model} {said.out} {said.err}"


STATES: dict[str, bytes] = {
    "a list": b"[]",
    "fields of another kind": b'{"model": "MODEL", "batches": [{"file_id": 1, "batch_id": [], "requests": "x"}]}',
    "another run": b'{"model": "another", "batches": []}',
}


@pytest.mark.parametrize("name", STATES)
def test_a_state_that_is_none_is_named(name: str, tokenizer: Tokenizer, tmp_path: Path) -> None:
    state = tmp_path / "pending.json"
    with FakeBatchEndpoint(tokenizer, serves=CHAT) as endpoint:
        backend = opened(endpoint, state)
        state.write_bytes(STATES[name].replace(b"MODEL", backend.model.identity_sha256.encode()))
        with pytest.raises(ConfigError if name == "another run" else BiasboardError) as caught:
            Asked().of(backend, made(5))
        assert not endpoint.uploads
    assert state.is_file()
    assert str(state) in str(caught.value)
