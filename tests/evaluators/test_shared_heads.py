"""Beginnings that many prompts share are stored once, and every request is read back as it was asked."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from evaluators.backend import ChoiceRequest, Request, Response
from evaluators.runs.plan.estimate import _store_bytes
from evaluators.stores.answer_files import export
from evaluators.stores.maintenance import prune, summarise
from evaluators.stores.read_only import answered_keys, read_answers
from evaluators.stores.store import LEAST_HEAD, Heads, ResponseStore, store_key
from evaluators.task import load_task
from schemas.documents.result import Model
from tests.evaluators.logging_backend import LoggingBackend

ANSWER = Response(
    status="answered", option_logprobs=(-1.0, -2.0), option_end_logprobs=(0.0, 0.0), option_token_counts=(1, 1)
)


def model(name: str = "tests/one") -> Model:
    return LoggingBackend(Path("unused"), name=name).model


def text_of(rng: random.Random, n_words: int) -> str:
    return " ".join("".join(rng.choices("abcdefghij", k=6)) for _ in range(n_words))


def shown(n_parts: int, n_items: int, seed: int = 1) -> list[Request]:
    """Requests of several tasks, each with an instruction and examples of its own of about 1.8 kB."""
    rng = random.Random(seed)
    heads = [
        f"{text_of(rng, 40)}\n\n" + "".join(f"Text: {text_of(rng, 30)}\nLabel: A\n\n" for _ in range(6))
        for _ in range(n_parts)
    ]
    return [
        ChoiceRequest(
            prompt=f"{head}Text: {text_of(rng, 20)} \N{SNOWMAN}\nLabel:", options=(" A", " B"), outcomes=("A", "B")
        )
        for head in heads
        for _ in range(n_items)
    ]


def stored(path: Path, requests: Sequence[Request], of: Model, at_a_time: int = 64) -> None:
    with ResponseStore(path, of) as store:
        for start in range(0, len(requests), at_a_time):
            part = requests[start : start + at_a_time]
            store.add({store_key(of, one, with_facts=False): (one, ANSWER) for one in part})


@pytest.mark.parametrize("at_a_time", [1, 7, 64])
@pytest.mark.parametrize("is_mixed", [False, True])
def test_requests_come_back_as_they_were_asked_whatever_their_order(
    tmp_path: Path, at_a_time: int, is_mixed: bool
) -> None:
    requests = [
        *shown(4, 25),
        *(ChoiceRequest(prompt=f"short {n}", options=("a", "b"), outcomes=("a", "b")) for n in range(9)),
    ]
    if is_mixed:
        random.Random(3).shuffle(requests)
    stored(tmp_path / "a.sqlite", requests, model(), at_a_time)
    assert set(read_answers(tmp_path / "a.sqlite")) == {request.sha256 for request in requests}
    export(tmp_path / "a.sqlite", tmp_path / "a.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text(encoding="ascii").splitlines()]
    assert sorted(line["prompt"] for line in lines) == sorted(request.prompt for request in requests)
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as connection:
        heads = [text for (text,) in connection.execute("SELECT text FROM heads")]
        n_whole = connection.execute("SELECT COUNT(*) FROM responses WHERE head_id IS NULL").fetchone()[0]
    assert all(len(head) >= LEAST_HEAD for head in heads)
    # The first prompt of each task is stored as a whole, and those of no task are.
    assert n_whole <= 9 + 2 * 4
    assert len(heads) <= 8


def test_a_store_with_shared_beginnings_is_a_fraction_of_one_without(tmp_path: Path) -> None:
    requests = shown(3, 300)
    stored(tmp_path / "a.sqlite", requests, model())
    n_whole = sum(len(request.prompt.encode()) for request in requests)
    n_bytes = (tmp_path / "a.sqlite").stat().st_size
    assert n_bytes < 0.45 * n_whole
    prompt = next(iter(load_task("coreference").prompts.values()))
    assert _store_bytes(prompt, requests, ()) == pytest.approx(n_bytes, rel=0.25)


def test_heads_are_shared_beginnings_and_end_with_a_line_where_they_can() -> None:
    instruction = "Say what it is.\n" * 20
    heads = Heads()
    prompts = [f"{instruction}Text: the same words first, then {word}" for word in ("one", "two", "three")]
    assert [heads.head_of(prompt) for prompt in prompts] == ["", instruction, instruction]
    assert heads.head_of("x" * 1000) == ""
    assert heads.head_of("x" * 999 + "y") == "x" * 999
    resumed = Heads([instruction])
    assert resumed.head_of(prompts[2]) == instruction


def old_store(path: Path, request: Request) -> None:
    """Write a store as the format before wrote it, with every prompt as a whole."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(
            "CREATE TABLE models (id INTEGER PRIMARY KEY, model_sha256 TEXT NOT NULL UNIQUE, model TEXT NOT NULL);"
            "CREATE TABLE responses (key BLOB NOT NULL UNIQUE, model_id INTEGER NOT NULL, request BLOB NOT NULL,"
            " response BLOB NOT NULL, stored_at INTEGER NOT NULL);"
            "CREATE TABLE usage (n_attempts INTEGER NOT NULL, seconds REAL NOT NULL, cost_usd REAL);"
            "CREATE TABLE runtimes (model_id INTEGER NOT NULL, runtime TEXT NOT NULL,"
            " PRIMARY KEY (model_id, runtime)) WITHOUT ROWID;"
            "PRAGMA user_version=2;"
        )
        of = model()
        fields = {name: getattr(of, name) for name in Model.__dataclass_fields__}
        connection.execute("INSERT INTO models VALUES (1, ?, ?)", (of.identity_sha256, json.dumps(fields)))
        asked = {"prompt": request.prompt, "options": [" A", " B"], "outcomes": ["A", "B"], "facts": {}}
        said = {"status": "answered", "option_logprobs": [-1.0, -2.0], "option_end_logprobs": [0.0, 0.0]}
        said["option_token_counts"] = [1, 1]
        key = store_key(of, request, with_facts=False)
        connection.execute(
            "INSERT INTO responses VALUES (?, 1, ?, ?, 1700000000)", (key, json.dumps(asked), json.dumps(said))
        )


