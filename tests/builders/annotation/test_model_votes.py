"""A language model as one more annotator: its questions, its answers, and what its votes may decide."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from biasboard.ground.errors import DataError
from builders.dataset.output import write_dataset
from builders.synthbias.annotation.annotated import AnnotatedDataset, sentence_of
from builders.synthbias.annotation.entrance import TEST
from builders.synthbias.annotation.model_votes import DATASET, questions_draft, read_submissions
from builders.synthbias.annotation.state import read_state
from builders.synthbias.annotation.votes import AnnotatorKind, Status, VoteQuestion
from evaluators.task import Asked
from evaluators.tasks.instructions.instruction_task import TASK
from schemas.folders.dataset_folder import read_manifest, read_split
from schemas.items.instruction import InstructionItem
from tests import commands

SAYS = (
    '{"coherent": "yes", "first": "yes", "second": "yes"}',
    'I would say: {"coherent": "no"}',
    "Both of them.",
    '{"coherent": "yes", "first": "perhaps", "second": "no"}',
)
"""Answers to the sentences in turn; the last two cannot be used."""


def done(*arguments: str | Path) -> str:
    return commands.run("-m", *arguments, status=0).stdout


@pytest.fixture(scope="module")
def state(dataset: Path, annotated: AnnotatedDataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an annotation whose only annotator is a model, and beside it the runs that asked it."""
    folder = tmp_path_factory.mktemp("model")
    annotate = ("builders.synthbias", "annotate")
    done(*annotate, "plan", dataset, "--state", folder / "state")
    done(*annotate, "export", dataset, "--state", folder / "state", "--file-format", "model", "--out", folder / "asked")
    write_answers(folder / "answers.jsonl", folder / "asked")
    asked = ("--dataset", folder / "asked", "--backend", "replay", "--model", folder / "answers.jsonl")
    done("evaluators", "run", *asked, "--prompt", "greedy-v1", "--out", folder / "votes")
    ingest = (*annotate, "ingest", dataset, folder / "votes", "--state", folder / "state", "--file-format", "model")
    told = done(*ingest)
    assert "40 refused" not in told
    before = (folder / "state" / "votes.csv").read_bytes()
    done(*ingest, "--kind", "model")
    assert (folder / "state" / "votes.csv").read_bytes() == before, "taking it in twice changes nothing"
    return folder / "state"


def write_answers(path: Path, dataset: Path) -> None:
    """The right answers to the test, and the answers above to the sentences."""
    (entry,) = read_manifest(dataset).splits
    right = {solved.sentence.item_id: solved.answers for solved in TEST}
    lines, n_asked = [], 0
    for item in read_split(dataset, entry):
        assert isinstance(item, InstructionItem)
        if item.item_id in right:
            pairs = zip(VoteQuestion, right[item.item_id], strict=True)
            text = json.dumps({str(question): "yes" if answer else "no" for question, answer in pairs})
        else:
            text = SAYS[n_asked % len(SAYS)]
            n_asked += 1
        (request,) = TASK.requests(item, Asked(TASK.prompts["greedy-v1"]))
        lines.append(json.dumps({"request_sha256": request.sha256, "text": text, "status": "answered"}))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.slow
def test_the_model_takes_the_test_and_votes_on_both_sides(state: Path, annotated: AnnotatedDataset) -> None:
    found = read_state(state)
    ((name, annotator),) = found.annotators.items()
    assert (annotator.kind, annotator.status, annotator.entrance) == (AnnotatorKind.MODEL, Status.ACTIVE, "20/20")
    assert "@" in name
    of_items = Counter(vote.item_id for vote in found.rows if vote.item_id in annotated.items)
    n = len(annotated.items)
    # Of four answers in turn, one has three votes, one has a single one, and two cannot be used.
    assert sorted(of_items.values()) == [1] * (n // 4) + [3] * (n // 4)


@pytest.mark.slow
def test_its_votes_decide_nothing_unless_that_is_asked_for(state: Path, dataset: Path) -> None:
    report = done("builders.synthbias", "annotate", "report", dataset, "--state", state)
    assert "no alpha" in report
    found = commands.run("-m", "builders.synthbias", "annotate", "decide", dataset, "--state", state, status=1)
    assert "no pair" in found.stderr


def test_the_questions_are_published_only_if_the_sentences_may_be(annotated: AnnotatedDataset, tmp_path: Path) -> None:
    sentences = [sentence_of(item) for item in annotated.items.values()]
    draft = questions_draft(annotated, sentences)
    assert draft.publish_refusal == annotated.manifest.publish_refusal
    assert draft.licence == annotated.manifest.licence
    write_dataset(draft, tmp_path / "asked")
    (entry,) = read_manifest(tmp_path / "asked").splits
    assert entry.n_items == len(sentences) + len(TEST)


@pytest.mark.slow
def test_a_run_on_anything_else_is_refused(dataset: Path, tmp_path: Path) -> None:
    run = ("--dataset", dataset, "--backend", "baseline", "--model", "uniform", "--config", "type2")
    done("evaluators", "run", *run, "--out", tmp_path)
    with pytest.raises(DataError, match=rf"not on '{DATASET}'; name a run on what annotate export --file-format model"):
        read_submissions(tmp_path)
