"""The commands ``verify``, ``comment`` and ``keys`` as a maintainer calls them, and as workflows do for strangers."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from leaderboard.pages.publishing import SiteSettings, site_settings
from leaderboard.verify.intake import results_at
from leaderboard.verify.submissions import DECIDING, place_for
from schemas.folders.dataset_folder import read_manifest
from schemas.folders.run_folder import read_result
from schemas.outputs.documents import Verdict, Verdicts, as_json
from tests.commands import REPOSITORY, run
from tests.evaluators.made_data import made_items, write_dataset
from tests.leaderboard.forging import Places, Pull, forge, nudged
from tests.leaderboard.handed_in import hand_in
from tests.leaderboard.made_keys import write_keys
from tests.leaderboard.synthetic import leaning, write_model
from tests.worlds import copy_site

GITHUB = REPOSITORY / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
ACTS = "x\n::add-mask::secret\n::warning::%0A \x1b[31m"
RUNS = "x$(touch pwned)`touch pwned`;touch pwned\n::add-mask::x"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("verify")
    write_model(root / "runs", "acme/small", leaning(1.0, 0.5), endpoint="api")
    write_keys(root / "keys", root / "runs")
    # Or else they would be compared with those that biasboard brings.
    (root / "leaderboard" / "results").mkdir(parents=True)
    return root / "runs"


def verify(*arguments: str | Path, runs: Path, status: int) -> subprocess.CompletedProcess[str]:
    command = ("-W", "error", "-m", "leaderboard", "verify", *arguments, "--keys", runs.parent / "keys")
    return run(*command, cwd=runs.parent, status=status)


def broken(runs: Path, folder: Path) -> Path:
    shutil.copytree(runs, folder)
    (result,) = folder.rglob("result.json")
    result.write_text("{}")
    return folder


@pytest.mark.slow
def test_the_exit_status_tells_the_worst_verdict(runs: Path, tmp_path: Path) -> None:
    (result,) = runs.rglob("result.json")
    # Named three times, it is judged once.
    done = verify(runs, result, result.parent, runs=runs, status=2)
    assert done.stdout.startswith(f"accepted with warnings: {runs}/synthbias@9.0.0/acme__small/type2: which model ")
    assert done.stdout.count("\n") == 1
    bad = broken(runs, tmp_path / "bad")
    lines = verify(runs, bad, runs=runs, status=1).stdout.splitlines()
    assert lines[1].startswith("rejected: ")
    assert lines[2] == "1 accepted with warnings, 1 rejected"


def test_a_path_without_results_is_named(tmp_path: Path) -> None:
    file = tmp_path / "records.parquet"
    file.touch()
    wrong = {tmp_path: "no result.json here", tmp_path / "gone": "no such folder", file: "is a file and no result"}
    for path, said in wrong.items():
        assert results_at(path) == [(path, f"{said}; name the folder of a finished run")]


@pytest.mark.slow
def test_names_of_folders_command_nothing(runs: Path, tmp_path: Path) -> None:
    broken(runs, tmp_path / "results" / ACTS)
    for output, begin in (("text", "rejected: "), ("github", "::error file=")):
        done = verify(tmp_path / "results", "--format", output, runs=runs, status=1)
        assert "\x1b" not in done.stdout + done.stderr
        (line,) = done.stdout.splitlines()
        assert line.startswith(begin)


@pytest.mark.slow
def test_what_github_shows_says_of_no_model_that_it_is_like_another(places: Places, tmp_path: Path) -> None:
    results, report = tmp_path / "results", tmp_path / "verdicts.json"
    shutil.copytree(places.honest, results / place_for(read_result(places.honest)))
    forged = forge(places, tmp_path / "forged", nudged(1e-6), model="lab/other")
    arguments = ("-m", "leaderboard", "verify", forged, "--keys", places.keys, "--results", results, "--report", report)
    # It changes no verdict.
    told = run(*arguments, status=0).stdout
    assert told.startswith("accepted: ")
    (verdict,) = json.loads(report.read_text())["verdicts"]
    assert (verdict["state"], verdict["warnings"]) == ("accepted", [])
    assert verdict["likenesses"][0].startswith("a maintainer may look at it beside acme/honest (1) in ")
    assert verdict["likenesses"][0] in told
    comment = run("-m", "leaderboard", "comment", report, status=0)
    hidden = run(*arguments, "--format", "github", status=0)
    for public in (comment.stdout, hidden.stdout, report.read_text()):
        assert "forged" in public
        assert "honest" not in public


@pytest.mark.slow
def test_a_key_names_the_contents_of_its_dataset(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "made", {"type2": made_items(4)})
    run("-m", "leaderboard", "keys", dataset, "--out", tmp_path / "keys", status=0)
    keys = [json.loads(path.read_text(encoding="utf-8")) for path in (tmp_path / "keys" / "made@1.0.0").glob("*.json")]
    assert {key["dataset_sha256"] for key in keys} == {read_manifest(dataset).content_sha256}


def step(pull: Pull, name: str, *arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [pull.base / ".ci" / name, *arguments, sys.executable]
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY), "AUTHOR": "acme-bot", **environment}
    return subprocess.run(command, cwd=pull.base.parent, env=env, capture_output=True, text=True, timeout=280)


def verified(pull: Pull, **environment: str) -> tuple[subprocess.CompletedProcess[str], list[dict[str, Any]]]:
    pull.check_out()
    report = pull.base.parent / "verdicts.json"
    report.touch()
    done = step(pull, "verify-submission", pull.submitted, report, **environment)
    text = report.read_text()
    return done, json.loads(text)["verdicts"] if text else []


def commented(
    pull: Pull, sha: str = "a" * 40, number: str = "7", changed: str = "leaderboard/results/a/result.json"
) -> tuple[subprocess.CompletedProcess[str], str]:
    """Run the step that comments, with a program in the place of GitHub's, and return what it would post."""
    tools, body = pull.base.parent / "tools", pull.base.parent / "body.md"
    tools.mkdir(exist_ok=True)
    answers = f'*/pulls) echo "{number} {"b" * 40}";; */compare/*) echo "{changed}";; *) cat > "{body}";;'
    (tools / "gh").write_text(f'#!/bin/sh\ncase "$2" in {answers} esac\n')
    (tools / "gh").chmod((tools / "gh").stat().st_mode | stat.S_IXUSR)
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    told = {"PATH": path, "REPOSITORY": "acme/board", "HEAD_SHA": sha}
    done = step(pull, "comment-verdicts", pull.base.parent / "verdicts.json", **told)
    return done, body.read_text() if body.exists() else ""