def test_a_store_of_the_format_before_is_read_and_goes_on(tmp_path: Path) -> None:
    first, *others = shown(1, 5)
    path = tmp_path / "old.sqlite"
    old_store(path, first)
    before = path.read_bytes()
    assert read_answers(path) == {first.sha256: ANSWER}
    assert summarise(path).n_answers == 1
    export(path, tmp_path / "old.jsonl")
    assert json.loads((tmp_path / "old.jsonl").read_text(encoding="ascii"))["prompt"] == first.prompt
    assert answered_keys(path, [store_key(model(), first, with_facts=False)])
    assert path.read_bytes() == before
    stored(path, others, model())
    assert set(read_answers(path)) == {request.sha256 for request in (first, *others)}
    pruned = tmp_path / "pruned.sqlite"
    old_store(pruned, first)
    assert prune(pruned, before=1800000000).removed[0].n_answers == 1


def test_pruning_removes_the_beginnings_that_nothing_uses_and_tells_their_size(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    shared, own = shown(1, 40, seed=1), shown(1, 40, seed=2)
    one, other = model("tests/one"), model("tests/other")
    stored(path, [*shared, *own], one)
    stored(path, shared, other)
    said = {stored_model.model.id: stored_model.n_bytes for stored_model in summarise(path).models}
    n_head = len(own[0].prompt.encode()) - 200
    tails = 80 * 700
    assert n_head < said["tests/one"] < n_head + tails
    assert said["tests/other"] < said["tests/one"] / 2
    removed = prune(path, model="tests/one").removed
    assert removed[0].n_answers == 80
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT COUNT(*) FROM heads").fetchone() == (1,)
    assert set(read_answers(path)) == {request.sha256 for request in shared}
