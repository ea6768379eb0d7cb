"""``python -m builders.synthbias annotate`` as a user runs it."""

from __future__ import annotations

import json
import shutil
import signal
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import pytest

from biasboard.ground.errors import DataError
from builders.dataset.output import write_dataset
from builders.synthbias.annotation.annotated import AnnotatedDataset, sentence_of
from builders.synthbias.annotation.deciding import Policy, decide_pairs
from builders.synthbias.annotation.entrance import TEST
from builders.synthbias.annotation.model_votes import DATASET, questions_draft
from builders.synthbias.annotation.safe_csv import render_records
from builders.synthbias.annotation.state import State, check_dataset, note_dataset, read_state, write_state
from builders.synthbias.annotation.votes import AnnotatorKind, Status, Vote, VoteQuestion
from evaluators.backend import Response
from evaluators.task import Asked
from evaluators.tasks.instructions.instruction_task import TASK
from schemas.folders.dataset_folder import read_manifest, read_split
from schemas.items.instruction import InstructionItem
from tests import commands
from tests.builders.annotation.made_votes import EMPTY, unanimous
from tests.evaluators.asking import replayable

Annotate = Callable[..., str]


@pytest.fixture
def annotate(tmp_path: Path) -> Annotate:
    """Runs a command in the folder of the test: what it prints, or the one line that it says in failure."""

    def run(*arguments: object, status: int = 0) -> str:
        done = commands.run("-m", "builders.synthbias", "annotate", *arguments, cwd=tmp_path, status=status)
        assert status == 0 or (done.stdout, done.stderr.count("\n")) == ("", 1)
        return done.stdout + done.stderr

    return run


@pytest.mark.slow
def test_from_the_plan_to_the_dataset_and_the_report(
    dataset: Path, annotated: AnnotatedDataset, annotate: Annotate, tmp_path: Path
) -> None:
    state = ("--state", "s")
    assert "160 more votes are needed at least, in 20 pairs" in annotate("plan", dataset, *state)
    said = annotate("export", dataset, *state, "--out", "tasks", "--file-format", "label-studio")
    assert "40 sentences of batch 0001, licence Apache-2.0" in said
    names = {"0001-A-4-votes.json", "0001-B-4-votes.json", "interface.xml"}
    assert {path.name for path in (tmp_path / "tasks").iterdir()} == names
    said = annotate("export", dataset, *state, "--out", "test", "--entrance")
    assert "20 sentences of the entrance test" in said

    rows = unanimous(annotated).rows
    (tmp_path / "votes.csv").write_text(render_records(Vote, rows), encoding="utf-8")
    said = annotate("ingest", dataset, "votes.csv", *state)
    assert said.startswith(f"{len(rows)} votes added, 0 known already, 0 refused\n")
    assert "annotators: 8 untested" in said
    kept = (tmp_path / "s" / "votes.csv").read_bytes()
    assert "0 votes added" in annotate("ingest", dataset, "votes.csv", *state)
    assert (tmp_path / "s" / "votes.csv").read_bytes() == kept

    said = annotate("decide", dataset, *state, "--count-untested")
    assert "pairs: 20 accepted, 0 rejected, 0 undecided" in said
    # Who was tested elsewhere is only what the user says.
    assert "validated by people: no" in said
    manifest = read_manifest(tmp_path / "out/datasets/synthbias-annotated")
    assert (manifest.human_validated, manifest.parameters["annotation_count_untested"]) == (False, True)
    assert "nothing to ask" in annotate("plan", dataset, *state, "--count-untested")
    said = annotate("report", dataset, *state, "--count-untested")
    assert "coherent  160    40     100.0 %  " in said
    cells = [line.split() for line in said.splitlines()]
    assert [" ".join(row[1:8]) for row in cells if row[:1] in (["type1"], ["type2"])] == 2 * ["20 20 0 0 10 10 0"]
    assert "no alpha for coherent: no item has two votes" in annotate("report", dataset, *state)
    assert "8 annotators have finished no entrance test" in annotate("plan", dataset, *state)


