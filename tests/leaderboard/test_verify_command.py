"""The commands ``verify`` and ``keys`` as a maintainer and a workflow call them."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from leaderboard.verify.public_files import place_for
from schemas.folders.dataset_folder import read_manifest
from schemas.folders.run_folder import read_result
from tests.commands import run
from tests.evaluators.made_data import made_items, write_dataset
from tests.leaderboard.forging import Places, forge, nudged
from tests.leaderboard.made_keys import write_keys
from tests.leaderboard.synthetic import leaning, write_model

HOSTILE = "x\n::add-mask::secret\n::warning::%0A \x1b[31m"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("verify")
    write_model(root / "runs", "acme/small", leaning(1.0, 0.5), endpoint="api")
    write_keys(root / "keys", root / "runs")
    # Or else they would be compared with those that biasboard brings.
    (root / "leaderboard" / "results").mkdir(parents=True)
    return root / "runs"


def verify(*arguments: str | Path, runs: Path) -> subprocess.CompletedProcess[str]:
    return run("-W", "error", "-m", "leaderboard", "verify", *arguments, cwd=runs.parent)


def broken(runs: Path, folder: Path) -> Path:
    shutil.copytree(runs, folder)
    (result,) = folder.rglob("result.json")
    result.write_text("{}")
    return folder


@pytest.mark.slow
def test_the_exit_status_tells_the_worst_verdict(runs: Path, tmp_path: Path) -> None:
    done = verify(runs, "--keys", runs.parent / "keys", runs=runs)
    assert (done.returncode, done.stdout.count("\n")) == (2, 1)
    assert done.stdout.startswith(f"accepted with warnings: {runs}/synthbias@9.0.0/acme__small/type2: the identity of")
    bad = broken(runs, tmp_path / "bad")
    done = verify(runs, bad, "--keys", runs.parent / "keys", runs=runs)
    assert done.returncode == 1
    assert done.stdout.splitlines()[1].startswith("rejected: ")
    assert done.stdout.splitlines()[2] == "1 accepted with warnings, 1 rejected"


@pytest.mark.slow
def test_a_path_without_results_is_rejected_and_the_others_are_judged(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (file,) = runs.rglob("records.parquet")
    wrong = {
        tmp_path / "empty": "no result.json here",
        tmp_path / "gone": "no such folder",
        tmp_path / "gone" / "result.json": "no such folder",
        file: "is a file and no result",
    }
    done = verify(*wrong, runs, "--keys", runs.parent / "keys", runs=runs)
    assert done.returncode == 1
    *rejected, sound, _ = done.stdout.splitlines()
    assert rejected == [f"rejected: {path}: {said}; name the folder of a finished run" for path, said in wrong.items()]
    assert sound.startswith("accepted with warnings: ")


@pytest.mark.slow
def test_a_result_that_is_named_twice_is_judged_once(runs: Path) -> None:
    (result,) = runs.rglob("result.json")
    done = verify(runs, result, result.parent, "--keys", runs.parent / "keys", runs=runs)
    assert done.stdout.count("\n") == 1


@pytest.mark.slow
def test_json_holds_every_verdict(runs: Path, tmp_path: Path) -> None:
    done = verify(runs, broken(runs, tmp_path / "bad"), "--format", "json", "--keys", runs.parent / "keys", runs=runs)
    sound, bad = json.loads(done.stdout)["verdicts"]
    assert (sound["state"], sound["provenance"], bad["state"]) == ("accepted with warnings", "recomputed", "rejected")
    assert sound["model"] == f"acme/small ({'0' * 40}, float32)"
    assert bad["reason"]


@pytest.mark.slow
@pytest.mark.parametrize("output", ["text", "json", "github"])
def test_names_of_folders_command_nothing(runs: Path, tmp_path: Path, output: str) -> None:
    broken(runs, tmp_path / "results" / HOSTILE)
    done = verify(tmp_path / "results", "--format", output, "--keys", runs.parent / "keys", runs=runs)
    assert done.returncode == 1
    assert "\x1b" not in done.stdout + done.stderr
    commands = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("::")]
    assert len(commands) == (1 if output == "github" else 0)
    assert all(line.startswith("::error file=") for line in commands)
    if output == "text":
        assert len(done.stdout.splitlines()) == 1


@pytest.mark.slow
def test_what_github_shows_says_of_no_model_that_it_is_like_another(places: Places, tmp_path: Path) -> None:
    results, report = tmp_path / "results", tmp_path / "verdicts.json"
    shutil.copytree(places.honest, results / place_for(read_result(places.honest)))
    forged = forge(places, tmp_path / "forged", nudged(1e-6), model="lab/other")
    arguments = ("-m", "leaderboard", "verify", forged, "--keys", places.keys, "--results", results, "--report", report)
    told = run(*arguments)
    # It changes no verdict.
    assert told.returncode == 0
    assert told.stdout.startswith("accepted: ")
    (verdict,) = json.loads(report.read_text())["verdicts"]
    assert (verdict["state"], verdict["warnings"]) == ("accepted", [])
    assert verdict["likenesses"][0].startswith("a maintainer may look at it beside acme/honest (1) in ")
    assert verdict["likenesses"][0] in told.stdout
    comment = run("-m", "leaderboard", "comment", report, status=0)
    hidden = run(*arguments, "--format", "github", status=0)
    for public in (comment.stdout, hidden.stdout, report.read_text()):
        assert "forged" in public
        assert "honest" not in public


def test_a_key_names_the_contents_of_its_dataset(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "made", {"type2": made_items(4)})
    run("-m", "leaderboard", "keys", dataset, "--out", tmp_path / "keys", status=0)
    keys = [json.loads(path.read_text(encoding="utf-8")) for path in (tmp_path / "keys" / "made@1.0.0").glob("*.json")]
    contents = read_manifest(dataset).content_sha256
    assert {key["dataset_sha256"] for key in keys} == {contents}
