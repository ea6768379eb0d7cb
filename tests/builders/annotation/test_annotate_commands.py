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

from biasboard.ground.errors import DataError
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
    assert call("exclude", dataset, "A1", "--state", "state", "--reason", "=too fast") == "A1: excluded\n"
    assert "20 undecided" in call("decide", dataset, "--state", "state", "--dry-run")
    assert (tmp_path / "state" / "votes.csv").read_bytes() == kept
    assert read_state(tmp_path / "state").annotators["A1"].reason == "=too fast"
    assert call("exclude", dataset, "A1", "--state", "state", "--back") == "A1: active\n"
    assert "20 accepted" in call("decide", dataset, "--state", "state", "--dry-run")


@pytest.mark.slow
def test_the_report_in_words(dataset: Path, annotated: AnnotatedDataset, tmp_path: Path) -> None:
    first = next(iter(annotated.items.values()))
    found = unanimous(annotated)
    more = State((*found.rows, *votes(first, "ben", BALLOTS["incoherent"])), found.annotators)
    write_state(tmp_path / "state", State((), {}), more)
    call = partial(done, folder=tmp_path)
    said = call("report", dataset, "--state", "state")
    assert "coherent  160    40     100.0 %  100.0 %" in said
    assert "no alpha for coherent: all votes are the same" in said
    cells = [line.split() for line in said.splitlines()]
    assert ["4", "40"] in cells
    assert [row[6] for row in cells if row[:1] in (["type1"], ["type2"])] == ["10", "10"]
    (ben,) = [row for row in cells if row[:1] == ["ben"]]
    assert "no" in ben


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (("plan", "d", "--state", "d"), "--state d"),
        (("plan", "d", "--state", "d/new/state"), "--state d/new/state"),
        (("ingest", "d", "votes.csv", "--state", "d/state"), "--state d/state"),
        (("exclude", "d", "anna", "--state", "d/state", "--reason", "x"), "--state d/state"),
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


@pytest.mark.slow
def test_a_state_stays_with_the_dataset_and_version_on_which_it_was_begun(dataset: Path, tmp_path: Path) -> None:
    shutil.copytree(dataset, tmp_path / "d")
    done("plan", "d", "--state", "s", folder=tmp_path)
    path = tmp_path / "s" / "annotated.json"
    begun = json.loads(path.read_text())
    manifest = read_manifest(tmp_path / "d")
    assert begun == {"name": "synthbias", "version": manifest.version, "content_sha256": manifest.content_sha256}
    (tmp_path / "votes.csv").write_text(render_records(Vote, ()), encoding="utf-8")
    commands_of_a_state: tuple[tuple[str, ...], ...] = (
        ("plan", "d"),
        ("export", "d", "--out", "tasks"),
        ("export", "d", "--out", "tasks", "--file-format", "model"),
        ("ingest", "d", "votes.csv"),
        ("exclude", "d", "anna", "--reason", "x"),
        ("serve", "d"),
        ("report", "d"),
        ("decide", "d"),
    )
    content = manifest.content_sha256[:12]
    for name, value in (("name", "other"), ("version", "0.1.0"), ("content_sha256", "0" * 64)):
        path.write_text(json.dumps({**begun, name: value}), encoding="utf-8")
        before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        for arguments in commands_of_a_state if name == "version" else commands_of_a_state[:1]:
            refused = run(*arguments, "--state", "s", folder=tmp_path)
            assert (refused.returncode, refused.stdout) == (1, "")
            assert refused.stderr.count("\n") == 1
            assert f"but d is synthbias {manifest.version} with content {content}; give that dataset" in refused.stderr
            assert value[:12] in refused.stderr
            assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    path.write_text("{}", encoding="utf-8")
    assert (
        "s/annotated.json: does not name a dataset; remove it"
        in run("plan", "d", "--state", "s", folder=tmp_path).stderr
    )
    path.unlink()
    done("plan", "d", "--state", "s", folder=tmp_path)
    assert json.loads(path.read_text()) == begun


@pytest.mark.slow
def test_a_name_is_one_person_however_it_is_typed(dataset: Path, annotated: AnnotatedDataset, tmp_path: Path) -> None:
    ana = "Ana Mar\u00eda"
    names = (f" {ana} ", "Ana  Mari\u0301a", "Ana\u00a0Mar\u00eda", ana)
    for number, (name, item) in enumerate(zip(names, annotated.items.values(), strict=False)):
        rows = list(votes(item, name, BALLOTS["open"]))
        (tmp_path / f"{number}.csv").write_text(render_records(Vote, rows), encoding="utf-8")
        done("ingest", dataset, f"{number}.csv", "--state", "s", folder=tmp_path)
    # Two of the four sentences are the other sides of what was voted on before.
    state = read_state(tmp_path / "s")
    assert set(state.annotators) == {ana}
    assert len(state.rows) == 6
    # A state that an older version or an editor has written.
    text = (tmp_path / "s" / "votes.csv").read_text(encoding="utf-8")
    (tmp_path / "s" / "votes.csv").write_text(text.replace(ana, f"{ana}  ", 3), encoding="utf-8")
    assert set(read_state(tmp_path / "s").annotators) == {ana}
    said = done("plan", dataset, "--state", "s", "--annotator", "Ana  Mari\u0301a", folder=tmp_path)
    assert "18 sentences, 18 votes" in said
    assert done("exclude", dataset, names[1], "--state", "s", "--reason", "x", folder=tmp_path) == f"{ana}: excluded\n"
    assert set(read_state(tmp_path / "s").annotators) == {ana}
    with (tmp_path / "s" / "annotators.csv").open("a", encoding="utf-8") as file:
        file.write(f"{names[1]},human,,active,\r\n")
    with pytest.raises(DataError, match=r"annotators\.csv:3: annotator 'Ana María' stands twice; keep one line"):
        read_state(tmp_path / "s")