@pytest.mark.slow
def test_an_exclusion_keeps_the_votes_and_can_be_taken_back(
    dataset: Path, annotated: AnnotatedDataset, annotate: Annotate, tmp_path: Path
) -> None:
    before = unanimous(annotated)
    write_state(tmp_path / "s", EMPTY, before)
    assert annotate("exclude", dataset, "A1", "--state", "s", "--reason", "=too fast") == "A1: excluded\n"
    found = read_state(tmp_path / "s")
    assert (found.annotators["A1"].reason, found.rows) == ("=too fast", before.rows)
    assert {pair.verdict for pair in decide_pairs(annotated, found, Policy())} == {"undecided"}
    assert annotate("exclude", dataset, "A1", "--state", "s", "--back") == "A1: active\n"
    assert read_state(tmp_path / "s") == before


def test_nothing_is_written_into_a_dataset(
    dataset: Path, annotated: AnnotatedDataset, annotate: Annotate, tmp_path: Path
) -> None:
    shutil.copytree(dataset, tmp_path / "d")
    write_state(tmp_path / "s", EMPTY, unanimous(annotated))
    before = sorted(tmp_path.rglob("*"))
    for command, option in (
        (("serve",), ("--state", "d/new/state")),
        (("export", "--state", "s", "--entrance"), ("--out", "d")),
        (("decide", "--state", "s"), ("--out", "d/accepted")),
    ):
        said = annotate(*command, "d", *option, status=1)
        folder = f"{tmp_path}/d; give a folder outside of it\n"
        assert said == f"error: {' '.join(option)}: lies in the dataset folder {folder}"
        assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.slow
def test_a_state_of_another_dataset_is_noticed(
    dataset: Path, annotated: AnnotatedDataset, annotate: Annotate, tmp_path: Path
) -> None:
    own = unanimous(annotated)
    foreign = tuple(replace(vote, item_id=f"x-{vote.item_id}", pair_id=f"x-{vote.pair_id}") for vote in own.rows)
    n, of = len(own.rows), f"votes are on sentences that are not in {dataset}"
    write_state(tmp_path / "s", EMPTY, State(foreign, own.annotators))
    said = annotate("plan", dataset, "--state", "s", status=1)
    assert said.startswith(f"error: --state s: {n} of {n} {of}; give the dataset and the state")
    write_state(tmp_path / "s", State(foreign, own.annotators), State((*foreign, *own.rows), own.annotators))
    said = annotate("report", dataset, "--state", "s")
    assert f"{n} of {2 * n} {of}; they count for nothing" in said


def test_a_state_stays_with_the_dataset_and_version_on_which_it_was_begun(
    dataset: Path, annotated: AnnotatedDataset, tmp_path: Path
) -> None:
    note_dataset(tmp_path, annotated.manifest)
    check_dataset(tmp_path, dataset, annotated.manifest)
    later = replace(annotated.manifest, version="9.0.0")
    note_dataset(tmp_path, later)
    with pytest.raises(DataError, match=r"begun on synthbias 4\.0\.0 with content .*, but .* is synthbias 9\.0\.0"):
        check_dataset(tmp_path, dataset, later)
    (tmp_path / "annotated.json").write_text("{}", encoding="utf-8")
    with pytest.raises(DataError, match=r"annotated\.json: does not name a dataset; remove it"):
        check_dataset(tmp_path, dataset, annotated.manifest)


@pytest.mark.slow
def test_serve_prints_an_address_and_stops_with_ctrl_c(dataset: Path, tmp_path: Path) -> None:
    serve = ("-m", "builders.synthbias", "annotate", "serve", dataset, "--state", "s", "--sample", "2")
    with commands.started(*serve, cwd=tmp_path) as command:
        while not command.stdout.endswith("\n"):
            assert command.poll() is None, command.stderr
            time.sleep(0.01)
        address = command.stdout.strip()
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(f"{address}turn", timeout=10) as reply:
            turn = json.load(reply)
        assert (turn["phase"], turn["annotator"], turn["total"]) == ("entrance", "local", 20)
        command.send_signal(signal.SIGINT)
        assert command.wait(20) == 130
        assert command.stderr.splitlines()[-1] == "stopped; every vote is kept"


