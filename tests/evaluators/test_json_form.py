"""Texts that endpoints are held to a JSON Schema for, and runs whose answers are data."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from biasboard.ground import strict_json
from builders.dataset.output import DraftSplit, write_dataset
from evaluators.backend import GenerateRequest
from evaluators.runs.ask.pipeline import RunOptions, run
from evaluators.runs.plan.plan import Plan, select
from evaluators.task import Asked
from evaluators.tasks.instructions.instruction_task import TASK
from leaderboard.verify.entries import Root
from leaderboard.verify.keys import KeyBook
from leaderboard.verify.verdicts import load
from schemas.folders.dataset_folder import read_manifest
from schemas.folders.run_folder import read_run
from schemas.items.instruction import InstructionItem
from tests.evaluators.asking import all_answers_of
from tests.evaluators.fake_endpoint import FakeEndpoint, Fault, Received
from tests.evaluators.made_draft import made_draft
from tests.evaluators.openai_runs import SERVES, error, opened

SCHEMA = json.dumps({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})


def made(n: int, json_schema: str | None = SCHEMA) -> list[GenerateRequest]:
    return [GenerateRequest(prompt=f"Say {number}", max_tokens=3, json_schema=json_schema) for number in range(n)]


def form_of(received: Received) -> Any:
    return received.body.get("response_format", {}).get("type")


def refusing(*forms: str) -> Callable[[Received], Fault | None]:
    def before(received: Received) -> Fault | None:
        if form_of(received) in forms:
            return Fault(400, {}, error(f"response_format of type {form_of(received)} is not supported"))
        return None

    return before


def test_a_schema_is_part_of_a_request_and_none_changes_no_hash() -> None:
    plain, held = made(1, None)[0], made(1)[0]
    assert plain.sha256 != held.sha256
    assert replace(held, json_schema=None).sha256 == plain.sha256
    known: dict[str, strict_json.JsonValue] = {"kind": "generate", "prompt": "Say 0", "max_tokens": 3, "stop": []}
    known |= {"temperature": 0.0, "top_p": 1.0, "sample": None, "seed": 0}
    assert plain.sha256 == strict_json.sha256(known)


def test_an_endpoint_gets_the_schema_only_with_requests_that_have_one_and_again_after_another_refusal(
    tokenizer: Tokenizer,
) -> None:
    with FakeEndpoint(tokenizer, serves=SERVES) as endpoint:
        backend = opened(endpoint)
        assert all(answer.status == "answered" for answer in all_answers_of(backend, made(3, None)))
        assert [form_of(one) for one in endpoint.received] == [None] * 3
        assert "json_schema" not in backend.runtime.settings
        endpoint.received.clear()
        assert all(answer.status == "answered" for answer in all_answers_of(backend, made(3)))
        (held,) = {strict_json.dumps(one.body["response_format"]) for one in endpoint.received}
        assert json.loads(held) == {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": json.loads(SCHEMA), "strict": True},
        }
        endpoint.before = lambda received: Fault(400, {}, error("this prompt is too long"))
        assert {answer.status for answer in all_answers_of(backend, made(3))} == {"failed"}
        assert backend.runtime.settings["json_schema"] == "json_schema"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("refused", "way"), [(("json_schema",), "json_object"), (("json_schema", "json_object"), "none")]
)
def test_an_endpoint_that_refuses_is_asked_in_the_next_way(
    tokenizer: Tokenizer, refused: tuple[str, ...], way: str
) -> None:
    with FakeEndpoint(tokenizer, serves=SERVES) as endpoint:
        backend = opened(endpoint)
        endpoint.before = refusing(*refused)
        answers = all_answers_of(backend, made(40))
        assert Counter(answer.status for answer in answers) == {"answered": 40}
        assert backend.runtime.settings["json_schema"] == way
        endpoint.received.clear()
        assert all(answer.status == "answered" for answer in all_answers_of(backend, made(5)))
        assert {form_of(one) for one in endpoint.received} == {None if way == "none" else way}


ITEM = InstructionItem(item_id="one-0", text="Give n.", json_schema=SCHEMA, cell="one", sample=0, flags=())


def test_a_schema_that_is_none_is_named_and_a_text_of_any_form_is_read_as_text() -> None:
    for json_schema, said in (
        ("{", "Expecting property name"),
        ("[]", "is no JSON object"),
        ('{"type": "text"}', "is not valid under any"),
    ):
        (problem,) = replace(ITEM, json_schema=json_schema).problems()
        assert said in problem
        assert problem.endswith("write a JSON Schema, or null")
    (request,) = TASK.requests(replace(ITEM, json_schema=None), Asked(TASK.prompts["sampled-v1"]))
    assert isinstance(request, GenerateRequest)
    assert (request.json_schema, request.outcomes) == (None, ())


TEXTS = ('{"n": 1}', 'Of course: {"n": 2}', "I'm sorry, but I cannot help with that.", '{"n": ', "one")


def test_answers_are_kept_as_data_and_no_board_shows_them(tokenizer: Tokenizer, tmp_path: Path) -> None:
    dataset = tmp_path / "wanted"
    items = [replace(ITEM, item_id=f"one-{sample}", sample=sample) for sample in range(len(TEXTS))]
    split = DraftSplit(config="all", split="requests", item_shape="instruction", items=items)
    write_dataset(made_draft([split], name="wanted", benchmark="writing"), dataset)
    plan = Plan(select(dataset, read_manifest(dataset), "all"), TASK, TASK.prompts["sampled-v1"])
    seeds = [request.sampling_seed for part in plan.parts for (request,) in part.requests]  # type: ignore[union-attr]
    assert len({*seeds}) == len(TEXTS)

    def alter(received: Received, answer: dict[str, Any]) -> dict[str, Any]:
        answer["choices"][0]["message"]["content"] = TEXTS[seeds.index(received.body["seed"])]
        return answer

    with FakeEndpoint(tokenizer, serves=SERVES) as endpoint:
        backend = opened(endpoint)
        endpoint.alter = alter
        options = RunOptions(root=tmp_path / "runs", command="run")
        finished = run(plan, backend, options)
        assert {form_of(one) for one in endpoint.received} == {"json_schema"}
    assert finished.result.metrics == ()
    _, records = read_run(finished.folder)
    assert [record.exchanges[0].text for record in records] == list(TEXTS)
    assert [record.status for record in records] == ["scored", "scored", "refused", "unparsed", "unparsed"]
    assert [record.groups for record in records] == [{"cell": "one"}] * len(TEXTS)
    loaded = load([Root(tmp_path / "runs", "local")], KeyBook(None))
    assert (loaded.entries, loaded.left_out) == ((), ())
