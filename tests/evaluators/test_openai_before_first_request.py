"""What a run behind an endpoint is told before the first item, and what its result says of the endpoint."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer
from typer.testing import CliRunner, Result

from evaluators.__main__ import app
from evaluators.backend import Answers, ChoiceRequest, GenerateRequest, Request
from evaluators.backend_options import BackendOptions
from evaluators.backends.openai.openai_backend import OpenAIBackend, open_backend
from schemas.folders.run_folder import read_run
from tests.evaluators.fake_endpoint import MODEL, FakeEndpoint, save_tokenizer
from tests.evaluators.made_data import made_items, write_dataset

TEMPLATE_TOKENS = 60
TEXT_ONLY = frozenset({"chat", "models"})
WITH_TOP = frozenset({"chat", "top_logprobs", "models"})
BOTH = frozenset({"chat", "models", "echo", "text"})
TEXTS = ["", "a", "The nurse said 'hi'.\n", "émigré — 🙂🙂", '{"a": "\\"}', "x" * 5000]
GENERATE: list[Request] = [GenerateRequest(prompt=text, max_tokens=7) for text in TEXTS if text]
CHOICE: list[Request] = [ChoiceRequest(prompt=f"Is it {x}?", options=(" A", " B"), outcomes=("a", "b")) for x in TEXTS]


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "data", {"type1": made_items(6)})


def run(dataset: Path, endpoint: FakeEndpoint, *more: str) -> Result:
    command = ["run", "--dataset", dataset, "--backend", "openai", "--model", MODEL, "--base-url", endpoint.url]
    return CliRunner().invoke(app, [*map(str, command), "--out", str(dataset.parent / "runs"), *more])


def of_items(endpoint: FakeEndpoint) -> list[str]:
    """What was sent about the items, and not to find out what the endpoint can do."""
    return [str(one.body) for one in endpoint.received if "The clock on the wall" not in str(one.body)]


def test_an_endpoint_of_texts_names_the_prompts_that_work_there(dataset: Path, tokenizer: Tokenizer) -> None:
    with FakeEndpoint(tokenizer, serves=TEXT_ONLY) as endpoint:
        result = run(dataset, endpoint, "--prompt", "mcq2-v1")
        assert of_items(endpoint) == []
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert "prompt 'mcq2-v1' needs" in result.stderr
    assert "mcq2-generate-v1, mcq3-generate-v1" in result.stderr
    assert {"transformers", "vllm"} <= {*result.stderr.strip().rpartition("backends that can: ")[2].split(", ")}
    assert "--api completions" not in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("prompt", ["intrinsic-v1", "mcq2-v1"])
def test_a_choice_of_chat_is_told_that_completions_can_do_more(
    prompt: str, dataset: Path, tokenizer: Tokenizer
) -> None:
    with FakeEndpoint(tokenizer, serves=BOTH) as endpoint:
        result = run(dataset, endpoint, "--prompt", prompt, "--api", "chat")
        assert of_items(endpoint) == []
        assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
        assert "; or take --api completions" in result.stderr
        assert "mcq2-generate-v1" in result.stderr
        taken = run(dataset, endpoint, "--prompt", prompt, "--api", "completions")
    assert taken.exit_code == 0, taken.output


def test_a_text_to_continue_is_not_sent_as_a_message(dataset: Path, tokenizer: Tokenizer) -> None:
    with FakeEndpoint(tokenizer, serves=WITH_TOP) as endpoint:
        result = run(dataset, endpoint, "--prompt", "intrinsic-v1")
        assert of_items(endpoint) == []
        assert run(dataset, endpoint, "--prompt", "mcq2-v1").exit_code == 0
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert "is a text to continue" in result.stderr
    assert "--prompt mcq2-v1 or " in result.stderr
    assert "--api completions" not in result.stderr


@pytest.mark.parametrize(
    ("serves", "why"),
    [
        (TEXT_ONLY, "cannot do option_logprobs, which prompt 'cot-logprob-v1' needs"),
        (WITH_TOP, "scores options after the model's own text"),
    ],
)
def test_where_options_cannot_be_scored_after_a_text_votes_are_named(
    serves: frozenset[str], why: str, dataset: Path, tokenizer: Tokenizer
) -> None:
    with FakeEndpoint(tokenizer, serves=serves) as endpoint:
        result = run(dataset, endpoint, "--prompt", "cot-logprob-v1")
        assert of_items(endpoint) == []
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert why in result.stderr
    assert re.search(r"\bcot-v1\b", result.stderr)
    assert "or cot-logprob-v1" not in result.stderr


def test_completions_write_and_then_score_the_options_after_it(dataset: Path, tokenizer: Tokenizer) -> None:
    with FakeEndpoint(tokenizer, serves=BOTH) as endpoint:
        prompt = ("--prompt", "cot-logprob-v1", "--api", "completions")
        told = run(dataset, endpoint, *prompt, "--dry-run", "--format", "json")
        result = run(dataset, endpoint, *prompt)
        assert result.exit_code == 0, result.output
        n_sent = len(endpoint.received)
        assert run(dataset, endpoint, *prompt).exit_code == 0
        # Only what the endpoint can do is found out again.
        assert all("The clock on the wall" in str(one.body) for one in endpoint.received[n_sent:] if one.body)
    (path,) = (dataset.parent / "runs").rglob("result.json")
    finished = read_run(path.parent)
    (estimated,) = json.loads(told.stdout)["runs"]
    assert estimated["n_to_ask"] == finished.result.usage.n_requests == 4 * len(finished.records)
    assert estimated["n_prompt_tokens_at_most"] >= (finished.result.usage.n_prompt_tokens or 0) > 0
    for record in finished.records:
        assert (record.status, record.truncated) == ("scored", True)
        for text, choice in zip(record.exchanges[:2], record.exchanges[2:], strict=True):
            assert text.text == " and so on"
            assert choice.prompt == f"{text.prompt} and so on\nAnswer:"


def sent_tokens(backend: OpenAIBackend, endpoint: FakeEndpoint, requests: list[Request]) -> tuple[int, int]:
    """Ask, and return the tokens that the endpoint counted in the prompts and in the answers."""
    _ = backend.model
    of_probing = endpoint.n_prompt_tokens
    found = [one for one in backend.ask(requests, frozenset(range(len(requests)))) if isinstance(one, Answers)]
    answers = [answer for one in found for answer in one.responses.values()]
    assert len(answers) == len(requests)
    return endpoint.n_prompt_tokens - of_probing, sum(answer.n_completion_tokens or 0 for answer in answers)


@pytest.mark.slow
@pytest.mark.parametrize("api", [None, "completions", "chat"])
@pytest.mark.parametrize("requests", [GENERATE, CHOICE], ids=["texts", "choices"])
@pytest.mark.parametrize("with_tokenizer", [False, True])
def test_the_bound_on_tokens_holds(
    api: str | None, requests: list[Request], with_tokenizer: bool, folder: Path, tokenizer: Tokenizer
) -> None:
    class LongTemplate(FakeEndpoint):
        """An endpoint whose template adds as many tokens as those with a system prompt of their own."""

        def _chat(self, body: Any) -> tuple[int, dict[str, Any]]:
            self.n_prompt_tokens += TEMPLATE_TOKENS
            return super()._chat(body)

    named = {"tokenizer": str(folder)} if with_tokenizer else {}
    with LongTemplate(tokenizer, adds_bos=not with_tokenizer) as endpoint:
        options: dict[str, Any] = {"api": api, **named}
        backend = open_backend(MODEL, BackendOptions(base_url=endpoint.url, **options))
        before = backend.most_tokens(requests)
        assert endpoint.n_received == 0
        if not with_tokenizer and api != "chat":
            endpoint.adds_bos = False
        n_prompt, n_completion = sent_tokens(backend, endpoint, requests)
        after = backend.most_tokens(requests)
    assert 0 < n_prompt <= after.n_prompt <= before.n_prompt
    assert 0 < n_completion <= before.n_completion
    # A bound that is of use: the texts have some five thousand bytes in all, and each is sent a few times.
    assert before.n_prompt < 30_000


@pytest.mark.slow
def test_a_result_does_not_tell_the_address(dataset: Path, tokenizer: Tokenizer) -> None:
    def refuse(endpoint: FakeEndpoint) -> str:
        return f"I am {endpoint.url}, at 127.0.0.1:{endpoint.port} or 127.0.0.1"

    with FakeEndpoint(tokenizer, serves=WITH_TOP) as endpoint:
        first = endpoint.answer

        def answer(received: Any) -> tuple[int, dict[str, Any]]:
            if received.route == "/completions":
                return 400, {"error": {"message": refuse(endpoint)}}
            return first(received)

        endpoint.answer = answer  # type: ignore[method-assign]
        result = run(dataset, endpoint, "--prompt", "mcq2-v1")
        assert result.exit_code == 0, result.output
        port = endpoint.port
    (path,) = (dataset.parent / "runs").rglob("result.json")
    text = path.read_text()
    assert "127.0.0.1" not in text
    assert str(port) not in text
    assert "I am the endpoint" in text, "the case does not test what it is for"
    command = read_run(path.parent).result.command
    assert re.search(r"--backend openai --model made/model --base-url \$OPENAI_BASE_URL --api chat ", command)


def test_a_dry_run_refuses_what_no_chat_can_be_asked_and_asks_nothing(dataset: Path, tokenizer: Tokenizer) -> None:
    with FakeEndpoint(tokenizer, serves=BOTH) as endpoint:
        refused = run(dataset, endpoint, "--prompt", "intrinsic-v1", "--api", "chat", "--dry-run")
        unknown = run(dataset, endpoint, "--prompt", "intrinsic-v1", "--dry-run")
        assert endpoint.n_received == 0
    assert refused.exit_code == 1
    for part in ("prompt 'intrinsic-v1' is a text to continue", "mcq2-v1", "or --api completions"):
        assert part in refused.stderr
    # Refused before a word is counted, also of a dataset before it.
    assert "items" not in refused.output
    # Without a word about the interface, only the endpoint can tell.
    assert unknown.exit_code == 0
    assert "the endpoint was not probed" in unknown.stdout


def test_a_tokenizer_with_a_template_sends_messages_whatever_the_interface(dataset: Path, tmp_path: Path) -> None:
    template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    chat = ("--tokenizer", str(save_tokenizer(tmp_path / "chat", template=template)), "--chat", "--dry-run")
    nobody = (
        "run",
        "--dataset",
        str(dataset),
        "--backend",
        "openai",
        "--model",
        MODEL,
        "--base-url",
        "http://[::1]:9/v1",
    )
    refused = CliRunner().invoke(app, [*nobody, *chat, "--prompt", "intrinsic-v1"])
    assert refused.exit_code == 1
    assert "prompt 'intrinsic-v1' is a text to continue" in refused.stderr
    taken = CliRunner().invoke(app, [*nobody, *chat, "--prompt", "mcq2-v1"])
    assert taken.exit_code == 0, taken.output
