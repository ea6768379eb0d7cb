"""The board computes what baselines get, and gives them the rows that runs of theirs would have."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq
import pytest

from biasboard.ground.memory import Memory
from builders.dataset.output import write_dataset as write_draft
from builders.gifi import drafts
from evaluators.backend import Backend, Capability, GenerateRequest, Request, Response, open_backend
from evaluators.backend_options import BackendOptions
from evaluators.benchmark import load_benchmark
from evaluators.runs.ask.pipeline import run
from evaluators.runs.measure.baseline_answers import BaselineAnswers
from evaluators.runs.measure.baseline_gate import GateCheck
from evaluators.runs.measure.stored_results import write_without_prompts
from evaluators.runs.plan.plan import Plan
from evaluators.runs.plan.run_options import RunOptions
from evaluators.runs.plan.selection import select
from evaluators.scorer import quick_scorers
from evaluators.task import load_task, prompt_of
from leaderboard.ranking.boards import assemble
from leaderboard.verify import baselines
from leaderboard.verify.baselines import with_baselines
from leaderboard.verify.entries import Entry, Examples, Match, Root
from leaderboard.verify.keys import KeyBook
from leaderboard.verify.loading import load
from schemas.documents.board import Acceptance
from schemas.documents.result import RecordsFile, SumsFile, Withheld
from schemas.folders.dataset_folder import read_manifest
from schemas.folders.run_folder import StoredParts
from tests.commands import output_of
from tests.evaluators.label_data import made_dataset
from tests.evaluators.logging_backend import LoggingBackend
from tests.evaluators.made_data import made_items, write_dataset
from tests.worlds import copy_site


@dataclass
class ModelBackend(LoggingBackend):
    """A model that chooses and writes, and whose texts are often cut."""

    capabilities: frozenset[Capability] = frozenset({"option_logprobs", "generation"})

    def _answer(self, request: Request) -> Response:
        if not isinstance(request, GenerateRequest):
            answer = super()._answer(request)
            # All of them together are at most certain.
            share = math.log(len(request.options))
            return replace(answer, option_logprobs=tuple((value or 0.0) - share for value in answer.option_logprobs))
        drawn = int(request.sha256[:4], 16)
        finish = "length" if drawn % 3 == 0 else "stop"
        return Response(status="answered", text=f"A or he, {drawn % 7}", finish_reason=finish)


class Asked(NamedTuple):
    """A config or suite, and the prompt that asks about it."""

    config: str
    task: str
    prompt: str


def coreference(folder: Path) -> Path:
    return write_dataset(folder, {"type1": made_items(40, ambiguous=True), "type2": made_items(40)})


def gifi(folder: Path) -> Path:
    # Five templates or problems of each config at least, so that there are clusters to compare.
    write_draft(drafts.embedded(limit=170), folder)
    return folder


def labels(folder: Path) -> Path:
    return made_dataset(folder, ("three", "letters"))


MADE: dict[str, tuple[Callable[[Path], Path], tuple[Asked, ...]]] = {
    "synthbias": (
        coreference,
        tuple(
            Asked(config, "coreference", prompt)
            for config in ("type1", "type2")
            for prompt in ("intrinsic-v1", "mcq2-v1", "mcq2-generate-v1", "cot-logprob-v1")
        ),
    ),
    "gifi": (
        gifi,
        (
            Asked("recognition", "recognition", "sampled-v1"),
            Asked("continuation", "continuation", "sampled-v1"),
            Asked("assignment", "assignment", "sampled-v1"),
            Asked("math", "word_problem", "zero-shot-sampled-v1"),
        ),
    ),
    "superni": (
        labels,
        (
            Asked("tasks", "classification", "release-1024b-k0-v1"),
            Asked("tasks", "classification", "release-1024b-k8-set0-v1"),
        ),
    ),
}


def ask(dataset: Path, root: Path, backend: Backend, asked: Asked, limit: int | None = None) -> None:
    task = load_task(asked.task)
    selection = select(dataset, read_manifest(dataset), asked.config, limit=limit)
    plan = Plan(selection, task, prompt_of(task, asked.prompt))
    run(plan, backend, RunOptions(root=root, command="tests", scorers=quick_scorers()))


def loaded(dataset: Path, runs: Path, memory: Memory | None = None) -> tuple[Entry, ...]:
    found = load([Root(runs, "local")], KeyBook(None, dataset.parent), memory or Memory(None))
    assert found.left_out == ()
    return found.entries


def computed(entries: tuple[Entry, ...], memory: Memory | None = None) -> list[Entry]:
    return [entry for entry in with_baselines(entries, memory or Memory(None)) if entry.is_computed]


def check_same(one: Entry, other: Entry) -> None:
    """All that tables, ranks and indices read of a result."""
    assert (one.result.signature, one.result.model) == (other.result.signature, other.result.model)
    assert (one.place, one.origin, one.match) == (other.place, other.origin, other.match)
    assert (one.metrics, one.result.metrics) == (other.metrics, other.result.metrics)
    assert (one.coverage, one.result.coverage) == (other.coverage, other.result.coverage)
    assert one.result.counts == other.result.counts
    assert (one.items_sha256, one.answers_sha256) == (other.items_sha256, other.answers_sha256)
    assert (one.provenance, one.claim) == (other.provenance, other.claim)
    assert (one.settled, one.unread_share) == (other.settled, other.unread_share)
    assert one.deviations.keys() == other.deviations.keys()
    for name, deviations in one.deviations.items():
        assert deviations.n_clusters == other.deviations[name].n_clusters
        assert all(map(np.array_equal, deviations.parts, other.deviations[name].parts))
    assert one.by_part.keys() == other.by_part.keys()
    for name, values in one.by_part.items():
        np.testing.assert_array_equal(values, other.by_part[name])


@pytest.mark.slow
@pytest.mark.parametrize("benchmark", MADE)
def test_a_computed_row_is_that_of_a_run(benchmark: str, tmp_path: Path) -> None:
    make, how = MADE[benchmark]
    dataset = make(tmp_path / "data" / "made")
    listed = load_benchmark(benchmark).baselines
    for asked in how:
        ask(dataset, tmp_path / "models", ModelBackend(tmp_path / "log"), asked)
        for baseline in listed:
            ask(dataset, tmp_path / "baselines", open_backend("baseline", baseline.name, BackendOptions()), asked)
    models = loaded(dataset, tmp_path / "models")
    if benchmark == "gifi":
        assert all(entry.result.counts.truncated for entry in models)
    ours = {(one.result.signature_sha256, one.result.model.id): one for one in computed(models)}
    theirs = {
        (one.result.signature_sha256, one.result.model.id): one for one in loaded(dataset, tmp_path / "baselines")
    }
    assert ours.keys() == theirs.keys()
    assert len(ours) == len(how) * len(listed)
    for key, entry in ours.items():
        check_same(entry, theirs[key])
        assert entry.command is not None
    # The gate compares models with the same values, from the same pass over the answers.
    for entry in models:
        gate = load_benchmark(benchmark).gate(entry.result.signature.task)
        if entry.standing is not None and gate is not None and entry.folder is not None:
            parts = StoredParts(entry.folder, entry.result)
            check = GateCheck(load_benchmark(benchmark), gate, entry.result.signature, parts)
            assert entry.standing == check.standing(check.references(Memory(None)))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset in ``data``, and in ``runs`` a model's result on it and one on some of its items."""
    root = tmp_path_factory.mktemp("computed")
    dataset = coreference(root / "data" / "made")
    asked = Asked("type2", "coreference", "intrinsic-v1")
    for limit in (None, 20):
        ask(dataset, root / "runs", ModelBackend(root / "log"), asked, limit)
    return root


