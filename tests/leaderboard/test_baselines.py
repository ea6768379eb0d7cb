"""Baselines: the board computes what they get, and no model that achieves no more has a rank, in any benchmark."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from biasboard.ground.memory import Memory
from builders.dataset.output import DraftSplit
from builders.dataset.output import write_dataset as write_draft
from builders.gifi import drafts
from evaluators.backend import Backend, Capability, GenerateRequest, Request, Response, open_backend
from evaluators.backend_options import BackendOptions
from evaluators.benchmark import load_benchmark
from evaluators.runs.ask.pipeline import RunOptions, run
from evaluators.runs.measure.baseline_gate import (
    BaselineAnswers,
    GateCheck,
    _smallest_answered_share,
    applying_gate,
)
from evaluators.runs.measure.stored_results import write_without_prompts
from evaluators.runs.plan.plan import Plan, select
from evaluators.scorer import quick_scorers
from evaluators.task import load_task, prompt_of
from leaderboard.ranking.boards import assemble
from leaderboard.ranking.rank_ranges import solved_note
from leaderboard.verify import baselines
from leaderboard.verify.baselines import with_baselines
from leaderboard.verify.entries import Entry, Examples, Match, Root
from leaderboard.verify.keys import KeyBook
from leaderboard.verify.verdicts import load
from schemas.documents.board import Acceptance
from schemas.documents.result import RecordsFile, SumsFile, Withheld
from schemas.files.record_columns import RecordColumns
from schemas.folders.dataset_folder import read_manifest
from schemas.folders.run_folder import StoredParts, find_runs, read_result, write_result
from schemas.items.label import LabelItem
from schemas.lexicon import occupations
from tests.commands import output_of
from tests.evaluators.label_data import SPLITS, made_dataset, planned
from tests.evaluators.label_data import made_items as label_items
from tests.evaluators.label_data import made_records as label_records
from tests.evaluators.logging_backend import LoggingBackend
from tests.evaluators.made_data import made_items, write_dataset
from tests.evaluators.made_draft import made_draft
from tests.leaderboard.made_keys import load_known
from tests.leaderboard.synthetic import Gender, Probability, leaning, make_records, present, write_model
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
    return write_dataset(folder, {"type1": made_items(20, ambiguous=True), "type2": made_items(40)})


def gifi(folder: Path) -> Path:
    # Five templates or problems of each config at least, so that there are clusters to compare.
    write_draft(drafts.embedded(limit=170), folder)
    return folder


def labels(folder: Path) -> Path:
    return made_dataset(folder, ("three", "letters"))


TYPE2 = Asked("type2", "coreference", "intrinsic-v1")
ON_TASKS = [Asked("tasks", "classification", f"release-1024b-{name}-v1") for name in ("k0", "k8-set0")]
MADE: dict[str, tuple[Callable[[Path], Path], list[Asked]]] = {
    "synthbias": (
        coreference,
        # Scored options, texts, and options that are scored after texts.
        [
            Asked("type1", "coreference", "intrinsic-v1"),
            *(Asked("type2", "coreference", name) for name in ("intrinsic-v1", "mcq2-generate-v1", "cot-logprob-v1")),
        ],
    ),
    "gifi": (
        gifi,
        [Asked("continuation", "continuation", "sampled-v1"), Asked("math", "word_problem", "zero-shot-sampled-v1")],
    ),
    "superni": (labels, ON_TASKS),
}


def ask(dataset: Path, root: Path, backend: Backend, asked: Asked, limit: int | None = None) -> None:
    task = load_task(asked.task)
    selection = select(dataset, read_manifest(dataset), asked.config, limit=limit)
    plan = Plan(selection, task, prompt_of(task, asked.prompt))
    run(plan, backend, RunOptions(root=root, command="tests", scorers=quick_scorers()))


def baseline(name: str) -> Backend:
    return open_backend("baseline", name, BackendOptions())


def loaded(dataset: Path, runs: Path, memory: Memory | None = None) -> tuple[Entry, ...]:
    found = load([Root(runs, "local")], KeyBook(None, dataset.parent), memory or Memory(None))
    assert found.left_out == ()
    return found.entries


def computed(entries: Sequence[Entry], memory: Memory | None = None) -> list[Entry]:
    return [entry for entry in with_baselines(entries, memory or Memory(None)) if entry.is_computed]


def check_same(one: Entry, other: Entry) -> None:
    """All that tables, ranks and indices read of a result."""
    for name in ("place", "origin", "match", "metrics", "coverage", "items_sha256", "answers_sha256"):
        assert getattr(one, name) == getattr(other, name), name
    for name in ("signature", "model", "metrics", "coverage", "counts"):
        assert getattr(one.result, name) == getattr(other.result, name), name
    for name in ("provenance", "claim", "settled", "unread_share"):
        assert getattr(one, name) == getattr(other, name), name
    assert one.deviations.keys() == other.deviations.keys()
    for name, deviations in one.deviations.items():
        assert deviations.n_clusters == other.deviations[name].n_clusters
        assert all(map(np.array_equal, deviations.parts, other.deviations[name].parts))
    assert one.by_part.keys() == other.by_part.keys()
    for name, values in one.by_part.items():
        np.testing.assert_array_equal(values, other.by_part[name])


class Runs(NamedTuple):
    """Runs of a model and of all baselines of a benchmark."""

    benchmark: str
    dataset: Path
    models: Path
    baselines: Path


@pytest.fixture(scope="module", params=MADE)
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    root, (make, how) = tmp_path_factory.mktemp(request.param), MADE[request.param]
    made = Runs(request.param, make(root / "data" / "made"), root / "models", root / "baselines")
    for asked in how:
        ask(made.dataset, made.models, ModelBackend(root / "log"), asked)
        for one in load_benchmark(request.param).baselines:
            ask(made.dataset, made.baselines, baseline(one.name), asked)
    return made


@pytest.mark.slow
def test_a_computed_row_is_that_of_a_run_and_what_the_gate_compares_with(runs: Runs) -> None:
    benchmark, how = load_benchmark(runs.benchmark), MADE[runs.benchmark][1]
    models, own_runs = loaded(runs.dataset, runs.models), loaded(runs.dataset, runs.baselines)
    if runs.benchmark == "gifi":
        assert all(entry.result.counts.truncated for entry in models)
    ours = {(one.result.signature_sha256, one.result.model.id): one for one in computed(models)}
    theirs = {(one.result.signature_sha256, one.result.model.id): one for one in own_runs}
    assert ours.keys() == theirs.keys()
    assert len(ours) == len(how) * len(benchmark.baselines)
    for key, entry in ours.items():
        check_same(entry, theirs[key])
        assert entry.command is not None
    n_compared = 0
    for entry in models:
        gate = benchmark.gate(entry.result.signature.task)
        if entry.standing is None or gate is None or entry.folder is None:
            continue
        # From the same pass over the answers.
        check = GateCheck(benchmark, gate, entry.result.signature, StoredParts(entry.folder, entry.result))
        assert entry.standing == check.standing(check.references(Memory(None)))
        for lead in entry.standing.leads:
            own = theirs[entry.result.signature_sha256, f"baseline/{lead.baseline}"].metric(gate.metric)
            assert lead.value == pytest.approx(present(own).value, abs=1e-12)
            n_compared += 1
    assert n_compared >= 2


@pytest.mark.slow
def test_no_baseline_has_a_rank_neither_as_itself_nor_handed_in_as_a_model(runs: Runs, tmp_path: Path) -> None:
    for table in assemble(loaded(runs.dataset, runs.baselines)).tables:
        # Baselines are what models are compared with, and fall short of none.
        assert all(row.is_baseline and row.rank is None and row.shut is None for row in table.rows)
    for folder in find_runs(runs.baselines):
        result, target = read_result(folder), tmp_path / folder.relative_to(runs.baselines)
        shutil.copytree(folder, target)
        name = result.model.id.removeprefix("baseline/")
        model = replace(result.model, id=f"lab/{name}", endpoint="local", backend="transformers", identity=None)
        write_result(target, replace(result, model=model))
    board = assemble(loaded(runs.dataset, tmp_path))
    assert board.tables
    for table in board.tables:
        assert {row.entry.result.model.endpoint for row in table.rows} == {"local"}
        assert all(row.rank is None and row.unranked is not None for row in table.rows)
        assert all(row.is_below == (table.sorted_by is None) for row in table.rows)
    for index in board.indices.tables:
        assert all(row.is_below and row.rank is None for row in index.rows)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset in ``data``, and in ``runs`` a model's result on it and one on some of its items."""
    root = tmp_path_factory.mktemp("computed")
    dataset = coreference(root / "data" / "made")
    for limit in (None, 20):
        ask(dataset, root / "runs", ModelBackend(root / "log"), TYPE2, limit)
    return root


