"""The shell steps of the workflows, on hostile pull requests."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from leaderboard.pages.publishing import SiteSettings, site_settings
from leaderboard.verify.submissions import DECIDING
from schemas.outputs.documents import Verdict, Verdicts
from schemas.printed import as_json
from tests.leaderboard.handed_in import hand_in
from tests.leaderboard.made_keys import write_keys
from tests.leaderboard.synthetic import leaning, write_model

REPOSITORY = Path(__file__).parents[2]
WORKFLOWS = sorted((REPOSITORY / ".github" / "workflows").glob("*.yml"))
HOSTILE = "x$(touch pwned)`touch pwned`;touch pwned\n::add-mask::x"


class Pull(NamedTuple):
    """A base branch and a pull request to it, as two checkouts."""

    base: Path
    submitted: Path

    @property
    def results(self) -> Path:
        return self.submitted / "leaderboard" / "results"

    def step(self, name: str, *arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.base / ".ci" / name, *arguments, sys.executable],
            cwd=self.base.parent,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY), "AUTHOR": "acme-bot", **environment},
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )

    def verify(self, **environment: str) -> tuple[subprocess.CompletedProcess[str], list[dict[str, Any]]]:
        for checkout in (self.base, self.submitted):
            for command in (["init", "--quiet"], ["add", "--all", "--force"]):
                subprocess.run(["git", "-C", checkout, *command], check=True, capture_output=True)
        report = self.base.parent / "verdicts.json"
        report.touch()
        done = self.step("verify-submission", self.submitted, report, **environment)
        text = report.read_text()
        return done, json.loads(text)["verdicts"] if text else []


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
    done, verdicts = pull.verify()
    assert (done.returncode, verdicts) == (0, [])
    hand_in(pull.base.parent / "runs/synthbias@9.0.0/acme__new/type2", pull.results)
    done, (verdict,) = pull.verify()
    assert done.returncode == 0, done.stdout + done.stderr
    assert (verdict["state"], verdict["model"]) == ("accepted with warnings", f"acme/new ({'0' * 40}, float32)")
    assert done.stdout.startswith("::warning file=")


@pytest.mark.slow
def test_results_do_not_vanish_or_change_and_the_register_is_the_maintainers(pull: Pull) -> None:
    (kept,) = (path.parent for path in pull.results.rglob("result.json"))
    (pull.results / "register.json").write_text('{"schema_version": "1.0", "results": []}')
    shutil.rmtree(kept)
    done, verdicts = pull.verify()
    assert done.returncode == 1
    reasons = " ".join(verdict["reason"] for verdict in verdicts)
    assert "is gone; to withdraw a result, ask a maintainer" in reasons
    assert "only maintainers change the register" in reasons


@pytest.mark.slow
def test_names_of_folders_and_authors_run_nothing(pull: Pull) -> None:
    folder = pull.results / HOSTILE
    folder.mkdir()
    (folder / "result.json").write_text("{}")
    done, verdicts = pull.verify(AUTHOR=HOSTILE.splitlines()[0])
    assert done.returncode == 1, done.stderr
    assert len(verdicts) == 1, done.stderr
    (verdict,) = verdicts
    assert verdict["state"] == "rejected"
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("::")]
    assert len(lines) == 1
    assert lines[0].startswith("::error file=")
    assert not list(pull.base.parent.rglob("pwned"))
    commented, body = comment(pull)
    assert commented.returncode == 0, commented.stderr
    assert not list(pull.base.parent.rglob("pwned"))
    assert "$(" not in body
    assert "`" not in body
    assert len(body.splitlines()) == 3


def comment(
    pull: Pull, sha: str = "a" * 40, number: str = "7", changed: str = "leaderboard/results/a/result.json"
) -> tuple[subprocess.CompletedProcess[str], str]:
    """Run the step that comments, with a program in the place of GitHub's."""
    tools = pull.base.parent / "tools"
    tools.mkdir(exist_ok=True)
    body = pull.base.parent / "body.md"
    gh = tools / "gh"
    answers = f'*/pulls) echo "{number} {"b" * 40}";; */compare/*) echo "{changed}";; *) cat > "{body}";;'
    gh.write_text(f'#!/bin/sh\ncase "$2" in {answers} esac\n')
    gh.chmod(gh.stat().st_mode | stat.S_IXUSR)
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    report = pull.base.parent / "verdicts.json"
    done = pull.step("comment-verdicts", report, PATH=path, REPOSITORY="acme/board", HEAD_SHA=sha)
    return done, body.read_text() if body.exists() else ""


