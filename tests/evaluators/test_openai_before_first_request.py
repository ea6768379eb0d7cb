"""What a run behind an endpoint is told before the first item, what it may cost, and what its result says of it."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer
from typer.testing import Result

from biasboard.ground.errors import BiasboardError, ConfigError, DataError, RunError
from evaluators.backend import ChoiceRequest, GenerateRequest, Request
from evaluators.backend_options import BackendOptions
from evaluators.backends.openai.costs import Ledger, Price, read_price
from evaluators.backends.openai.meanings import NoAnswerError
from evaluators.backends.openai.openai_backend import OpenAIBackend, open_backend
from evaluators.backends.openai.protocol import Call
from schemas.folders.run_folder import read_run
from tests.evaluators.fake_endpoint import CHAT_FRAME, MODEL, FakeEndpoint, Received, save_tokenizer
from tests.evaluators.invoking import evaluators
from tests.evaluators.made_data import made_items, write_dataset
from tests.evaluators.openai_runs import Asked, ask

TEXT_ONLY = frozenset({"chat", "models"})
ODD_TEXTS = [
    "",
    "a",
    "The nurse said 'hi'.\n",
    "\u00e9migr\u00e9 \u2014 \U0001f642\U0001f642",
    '{"a": "\\"}',
    "x" * 5000,
]
GENERATE: list[Request] = [GenerateRequest(prompt=text, max_tokens=7) for text in ODD_TEXTS if text]
CHOICE: list[Request] = [
    ChoiceRequest(prompt=f"Is it {x}?", options=(" A", " B"), outcomes=("a", "b")) for x in ODD_TEXTS
]
TEMPLATE = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}\n{% endfor %}<|assistant|>"
ITEMS = made_items(20)
TEXTS: list[Request] = [GenerateRequest(prompt=item.sentence, max_tokens=5) for item in ITEMS]


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    path = tmp_path / "prices.toml"
    path.write_text('["made/*"]\ninput = 100\ncached_input = 10\noutput = 400\n')
    return path


def opened(endpoint: FakeEndpoint, **options: Any) -> OpenAIBackend:
    return open_backend(MODEL, BackendOptions(base_url=endpoint.url, **options))


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "data", {"type1": made_items(6)})


def run(dataset: Path, endpoint: FakeEndpoint | None, *more: str | Path) -> Result:
    url = "http://[::1]:9/v1" if endpoint is None else endpoint.url
    command = ("run", "--dataset", dataset, "--backend", "openai", "--model", MODEL, "--base-url", url)
    return evaluators(*command, "--out", dataset.parent / "runs", *more)


@pytest.mark.parametrize(
    ("serves", "prompt", "wanted"),
    [
        (TEXT_ONLY, "mcq2-v1", "mcq2-generate-v1.* or take --tokenizer NAME, where the endpoint has completions"),
        (TEXT_ONLY | {"top_logprobs"}, "intrinsic-v1", "is a text to continue.*--prompt mcq2-v1 or "),
    ],
)
def test_a_prompt_that_cannot_be_asked_names_others_before_an_item_is_sent(
    serves: frozenset[str], prompt: str, wanted: str, dataset: Path, tokenizer: Tokenizer
) -> None:
    with FakeEndpoint(tokenizer, serves=serves) as endpoint:
        result = run(dataset, endpoint, "--prompt", prompt)
        assert all("The clock on the wall" in str(one.body) for one in endpoint.received), "an item was sent"
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert re.search(wanted, result.stderr)
    # What the endpoint has chosen already is no way out.
    assert "--api completions" not in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("api", "requests", "with_tokenizer"),
    [(None, CHOICE, True), ("chat", GENERATE, True), ("completions", GENERATE, False), (None, CHOICE, False)],
)
def test_the_bound_on_tokens_holds(
    api: str | None, requests: list[Request], with_tokenizer: bool, folder: Path, tokenizer: Tokenizer
) -> None:
    def with_long_template(received: Received, answer: dict[str, Any]) -> dict[str, Any]:
        """Count as many tokens more as templates with a system prompt of their own add."""
        endpoint.n_prompt_tokens += 60 if received.route == "/chat/completions" else 0
        return answer

    named = {"tokenizer": str(folder)} if with_tokenizer else {}
    with FakeEndpoint(tokenizer, alter=with_long_template, adds_bos=not with_tokenizer) as endpoint:
        options: dict[str, Any] = {"api": api, **named}
        backend = open_backend(MODEL, BackendOptions(base_url=endpoint.url, **options))
        before = backend.most_tokens(requests)
        assert endpoint.n_received == 0
        if not with_tokenizer and api != "chat":
            endpoint.adds_bos = False
        _ = backend.model
        of_probing = endpoint.n_prompt_tokens
        answers, _ = ask(backend, requests)
        n_prompt = endpoint.n_prompt_tokens - of_probing
        n_completion = sum(answer.n_completion_tokens or 0 for answer in answers.values())
        after = backend.most_tokens(requests)
    assert 0 < n_prompt <= after.n_prompt <= before.n_prompt
    assert 0 < n_completion <= before.n_completion
    # A bound that is of use: the texts have some five thousand bytes in all, and each is sent a few times.
    assert before.n_prompt < 30_000


@pytest.mark.slow
def test_a_dry_run_refuses_what_no_chat_can_be_asked_and_asks_nothing(
    dataset: Path, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    dry = ("--prompt", "intrinsic-v1", "--dry-run")
    # With a template, a tokenizer sends messages whatever the interface.
    templated = ("--tokenizer", save_tokenizer(tmp_path / "chat", template=TEMPLATE), "--chat")
    with FakeEndpoint(tokenizer, serves=TEXT_ONLY | {"echo", "text"}) as endpoint:
        refused = [run(dataset, endpoint, *dry, *options) for options in (("--api", "chat"), templated)]
        unknown = run(dataset, endpoint, *dry)
        assert endpoint.n_received == 0
    for result in refused:
        assert result.exit_code == 1
        assert "prompt 'intrinsic-v1' is a text to continue" in result.stderr
        # Refused before a word is counted, also of a dataset before it.
        assert "items" not in result.output
    assert "or --api completions" in refused[0].stderr
    # Without a word about the interface, only the endpoint can tell.
    assert unknown.exit_code == 0
    assert "the endpoint was not probed" in unknown.stdout


@pytest.mark.slow
@pytest.mark.parametrize("template", [None, TEMPLATE])
def test_the_tokens_of_a_chat_are_known_before_anything_is_sent(
    template: str | None, tmp_path: Path, tokenizer: Tokenizer, prices: Path
) -> None:
    folder = save_tokenizer(tmp_path / "chatty", template=template)
    with FakeEndpoint(tokenizer) as endpoint:
        backend = opened(endpoint, api="chat", tokenizer=str(folder), prices=prices)
        tokens = backend.count_tokens(TEXTS)
        assert opened(endpoint).count_tokens(TEXTS) is None
        assert endpoint.n_received == 0
    frame = "<|user|>{}\n<|assistant|>" if template else "{}"
    texts = [frame.format(item.sentence) for item in ITEMS]
    n_prompt = sum(len(tokenizer.encode(text, add_special_tokens=False).ids) for text in texts)
    assert tokens is not None
    assert tokens.n_prompt == n_prompt + (0 if template else CHAT_FRAME * len(TEXTS))
    assert backend.cost_usd(tokens) == pytest.approx((tokens.n_prompt * 100 + tokens.n_completion * 400) / 1e6)


@pytest.mark.slow
def test_the_cost_is_that_of_the_tokens_the_endpoint_counts(tokenizer: Tokenizer, prices: Path) -> None:
    def with_cache(received: Received, answer: dict[str, Any]) -> dict[str, Any]:
        answer["usage"]["prompt_tokens_details"] = {"cached_tokens": 4}
        return answer

    with FakeEndpoint(tokenizer, serves=TEXT_ONLY, alter=with_cache) as endpoint:
        sent = Asked().of(opened(endpoint, prices=prices), TEXTS).sent
        n_answers = sum(endpoint.answered.values())
        chats = [received.body for received in endpoint.received if received.route == "/chat/completions"]
        assert len(chats) == n_answers
        n_completion = sum(min(body["max_tokens"], 5) for body in chats)
        cost = ((endpoint.n_prompt_tokens - 4 * n_answers) * 100 + 4 * n_answers * 10 + n_completion * 400) / 1e6
    assert sum(step.cost_usd or 0 for step in sent) == pytest.approx(cost)


@pytest.mark.parametrize(
    ("error", "n_attempts", "is_billed"),
    [
        (NoAnswerError("refused", "passing", sent=False), 0, False),
        (NoAnswerError("broken", "passing", status=500), 1, False),
        # What was cut off may be billed.
        (NoAnswerError("cut", "passing"), 1, True),
    ],
)
def test_a_call_without_an_answer_costs_what_it_may_have_cost(
    error: NoAnswerError, n_attempts: int, is_billed: bool
) -> None:
    ledger = Ledger(Price(input=100, output=400, cached_input=10), None)

    async def attempt() -> None:
        async with ledger.attempt(Call("/completions", {}, 10, 5)):
            raise error

    with pytest.raises(NoAnswerError):
        asyncio.run(attempt())
    assert (ledger.n_attempts, ledger.cost_usd > 0) == (n_attempts, is_billed)


def test_no_more_is_spent_than_allowed(tokenizer: Tokenizer, prices: Path) -> None:
    with FakeEndpoint(tokenizer, serves=TEXT_ONLY, delay=0.005) as endpoint:
        backend = opened(endpoint, prices=prices, max_cost=0.1)
        asked = Asked()
        with pytest.raises(RunError, match=r"--max-cost 0\.1 is reached"):
            asked.of(backend, TEXTS * 5)
        price = Price(input=100, output=400, cached_input=10)
        answers = sum(endpoint.answered.values())
        spent = price.cost_usd(endpoint.n_prompt_tokens, 5 * answers)
    assert asked.responses
    assert spent <= 0.1
    assert sum(step.cost_usd or 0 for step in asked.sent) <= 0.1
    # Nor is much of it left: by its bytes a request may take three cents.
    assert spent > 0.06


def test_the_exact_name_goes_before_the_longer_glob_before_the_shorter(tmp_path: Path) -> None:
    path = tmp_path / "prices.toml"
    tables = [("*", 1), ("gpt-*", 2), ("gpt-4*", 3), ("gpt-4o", 4)]
    path.write_text("\n".join(f'["{name}"]\ninput = {price}\noutput = 0\n' for name, price in tables))
    found = [read_price(path, model).input for model in ("llama", "gpt-3", "gpt-4.1", "gpt-4o")]
    assert found == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("not toml", DataError, "TOML"),
        ('["other"]\ninput = 1\noutput = 1', ConfigError, "have: other"),
        ('["made/model"]\ninput = 1', DataError, "made/model.output: Field required"),
        ('["made/model"]\ninput = -1\noutput = 1', DataError, "model.input: .* greater than or equal to 0"),
        ('"made/model" = 3', DataError, "made/model: .*; give each model a table with"),
    ],
)
def test_unsound_prices_are_refused(text: str, kind: type[BiasboardError], message: str, tmp_path: Path) -> None:
    path = tmp_path / "prices.toml"
    path.write_text(text)
    with pytest.raises(kind, match=message):
        read_price(path, "made/model")
    with pytest.raises(ConfigError, match="No such file"):
        read_price(tmp_path / "nowhere.toml", "made/model")
    with pytest.raises(ConfigError, match="--prices"):
        open_backend(MODEL, BackendOptions(base_url="http://localhost:1/v1", max_cost=1.0))


@pytest.mark.slow
def test_a_run_from_the_command_line(
    tmp_path: Path, folder: Path, tokenizer: Tokenizer, prices: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    data = write_dataset(tmp_path / "made", {"type2": ITEMS})
    model = ("--backend", "openai", "--model", MODEL, "--tokenizer", folder, "--prices", prices)
    command = ("run", "--dataset", data, *model, "--out", tmp_path / "runs")
    with FakeEndpoint(tokenizer) as endpoint:
        monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
        (estimated,) = json.loads(evaluators(*command, "--dry-run", "--format", "json").stdout)["runs"]
        assert endpoint.n_received == 0
        done = evaluators(*command)
        assert done.exit_code == 0, done.output
        assert estimated["n_prompt_tokens"] == pytest.approx(endpoint.n_prompt_tokens, rel=0.05)
        (path,) = (tmp_path / "runs").rglob("result.json")
        result = read_run(path.parent).result
        assert result.usage.n_attempts == endpoint.n_received
        assert result.usage.cost_usd == pytest.approx(estimated["cost_usd"], rel=0.1)
        assert result.environment.settings["option_scoring"] == "option_trie"
        assert result.model.endpoint == "api"
        # Neither files of this machine nor an address, which may be that of an internal one.
        assert not [told for told in (str(tmp_path), "127.0.0.1", str(endpoint.port)) if told in path.read_text()]
        assert "--backend openai --model made/model --base-url $OPENAI_BASE_URL --api completions " in result.command
        # What a run spent already counts, when it goes on, against what it may spend.
        store = next((tmp_path / "runs").rglob("responses.sqlite"))
        with closing(sqlite3.connect(store)) as connection, connection:
            connection.execute("DELETE FROM responses WHERE rowid % 2 = 0")
        limited = evaluators(*command, "--max-cost", str((result.usage.cost_usd or 0) * 1.01))
        assert limited.exit_code == 3, limited.output
        assert "--max-cost" in limited.stderr
        assert evaluators(*command).exit_code == 0
        n_received = endpoint.n_received
        # Nothing but what finding out takes is sent a second time.
        assert evaluators(*command).exit_code == 0
        assert endpoint.n_received - n_received <= 3