@pytest.fixture(scope="module")
def both(world: Path) -> tuple[Entry, ...]:
    return loaded(world / "data" / "made", world / "runs")


@pytest.fixture
def whole(both: tuple[Entry, ...]) -> Entry:
    (whole,) = (one for one in both if one.match.extent == "whole")
    return whole


def names(entries: Sequence[Entry]) -> list[str]:
    return [entry.result.model.id.removeprefix("baseline/") for entry in entries]


LISTED = [one.name for one in load_benchmark("synthbias").baselines]


WITHHELD = Withheld(
    records=RecordsFile(path="a", sha256="0" * 64, n_rows=1),
    scores=None,
    sums=SumsFile(path="b", sha256="0" * 64, n_rows=1),
)
DECISION: dict[str, Any] = {"place": "x", "result_sha256": "0" * 64, "accepted": "2026-01-01", "owner": "a"}
WITHDRAWN = Acceptance(decision="withdrawn", reason="asked", rerun=None, **DECISION)


def as_of_baseline(entry: Entry) -> Entry:
    return replace(entry, result=replace(entry.result, model=replace(entry.result.model, endpoint="baseline")))


def after_a_chat_template(entry: Entry) -> Entry:
    """Options without the byte of their space."""
    model = replace(entry.result.model, chat_template_sha256="0" * 64)
    signature = replace(entry.result.signature, normalisation="byte_mean")
    return replace(entry, result=replace(entry.result, model=model, signature=signature))