@pytest.fixture
def pull(tmp_path: Path) -> Pull:
    """A pull request that changes nothing: one accepted result in both checkouts."""
    base = tmp_path / "base"
    shutil.copytree(REPOSITORY / ".ci", base / ".ci")
    run = write_model(tmp_path / "runs", "acme/small", leaning(1.0, 0.5)).parent
    write_model(tmp_path / "runs", "acme/new", leaning(2.0, 0.1), endpoint="api")
    write_keys(base / "leaderboard" / "keys", tmp_path / "runs")
    hand_in(run, base / "leaderboard" / "results")
    shutil.copytree(base, tmp_path / "submitted")
    return Pull(base, tmp_path / "submitted")


@pytest.mark.slow
def test_only_what_changed_is_verified(pull: Pull) -> None:
    done, verdicts = verified(pull)
    assert (done.returncode, verdicts) == (0, [])
    hand_in(pull.base.parent / "runs/synthbias@9.0.0/acme__new/type2", pull.results)
    done, (verdict,) = verified(pull)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (verdict["state"], verdict["model"]) == ("accepted with warnings", f"acme/new ({'0' * 40}, float32)")
    assert done.stdout.startswith("::warning file=")


@pytest.mark.slow
def test_names_of_folders_and_authors_run_nothing(pull: Pull) -> None:
    (pull.results / RUNS).mkdir()
    (pull.results / RUNS / "result.json").write_text("{}")
    done, verdicts = verified(pull, AUTHOR=RUNS.splitlines()[0])
    assert done.returncode == 1, done.stderr
    assert [verdict["state"] for verdict in verdicts] == ["rejected"], done.stderr
    (line,) = (line for line in (done.stdout + done.stderr).splitlines() if line.startswith("::"))
    assert line.startswith("::error file=")
    comment, body = commented(pull)
    assert comment.returncode == 0, comment.stderr
    assert not list(pull.base.parent.rglob("pwned"))
    assert "$(" not in body
    assert "`" not in body
    assert len(body.splitlines()) == 3


