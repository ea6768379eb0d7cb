"""What a run tells before its first request, what does not fit, and earlier answers that are not asked again."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from biasboard.ground.errors import ConfigError
from evaluators.backend import OF_LANGUAGE_MODELS, Request
from evaluators.backend_options import BackendOptions
from evaluators.backends.transformers.transformers_backend import open_backend
from evaluators.runs.ask.context_limit import check_context, longest_bytes
from evaluators.runs.ask.study import Study
from evaluators.runs.plan.earlier_answers import AnswerStores
from evaluators.runs.plan.plan import Plan, select
from evaluators.stores.store import read_answers
from evaluators.task import load_task, prompt_of
from evaluators.tasks.coreference.coreference_task import TASK
from schemas.folders.dataset_folder import read_manifest
from schemas.folders.run_folder import read_run
from tests.evaluators.fake_endpoint import MODEL, FakeEndpoint
from tests.evaluators.invoking import evaluators
from tests.evaluators.label_data import made_dataset
from tests.evaluators.logging_backend import LoggingBackend, ask
from tests.evaluators.made_data import made_items, write_dataset
from tests.evaluators.test_packed_scoring import save_model
from tests.evaluators.word_problems import N_ITEMS, build


@dataclass
class Sized(FakeEndpoint):
    """An endpoint that says how many tokens its model takes."""

    max_model_len: int = 512

    def other(self, method: str, path: str, content: bytes) -> tuple[int, Any]:
        status, answer = super().other(method, path, content)
        for entry in answer.get("data", ()):
            entry["max_model_len"] = self.max_model_len
        return status, answer


@pytest.fixture(scope="module")
def problems(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("gifi") / "data")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch", reason="the extra hf is not installed")
    return save_model(tmp_path_factory.mktemp("models") / "model", "Llama", max_position_embeddings=512)


@pytest.fixture
def endpoint(tokenizer: Tokenizer) -> Iterator[Sized]:
    def answered(_: object, answer: dict[str, Any]) -> dict[str, Any]:
        for choice in answer["choices"]:
            choice["text"] = " The answer is 12."
        return answer

    serves = frozenset({"text", "models"})
    with Sized(tokenizer, serves=serves, alter=answered) as served:
        yield served


def command(problems: Path, endpoint: Sized, out: Path, *more: str | Path) -> list[str | Path]:
    asked = ("run", "--dataset", problems, "--config", "math", "--backend", "openai", "--model", MODEL)
    return [*asked, "--base-url", endpoint.url, "--out", out, *more]


def questions(endpoint: FakeEndpoint) -> Counter[str]:
    """How often each word problem was asked; probes ask for fewer tokens."""
    asked = (received.body for received in endpoint.received)
    return Counter(json.dumps(body["prompt"]) for body in asked if body.get("max_tokens", 0) > 100)


@pytest.mark.slow
def test_prompts_longer_than_the_context_are_refused_with_the_prompts_that_fit(
    problems: Path, endpoint: Sized, folder: Path, tmp_path: Path
) -> None:
    fits = command(problems, endpoint, tmp_path / "runs", "--tokenizer", folder, "--limit", "22")
    told = evaluators(*fits, "--prompt", "sampled-v1")
    assert told.exit_code == 1, told.stderr
    (error,) = [line for line in told.stderr.splitlines() if line.startswith("error")]
    assert "22 of 22 items of config 'math' are too long for the model with prompt 'sampled-v1'" in error
    assert "its context has 512; take --prompt math=zero-shot-sampled-v1 or math=zero-shot-greedy-v1" in error
    assert not questions(endpoint)
    assert not (tmp_path / "runs").exists()
    # Without a prompt of the user's, the first one that fits is taken.
    told = evaluators(*fits)
    assert told.exit_code == 0, told.stderr
    assert "gifi math: zero-shot-sampled-v1, because sampled-v1 needs up to" in told.stderr
    assert sum(questions(endpoint).values()) == 22
    # Where none fits, a larger context is what remains.
    endpoint.max_model_len = 20
    told = evaluators(*fits)
    assert told.exit_code == 1
    assert "its context has 20; take a model with a longer context; nothing was asked" in told.stderr


@pytest.mark.slow
def test_a_few_long_prompts_are_announced_and_fail_without_being_asked(
    problems: Path, endpoint: Sized, folder: Path, tmp_path: Path
) -> None:
    asked = command(problems, endpoint, tmp_path / "runs", "--tokenizer", folder, "--prompt", "greedy-v1")
    lengths = sorted(len(json.loads(prompt)) for prompt in prompts_of(endpoint, asked))
    endpoint.received.clear()
    longest = [length for length in lengths if length == lengths[-1]]
    assert len(longest) < N_ITEMS // 2
    # Room for the answer's first token to all but the longest prompts, and not for the rest of any answer.
    endpoint.max_model_len = lengths[-1]
    again = [*asked[:-6], "--out", tmp_path / "again", *asked[-4:], "--max-failure-rate", "0.5"]
    told = evaluators(*again)
    assert told.exit_code == 0, told.stderr
    n_long, n_cut = len(longest), sum(n_tokens + 200 > lengths[-1] for n_tokens in lengths) - len(longest)
    (line,) = [line for line in told.stderr.splitlines() if line.startswith("config 'math'")]
    assert f"{n_long} of {N_ITEMS} items are too long for the model and will count as failed" in line
    assert f"they need up to {lengths[-1] + 1:,} tokens; {n_cut} requests leave less than the 200 tokens" in line
    (result,) = (tmp_path / "again").rglob("result.json")
    assert read_run(result.parent).result.counts.failed == n_long
    assert sum(questions(endpoint).values()) == N_ITEMS - n_long


def prompts_of(endpoint: Sized, asked: list[str | Path]) -> Counter[str]:
    endpoint.max_model_len = 8192
    assert evaluators(*asked).exit_code == 0
    return questions(endpoint)


@pytest.mark.slow
def test_what_does_not_fit_is_left_out_where_that_is_wanted(
    problems: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    backend, stores = open_backend(str(model), BackendOptions()), AnswerStores(root=tmp_path / "runs", cache=None)
    task = load_task("word_problem")
    selection = select(problems, read_manifest(problems), "math", limit=22)
    long, short = (Plan(selection, task, task.prompts[name]) for name in ("sampled-v1", "zero-shot-sampled-v1"))
    assert check_context([long, short], backend, stores, 0.05, leave_out=True) == [short]
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "asked" in line]
    assert line.startswith(
        "not asked: 22 of 22 items of config 'math' are too long for the model with prompt 'sampled-"
    )
    with pytest.raises(ConfigError, match="nothing was asked"):
        check_context([long], backend, stores, 0.05, leave_out=True)


@pytest.mark.slow
def test_a_run_with_another_limit_asks_nothing_twice(problems: Path, endpoint: Sized, tmp_path: Path) -> None:
    asked = command(problems, endpoint, tmp_path / "runs", "--prompt", "zero-shot-greedy-v1")
    for more in (("--limit", "22"), (), ("--limit", "11")):
        told = evaluators(*asked, *more)
        assert told.exit_code == 0, told.stderr
    counts = questions(endpoint)
    assert set(counts.values()) == {1}
    assert sum(counts.values()) == N_ITEMS
    results = [read_run(path.parent) for path in (tmp_path / "runs").rglob("result.json")]
    assert sorted(result.counts.scored for result, _ in results) == [11, 22, N_ITEMS]
    fewest, *others = sorted(
        ({record.item_id: record.exchanges for record in records} for _, records in results), key=len
    )
    for more_answers in others:
        assert fewest.items() <= more_answers.items()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "reason"), [("unreadable", "not a usable response store"), ("locked", "another process")]
)
def test_a_sibling_that_cannot_be_read_is_left_out_in_one_line(
    problems: Path, endpoint: Sized, tmp_path: Path, fault: str, reason: str
) -> None:
    asked = command(problems, endpoint, tmp_path / "runs", "--prompt", "zero-shot-greedy-v1")
    assert evaluators(*asked, "--limit", "11").exit_code == 0
    (store,) = (tmp_path / "runs").rglob("responses.sqlite")
    with closing(sqlite3.connect(store)) as connection:
        if fault == "unreadable":
            connection.execute("UPDATE responses SET response = '{}'")
        else:
            connection.execute("PRAGMA locking_mode=EXCLUSIVE")
            connection.execute("INSERT INTO usage VALUES (0, 0, 0)")
        connection.commit()
        before = store.read_bytes()
        told = evaluators(*asked, "--limit", "22")
        assert told.exit_code == 0, told.stderr
        assert store.read_bytes() == before
    (line,) = [line for line in told.stderr.splitlines() if "left out" in line]
    assert f"answers of another run are left out: {store}" in line
    assert reason in line
    assert sum(questions(endpoint).values()) == 11 + 22
    assert len(list((tmp_path / "runs").rglob("result.json"))) == 2


@pytest.mark.slow
def test_a_pilot_tells_the_time_and_its_answers_are_counted(problems: Path, model: Path, tmp_path: Path) -> None:
    chosen = ("--config", "recognition", "--prompt", "greedy-v1", "--out", tmp_path / "runs")
    asked: list[str | Path] = ["run", "--dataset", problems, "--backend", "transformers", "--model", model, *chosen]
    fresh = evaluators(*asked, "--dry-run")
    assert "time unknown: no earlier answers of this model; --limit 20 makes a pilot, whose answers are kept" in (
        fresh.stdout
    )
    fresh_json = evaluators(*asked, "--dry-run", "--format", "json")
    assert json.loads(fresh_json.stdout)["runs"][0]["seconds_left"] is None
    cached = [*asked, "--cache", tmp_path / "cache.sqlite"]
    assert evaluators(*cached, "--limit", "20").exit_code == 0
    (pilot,) = (tmp_path / "runs").rglob("result.json")
    result = read_run(pilot.parent).result
    n_left = json.loads(fresh_json.stdout)["runs"][0]["n_items"] - 11
    assert result.usage.seconds is not None
    expected = result.usage.seconds / 11 * n_left
    elsewhere = [part if part != tmp_path / "runs" else tmp_path / "elsewhere" for part in cached]
    for command_line in (asked, elsewhere):
        (one,) = json.loads(evaluators(*command_line, "--dry-run", "--format", "json").stdout)["runs"]
        assert (one["n_answered"], one["n_to_ask"], one["n_timed_answers"]) == (11, n_left, 11)
        assert one["seconds_left"] == pytest.approx(expected, rel=0.01)
    shown = evaluators(*asked, "--dry-run").stdout
    assert "in all, at the pace of 11 answers that this model gave before" in shown
    assert len(read_answers(pilot.parent / "responses.sqlite")) == 11
    done = evaluators(*asked, "--dry-run", "--limit", "20")
    assert ("time unknown" in done.stdout, "about" in done.stdout) == (False, False)


@pytest.mark.slow
def test_an_endpoint_is_timed_by_name_and_priced_by_bytes_and_not_asked_what_must_fail(
    problems: Path, endpoint: Sized, tmp_path: Path
) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text('["made/*"]\ninput = 100\noutput = 400\n')
    asked = command(problems, endpoint, tmp_path / "runs", "--prompt", "zero-shot-greedy-v1", "--prices", prices)
    (fresh,) = json.loads(evaluators(*asked, "--dry-run", "--format", "json").stdout)["runs"]
    before = evaluators(*asked, "--dry-run").stdout
    assert not endpoint.received
    n_bytes = sum(len(json.loads(prompt).encode()) for prompt in prompts_of(endpoint, [*asked, "--limit", "22"]))
    assert fresh["n_prompt_tokens"] is None
    assert fresh["n_prompt_tokens_at_most"] > n_bytes
    bound = (100 * fresh["n_prompt_tokens_at_most"] + 400 * fresh["n_completion_tokens"]) / 1e6
    assert fresh["cost_usd"] == pytest.approx(bound)
    assert (
        f"at most US$ {bound:.4f} in all, by the prices given (tokens bounded by bytes of the prompt; give --tokenizer "
        "for an estimate)" in before
    )
    told = evaluators(*asked, "--dry-run").stdout
    (known,) = [line for line in told.splitlines() if "by the tokens of 22 answers that this model gave before" in line]
    assert known.endswith(f"; at most US$ {bound:.4f}")
    assert 0 < float(known.split()[2]) < bound
    assert "in all, at the pace of 22 answers that this model gave before" in told
    assert "≤ " in told
    endpoint.received.clear()
    refused = evaluators(*command(problems, endpoint, tmp_path / "runs", "--prompt", "published-v1", "--dry-run"))
    assert (refused.exit_code, "marks published answers" in refused.stderr) == (1, True)
    assert not endpoint.received


@dataclass
class Narrow(LoggingBackend):
    """A model with a token for each byte, and room for so many."""

    context_tokens: int | None = None

    def needed_tokens(self, requests: Sequence[Request]) -> Sequence[int]:
        return [longest_bytes(request) for request in requests]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_dataset(tmp_path_factory.mktemp("narrow") / "tasks", ("two",))


def plans(dataset: Path, contexts: str) -> Sequence[Plan]:
    named = tuple(contexts.split(","))
    return Study(datasets=(dataset,), contexts=named, prompts=("release-4096b",), splits=("test",), limit=3).usual_plans


def longest(plan: Plan) -> int:
    """The largest number of tokens that a request of a plan needs."""
    return max(longest_bytes(request) for part in plan.parts for asked in part.requests for request in asked)


def fitting(
    asked: Sequence[Plan], room: int | None, tmp_path: Path, max_failure_rate: float = 0.0, **fields: Any
) -> list[Plan]:
    backend = Narrow(log=tmp_path / "log", context_tokens=room, **fields)
    return check_context(asked, backend, AnswerStores(tmp_path / "runs", None), max_failure_rate)


def test_only_the_numbers_that_do_not_fit_are_left_out_and_nothing_is_asked_if_none_fits(
    dataset: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    asked = plans(dataset, "0,2,8")
    by_number: dict[int | None, list[int]] = {}
    for plan in asked:
        by_number.setdefault(plan.prompt.n_examples, []).append(longest(plan))
    assert max(by_number[0]) < max(by_number[2]) < min(by_number[8])
    # A room that holds two of the three sets of eight: all three are left out.
    room = sorted(by_number[8])[1] if len({*by_number[8]}) > 1 else min(by_number[8]) - 1
    kept = fitting(asked, room, tmp_path)
    assert [plan.prompt.n_examples for plan in kept] == [0, 2, 2, 2]
    (line,) = [one for one in capfd.readouterr().err.splitlines() if "is not asked" in one]
    assert line == (
        f"config 'tasks' is not asked with 8 examples (release-4096b): they need up to {max(by_number[8]):,} tokens, "
        f"and the model's context has {room:,}"
    )
    assert fitting(asked, max(by_number[8]), tmp_path) == fitting(asked, None, tmp_path) == asked
    with pytest.raises(ConfigError, match=r"prompt 'release-4096b-k2-set0-v1': .* its context has 90; .*nothing was"):
        fitting(plans(dataset, "2,8"), 90, tmp_path)


def test_the_longest_answer_and_the_options_after_it_must_fit_if_they_are_not_answered(tmp_path: Path) -> None:
    data = write_dataset(tmp_path / "data", {"type2": made_items(3)})
    plan = Plan(select(data, read_manifest(data), "type2"), TASK, prompt_of(TASK, "cot-logprob-v1"))
    # The question and its first token are 1, then the rest of the answer, and the line with an option.
    room = longest(plan) + (plan.prompt.max_tokens or 0) - 1 + len("\nAnswer: A")
    assert fitting([plan], room, tmp_path, capabilities=OF_LANGUAGE_MODELS) == [plan]
    with pytest.raises(ConfigError, match=rf"need up to {room:,} tokens with the longest answer, its context has"):
        fitting([plan], room - 1, tmp_path, capabilities=OF_LANGUAGE_MODELS)
    # Votes may be cut.
    votes = replace(plan, prompt=prompt_of(TASK, "cot-v1"))
    assert fitting([votes], room - 1, tmp_path, capabilities=OF_LANGUAGE_MODELS) == [votes]
    letters = replace(plan, prompt=prompt_of(TASK, "mcq2-v1"))
    with pytest.raises(ConfigError, match="its context has 9"):
        fitting([letters], 9, tmp_path)
    ask(data, tmp_path / "runs", LoggingBackend(tmp_path / "log"))
    assert fitting([letters], 9, tmp_path) == [letters]
