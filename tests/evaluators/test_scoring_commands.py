"""``--scorer`` of run and rescore, and the index, from the command line."""

from __future__ import annotations

import json
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from schemas.folders.run_folder import SCORES
from schemas.validate import problems
from tests import commands
from tests.leaderboard.gifi_results import write_gifi_model

evaluators = partial(commands.run, "-m", "evaluators")


def assert_one_line_error(done: subprocess.CompletedProcess[str], message: str) -> None:
    assert done.returncode == 1, done.stdout
    assert "Traceback" not in done.stderr
    assert message in done.stderr.splitlines()[-1], done.stderr


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A finished run on continuations, without scores."""
    return write_gifi_model(tmp_path / "runs", "lab/model", 0.5, tasks=("continuation",), scorer=None)["continuation"]


def metrics_of(run: Path) -> dict[str, dict[str, Any]]:
    result = json.loads((run / "result.json").read_text(encoding="utf-8"))
    return {metric["name"]: metric for metric in result["metrics"] if not metric["group"]}


PLUG_IN = """
from pathlib import Path

from schemas.documents.run_files import Scorer

SUMMARY, KINDS = "the number in a file, for any text", ("toxicity",)


class Fixed:
    def __init__(self, path, revision):
        self.value = float(path.read_text())
        self.identity = Scorer(kind="toxicity", name="fixed", revision=revision, settings={"value": str(self.value)})

    def score(self, texts):
        yield from ((index, (self.value,)) for index, _ in enumerate(texts))


def open_scorer(kind, model, revision):
    return Fixed(Path(model), revision)
"""


@pytest.fixture
def fixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a plug-in scorer, which holds the score that it gives."""
    plug_in = tmp_path / "mine" / "evaluators" / "scorers" / "fixed.py"
    plug_in.parent.mkdir(parents=True)
    plug_in.write_text(PLUG_IN, encoding="utf-8")
    monkeypatch.setenv("BIASBOARD_PLUGINS", str(tmp_path / "mine"))
    (tmp_path / "score.txt").write_text("0.25", encoding="utf-8")
    return tmp_path / "score.txt"


def rescored(run: Path, *scorers: str) -> str:
    return evaluators("rescore", run, *(word for one in scorers for word in ("--scorer", one)), status=0).stdout


@pytest.mark.slow
def test_scores_are_added_kept_replaced_and_dropped(run: Path, tmp_path: Path, fixed: Path) -> None:
    assert metrics_of(run)["sn"]["reason"] == "no sentiment scores: biasboard rescore RUN --scorer sentiment=vader"
    assert "sn: none (version 1.0+careful-1) to " in rescored(run, "sentiment=vader", "toxicity=lexicon")
    scored = metrics_of(run)
    assert scored["sn"]["version"] == "1.0+careful-1.vader-sentences-3.3.2"
    assert scored["nts"]["version"] == "1.0+careful-1.lexicon-1"
    assert scored["cf"]["value"] is None
    assert list(problems(run)) == []
    # Stored scores are enough.
    before = (run / SCORES).read_bytes()
    said = rescored(run)
    assert said.splitlines()[-2].startswith("result ")
    assert said.splitlines()[-1] == "all measures and groups: in the files result.json, or with --verbose"
    assert "0 of " in said
    assert (metrics_of(run), (run / SCORES).read_bytes()) == (scored, before)
    # Another scorer of one kind replaces that kind alone.
    named = f"toxicity=fixed:{fixed}@2026"
    rescored(run, named)
    changed = metrics_of(run)
    assert changed["sn"] == scored["sn"]
    assert changed["nts"]["version"] == "1.0+careful-1.fixed-2026"
    assert (changed["nts"]["value"], changed["toxicity_mean"]["value"]) == (1, 0.25)
    result = json.loads((run / "result.json").read_text(encoding="utf-8"))
    assert [scorer["name"] for scorer in result["scores"]["scorers"]] == ["vader-sentences", "fixed"]
    assert str(tmp_path) not in json.dumps(result)
    assert result["command"].endswith("--scorer toxicity=fixed:score.txt@2026")
    # Corrected scores under the same name are read, not taken from before.
    fixed.write_text("0.5", encoding="utf-8")
    rescored(run, named)
    assert metrics_of(run)["toxicity_mean"]["value"] == 0.5
    rescored(run, "none")
    assert not (run / SCORES).exists()
    assert metrics_of(run)["sn"]["value"] is None


@pytest.mark.slow
def test_what_cannot_be_scored_leaves_the_result_and_scoring_anew_mends_it(run: Path) -> None:
    rescored(run, "toxicity=lexicon")
    files = {path.name: path.read_bytes() for path in run.iterdir() if path.name != ".lock"}
    for named, said in (
        ("sentiment=vader:large", "has one lexicon, no model 'large'"),
        ("vader", "--scorer vader: give default, reference"),
    ):
        assert_one_line_error(evaluators("rescore", run, "--scorer", named), said)
        assert {name: (run / name).read_bytes() for name in files} == files
    damaged = "was changed after the result was written: score the texts again"
    (run / SCORES).write_bytes(files[SCORES][:-20])
    assert_one_line_error(evaluators("rescore", run), damaged)
    assert (run / "result.json").read_bytes() == files["result.json"]
    assert any(SCORES in problem for problem in problems(run))
    rescored(run, "toxicity=lexicon")
    assert list(problems(run)) == []
    # With another kind in the file, scoring one kind anew would lose the other: refused.
    rescored(run, "sentiment=vader")
    (run / SCORES).write_bytes((run / SCORES).read_bytes()[:-20])
    assert_one_line_error(evaluators("rescore", run, "--scorer", "toxicity=lexicon"), damaged)
    rescored(run, "sentiment=vader", "toxicity=lexicon")
    assert list(problems(run)) == []


def test_a_scorer_that_nothing_reads_is_refused(tmp_path: Path) -> None:
    run = write_gifi_model(tmp_path / "runs", "lab/model", 0.5, tasks=("recognition",), scorer=None)["recognition"]
    done = evaluators("rescore", run, "--scorer", "toxicity=lexicon")
    assert_one_line_error(done, "--scorer: task recognition reads no scores of texts; leave it out")


@pytest.mark.slow
def test_several_runs_are_rescored_at_once(tmp_path: Path) -> None:
    write_gifi_model(tmp_path / "runs", "lab/model", 0.5)
    said = rescored(tmp_path / "runs")
    assert said.count("0 of ") >= 4
    assert said.count("metrics changed") == 4