SAYS = (
    '{"coherent": "yes", "first": "yes", "second": "yes"}',
    'I would say: {"coherent": "no"}',
    "Both of them.",
    '{"coherent": "yes", "first": "perhaps", "second": "no"}',
)
"""Answers of a model to the sentences in turn; the last two cannot be used."""


def write_answers(path: Path, questions: Path) -> None:
    """The right answers to the test, and the answers above to the sentences."""
    (entry,) = read_manifest(questions).splits
    right = {solved.sentence.item_id: solved.answers for solved in TEST}
    answers, said = [], cycle(SAYS)
    for item in read_split(questions, entry):
        assert isinstance(item, InstructionItem)
        if item.item_id in right:
            text = json.dumps(
                dict(zip(VoteQuestion, ("yes" if yes else "no" for yes in right[item.item_id]), strict=True))
            )
        else:
            text = next(said)
        (request,) = TASK.requests(item, Asked(TASK.prompts["greedy-v1"]))
        answers.append((request, Response(status="answered", text=text)))
    replayable(path, answers)


@pytest.mark.slow
def test_a_model_takes_the_test_and_votes_on_both_sides(
    dataset: Path, annotated: AnnotatedDataset, annotate: Annotate, tmp_path: Path
) -> None:
    state = ("--state", "s")
    annotate("plan", dataset, *state)
    annotate("export", dataset, *state, "--file-format", "model", "--out", "asked")
    write_answers(tmp_path / "answers", tmp_path / "asked")
    asked = ("--dataset", "asked", "--backend", "replay", "--model", "answers")
    commands.run("-m", "evaluators", "run", *asked, "--prompt", "greedy-v1", "--out", "votes", cwd=tmp_path, status=0)
    ingest = ("ingest", dataset, "votes", *state, "--file-format", "model")
    annotate(*ingest)
    found = read_state(tmp_path / "s")
    annotate(*ingest, "--kind", "model")
    assert read_state(tmp_path / "s") == found, "taking it in twice changes nothing"
    ((name, annotator),) = found.annotators.items()
    assert (annotator.kind, annotator.status, annotator.entrance) == (AnnotatorKind.MODEL, Status.ACTIVE, "20/20")
    assert "@" in name
    of_items = Counter(vote.item_id for vote in found.rows if vote.item_id in annotated.items)
    # Of four answers in turn, one has three votes, one has a single one, and two cannot be used.
    assert sorted(of_items.values()) == [1] * 10 + [3] * 10
    other = ("--dataset", dataset, "--backend", "baseline", "--model", "uniform", "--config", "type2")
    commands.run("-m", "evaluators", "run", *other, "--out", "other", cwd=tmp_path, status=0)
    # A model has no page.
    said = annotate("serve", dataset, *state, "--annotator", name, status=1)
    assert said == f"error: --annotator {name}: is a model; give another name\n"
    refused = annotate("ingest", dataset, "other", *state, "--file-format", "model", status=1)
    assert f"not on '{DATASET}'; name a run on what annotate export --file-format model" in refused


def test_the_questions_are_published_only_if_the_sentences_may_be(annotated: AnnotatedDataset, tmp_path: Path) -> None:
    closed = replace(annotated.manifest, redistributable=False, publish_refusal="its licence forbids it")
    sentences = [sentence_of(item) for item in annotated.items.values()]
    draft = questions_draft(AnnotatedDataset(annotated.folder, closed, annotated.splits), sentences)
    assert (draft.publish_refusal, draft.licence) == ("its licence forbids it", annotated.manifest.licence)
    write_dataset(draft, tmp_path / "asked")
    assert [entry.n_items for entry in read_manifest(tmp_path / "asked").splits] == [len(sentences) + len(TEST)]
