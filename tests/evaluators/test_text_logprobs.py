"""Log-probabilities of generated texts: what backends return, and files from before there were any."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from biasboard.ground.errors import DataError
from evaluators.backend import GenerateRequest
from evaluators.backends.openai.generation import Generation
from schemas.documents.base import as_row
from schemas.documents.record import Record
from schemas.files.arrow_files import arrow_schema
from tests.evaluators.asking import all_answers_of
from tests.record_files import read_records, write_records
from tests.schemas import examples


@pytest.mark.slow
def test_a_text_has_the_sum_over_its_tokens_whatever_runs_beside_it(tiny_llama: Path) -> None:
    torch = pytest.importorskip("torch", reason="the extra hf is not installed")
    from tests.evaluators.plain_generation import made_requests, opened, plain

    requests = [replace(request, with_logprob=True) for request in made_requests(12)]
    backend = opened(tiny_llama, batch_tokens=4096)
    answers = all_answers_of(backend, requests)
    assert {answer.finish_reason for answer in answers} == {"stop", "length"}
    for request, answer in zip(requests, answers, strict=True):
        ids = backend.tokenizer.pretrained(request.prompt)["input_ids"]
        total = 0.0
        for token in plain(backend, request).ids:
            with torch.no_grad():
                logits = backend.network(torch.tensor([ids]), use_cache=False).logits[0, -1]
            # The end token counts, and neither temperature nor top_p changes the model's own probability.
            total += float(torch.log_softmax(logits.double(), dim=-1)[token])
            ids = [*ids, token]
        # Each logit is a float32 sum of at most 128 products of some units.
        assert answer.text_logprob == pytest.approx(total, abs=1e-5 * len(ids))
    assert all_answers_of(opened(tiny_llama, batch_tokens=1), requests) == answers
    (unasked,) = all_answers_of(backend, [replace(requests[0], with_logprob=False)])
    assert unasked.text_logprob is None


def test_what_is_asked_beside_the_text_makes_no_other_request() -> None:
    request = GenerateRequest(prompt="Who left?", max_tokens=16)
    # As before there was the field, so that stored answers are still found.
    assert request.sha256 == "7ac7eb245a72c048a0586412a90adfbd8800e43876aac03adf55d2ca75c6ee96"
    assert replace(request, asks_confidence=True).sha256 == request.sha256
    assert replace(request, with_logprob=True).sha256 == request.sha256


@pytest.mark.parametrize(
    ("api", "logprobs", "expected"),
    [
        ("chat", {"content": [{"token": "A", "logprob": -0.5}, {"token": ".", "logprob": -0.25}]}, -0.75),
        ("completions", {"tokens": ["A", "."], "token_logprobs": [-0.5, -0.25]}, -0.75),
        ("completions", {"token_logprobs": [-1, -9999.0]}, -math.inf),
        ("chat", None, None),
        ("chat", {"content": ["A"]}, None),
        ("completions", {"token_logprobs": [-0.5, 0.25]}, None),
        ("completions", {"token_logprobs": [-0.5, math.nan]}, None),
        ("completions", {"token_logprobs": "-0.5"}, None),
    ],
)
def test_an_endpoint_that_returns_none_leaves_it_unknown(api: str, logprobs: Any, expected: float | None) -> None:
    generation = Generation(model="m", api=api, tokenizer=None, gives_logprobs=True)
    request = GenerateRequest(prompt="Who left?", max_tokens=16, with_logprob=True)
    choice = {"index": 0, "text": "A.", "message": {"content": "A."}, "finish_reason": "stop", "logprobs": logprobs}
    read = generation.read(request, [{"choices": [choice]}])
    assert (read.text, read.text_logprob) == ("A.", expected)
    assert generation.read(replace(request, with_logprob=False), [{"choices": [choice]}]).text_logprob is None


def test_an_endpoint_is_asked_for_them_only_if_it_gives_some() -> None:
    request = GenerateRequest(prompt="Who left?", max_tokens=16, with_logprob=True)
    for api, wanted in (("chat", True), ("completions", 1)):
        generation = Generation(model="m", api=api, tokenizer=None, gives_logprobs=True)
        assert generation.calls(request)[0].body["logprobs"] == wanted
        assert "logprobs" not in replace(generation, gives_logprobs=False).calls(request)[0].body


def test_files_of_records_from_before_are_read(tmp_path: Path) -> None:
    path = tmp_path / "records.parquet"
    record = examples.record()
    known = replace(record, exchanges=(replace(examples.generated_exchange(), text_logprob=-1.5),), reading=None)
    known = replace(known, status="unparsed", reason="names no one option")
    write_records(path, [known])
    assert read_records(path)[0].exchanges[0].text_logprob == -1.5
    table = pa.Table.from_pylist([as_row(known)], schema=arrow_schema(Record))
    pq.write_table(_without(table, "text_logprob"), path)
    assert read_records(path)[0] == replace(known, exchanges=(replace(known.exchanges[0], text_logprob=None),))
    pq.write_table(_without(table, "finish_reason"), path)
    with pytest.raises(DataError, match="column exchanges is of type"):
        read_records(path)


def _without(table: pa.Table, name: str) -> pa.Table:
    """The table without a field of its exchanges."""
    index = table.schema.get_field_index("exchanges")
    field = table.schema.field(index)
    kept = pa.struct([inner for inner in field.type.value_type if inner.name != name])
    kind = pa.list_(field.type.value_field.with_type(kept))
    rows = [
        [{key: value for key, value in row.items() if key != name} for row in rows]
        for rows in table.column("exchanges").to_pylist()
    ]
    return table.set_column(index, field.with_type(kind), pa.array(rows, type=kind))
