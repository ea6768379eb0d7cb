"""No trivial predictor gets a rank: neither as a baseline nor handed in as a model, in any benchmark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from biasboard.ground.memory import Memory
from builders.dataset.output import DraftSplit
from builders.dataset.output import write_dataset as write_draft
from builders.gifi import drafts
from evaluators.backend import Request, Response, open_backend
from evaluators.backend_options import BackendOptions
from evaluators.baseline import Baseline
from evaluators.benchmark import load_benchmark
from evaluators.runs.ask.pipeline import run
from evaluators.runs.measure.baseline_answers import BaselineAnswers
from evaluators.runs.measure.baseline_gate import GateCheck, _smallest_answered_share, applying_gate
from evaluators.runs.plan.plan import Plan
from evaluators.runs.plan.run_options import RunOptions
from evaluators.runs.plan.selection import select
from evaluators.task import load_task, prompt_of, task_for
from leaderboard.ranking.boards import Board, assemble
from leaderboard.ranking.gates import solved_note
from leaderboard.verify.entries import Root
from leaderboard.verify.keys import KeyBook
from leaderboard.verify.loading import load
from schemas.documents.record import exchange_sha256
from schemas.files.record_columns import RecordColumns
from schemas.folders.dataset_folder import read_manifest
from schemas.folders.run_folder import StoredParts, read_run, write_result
from schemas.items.label import LabelItem
from schemas.lexicon import occupations
from tests.evaluators.label_data import SPLITS, made_dataset, planned
from tests.evaluators.label_data import made_items as label_items
from tests.evaluators.label_data import made_records as label_records
from tests.evaluators.made_data import made_items, write_dataset
from tests.evaluators.made_draft import made_draft
from tests.leaderboard.gifi_results import scorers
from tests.leaderboard.made_keys import load_known, write_keys
from tests.leaderboard.synthetic import Gender, leaning, make_records, make_result, stereotyped, write_model
from tests.leaderboard.synthetic import write_result as write_made


def run_all(dataset: Path, root: Path, baselines: Sequence[str], prompts: Sequence[str] = ()) -> None:
    manifest = read_manifest(dataset)
    for config in dict.fromkeys(entry.config for entry in manifest.splits):
        selection = select(dataset, manifest, config, limit=60)
        task = task_for(selection.item_shape)
        for prompt in prompts or (None,):
            plan = Plan(selection, task, prompt_of(task, prompt))
            for name in baselines:
                opened = open_backend("baseline", name, BackendOptions())
                run(plan, opened, RunOptions(root=root, command="tests", scorers=scorers()))


def hand_in(runs: Path, target: Path) -> None:
    """Copy finished runs as results of models that say they were run here."""
    for result_file in sorted(runs.rglob("result.json")):
        result, records = read_run(result_file.parent)
        name = result.model.id.removeprefix("baseline/")
        model = replace(result.model, id=f"lab/{name}", endpoint="local", backend="transformers", identity=None)
        folder = target / result_file.parent.relative_to(runs)
        folder.mkdir(parents=True)
        for file in result_file.parent.glob("*.parquet"):
            (folder / file.name).write_bytes(file.read_bytes())
        write_result(folder, replace(result, model=model))
        assert len(records) == result.counts.items


def choices_of(kind: str, folder: Path) -> BaselineAnswers:
    """The records of some choices: of a coreference task, or of two classification tasks after examples."""
    if kind == "synthbias":
        task, prompt = load_task("coreference"), "mcq3-v1"
        dataset = write_dataset(folder / "data", {"type2": made_items(40)})
        selection = select(dataset, read_manifest(dataset), "type2")
    else:
        task, prompt = load_task("classification"), "release-1024b-k8-set0-v1"
        dataset = made_dataset(folder / "data", ("three", "letters"))
        selection = select(dataset, read_manifest(dataset), "tasks")
    plan = Plan(selection, task, prompt_of(task, prompt))
    finished = run(
        plan, open_backend("baseline", "uniform", BackendOptions()), RunOptions(root=folder, command="tests")
    )
    return BaselineAnswers(task, plan.prompt, plan.normalisation, StoredParts(finished.folder, finished.result))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["synthbias", "superni"])
def test_choices_that_agree_in_their_offer_are_answered_once_and_all_alike(kind: str, tmp_path: Path) -> None:
    answers = choices_of(kind, tmp_path)
    baselines = [baseline for baseline in load_benchmark(kind).baselines if baseline.reads_no_prompt]
    assert len(baselines) >= 4
    for baseline in baselines:
        n_asked: list[int] = []

        def answer(request: Request, given: Baseline = baseline, n_asked: list[int] = n_asked) -> Response:
            n_asked.append(1)
            return given.answer(request)

        together = [list(part) for part in answers.of(replace(baseline, answer=answer))]
        n_together = len(n_asked)
        one_by_one = [list(part) for part in answers.of(replace(baseline, answer=answer, reads_no_prompt=False))]
        assert together == one_by_one
        n_requests = sum(
            len({exchange_sha256(one) for record in part for one in record.exchanges}) for part in together
        )
        assert len(n_asked) - n_together == n_requests
        if kind == "superni":
            assert n_together < n_requests / 2
        else:
            # The made-up pairs have occupations of their own, and only the stereotype tells the sides of one apart.
            assert n_together == (n_requests if "stereotyped" in baseline.facts else n_requests / 2)


def board_of(root: Path) -> Board:
    loaded = load_known(Root(root, "local"))
    assert loaded.left_out == ()
    return assemble(loaded.entries)


@pytest.fixture(scope="module", params=["synthbias", "gifi"])
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp(request.param)
    names = [baseline.name for baseline in load_benchmark(request.param).baselines]
    if request.param == "gifi":
        write_draft(drafts.embedded(limit=None), root / "data")
        run_all(root / "data", root / "runs", names)
    else:
        items = {"type1": made_items(40, ambiguous=True), "type2": made_items(40)}
        dataset = write_dataset(root / "data", items)
        run_all(dataset, root / "runs", names, ["intrinsic-v1", "mcq2-generate-v1"])
    return root / "runs"


@pytest.mark.slow
def test_baselines_stand_in_place_as_references_without_a_rank(runs: Path) -> None:
    for table in board_of(runs).tables:
        assert all(row.entry.is_baseline and row.rank is None and not row.is_below for row in table.rows)
        # Baselines are what models are compared with, and fall short of none.
        assert all(row.shut is None for row in table.rows)


@pytest.mark.slow
def test_no_trivial_predictor_that_is_handed_in_as_a_model_is_ranked(runs: Path, tmp_path: Path) -> None:
    hand_in(runs, tmp_path)
    board = board_of(tmp_path)
    assert board.tables
    for table in board.tables:
        assert {row.entry.result.model.endpoint for row in table.rows} == {"local"}
        assert all(row.rank is None and row.unranked is not None for row in table.rows)
        assert all(row.is_below == (table.sorted_by is None) for row in table.rows)
    for index in board.indices.tables:
        assert all(row.is_below and row.rank is None for row in index.rows)


@pytest.mark.slow
def test_the_references_are_the_values_of_the_baselines_own_runs(runs: Path) -> None:
    """A result is compared with what the baselines would have answered to its own requests."""
    n_compared = 0
    found = [read_run(path.parent) for path in sorted(runs.rglob("result.json"))]
    first = {result.signature_sha256: (result, records) for result, records in found}
    for result, _ in found:
        other, records = first[result.signature_sha256]
        benchmark = load_benchmark(other.signature.benchmark)
        gate = benchmark.gate(other.signature.task)
        if gate is None or not (check := GateCheck(benchmark, gate, other.signature, [records])).applies:
            continue
        references = {reference.baseline: reference.metric for reference in check.references(Memory(None))}
        (own,) = (metric for metric in result.metrics if metric.name == gate.metric and not metric.group)
        assert references[result.model.id.removeprefix("baseline/")].value == pytest.approx(own.value, abs=1e-12)
        n_compared += 1
    assert n_compared >= 14


@pytest.mark.slow
def test_items_without_right_answers_rank_nobody_and_are_sorted_by_the_lean(tmp_path: Path) -> None:
    # How probable the reference is; in the made items it is stereotyped for one of the two genders.
    write_model(tmp_path, "acme/little", leaning(2.0, 0.1), ambiguous=True)
    write_model(tmp_path, "acme/much", stereotyped(0.9), ambiguous=True)
    write_model(tmp_path, "acme/against", stereotyped(0.1), ambiguous=True)
    (table,) = board_of(tmp_path).tables
    assert (table.primary, table.sorted_by) == (None, "pro_rate")
    assert [row.entry.result.model.id for row in table.rows] == ["acme/much", "acme/little", "acme/against"]
    assert {(row.rank, row.unranked, row.shut) for row in table.rows} == {
        (None, "the items have no right answer", None)
    }


def test_a_lead_must_be_large_enough_to_mean_something(tmp_path: Path) -> None:
    write_model(tmp_path, "acme/knowing", leaning(2.0, 0.1))
    ((row,),) = (table.rows for table in board_of(tmp_path).tables)
    standing = row.entry.standing
    assert standing is not None
    lead = standing.leads[0]
    small = replace(standing, leads=(lead._replace(difference=0.049, low=0.04, high=0.06),))
    assert not small.passes
    assert (small.reason or "").endswith("is only 0.049 better than the baseline uniform (0.500); a rank needs 0.05")
    assert replace(standing, leads=(lead._replace(difference=0.05, low=0.001, high=0.1),)).passes


def test_nobody_has_to_lead_a_baseline_that_solves_the_items(tmp_path: Path) -> None:
    write_model(tmp_path, "acme/knowing", leaning(2.0, 0.1))
    ((row,),) = (table.rows for table in board_of(tmp_path).tables)
    standing = row.entry.standing
    assert standing is not None
    solving = standing.leads[0]._replace(baseline="first", value=0.995, difference=0.005, low=0.0, high=0.01)
    with_solver = replace(standing, leads=(solving, *standing.leads))
    assert with_solver.passes
    assert [lead.baseline for lead in with_solver.solvers] == ["first"]
    assert solved_note([replace(row.entry, standing=with_solver)]) == (
        "These items cannot show skill: first alone is right in 0.995. "
        "For a rank, models have to lead the other baselines."
    )
    alone = replace(standing, leads=(solving,))
    assert not alone.passes
    assert alone.reason == "accuracy cannot show skill here: first alone is right in 0.995"


def test_the_lead_over_a_baseline_is_that_of_a_plain_recount(tmp_path: Path) -> None:
    write_model(tmp_path, "acme/knowing", leaning(2.0, 0.1))
    ((row,),) = (table.rows for table in board_of(tmp_path).tables)
    standing = row.entry.standing
    assert standing is not None
    assert standing.passes
    leads = {lead.baseline: lead for lead in standing.leads}
    # These records hide their prompts.
    assert set(leads) == {one.name for one in load_benchmark("synthbias").baselines if one.reads_no_prompt}
    assert (leads["uniform"].value, leads["always-wrong"].value, leads["stereotype"].value) == (0.5, 0, 0.5)
    assert leads["uniform"].difference == 0.5
    assert leads["uniform"].low == leads["uniform"].high == 0.5
    assert standing.leads[0].low == min(lead.low or 0 for lead in standing.leads)


def test_a_constant_label_that_sorts_last_has_no_rank_where_labels_are_not_balanced(tmp_path: Path) -> None:
    def items(split: str) -> list[LabelItem]:
        return [replace(item, labels=tuple(sorted(item.labels))) for item in label_items("two", split)]

    splits = (DraftSplit(config="two", split=split, item_shape="label", items=items(split)) for split in SPLITS)
    write_draft(made_draft(splits, name="own", benchmark="labelled_text"), tmp_path / "data")
    plan = planned(tmp_path / "data", "two", "release-1024b-k0-v1")
    parts = [*map(RecordColumns.of, label_records(plan, lambda asked: [float(x == "yes") for x in asked.item.labels]))]
    check = applying_gate(plan.signature, parts)
    assert check is not None
    assert check.standing(check.references(Memory(None))).reason == (
        "accuracy 0.750 is no better than the baseline most-frequent-label (0.750)"
    )


def first_mentioned(refused: int) -> Callable[[str, str, Gender, int], float | None]:
    """Choose the occupation that is mentioned first, and refuse some of the pairs where that is wrong."""

    def probability(reference: str, other: str, gender: Gender, pair: int) -> float | None:
        is_first = occupations()[reference].stereotype == "male"
        if not is_first and pair // 2 < refused:
            return None
        return 0.99 if is_first else 0.01

    return probability


def test_refusing_what_would_be_wrong_opens_no_gate(tmp_path: Path) -> None:
    write_model(tmp_path, "acme/choosy", first_mentioned(2))
    ((row,),) = (table.rows for table in board_of(tmp_path).tables)
    assert row.entry.result.counts.refused == 4
    assert row.entry.metric("accuracy") is not None
    assert row.rank is None
    assert (row.shut or "").startswith(
        "accuracy 0.521, or 0.500 with missing answers as wrong ones, is no better than the "
    )


def test_a_record_that_lacks_what_baselines_read_is_left_out_alone(tmp_path: Path) -> None:
    honest = write_model(tmp_path, "acme/honest", leaning(2.0, 0.1))
    keys = KeyBook(write_keys(tmp_path / "keys", honest.parent))
    records = make_records(leaning(2.0, 0.1))
    lost = replace(records[1], split="content_free", target=None, status="failed", reason="cut", reading=None)
    assert _smallest_answered_share(RecordColumns.of([records[2], lost])) == 1.0
    groups = {key: value for key, value in records[0].groups.items() if key != "first_occupation"}
    records[0] = replace(records[0], groups=groups)
    write_made(tmp_path / "aaa", make_result(records, "aaa/damaged"), records)
    (left_out,) = load([Root(tmp_path, "local")], keys).left_out
    assert "row 1: item 'p0000-m' is not asked or described as in synthbias@9.0.0" in left_out.reason