CHANGES: dict[str, Callable[[Entry], Entry]] = {
    "an unknown dataset": lambda entry: replace(entry, match=Match("unknown", "no key")),
    "withheld texts": lambda entry: replace(entry, result=replace(entry.result, withheld=WITHHELD)),
    "hidden prompts": lambda entry: replace(entry, examples=Examples((), hides_prompts=True)),
    "a withdrawn result": lambda entry: replace(entry, acceptance=WITHDRAWN),
    "a baseline": as_of_baseline,
    "options behind a chat template": after_a_chat_template,
}


def test_only_results_with_requests_of_the_dataset_give_rows(
    both: tuple[Entry, ...], whole: Entry, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(both) == 2
    rows, of_part = computed([whole]), computed([one for one in both if one is not whole])
    assert names(rows) == names(of_part) == LISTED
    assert {row.result.signature for row in rows} == {whole.result.signature}
    assert {row.result.counts.items for row in of_part} == {20}
    assert all(row.folder is None and row.result.scores is None for row in rows)
    assert rows[0].command == (
        "python -m evaluators run --dataset out/datasets/made --config type2 --split test --backend baseline "
        "--model uniform --task coreference --prompt intrinsic-v1"
    )
    assert [name for name, change in CHANGES.items() if computed([change(whole)])] == []
    monkeypatch.setattr(baselines, "has_known_requests", lambda signature: False)
    assert computed([whole]) == []


@pytest.mark.slow
def test_a_rule_that_reads_sentences_counts_only_where_they_are_shown(
    world: Path, whole: Entry, tmp_path: Path
) -> None:
    folder = present(whole.folder)
    target = tmp_path / "made@1.0.0" / "tests__logging" / folder.name
    target.mkdir(parents=True)
    write_without_prompts(folder, target)
    (hidden,) = loaded(world / "data" / "made", tmp_path)
    shown, left = (present(one.standing).leads for one in (whole, hidden))
    assert {*left} == {lead for lead in shown if lead.baseline != "best-cue"}


def test_a_run_of_a_baseline_takes_the_place_of_its_computed_row(world: Path, whole: Entry, tmp_path: Path) -> None:
    dataset = world / "data" / "made"
    ask(dataset, tmp_path, baseline("first-mentioned"), TYPE2)
    entries = (whole, *loaded(dataset, tmp_path))
    assert names(computed(entries)) == [name for name in LISTED if name != "first-mentioned"]
    (table,) = assemble(with_baselines(entries, Memory(None))).tables
    assert sorted(row.model.id for row in table.rows) == sorted(
        ["tests/logging", *(f"baseline/{one}" for one in LISTED)]
    )
    # Without a result of a model, nothing is computed.
    assert computed(entries[1:]) == []


@pytest.mark.slow
def test_rows_are_remembered_and_made_again_without_a_memory(
    world: Path, both: tuple[Entry, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = Memory(tmp_path / "memory")
    dataset, runs = world / "data" / "made", world / "runs"
    baselines._KNOWN.clear()
    first = computed(loaded(dataset, runs, memory), memory)
    assert names(first) == 2 * LISTED
    baselines._KNOWN.clear()
    # In processes of their own, from the records.
    again = [computed(both, Memory(None))]

    def never(*_: object) -> None:
        raise AssertionError("answered again")

    monkeypatch.setattr(BaselineAnswers, "of", never)
    baselines._KNOWN.clear()
    # Everything may be computed again but what this build has just stored.
    for of_memory in (memory, Memory(memory.folder, is_fresh=True)):
        again.append(computed(loaded(dataset, runs, memory), of_memory))
    for rows in again:
        for one, other in zip(first, rows, strict=True):
            check_same(one, other)


@pytest.mark.slow
def test_the_board_computes_the_baselines_of_a_dataset_that_is_here(world: Path, tmp_path: Path) -> None:
    folders = ("--results", tmp_path / "none", "--runs", world / "runs", "--datasets", world / "data")
    built = ("--site", copy_site(tmp_path), "--out", tmp_path / "built")
    printed = output_of("-m", "leaderboard", "build", *folders, *built)
    assert f"synthbias: models 1 (ranked 0), baselines {len(LISTED)}, tables 2" in printed


def entry_of(folder: Path, answers: Probability) -> Entry:
    write_model(folder, "acme/made", answers)
    (entry,) = load_known(Root(folder, "local")).entries
    return entry


def test_a_lead_is_a_plain_recount_and_large_enough_and_over_no_baseline_that_solves(tmp_path: Path) -> None:
    entry = entry_of(tmp_path, leaning(2.0, 0.1))
    standing = present(entry.standing)
    assert standing.passes
    leads = {lead.baseline: lead for lead in standing.leads}
    # These records hide their prompts.
    assert set(leads) == {one.name for one in load_benchmark("synthbias").baselines if one.reads_no_prompt}
    assert (leads["uniform"].value, leads["always-wrong"].value, leads["stereotype"].value) == (0.5, 0, 0.5)
    assert (leads["uniform"].difference, leads["uniform"].low, leads["uniform"].high) == (0.5, 0.5, 0.5)
    assert standing.leads[0].low == min(lead.low or 0 for lead in standing.leads)
    lead = standing.leads[0]
    small = replace(standing, leads=(lead._replace(difference=0.049, low=0.04, high=0.06),))
    assert not small.passes
    assert (small.reason or "").endswith("is only 0.049 better than the baseline uniform (0.500); a rank needs 0.05")
    assert replace(standing, leads=(lead._replace(difference=0.05, low=0.001, high=0.1),)).passes
    solving = standing.leads[0]._replace(baseline="first", value=0.995, difference=0.005, low=0.0, high=0.01)
    with_solver = replace(standing, leads=(solving, *standing.leads))
    assert with_solver.passes
    assert [lead.baseline for lead in with_solver.leads if lead.solves] == ["first"]
    assert solved_note([replace(entry, standing=with_solver)]) == (
        "These items cannot show skill: first alone is right in 0.995. "
        "For a rank, models have to lead the other baselines."
    )
    alone = replace(standing, leads=(solving,))
    assert not alone.passes
    assert alone.reason == "accuracy cannot show skill here: first alone is right in 0.995"


def test_a_constant_label_that_sorts_last_has_no_rank_where_labels_are_not_balanced(tmp_path: Path) -> None:
    def items(split: str) -> list[LabelItem]:
        return [replace(item, labels=tuple(sorted(item.labels))) for item in label_items("two", split)]

    splits = (DraftSplit(config="two", split=split, item_shape="label", items=items(split)) for split in SPLITS)
    write_draft(made_draft(splits, name="own", benchmark="labelled_text"), tmp_path / "data")
    plan = planned(tmp_path / "data", "two", "release-1024b-k0-v1")
    parts = [*map(RecordColumns.of, label_records(plan, lambda asked: [float(x == "yes") for x in asked.item.labels]))]
    check = present(applying_gate(plan.signature, parts))
    assert check.standing(check.references(Memory(None))).reason == (
        "accuracy 0.750 is no better than the baseline most-frequent-label (0.750)"
    )


def choosy(reference: str, other: str, gender: Gender, pair: int) -> float | None:
    """Choose the occupation that is mentioned first, and refuse some of the pairs where that is wrong."""
    is_first = occupations()[reference].stereotype == "male"
    if not is_first and pair // 2 < 2:
        return None
    return 0.99 if is_first else 0.01


def test_refusing_what_would_be_wrong_opens_no_gate(tmp_path: Path) -> None:
    entry = entry_of(tmp_path, choosy)
    ((row,),) = (table.rows for table in assemble([entry]).tables)
    assert (entry.result.counts.refused, row.rank) == (4, None)
    assert (row.shut or "").startswith(
        "accuracy 0.500 with missing answers as wrong ones (0.521 without) is no better than the "
    )


def test_an_item_without_a_right_answer_is_no_missing_one() -> None:
    answered, other = make_records(leaning(2.0, 0.1))[:2]
    lost = replace(other, split="content_free", target=None, status="failed", reason="cut", reading=None)
    assert _smallest_answered_share(RecordColumns.of([answered, lost])) == 1.0
