"""Prices, the limit on costs, and what is known before anything is sent."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer
from typer.testing import CliRunner

from biasboard.ground import strict_json
from biasboard.ground.errors import BiasboardError, ConfigError, DataError, RunError
from evaluators.__main__ import app
from evaluators.backend import Answers, ChoiceRequest, GenerateRequest, Request, Response
from evaluators.backend_options import BackendOptions
from evaluators.backends.openai.costs import Price, read_price
from evaluators.backends.openai.openai_backend import OpenAIBackend, open_backend
from tests.evaluators.fake_endpoint import MODEL, FakeEndpoint, Received, save_tokenizer
from tests.evaluators.made_data import made_items, write_dataset
from tests.evaluators.openai_runs import Asked, ask

CHAT = frozenset({"chat", "models"})
TEMPLATE = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}\n{% endfor %}<|assistant|>"
ITEMS = made_items(40)
CHOICES: list[Request] = [
    ChoiceRequest(
        prompt=f"{item.sentence} '{item.pronoun.title()}' refers to the",
        options=tuple(f" {name}" for name in item.occupations),
        outcomes=item.occupations,
    )
    for item in ITEMS
]
TEXTS: list[Request] = [GenerateRequest(prompt=item.sentence, max_tokens=5) for item in ITEMS]


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    path = tmp_path / "prices.toml"
    path.write_text('["made/*"]\ninput = 100\ncached_input = 10\noutput = 400\n')
    return path


def opened(endpoint: FakeEndpoint, **options: Any) -> OpenAIBackend:
    return open_backend(MODEL, BackendOptions(base_url=endpoint.url, **options))


@pytest.mark.slow
@pytest.mark.parametrize("api", ["completions", "chat"])
@pytest.mark.parametrize("requests", [CHOICES, TEXTS], ids=["choices", "texts"])
def test_tokens_are_estimated_before_anything_is_sent(
    api: str, requests: list[Request], folder: Path, tokenizer: Tokenizer, prices: Path
) -> None:
    with FakeEndpoint(tokenizer) as endpoint:
        backend = opened(endpoint, api=api, tokenizer=str(folder), prices=prices)
        tokens = backend.count_tokens(requests)
        assert endpoint.n_received == 0
        assert tokens is not None
        assert backend.cost_usd(tokens) == pytest.approx((tokens.n_prompt * 100 + tokens.n_completion * 400) / 1e6)
        assert backend.capabilities
        of_probing = endpoint.n_prompt_tokens
        found, _ = ask(backend, requests)
        assert {response.status for response in found.values()} == {"answered"}
        counted = endpoint.n_prompt_tokens - of_probing
        assert tokens.n_prompt == pytest.approx(counted, rel=0.05)
        assert sum(response.n_prompt_tokens or 0 for response in found.values()) == counted


@pytest.mark.slow
def test_a_chat_template_counts(tmp_path: Path, tokenizer: Tokenizer) -> None:
    folder = save_tokenizer(tmp_path / "chatty", template=TEMPLATE)
    with FakeEndpoint(tokenizer) as endpoint:
        with_template = opened(endpoint, api="chat", tokenizer=str(folder)).count_tokens(TEXTS)
        assert with_template is not None
        texts = [f"<|user|>{item.sentence}\n<|assistant|>" for item in ITEMS]
        assert with_template.n_prompt == sum(len(tokenizer.encode(x, add_special_tokens=False).ids) for x in texts)
        assert opened(endpoint).count_tokens(TEXTS) is None
        assert endpoint.n_received == 0


@pytest.mark.slow
def test_the_cost_is_that_of_the_tokens_the_endpoint_counts(tokenizer: Tokenizer, prices: Path) -> None:
    def with_cache(received: Received, answer: dict[str, Any]) -> dict[str, Any]:
        answer["usage"]["prompt_tokens_details"] = {"cached_tokens": 4}
        return answer

    with FakeEndpoint(tokenizer, serves=CHAT, alter=with_cache) as endpoint:
        sent = Asked().of(opened(endpoint, prices=prices), TEXTS).sent
        n_answers = sum(endpoint.answered.values())
        chats = [received.body for received in endpoint.received if received.route == "/chat/completions"]
        assert len(chats) == n_answers
        n_completion = sum(min(body["max_tokens"], 5) for body in chats)
        cost = ((endpoint.n_prompt_tokens - 4 * n_answers) * 100 + 4 * n_answers * 10 + n_completion * 400) / 1e6
    assert sum(step.cost_usd or 0 for step in sent) == pytest.approx(cost)
    with FakeEndpoint(tokenizer, serves=CHAT) as endpoint:
        sent = Asked().of(opened(endpoint), TEXTS).sent
        assert {step.cost_usd for step in sent} == {None}


def test_no_more_is_spent_than_allowed(tokenizer: Tokenizer, prices: Path) -> None:
    with FakeEndpoint(tokenizer, serves=CHAT, delay=0.005) as endpoint:
        backend = opened(endpoint, prices=prices, max_cost=0.1)
        found: dict[int, Response] = {}
        cost = 0.0
        with pytest.raises(RunError, match=r"--max-cost 0\.1 is reached"):
            for step in backend.ask(TEXTS * 5, frozenset(range(5 * len(TEXTS)))):
                if isinstance(step, Answers):
                    found |= step.responses
                else:
                    cost += step.cost_usd or 0
        price = Price(input=100, output=400, cached_input=10)
        answers = sum(endpoint.answered.values())
        spent = price.cost_usd(endpoint.n_prompt_tokens, 5 * answers)
    assert found
    assert spent <= 0.1
    assert cost <= 0.1
    # Nor is much of it left: by its bytes a request may take three cents.
    assert spent > 0.06


def test_a_limit_needs_prices(tokenizer: Tokenizer) -> None:
    with pytest.raises(ConfigError, match="--prices"):
        open_backend(MODEL, BackendOptions(base_url="http://localhost:1/v1", max_cost=1.0))


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
        ('["made/model"]\ninput = 1', DataError, "'output' is missing"),
        ('["made/model"]\ninput = -1\noutput = 1', DataError, "no price"),
        ('["made/model"]\ninput = nan\noutput = 1', DataError, "no price"),
        ('["made/model"]\ninput = true\noutput = 1', DataError, "no price"),
        ('["made/model"]\ninputs = 1\noutput = 1', DataError, "'inputs' does not exist"),
        ('["made/model"]\ninput = 1\noutput = 1\nbatch_discount = 50', DataError, "no share"),
        ('"made/model" = 3', DataError, "not a table"),
    ],
)
def test_unsound_prices_are_refused(text: str, kind: type[BiasboardError], message: str, tmp_path: Path) -> None:
    path = tmp_path / "prices.toml"
    path.write_text(text)
    with pytest.raises(kind, match=message):
        read_price(path, "made/model")
    with pytest.raises(ConfigError, match="No such file"):
        read_price(tmp_path / "nowhere.toml", "made/model")


@pytest.mark.slow
def test_a_run_from_the_command_line(
    tmp_path: Path, folder: Path, tokenizer: Tokenizer, prices: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    data = write_dataset(tmp_path / "made", {"type2": ITEMS})
    command = ["run", "--dataset", str(data), "--backend", "openai", "--model", MODEL, "--tokenizer", str(folder)]
    command += ["--prices", str(prices), "--out", str(tmp_path / "runs")]
    with FakeEndpoint(tokenizer) as endpoint:
        monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
        dry = CliRunner().invoke(app, [*command, "--dry-run", "--format", "json"])
        assert dry.exit_code == 0, dry.output
        (estimated,) = json.loads(dry.stdout)["runs"]
        assert endpoint.n_received == 0
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output
        assert estimated["n_prompt_tokens"] == pytest.approx(endpoint.n_prompt_tokens, rel=0.05)
        n_received = endpoint.n_received
        (path,) = (tmp_path / "runs").rglob("result.json")
        usage: Any = strict_json.read(path)
        assert usage["usage"]["n_attempts"] == n_received
        assert usage["usage"]["cost_usd"] == pytest.approx(estimated["cost_usd"], rel=0.1)
        assert usage["environment"]["settings"]["option_scoring"] == "option_trie"
        assert usage["model"]["endpoint"] == "api"
        assert str(tmp_path) not in path.read_text()
        # What a run spent already counts, when it goes on, against what it may spend.
        store = next((tmp_path / "runs").rglob("responses.sqlite"))
        with closing(sqlite3.connect(store)) as connection, connection:
            connection.execute("DELETE FROM responses WHERE rowid % 2 = 0")
        limited = CliRunner().invoke(app, [*command, "--max-cost", str(usage["usage"]["cost_usd"] * 1.01)])
        assert limited.exit_code == 3, limited.output
        assert "--max-cost" in limited.stderr
        assert CliRunner().invoke(app, command).exit_code == 0
        n_received = endpoint.n_received
        # Nothing but what finding out takes is sent a second time.
        again = CliRunner().invoke(app, command)
        assert again.exit_code == 0, again.output
        assert endpoint.n_received - n_received <= 3