EMPTY = as_json(Verdicts(verdicts=()))
HOSTILE = as_json(Verdicts(verdicts=(Verdict(place="@everyone ![x](https://evil.example/x)", reason="<img src=x>"),)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("report", "options", "said"),
    [
        (EMPTY, {"sha": "$(touch pwned)"}, "HEAD_SHA is no commit"),
        (EMPTY, {"number": "null"}, "no open pull request ends with"),
        (HOSTILE, {}, ""),
        # Not shown where the pull request changes the workflow, or so much that the code host does not list all.
        (HOSTILE, {"changed": ".github/workflows/verify.yml"}, ""),
        (HOSTILE, {"changed": "\n".join(f"leaderboard/results/{number}" for number in range(300))}, ""),
    ],
)
def test_a_report_is_data(pull: Pull, report: str, options: dict[str, str], said: str) -> None:
    (pull.base.parent / "verdicts.json").write_text(report)
    done, body = commented(pull, **options)
    assert (done.returncode == 0) == (said == "")
    assert said in done.stderr
    for sign in ("<", "](", "@", "!["):
        assert sign not in body
    assert ("everyone" in body) == (report == HOSTILE and "changed" not in options)
    assert ("were not verified" in body) == ("changed" in options)


def workflow(name: str) -> Any:
    return yaml.safe_load((GITHUB / "workflows" / f"{name}.yml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", [path.stem for path in WORKFLOWS])
def test_workflows_put_nothing_of_strangers_into_a_shell(name: str) -> None:
    told = workflow(name)
    assert "pull_request_target" not in json.dumps(told, default=str)
    assert told["permissions"] == {"contents": "read"}
    for step in (step.get("run", "") for job in told["jobs"].values() for step in job["steps"]):
        assert "${{" not in step
        for script in (word.removeprefix("base/") for word in step.split()):
            assert not script.startswith(".ci/") or os.access(REPOSITORY / script, os.X_OK), script


def test_what_decides_has_owners_and_the_job_that_reads_strangers_files_writes_nothing() -> None:
    owned = (GITHUB / "CODEOWNERS").read_text(encoding="utf-8")
    assert all(f"\n/{path} @" in owned for path in DECIDING)
    verify = workflow("verify")
    assert "secrets." not in json.dumps(verify)
    assert all("permissions" not in job for job in verify["jobs"].values())
    checkouts = [step for job in verify["jobs"].values() for step in job["steps"] if "checkout" in step.get("uses", "")]
    assert [step["with"]["persist-credentials"] for step in checkouts] == [False, False]
    # Both hold the newest state of the base branch: a pull request that is behind it changes nothing else.
    refs = {step["with"]["path"]: step["with"]["ref"] for step in checkouts}
    assert refs == {"base": "${{ github.event.pull_request.base.ref }}", "submitted": "${{ github.sha }}"}


def test_the_published_site_has_its_address_and_a_link_to_the_source(tmp_path: Path) -> None:
    (step,) = (step for step in workflow("pages")["jobs"]["build"]["steps"] if "mkdocs.yml" in step.get("run", ""))
    addresses = {"SITE": "https://lab.test/board", "REPOSITORY": "https://code.test/lab/board"}
    assert {*addresses} == {*step["env"]}
    site = copy_site(tmp_path)
    subprocess.run(step["run"], shell=True, cwd=tmp_path, env={**os.environ, **addresses}, check=True)
    assert site_settings(site) == SiteSettings("https://lab.test/board/", "https://code.test/lab/board", None)
