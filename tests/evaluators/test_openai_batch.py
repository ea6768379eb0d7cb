"""The openai backend through a batch API."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from biasboard.ground import strict_json
from biasboard.ground.errors import ConfigError, RunError
from evaluators.backend import Answers, ChoiceRequest, GenerateRequest, Request, Sent
from evaluators.backend_options import BackendOptions
from evaluators.backends.openai.batch_api import BatchLimits
from evaluators.backends.openai.openai_backend import OpenAIBackend, open_backend
from tests.evaluators.fake_batch_api import FakeBatchEndpoint
from tests.evaluators.fake_endpoint import MODEL
from tests.evaluators.openai_runs import ask

CHAT = frozenset({"chat", "top_logprobs", "models"})
REQUESTS: list[Request] = [GenerateRequest(prompt=f"Say {number}", max_tokens=3) for number in range(20)]
EVERY = frozenset(range(20))


def opened(endpoint: FakeBatchEndpoint, state: Path | None, **options: Any) -> OpenAIBackend:
    backend = open_backend(MODEL, BackendOptions(base_url=endpoint.url, batch=True, **options))
    backend.batch_limits = BatchLimits(poll_seconds=0.01)
    backend.state_path = state
    return backend


@pytest.mark.slow
def test_generations_and_choices_come_back_through_files(tokenizer: Tokenizer, tmp_path: Path) -> None:
    letters = ChoiceRequest(prompt="A or B?", options=(" A", " B"), outcomes=("a", "b"))
    with FakeBatchEndpoint(tokenizer, serves=CHAT) as endpoint:
        backend = opened(endpoint, tmp_path / "batch.json")
        found, n_attempts = ask(backend, [*REQUESTS, letters], EVERY | {20})
        # Two to find out what it can do, and a line per request.
        assert n_attempts == endpoint.n_received + len(endpoint.uploads[0])
        assert len(endpoint.uploads[0]) == 21
        assert {batch["endpoint"] for batch in endpoint.batches.values()} == {"/v1/chat/completions"}
    assert [found[place].text for place in range(20)] == [f"You said: Say {number}" for number in range(20)]
    assert found[20].option_logprobs == pytest.approx((-0.7, -1.2))
    assert not (tmp_path / "batch.json").exists()


@pytest.mark.slow
def test_requests_of_several_calls_are_put_together(folder: Path, tokenizer: Tokenizer, tmp_path: Path) -> None:
    options = (" the engineer", " the nurse", " he")
    request = ChoiceRequest(prompt="The nurse waited for", options=options, outcomes=options)
    with FakeBatchEndpoint(tokenizer, serves=frozenset({"option_trie", "models"})) as endpoint:
        one_by_one = open_backend(MODEL, BackendOptions(base_url=endpoint.url, tokenizer=str(folder)))
        expected, _ = ask(one_by_one, [request], frozenset({0}))
        found, _ = ask(opened(endpoint, None, tokenizer=str(folder)), [request], frozenset({0}))
        assert len(endpoint.uploads[0]) > 1
    assert found[0].option_logprobs == expected[0].option_logprobs


@pytest.mark.slow
def test_lines_may_come_in_any_order_repeated_or_not_at_all(tokenizer: Tokenizer, tmp_path: Path) -> None:
    def edit(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [*reversed(lines[1:]), lines[3]]

    with FakeBatchEndpoint(tokenizer, serves=CHAT, edit=edit, ends_as="expired") as endpoint:
        found, _ = ask(opened(endpoint, tmp_path / "batch.json"), REQUESTS)
    assert found[0].status == "failed"
    assert "run the same command again" in str(found[0].error)
    assert [found[place].text for place in range(1, 20)] == [f"You said: Say {number}" for number in range(1, 20)]


def test_a_line_ends_only_at_a_line_feed(tokenizer: Tokenizer) -> None:
    request = GenerateRequest(prompt="Say\u2028it\x85now", max_tokens=3)
    with FakeBatchEndpoint(tokenizer, serves=CHAT) as endpoint:
        found, _ = ask(opened(endpoint, None), [request])
    assert found[0].text == f"You said: {request.prompt}"


def test_errors_of_lines_are_read_from_the_error_file(tokenizer: Tokenizer, tmp_path: Path) -> None:
    requests: list[Request] = [
        *REQUESTS[:3],
        GenerateRequest(prompt="Say 3", max_tokens=3, json_schema='{"type": "object"}'),
    ]
    with FakeBatchEndpoint(tokenizer, serves=CHAT, refuses=frozenset({"response_format"})) as endpoint:
        found, _ = ask(opened(endpoint, tmp_path / "batch.json"), requests, frozenset(range(4)))
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


def test_a_batch_is_not_forgotten_before_its_answers_are_stored(tokenizer: Tokenizer, tmp_path: Path) -> None:
    state = tmp_path / "batch.json"
    with FakeBatchEndpoint(tokenizer, serves=CHAT) as endpoint:
        steps = opened(endpoint, state).ask(REQUESTS, EVERY)
        next(step for step in steps if isinstance(step, Answers))
        steps.close()  # As if killed while the answers are stored.
        assert state.is_file()
        found, _ = ask(opened(endpoint, state), REQUESTS)
        assert len(endpoint.uploads) == 1
    assert len(found) == 20


@pytest.mark.slow
def test_large_runs_are_split(tokenizer: Tokenizer, tmp_path: Path) -> None:
    with FakeBatchEndpoint(tokenizer, serves=CHAT) as endpoint:
        by_lines = opened(endpoint, tmp_path / "batch.json")
        by_lines.batch_limits = BatchLimits(lines=7, poll_seconds=0.01)
        found, _ = ask(by_lines, REQUESTS)
        assert [len(lines) for lines in endpoint.uploads] == [7, 7, 6]
        assert len(found) == 20
        endpoint.uploads.clear()
        endpoint.answers.clear()
        by_bytes = opened(endpoint, tmp_path / "batch.json")
        by_bytes.batch_limits = BatchLimits(bytes=1000, poll_seconds=0.01)
        found, _ = ask(by_bytes, REQUESTS)
        assert len(found) == 20
        assert len(endpoint.uploads) > 3
        assert all(sum(len(json.dumps(line)) + 1 for line in lines) <= 1000 for lines in endpoint.uploads)


@pytest.mark.slow
def test_a_batch_that_is_not_accepted_ends_the_run(tokenizer: Tokenizer, tmp_path: Path) -> None:
    with FakeBatchEndpoint(tokenizer, serves=CHAT, ends_as="failed") as endpoint:
        with pytest.raises(RunError, match="line 1 is no request"):
            ask(opened(endpoint, tmp_path / "batch.json"), REQUESTS)
        endpoint.ends_as = "completed"
        found, _ = ask(opened(endpoint, tmp_path / "batch.json"), REQUESTS)
    assert len(found) == 20


ENDED = {"input_file_id": "file-0", "id": "batch-0"}
SPOILT: dict[str, tuple[str, Any, str]] = {
    "a file without id": ("POST /files", {"object": "file"}, "gives None as the id of an uploaded file"),
    "a file that is a list": ("POST /files", [1], "gives None as the id of an uploaded file"),
    "a batch without id": ("POST /batches", {"data": []}, "gives None as the id of a batch"),
    "a batch with an object": ("POST /batches", {"id": {}}, "gives {} as the id of a batch"),
    "no status": ("GET /batches/batch-0", ENDED, "gives None as the status of batch batch-0"),
    "a list as status": ("GET /batches/batch-0", ENDED | {"status": []}, r"gives \[\] as the status"),
    "errors in a text": ("GET /batches/batch-0", ENDED | {"status": "failed", "errors": "no"}, "no reason given"),
    "errors that are texts": (
        "GET /batches/batch-0",
        ENDED | {"status": "failed", "errors": {"data": ["a quota", 3]}},
        "a quota; 3",
    ),
}


@pytest.mark.parametrize("name", SPOILT)
def test_a_batch_api_that_answers_what_none_should_ends_in_one_line(
    name: str, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    call, answer, why = SPOILT[name]
    with FakeBatchEndpoint(tokenizer, serves=CHAT, spoilt={call: answer}) as endpoint:
        with pytest.raises(RunError, match=why) as caught:
            ask(opened(endpoint, tmp_path / "batch.json"), REQUESTS)
        assert "\n" not in str(caught.value)
        endpoint.spoilt.clear()
        found, _ = ask(opened(endpoint, tmp_path / "batch.json"), REQUESTS)
    assert len(found) == 20


def test_batches_of_another_model_are_left_alone(tokenizer: Tokenizer, tmp_path: Path) -> None:
    state = tmp_path / "batch.json"
    strict_json.write(state, {"model": "0" * 64, "batches": []})
    with FakeBatchEndpoint(tokenizer, serves=CHAT) as endpoint, pytest.raises(ConfigError, match="another model"):
        ask(opened(endpoint, state), REQUESTS)
    assert state.is_file()


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
    costs = [step.cost_usd for step in steps if isinstance(step, Sent)][1:]
    assert None not in costs
    # Three tokens each are answered.
    assert sum(cost or 0 for cost in costs) == pytest.approx(0.5 * (n_prompt * 1000 + 20 * 3 * 2000) / 1e6)
    too_much = opened(endpoint, tmp_path / "batch.json", prices=prices, max_cost=0.25)
    with FakeBatchEndpoint(tokenizer, serves=CHAT, port=endpoint.port) as endpoint:
        with pytest.raises(RunError, match="does not cover the batch"):
            ask(too_much, REQUESTS)
        assert endpoint.uploads == []