@pytest.mark.slow
def test_refusals_are_counted_and_only_the_first_are_listed(
    dataset: Path, annotated: AnnotatedDataset, tmp_path: Path
) -> None:
    for name, ballot in (("first", BALLOTS["open"]), ("second", BALLOTS["incoherent"])):
        rows = [vote for item in annotated.items.values() for vote in votes(item, "anna", ballot, at=f"{name}")]
        rows = [replace(vote, submitted_at="") for vote in rows if vote.pair_id]
        (tmp_path / f"{name}.csv").write_text(render_records(Vote, rows), encoding="utf-8")
    done("ingest", dataset, "first.csv", "--state", "s", folder=tmp_path)
    said = done("ingest", dataset, "second.csv", "--state", "s", folder=tmp_path)
    assert said.startswith("0 votes added, 0 known already, 40 refused\n  duplicate: 20\n  both_sides: 20\n")
    assert said.count("\nrefused as ") == 10
    assert "\nand 30 more\n" in said


@pytest.mark.slow
def test_planning_ends_when_nobody_named_can_be_asked_more(
    dataset: Path, annotated: AnnotatedDataset, tmp_path: Path
) -> None:
    plan = ("plan", dataset, "--state", "s", "--annotator", "anna", "--annotator", "ben")
    assert "40 sentences, 40 votes\n120 votes find nobody: name more annotators\n" in done(*plan, folder=tmp_path)
    rows = [
        vote
        for item_id, item in annotated.items.items()
        for vote in votes(item, "anna" if annotated.groups[item_id] == "A" else "ben", BALLOTS["open"])
    ]
    (tmp_path / "votes.csv").write_text(render_records(Vote, rows), encoding="utf-8")
    done("ingest", dataset, "votes.csv", "--state", "s", folder=tmp_path)
    for options, n_needed in (((), 160), (("--count-untested",), 120)):
        for _ in range(2):
            needed, end, *_ = done(*plan, *options, folder=tmp_path).splitlines()
            assert needed == f"{n_needed} more votes are needed at least, in 20 pairs"
            assert end == "nothing to ask: everybody named has seen a side of every open pair; name more annotators"
    assert [path.name for path in (tmp_path / "s" / "batches").iterdir()] == ["0001.csv"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["plan", "none", "--state", "s"], "error: none: no dataset.json here"),
        (["plan", "DATASET", "--state", "s", "--annotator", "bad"], "error: --annotator bad: is excluded"),
        (["export", "DATASET", "--state", "s", "--out", "o"], "error: --state s: no batch here; plan one"),
        (["ingest", "DATASET", "none.csv", "--state", "s"], "error: none.csv: no such file; give a form that"),
        (
            ["ingest", "DATASET", "broken.csv", "--state", "s"],
            "error: broken.csv:3: answer is 'perhaps'; have: yes, no",
        ),
        (
            ["ingest", "DATASET", "runs", "--state", "s", "--file-format", "model", "--kind", "human"],
            "error: --kind human: --file-format model reads the answers of models; leave --kind out",
        ),
        (["ingest", "DATASET", "broken.csv", "--state", "s", "--map", "x"], "error: --map x: write FIELD=COLUMN"),
        (["exclude", "DATASET", "bad", "--state", "s"], "error: --reason: is missing; say why"),
        (["exclude", "DATASET", "nobody", "--state", "s", "--reason", "x"], "error: annotator 'nobody' is not in s"),
        (["decide", "DATASET", "--state", "s"], "error: DATASET: no pair is accepted"),
        (["decide", "DATASET", "--state", "none"], "error: --state none: no such folder, so that there are no votes"),
        (["report", "DATASET", "--state", "none"], "error: --state none: no such folder, so that there are no votes"),
        (["decide", "DATASET", "--state", "broken.csv", "--dry-run"], "error: --state broken.csv: is a file"),
        (
            ["serve", "DATASET", "--state", "s", "--annotator", " "],
            "error: annotator '' is no name of 1 to 200 visible characters; correct it",
        ),
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