EMPTY_REPORT = as_json(Verdicts(verdicts=()))
HOSTILE_REPORT = as_json(
    Verdicts(verdicts=(Verdict(place="@everyone ![x](https://evil.example/x)", reason="<img src=x>"),))
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("report", "sha", "number", "said"),
    [
        (EMPTY_REPORT, "a" * 40, "7", ""),
        (EMPTY_REPORT, "$(touch pwned)", "7", "HEAD_SHA is no commit"),
        (EMPTY_REPORT, "a" * 40, "null", "no open pull request ends with"),
        ("{}", "a" * 40, "7", "field 'verdicts' is missing"),
        (HOSTILE_REPORT, "a" * 40, "7", ""),
    ],
)
def test_a_report_is_data(pull: Pull, report: str, sha: str, number: str, said: str) -> None:
    (pull.base.parent / "verdicts.json").write_text(report)
    done, body = comment(pull, sha, number)
    assert (done.returncode == 0) == (said == "")
    assert said in done.stderr
    for sign in ("<", "](", "@", "!["):
        assert sign not in body


@pytest.mark.slow
def test_verdicts_are_not_shown_where_the_pull_request_changes_the_workflow(pull: Pull) -> None:
    (pull.base.parent / "verdicts.json").write_text(as_json(Verdicts(verdicts=(Verdict(place="forged"),))))
    done, body = comment(pull, changed=".github/workflows/verify.yml")
    assert done.returncode == 0, done.stderr
    assert "forged" not in body
    assert "verify.yml" in body


def test_what_decides_has_owners() -> None:
    owned = (REPOSITORY / ".github" / "CODEOWNERS").read_text(encoding="utf-8")
    assert all(f"\n/{path} @" in owned for path in DECIDING)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_put_nothing_of_strangers_into_a_shell(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    assert "pull_request_target" not in text
    assert workflow["permissions"] == {"contents": "read"}
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    assert all("${{" not in step["run"] for step in steps if "run" in step)
    for step in steps:
        for word in step.get("run", "").split():
            script = word.removeprefix("base/")
            if script.startswith(".ci/"):
                assert os.access(REPOSITORY / script, os.X_OK), script


def test_the_job_that_reads_strangers_files_may_write_nothing() -> None:
    verify = yaml.safe_load((REPOSITORY / ".github" / "workflows" / "verify.yml").read_text(encoding="utf-8"))
    assert "secrets." not in json.dumps(verify)
    assert all("permissions" not in job for job in verify["jobs"].values())
    checkouts = [step for job in verify["jobs"].values() for step in job["steps"] if "checkout" in step.get("uses", "")]
    assert len(checkouts) == 2
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)
    # Both hold the newest state of the base branch: a pull request that is behind it changes nothing else.
    refs = {step["with"]["path"]: step["with"]["ref"] for step in checkouts}
    assert refs == {"base": "${{ github.event.pull_request.base.ref }}", "submitted": "${{ github.sha }}"}


def test_every_supported_python_is_tested() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [line.rpartition(" ")[2] for line in project["classifiers"] if line.startswith("Programming Language")]
    checked = yaml.safe_load((REPOSITORY / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    assert [job["python"] for job in checked["jobs"]["check"]["strategy"]["matrix"]["include"]] == named


def test_the_published_site_has_its_address_and_a_link_to_the_source(tmp_path: Path) -> None:
    workflow = yaml.safe_load((REPOSITORY / ".github" / "workflows" / "pages.yml").read_text(encoding="utf-8"))
    (step,) = (step for step in workflow["jobs"]["build"]["steps"] if "mkdocs.yml" in step.get("run", ""))
    site = tmp_path / "site"
    shutil.copytree(REPOSITORY / "site", site, ignore=shutil.ignore_patterns("_build"))
    addresses = {"SITE": "https://lab.test/board", "REPOSITORY": "https://code.test/lab/board"}
    assert {*addresses} == {*step["env"]}
    subprocess.run(step["run"], shell=True, cwd=tmp_path, env={**os.environ, **addresses}, check=True)
    assert site_settings(site) == SiteSettings("https://lab.test/board/", "https://code.test/lab/board", None)
