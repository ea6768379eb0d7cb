"""Coreference answers that are generated: how they are asked for, and what becomes of them in a result."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from biasboard.ground import strict_json
from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.files import sha256_file
from biasboard.ground.memory import Memory
from evaluators.backend import Capability, GenerateRequest, Request, Response
from evaluators.runs.ask.pipeline import RunOptions, run
from evaluators.runs.measure.rescoring import rescore
from evaluators.runs.plan.plan import Plan, select
from evaluators.task import Asked, prompt_of
from evaluators.tasks.coreference.coreference_task import TASK
from leaderboard.verify.entries import Entry, Root
from leaderboard.verify.verification import verified_entry
from schemas.files import contract
from schemas.folders.dataset_folder import read_manifest
from schemas.folders.run_folder import read_run
from tests.evaluators.logging_backend import LoggingBackend
from tests.evaluators.made_data import made_items, write_dataset
from tests.leaderboard.made_keys import MadeKeys
from tests.record_files import write_records
from tests.schemas.examples import generated_exchange as generated

TWO = ("guard", "nurse")


def test_the_distribution_is_the_share_of_orders_of_which_each_must_be_readable() -> None:
    read = TASK.read([generated("A", TWO), generated("the guard", TWO[::-1])], None)
    assert read.reading is not None
    assert (read.reading.outcomes, read.reading.probabilities) == (TWO, (1.0, 0.0))
    assert read.reading.answers == ("guard", "guard")
    positional = TASK.read([generated("A", TWO), generated("A", TWO[::-1])], None)
    assert positional.reading is not None
    assert positional.reading.probabilities == (0.5, 0.5)
    unread = TASK.read([generated("A", TWO), generated("Both of them", TWO)], None)
    assert (unread.status, unread.reading) == ("unparsed", None)
    assert unread.reason == "answer 2 of 2 names no one option: 'Both of them'"
    assert TASK.read([generated("I cannot", TWO), generated("A", TWO)], None).status == "refused"
    failed = replace(generated(None, TWO), status="failed", error="connection cut")
    assert TASK.read([generated("A", TWO), failed], None).reason == "connection cut"


def test_every_order_is_asked_once_and_names_what_it_offers() -> None:
    item = made_items(1)[0]
    requests = TASK.requests(item, Asked(prompt_of(TASK, "mcq3-generate-v1")))
    assert len({request.sha256 for request in requests}) == 6
    for request in requests:
        assert isinstance(request, GenerateRequest)
        assert (request.temperature, request.max_tokens, request.stop) == (0.0, 16, ("\nSentence:", "\nQuestion:"))
        lines = dict(line.split(". ", 1) for line in request.prompt.splitlines() if line[1:3] == ". ")
        named = {"undetermined": "It cannot be determined from the sentence"}
        assert [named.get(outcome, f"the {outcome}") for outcome in request.outcomes] == [lines[c] for c in "ABC"]


@dataclass
class Torn(LoggingBackend):
    """Right, but it takes the first option of every fifth item, declines every seventh, and babbles now and then."""

    texts: dict[str, str] = field(default_factory=dict)
    capabilities: frozenset[Capability] = frozenset({"generation"})

    def _answer(self, request: Request) -> Response:
        return Response(status="answered", text=self.texts[request.sha256], finish_reason="stop")


def verified(folder: Path) -> Entry:
    return verified_entry(folder / "result.json", Root(folder.parents[2], "local"), Memory(None), MadeKeys(folder))


@pytest.mark.slow
def test_a_result_of_texts_can_be_recounted_and_a_text_that_was_changed_is_found_out(tmp_path: Path) -> None:
    items, prompt, texts = made_items(20), prompt_of(TASK, "mcq3-generate-v1"), {}
    for number, item in enumerate(items):
        for request in TASK.requests(item, Asked(prompt)):
            assert isinstance(request, GenerateRequest)
            right = "ABC"[request.outcomes.index(str(item.referent))]
            text = " A" if number % 5 == 0 else f" {right}."
            texts[request.sha256] = " I cannot" if number % 7 == 0 else " no idea" if number % 11 == 10 else text
    dataset = write_dataset(tmp_path / "data", {"type2": items})
    plan = Plan(select(dataset, read_manifest(dataset), "type2"), TASK, prompt)
    folder = run(plan, Torn(tmp_path / "log", texts=texts), RunOptions(root=tmp_path / "runs", command="tests")).folder
    result, (*records,) = read_run(folder)
    # 0, 7, 14, 21, 28 and 35 are refused, 10 and 32 unread, and 5, 15, 20, 25 and 30 are even.
    counts = result.counts
    assert (counts.items, counts.refused, counts.unparsed, counts.failed) == (40, 6, 2, 0)
    assert "mode:generation|k:3" in str(result.signature)
    assert records[5].reading is not None
    assert records[5].reading.probabilities == pytest.approx((1 / 3,) * 3)
    accuracy = next(metric for metric in result.metrics if metric.name == "accuracy" and not metric.group)
    assert accuracy.value == pytest.approx((32 - 5 + 5 / 3) / 32)
    before = (folder / "result.json").read_bytes()
    assert rescore(folder).changes == ()
    assert (folder / "result.json").read_bytes() == before
    with pytest.raises(ConfigError, match="generated texts, which have no normalisation"):
        rescore(folder, normalisation="sum")
    assert verified(folder).result == result

    changed = replace(records[1].exchanges[0], text="the cat")
    records[1] = replace(records[1], exchanges=(changed, *records[1].exchanges[1:]))
    write_records(folder / "records.parquet", records)
    sound = replace(result.records, sha256=sha256_file(folder / "records.parquet"))
    strict_json.write(folder / "result.json", contract.dump(replace(result, records=sound)))
    with pytest.raises(DataError, match=r"status is 'scored', its answers give 'unparsed'"):
        verified(folder)
