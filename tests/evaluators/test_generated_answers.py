"""Coreference answers that are generated: how they are asked for, and what becomes of them in a result."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from biasboard.ground import strict_json
from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.files import sha256_file
from biasboard.ground.memory import Memory
from evaluators.backend import (
    Backend,
    Capability,
    GenerateRequest,
    Request,
    Response,
    Runtime,
    TokenCount,
    identified_model,
)
from evaluators.runs.ask.pipeline import run
from evaluators.runs.measure.rescoring import rescore
from evaluators.runs.plan.plan import Plan
from evaluators.runs.plan.run_options import RunOptions
from evaluators.runs.plan.selection import select
from evaluators.task import Asked, prompt_of
from evaluators.tasks.coreference.coreference_task import TASK
from leaderboard.verify.entries import Entry, Root
from leaderboard.verify.verification import verified_entry
from schemas.documents.record import Exchange
from schemas.documents.result import Model
from schemas.files import contract
from schemas.files.record_files import write_records
from schemas.folders.dataset_folder import read_manifest
from schemas.folders.run_folder import read_run
from schemas.items.coreference import CoreferenceItem
from tests.commands import output_of
from tests.evaluators.invoking import evaluators
from tests.evaluators.made_data import made_items, save_tiny_llama, write_dataset
from tests.leaderboard.made_keys import MadeKeys
from tests.schemas import examples
from tests.worlds import copy_site

UNDETERMINED = "undetermined"
TWO = ("guard", "nurse")
THREE = ("guard", "nurse", UNDETERMINED)


def generated(text: str | None, outcomes: tuple[str, ...], **changes: Any) -> Exchange:
    return replace(examples.generated_exchange(text, outcomes), **changes)


def test_the_distribution_is_the_share_of_orders() -> None:
    read = TASK.read([generated("A", TWO), generated("the guard", TWO[::-1])], None)
    assert read.reading is not None
    assert (read.reading.outcomes, read.reading.probabilities) == (TWO, (1.0, 0.0))
    assert read.reading.answers == ("guard", "guard")
    positional = TASK.read([generated("A", TWO), generated("A", TWO[::-1])], None)
    assert positional.reading is not None
    assert positional.reading.probabilities == (0.5, 0.5)


def test_one_answer_that_cannot_be_read_leaves_the_record_without_a_reading() -> None:
    unread = TASK.read([generated("A", TWO), generated("Both of them", TWO)], None)
    assert (unread.status, unread.reading) == ("unparsed", None)
    assert unread.reason == "answer 2 of 2 names no one option: 'Both of them'"
    assert TASK.read([generated("I cannot", TWO), generated("A", TWO)], None).status == "refused"
    failed = generated(None, TWO, status="failed", error="connection cut")
    assert TASK.read([generated("A", TWO), failed], None).reason == "connection cut"


def test_every_order_is_asked_once_and_names_what_it_offers() -> None:
    item = made_items(1)[0]
    requests = TASK.requests(item, Asked(prompt_of(TASK, "mcq3-generate-v1")))
    assert len({request.sha256 for request in requests}) == 6
    for request in requests:
        assert isinstance(request, GenerateRequest)
        assert (request.temperature, request.max_tokens, request.stop) == (0.0, 16, ("\nSentence:", "\nQuestion:"))
        lines = dict(line.split(". ", 1) for line in request.prompt.splitlines() if line[1:3] == ". ")
        named = {UNDETERMINED: "It cannot be determined from the sentence"}
        assert [named.get(outcome, f"the {outcome}") for outcome in request.outcomes] == [lines[c] for c in "ABC"]


def test_what_is_generated_is_part_of_the_prompt() -> None:
    prompt = prompt_of(TASK, "mcq2-generate-v1")
    changed = [
        replace(prompt, max_tokens=17),
        replace(prompt, temperature=1.0),
        replace(prompt, stop=()),
        replace(prompt, stop=None),
    ]
    assert len({one.sha256() for one in [prompt, *changed]}) == 5


@dataclass
class Torn(Backend):
    """Right, but it takes the first option of every fifth item, declines every seventh, and babbles now and then."""

    texts: dict[str, str]
    capabilities: frozenset[Capability] = frozenset({"generation"})
    runtime: Runtime = field(default_factory=Runtime)
    arguments: tuple[str, ...] = ()

    @property
    def model(self) -> Model:
        """Made up."""
        identity = {"backend": "tests", "model": "acme/texts@1"}
        return identified_model("acme/texts", identity, revision="1")

    def answer(self, requests: Sequence[Request]) -> Sequence[Response]:
        """By what is asked."""
        return [Response(status="answered", text=self.texts[r.sha256], finish_reason="stop") for r in requests]

    def count_tokens(self, requests: Sequence[Request]) -> TokenCount | None:
        """Nobody knows."""
        return None


def torn(items: Sequence[CoreferenceItem], prompt_id: str) -> Torn:
    texts = {}
    for number, item in enumerate(items):
        for request in TASK.requests(item, Asked(prompt_of(TASK, prompt_id))):
            assert isinstance(request, GenerateRequest)
            right = "ABC"[request.outcomes.index(str(item.referent))]
            text = " A" if number % 5 == 0 else f" {right}."
            texts[request.sha256] = " I cannot" if number % 7 == 0 else " no idea" if number % 11 == 10 else text
    return Torn(texts)


@pytest.mark.slow
@pytest.mark.parametrize("prompt_id", ["mcq2-generate-v1", "mcq3-generate-v1"])
def test_a_result_of_texts_can_be_recounted(tmp_path: Path, prompt_id: str) -> None:
    items = made_items(60)
    dataset = write_dataset(tmp_path / "data", {"type2": items}, redistributable=prompt_id == "mcq2-generate-v1")
    selection = select(dataset, read_manifest(dataset), "type2")
    backend = torn(items, prompt_id)
    finished = run(
        Plan(selection, TASK, prompt_of(TASK, prompt_id)), backend, RunOptions(root=tmp_path / "runs", command="tests")
    )
    result, records = read_run(finished.folder)
    refused = sum(number % 7 == 0 for number in range(120))
    unread = sum(number % 7 != 0 and number % 11 == 10 for number in range(120))
    counts = result.counts
    assert (counts.items, counts.refused, counts.unparsed, counts.failed) == (120, refused, unread, 0)
    signature = result.signature
    k = 2 if prompt_id == "mcq2-generate-v1" else 3
    assert (signature.scoring, signature.normalisation, signature.n_outcomes) == ("generation", None, k)
    assert f"mode:generation|k:{k}" in str(signature)
    even = [record for number, record in enumerate(records) if number % 5 == 0 and record.reading is not None]
    assert len(even) > 10
    for record in even:
        assert record.reading is not None
        assert record.reading.probabilities == pytest.approx((1 / k,) * k)
    accuracy = next(metric for metric in result.metrics if metric.name == "accuracy" and not metric.group)
    assert accuracy.value == pytest.approx((counts.scored - len(even) + len(even) / k) / counts.scored)
    before = (finished.folder / "result.json").read_bytes()
    assert rescore(finished.folder).changes == ()
    assert (finished.folder / "result.json").read_bytes() == before
    with pytest.raises(ConfigError, match="generated texts, which have no normalisation"):
        rescore(finished.folder, normalisation="sum")
    assert verified(finished.folder).result == result


def verified(folder: Path) -> Entry:
    return verified_entry(folder / "result.json", Root(folder.parents[2], "local"), Memory(None), MadeKeys(folder))


def test_a_text_that_was_changed_is_found_out(tmp_path: Path) -> None:
    items = made_items(20)
    dataset = write_dataset(tmp_path / "data", {"type2": items})
    selection = select(dataset, read_manifest(dataset), "type2")
    prompt = prompt_of(TASK, "mcq2-generate-v1")
    folder = run(
        Plan(selection, TASK, prompt), torn(items, prompt.id), RunOptions(root=tmp_path / "runs", command="tests")
    ).folder
    result, (*records,) = read_run(folder)
    first = next(index for index, record in enumerate(records) if record.status == "scored")
    changed = replace(records[first].exchanges[0], text="the cat")
    records[first] = replace(records[first], exchanges=(changed, *records[first].exchanges[1:]))
    write_records(folder / "records.parquet", records)
    sound = replace(result.records, sha256=sha256_file(folder / "records.parquet"))
    strict_json.write(folder / "result.json", contract.dump(replace(result, records=sound)))
    with pytest.raises(DataError, match=r"status is 'scored', its answers give 'unparsed'"):
        verified(folder)


def test_a_model_without_options_and_a_normalisation_of_texts_are_refused(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "data", {"type2": made_items(4)})
    options = ("run", "--dataset", str(dataset), "--prompt", "mcq2-generate-v1", "--out", str(tmp_path / "runs"))
    other = [option.replace("mcq2-generate-v1", "intrinsic-v1") for option in options]
    done = evaluators(*other, "--backend", "baseline", "--model", "echo")
    assert done.exit_code == 1
    assert "cannot do option_logprobs, which prompt 'intrinsic-v1' needs" in done.output
    done = evaluators(*options, "--backend", "baseline", "--model", "uniform", "--normalisation", "sum")
    assert done.exit_code == 1
    assert "generated texts, which have no normalisation; leave out --normalisation" in done.output


@pytest.mark.slow
def test_texts_of_a_language_model_reach_the_board(tmp_path: Path, repository: Path) -> None:
    pytest.importorskip("torch", reason="the extra hf is not installed")
    dataset = write_dataset(tmp_path / "datasets" / "made", {"type2": made_items(20)})
    model = save_tiny_llama(tmp_path / "tiny-llama")
    copy_site(tmp_path)

    runs = tmp_path / "runs"
    asked = ("run", "--dataset", dataset, "--backend", "transformers", "--model", model, "--device", "cpu")
    printed = output_of("-m", "evaluators", *asked, "--prompt", "mcq2-generate-v1", "--out", runs, status=3)
    assert "0 of 40 answers on type2 could be read" in printed
    (path,) = runs.rglob("result.json")
    result = json.loads(path.read_text(encoding="utf-8"))
    assert (result["signature"]["scoring"], result["signature"]["n_outcomes"]) == ("generation", 2)
    assert result["environment"]["settings"]["generation"] == "continuous"
    assert "--normalisation" not in result["command"]
    # A model with random weights says nothing that could be read: that is no score, and no failure either.
    assert result["counts"]["failed"] == 0
    assert result["counts"]["items"] == 40
    output_of("-m", "schemas.validate", runs)
    output_of("-m", "evaluators", "rescore", path.parent)
    options = ("--results", tmp_path / "none", "--runs", runs, "--datasets", dataset.parent)
    output_of("-m", "leaderboard", "build", *options, "--site", tmp_path / "site", "--out", tmp_path / "built")
    assert "local/tiny-llama" in (tmp_path / "built" / "benchmarks" / "synthbias.html").read_text(encoding="utf-8")