def whole_of(world: Path) -> Entry:
    (whole,) = (one for one in loaded(world / "data" / "made", world / "runs") if one.match.extent == "whole")
    return whole


def names(entries: list[Entry]) -> list[str]:
    return [entry.result.model.id.removeprefix("baseline/") for entry in entries]


LISTED = [baseline.name for baseline in load_benchmark("synthbias").baselines]


def test_a_limited_run_has_no_computed_rows(world: Path) -> None:
    entries = loaded(world / "data" / "made", world / "runs")
    assert len(entries) == 2
    rows = computed(entries)
    assert names(rows) == LISTED
    assert {row.result.signature for row in rows} == {whole_of(world).result.signature}
    assert all(row.folder is None and row.result.scores is None for row in rows)
    assert rows[0].command == (
        "python -m evaluators run --dataset out/datasets/made --config type2 --split test --backend baseline "
        "--model uniform --task coreference --prompt intrinsic-v1"
    )


FILE = RecordsFile(path="records.parquet", sha256="0" * 64, n_rows=1)
WITHDRAWN = Acceptance(
    place="x",
    result_sha256="0" * 64,
    accepted="2026-01-01",
    owner="author",
    decision="withdrawn",
    reason="asked by its author",
    decided="2026-01-02",
    rerun=None,
)
CHANGES: dict[str, Callable[[Entry], Entry]] = {
    "another part of the dataset": lambda entry: replace(entry, match=Match("slice", "limited")),
    "an unknown dataset": lambda entry: replace(entry, match=Match("unknown", "no key")),
    "withheld texts": lambda entry: replace(
        entry,
        result=replace(
            entry.result,
            withheld=Withheld(records=FILE, scores=None, sums=SumsFile(path="sums.parquet", sha256="0" * 64, n_rows=1)),
        ),
    ),
    "hidden prompts": lambda entry: replace(entry, examples=Examples((), hides_prompts=True)),
    "a withdrawn result": lambda entry: replace(entry, acceptance=WITHDRAWN),
    "a baseline": lambda entry: replace(
        entry, result=replace(entry.result, model=replace(entry.result.model, endpoint="baseline"))
    ),
    "options without the byte of their space": lambda entry: replace(
        entry,
        result=replace(
            entry.result,
            model=replace(entry.result.model, chat_template_sha256="0" * 64),
            signature=replace(entry.result.signature, normalisation="byte_mean"),
        ),
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_only_a_whole_result_with_its_requests_gives_rows(world: Path, change: Callable[[Entry], Entry]) -> None:
    entry = whole_of(world)
    assert computed((entry,))
    assert computed((change(entry),)) == []


def test_a_rule_that_reads_sentences_is_compared_only_where_they_are_shown(world: Path, tmp_path: Path) -> None:
    dataset, shown = world / "data" / "made", whole_of(world)
    assert shown.folder is not None
    target = tmp_path / "made@1.0.0" / "tests__logging" / shown.folder.name
    target.mkdir(parents=True)
    write_without_prompts(shown.folder, target)
    (hidden,) = loaded(dataset, tmp_path)
    assert shown.standing is not None
    assert hidden.standing is not None
    assert {*hidden.standing.leads} == {lead for lead in shown.standing.leads if lead.baseline != "best-cue"}


def test_requests_that_do_not_follow_from_the_dataset_give_no_rows(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = whole_of(world)
    monkeypatch.setattr(baselines, "has_known_requests", lambda signature: False)
    assert computed((entry,)) == []


def test_a_run_of_a_baseline_takes_the_place_of_its_computed_row(world: Path, tmp_path: Path) -> None:
    dataset = world / "data" / "made"
    asked = Asked("type2", "coreference", "intrinsic-v1")
    ask(dataset, tmp_path, open_backend("baseline", "first-mentioned", BackendOptions()), asked)
    entries = (whole_of(world), *loaded(dataset, tmp_path))
    assert names(computed(entries)) == [name for name in LISTED if name != "first-mentioned"]
    (table,) = assemble(with_baselines(entries, Memory(None))).tables
    ids = [row.entry.result.model.id for row in table.rows]
    assert sorted(ids) == sorted(["tests/logging", *(f"baseline/{name}" for name in LISTED)])
    assert all(row.shut is None and row.rank is None for row in table.rows if row.entry.is_baseline)
    # Without a result of a model, nothing is computed.
    assert computed(loaded(dataset, tmp_path)) == []


def test_rows_are_remembered_and_made_again_without_a_memory(
    world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = Memory(tmp_path / "memory")
    dataset, runs = world / "data" / "made", world / "runs"
    baselines._KNOWN.clear()
    first = computed(loaded(dataset, runs, memory), memory)
    assert names(first) == LISTED
    baselines._KNOWN.clear()
    # In processes of their own, from the records.
    again = computed((whole_of(world),), Memory(None))
    for one, other in zip(first, again, strict=True):
        check_same(one, other)

    def never(*_: object) -> None:
        raise AssertionError("answered again")

    monkeypatch.setattr(BaselineAnswers, "of", never)
    baselines._KNOWN.clear()
    # Everything may be computed again but what this build has just stored.
    for of_memory in (memory, Memory(memory.folder, is_fresh=True)):
        for one, other in zip(first, computed(loaded(dataset, runs, memory), of_memory), strict=True):
            check_same(one, other)


class Doubtful(ModelBackend):
    """A model that leaves a third of its answers unread."""

    def _answer(self, request: Request) -> Response:
        assert isinstance(request, GenerateRequest)
        assert request.sample is not None
        is_read = (int(request.sha256[:4], 16) + request.sample) % 3
        return Response(status="answered", text="Answer: A" if is_read else "Who knows?", finish_reason="stop")


def test_what_a_model_leaves_unread_says_nothing_of_baselines(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "data" / "made", {"type2": made_items(12)})
    asked = Asked("type2", "coreference", "cot-v1")
    ask(dataset, tmp_path / "models", Doubtful(tmp_path / "log"), asked)
    ask(dataset, tmp_path / "baselines", open_backend("baseline", "first-mentioned", BackendOptions()), asked)
    (model,) = loaded(dataset, tmp_path / "models")
    assert model.settled
    (run_of,) = loaded(dataset, tmp_path / "baselines")
    (row,) = (one for one in computed((model,)) if one.result.model == run_of.result.model)
    check_same(row, run_of)


@pytest.mark.slow
def test_a_board_of_models_shows_baselines_without_records(tmp_path: Path) -> None:
    dataset = labels(tmp_path / "data" / "made")
    for asked in MADE["superni"][1]:
        ask(dataset, tmp_path / "runs", ModelBackend(tmp_path / "log"), asked)
    site, built = copy_site(tmp_path), tmp_path / "built"
    folders = ("--results", tmp_path / "none", "--runs", tmp_path / "runs", "--datasets", tmp_path / "data")
    printed = output_of("-m", "leaderboard", "build", *folders, "--site", site, "--out", built)
    assert "superni: models 1 (ranked 0), baselines 4, tables" in printed
    (table,) = (built / "files").glob("superni-tasks-tasks-release-1024b-k8-set0*.parquet")
    rows = {row["model"]: row for row in pq.read_table(table).to_pylist()}
    assert len(rows) == 5
    for name, row in rows.items():
        assert (row["records_sha256"] is None) == name.startswith("baseline/")
    audited = pq.read_table(built / "files" / "audit.parquet").to_pylist()
    assert {row["model"] for row in audited} == {"tests/logging"}
    (index,) = (built / "files" / "parts").glob("*/index.json")
    for context in json.loads(index.read_text(encoding="utf-8"))["contexts"]:
        assert [one["model"] for one in context["results"]] == ["tests/logging"]
    assert "baseline/label-prior-0.8" not in (built / "audit.html").read_text(encoding="utf-8")
    assert "first-label" in (built / "useless-predictors.html").read_text(encoding="utf-8")
