"""``python -m builders.synthbias annotate`` as a user runs it."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from builders.synthbias.annotation.annotated import AnnotatedDataset
from builders.synthbias.annotation.safe_csv import render_records
from builders.synthbias.annotation.state import State, read_state, write_state
from builders.synthbias.annotation.votes import Vote
from schemas.folders.dataset_folder import read_manifest
from tests import commands
from tests.builders.annotation.made_votes import BALLOTS, unanimous, votes

REPOSITORY = Path(__file__).parents[3]


def run(*arguments: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return commands.run("-m", "builders.synthbias", "annotate", *arguments, cwd=folder)


def done(*arguments: str | Path, folder: Path) -> str:
    found = run(*arguments, folder=folder)
    assert found.returncode == 0, found.stderr
    return found.stdout


@pytest.mark.slow
def test_help_is_quick_and_imports_no_evaluator(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from builders.synthbias.__main__ import app\n"
        "try:\n    app(['annotate', '--help'])\n"
        "except SystemExit:\n    pass\n"
        "heavy = {'evaluators', 'builders.synthbias.annotation.vote_page', 'builders.synthbias.annotation.agreement'}\n"
        "sys.exit(f'loaded {heavy & set(sys.modules)}' if heavy & set(sys.modules) else 0)\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    for name in ("plan", "export", "ingest", "exclude", "decide", "report", "serve"):
        assert f" {name} " in found.stdout


@pytest.mark.slow
def test_from_the_plan_to_the_dataset(dataset: Path, annotated: AnnotatedDataset, tmp_path: Path) -> None:
    call = partial(done, folder=tmp_path)
    assert "160 more votes are needed at least, in 20 pairs" in call("plan", dataset, "--state", "state")
    said = call("export", dataset, "--state", "state", "--out", "tasks", "--file-format", "label-studio")
    assert "40 sentences of batch 0001, licence Apache-2.0" in said
    assert {path.name for path in (tmp_path / "tasks").iterdir()} == {
        "0001-A-4-votes.json",
        "0001-B-4-votes.json",
        "interface.xml",
    }
    assert "20 sentences of the entrance test" in call(
        "export", dataset, "--state", "state", "--out", "test", "--entrance"
    )

    state = unanimous(annotated)
    (tmp_path / "votes.csv").write_text(render_records(Vote, state.rows), encoding="utf-8")
    said = call("ingest", dataset, "votes.csv", "--state", "state")
    assert said.startswith(f"{len(state.rows)} votes added, 0 known already, 0 refused\n")
    assert "annotators: 8 untested" in said
    kept = (tmp_path / "state" / "votes.csv").read_bytes()
    assert "0 votes added" in call("ingest", dataset, "votes.csv", "--state", "state")
    assert (tmp_path / "state" / "votes.csv").read_bytes() == kept

    said = call("decide", dataset, "--state", "state", "--dry-run")
    assert "pairs: 0 accepted, 0 rejected, 20 undecided" in said
    assert "8 annotators have finished no entrance test" in said
    said = call("decide", dataset, "--state", "state", "--count-untested")
    assert "pairs: 20 accepted, 0 rejected, 0 undecided" in said
    assert "validated by people: yes" in said
    manifest = read_manifest(tmp_path / "out/datasets/synthbias-annotated")
    assert (manifest.human_validated, manifest.parameters["annotation_count_untested"]) == (True, True)
    assert "nothing to ask" in call("plan", dataset, "--state", "state", "--count-untested")


@pytest.mark.slow
def test_an_exclusion_is_computed_again_and_taken_back(
    dataset: Path, annotated: AnnotatedDataset, tmp_path: Path
) -> None:
    call = partial(done, folder=tmp_path)
    write_state(tmp_path / "state", State((), {}), unanimous(annotated))
    assert "20 accepted" in call("decide", dataset, "--state", "state", "--dry-run")
    kept = (tmp_path / "state" / "votes.csv").read_bytes()
    assert call("exclude", "A1", "--state", "state", "--reason", "=too fast") == "A1: excluded\n"
    assert "20 undecided" in call("decide", dataset, "--state", "state", "--dry-run")
    assert (tmp_path / "state" / "votes.csv").read_bytes() == kept
    assert read_state(tmp_path / "state").annotators["A1"].reason == "=too fast"
    assert call("exclude", "A1", "--state", "state", "--back") == "A1: active\n"
    assert "20 accepted" in call("decide", dataset, "--state", "state", "--dry-run")


@pytest.mark.slow
def test_the_report_in_words_and_for_programs(dataset: Path, annotated: AnnotatedDataset, tmp_path: Path) -> None:
    first = next(iter(annotated.items.values()))
    found = unanimous(annotated)
    more = State((*found.rows, *votes(first, "ben", BALLOTS["incoherent"])), found.annotators)
    write_state(tmp_path / "state", State((), {}), more)
    call = partial(done, folder=tmp_path)
    said = call("report", dataset, "--state", "state")
    assert "coherent  160    40     100.0 %  100.0 %" in said
    assert "no alpha for coherent: all votes are the same" in said
    value = json.loads(call("report", dataset, "--state", "state", "--format", "json"))
    assert value["votes_per_item"] == {"4": 40}
    assert [entry["n_pairs_accepted"] for entry in value["yields"]] == [10, 10]
    assert {entry["annotator_id"]: entry["counts"] for entry in value["annotators"]}["ben"] is False


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (("plan", "d", "--state", "d"), "--state d"),
        (("plan", "d", "--state", "d/new/state"), "--state d/new/state"),
        (("ingest", "d", "votes.csv", "--state", "d/state"), "--state d/state"),
        (("exclude", "anna", "--state", "d/state", "--reason", "x"), "--state d/state"),
        (("serve", "d", "--state", "d/state"), "--state d/state"),
        (("report", "d", "--state", "d"), "--state d"),
        (("export", "d", "--state", "d/state", "--out", "tasks"), "--state d/state"),
        (("export", "d", "--state", "s", "--out", "d", "--entrance"), "--out d"),
        (("export", "d", "--state", "s", "--out", "d/q", "--file-format", "model"), "--out d/q"),
        (("decide", "d", "--state", "s", "--out", "d/accepted"), "--out d/accepted"),
    ],
)
def test_nothing_is_written_into_a_dataset(
    arguments: tuple[str, ...], option: str, dataset: Path, annotated: AnnotatedDataset, tmp_path: Path
) -> None:
    shutil.copytree(dataset, tmp_path / "d")
    write_state(tmp_path / "s", State((), {}), unanimous(annotated))
    (tmp_path / "votes.csv").write_text(render_records(Vote, unanimous(annotated).rows), encoding="utf-8")
    before = sorted(tmp_path.rglob("*"))
    found = run(*arguments, folder=tmp_path)
    assert found.returncode == 1
    assert (
        found.stderr == f"error: {option}: lies in the dataset folder {tmp_path / 'd'}; give a folder outside of it\n"
    )
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.slow
@pytest.mark.parametrize("command", ["plan", "decide", "report"])
def test_a_state_of_another_dataset_is_noticed(
    command: str, dataset: Path, annotated: AnnotatedDataset, tmp_path: Path
) -> None:
    found = unanimous(annotated)
    foreign = tuple(replace(vote, item_id=f"x-{vote.item_id}", pair_id=f"x-{vote.pair_id}") for vote in found.rows)
    n = len(found.rows)
    options = ["--dry-run"] if command == "decide" else []
    write_state(tmp_path / "state", State((), {}), State(foreign, found.annotators))
    failed = run(command, dataset, "--state", "state", *options, folder=tmp_path)
    said = f"--state state: {n} of {n} votes are on sentences that are not in {dataset}; give the dataset and the state"
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr.startswith(f"error: {said}")
    assert failed.stderr.count("\n") == 1

    both = State((*foreign, *found.rows), found.annotators)
    write_state(tmp_path / "state", State(foreign, found.annotators), both)
    told = run(command, dataset, "--state", "state", *options, folder=tmp_path)
    assert told.returncode == 0
    assert f"{n} of {2 * n} votes are on sentences that are not in {dataset}; they count for nothing" in told.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["plan", "none", "--state", "s"], "error: none: no dataset.json here"),
        (["plan", "DATASET", "--state", "s", "--annotator", "bad"], "error: --annotator bad: is excluded"),
        (["export", "DATASET", "--state", "s", "--out", "o"], "error: --state s: no batch here; plan one"),
        (["ingest", "DATASET", "none.csv", "--state", "s"], "error: none.csv: no such file; give a file with"),
        (
            ["ingest", "DATASET", "broken.csv", "--state", "s"],
            "error: broken.csv:3: answer is 'perhaps'; have: yes, no",
        ),
        (
            ["ingest", "DATASET", "runs", "--state", "s", "--file-format", "model", "--kind", "human"],
            "error: --kind human: --file-format model reads the answers of models; leave --kind out",
        ),
        (["ingest", "DATASET", "broken.csv", "--state", "s", "--map", "x"], "error: --map x: write FIELD=COLUMN"),
        (["exclude", "bad", "--state", "s"], "error: --reason: is missing; say why"),
        (["exclude", "nobody", "--state", "s", "--reason", "x"], "error: annotator 'nobody' is not in s"),
        (["decide", "DATASET", "--state", "s"], "error: DATASET: no pair is accepted"),
        (["decide", "DATASET", "--state", "none"], "error: --state none: no such folder, so that there are no votes"),
        (["report", "DATASET", "--state", "none"], "error: --state none: no such folder, so that there are no votes"),
        (["decide", "DATASET", "--state", "broken.csv", "--dry-run"], "error: --state broken.csv: is a file"),
        (["serve", "DATASET", "--state", "s", "--annotator", " "], "error: --annotator: is empty"),
    ],
)
def test_a_mistake_is_one_line_and_changes_nothing(
    arguments: list[str], message: str, dataset: Path, annotated: AnnotatedDataset, tmp_path: Path
) -> None:
    item = next(iter(annotated.items.values()))
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "annotators.csv").write_text(
        "annotator_id,kind,entrance,status,reason\r\nbad,human,,excluded,bot\r\n", encoding="utf-8", newline=""
    )
    with (tmp_path / "broken.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["item_id", "pair_id", "annotator_id", "question", "answer", "submitted_at", "source"])
        writer.writerow([item.item_id, item.pair_id, "anna", "coherent", "yes", "", ""])
        writer.writerow([item.item_id, item.pair_id, "ben", "coherent", "perhaps", "", ""])
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.csv")}
    found = run(*(str(dataset) if one == "DATASET" else one for one in arguments), folder=tmp_path)
    assert found.returncode == 1, found.stdout
    assert found.stderr.startswith(message.replace("DATASET", str(dataset))), found.stderr
    assert found.stderr.count("\n") == 1
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.csv")} == before
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "none").exists()


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
