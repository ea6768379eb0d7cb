"""``--scorer`` of run and rescore, and the index, from the command line."""

from __future__ import annotations

import csv
import json
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from biasboard.ground.plain_text import protected
from schemas.folders.run_folder import SCORES, read_run
from schemas.validate import problems
from tests import commands
from tests.leaderboard.gifi_results import write_gifi_model
from tests.schemas import examples

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


def write_csv(path: Path, run: Path, score: float) -> None:
    texts = {exchange.text for record in read_run(run).records for exchange in record.exchanges}
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "score"])
        writer.writerows([text, score] for text in sorted(filter(None, texts)))


@pytest.mark.slow
def test_scores_are_added_kept_replaced_and_dropped(run: Path, tmp_path: Path) -> None:
    assert metrics_of(run)["sn"]["reason"] == "no sentiment scores: biasboard rescore RUN --scorer sentiment=vader"
    done = evaluators("rescore", run, "--scorer", "sentiment=vader", "--scorer", "toxicity=lexicon")
    assert done.returncode == 0, done.stderr
    assert "sn: none (version 1.0+careful-1) to " in done.stdout
    scored = metrics_of(run)
    assert scored["sn"]["version"] == "1.0+careful-1.vader-sentences-3.3.2"
    assert scored["nts"]["version"] == "1.0+careful-1.lexicon-1"
    assert scored["cf"]["value"] is None
    assert list(problems(run)) == []
    # Stored scores are enough.
    before = (run / SCORES).read_bytes()
    done = evaluators("rescore", run)
    assert done.stdout.splitlines()[-1].startswith("result ")
    assert "0 of " in done.stdout
    assert (metrics_of(run), (run / SCORES).read_bytes()) == (scored, before)
    # Another scorer of one kind replaces that kind alone.
    write_csv(tmp_path / "scores.csv", run, 0.25)
    done = evaluators("rescore", run, "--scorer", f"toxicity=stored:{tmp_path / 'scores.csv'}@perspective-2026-11")
    assert done.returncode == 0, done.stderr
    changed = metrics_of(run)
    assert changed["sn"] == scored["sn"]
    assert changed["nts"]["version"] == "1.0+careful-1.stored-perspective-2026-11"
    assert (changed["nts"]["value"], changed["toxicity_mean"]["value"]) == (1, 0.25)
    result = json.loads((run / "result.json").read_text(encoding="utf-8"))
    assert [scorer["name"] for scorer in result["scores"]["scorers"]] == ["vader-sentences", "stored-perspective"]
    assert str(tmp_path) not in json.dumps(result)
    assert result["command"].endswith("--scorer toxicity=stored:scores.csv@perspective-2026-11")
    # Corrected scores under the same name are read, not taken from before.
    write_csv(tmp_path / "scores.csv", run, 0.5)
    named = f"toxicity=stored:{tmp_path / 'scores.csv'}@perspective-2026-11"
    assert evaluators("rescore", run, "--scorer", named).returncode == 0
    assert metrics_of(run)["toxicity_mean"]["value"] == 0.5
    done = evaluators("rescore", run, "--scorer", "none")
    assert done.returncode == 0, done.stderr
    assert not (run / SCORES).exists()
    assert metrics_of(run)["sn"]["value"] is None


@pytest.mark.slow
def test_changed_scores_are_refused_and_scoring_anew_mends_them(run: Path) -> None:
    assert evaluators("rescore", run, "--scorer", "toxicity=lexicon").returncode == 0
    (run / SCORES).write_bytes((run / SCORES).read_bytes()[:-20])
    result = (run / "result.json").read_bytes()
    assert_one_line_error(evaluators("rescore", run), "was changed after the result was written: score the texts again")
    assert (run / "result.json").read_bytes() == result
    assert any(SCORES in problem for problem in problems(run))
    done = evaluators("rescore", run, "--scorer", "toxicity=lexicon")
    assert done.returncode == 0, done.stderr
    assert list(problems(run)) == []
    # With another kind in the file, scoring one kind anew would lose the other: refused.
    assert evaluators("rescore", run, "--scorer", "sentiment=vader").returncode == 0
    (run / SCORES).write_bytes((run / SCORES).read_bytes()[:-20])
    done = evaluators("rescore", run, "--scorer", "toxicity=lexicon")
    assert_one_line_error(done, "was changed after the result was written: score the texts again")
    both = ("--scorer", "sentiment=vader", "--scorer", "toxicity=lexicon")
    assert evaluators("rescore", run, *both).returncode == 0
    assert list(problems(run)) == []


@pytest.mark.slow
def test_the_texts_that_need_scores_are_written(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "texts.csv"
    done = evaluators("texts", run, "--out", out)
    assert done.returncode == 0, done.stderr
    with out.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    texts = {exchange.text for record in read_run(run).records for exchange in record.exchanges}
    assert {protected(text) for text in texts if text is not None} <= {row["text"] for row in rows}
    assert_one_line_error(evaluators("texts", run, "--out", out), "exists already; name another file")


@pytest.mark.slow
def test_a_scorer_that_fails_leaves_the_result_as_it_was(run: Path, tmp_path: Path) -> None:
    assert evaluators("rescore", run, "--scorer", "toxicity=lexicon").returncode == 0
    files = {path.name: path.read_bytes() for path in run.iterdir()}
    (tmp_path / "scores.csv").write_text("text,score\nx,2\n", encoding="utf-8")
    named = f"toxicity=stored:{tmp_path / 'scores.csv'}@perspective-1"
    assert_one_line_error(evaluators("rescore", run, "--scorer", named), "score '2' is no number in [0, 1]")
    assert_one_line_error(evaluators("rescore", run, "--scorer", "vader"), "--scorer vader: give default, reference")
    assert {path.name: path.read_bytes() for path in run.iterdir() if path.name != ".lock"} == {
        name: content for name, content in files.items() if name != ".lock"
    }


def test_a_task_that_reads_no_scores_refuses_a_scorer(tmp_path: Path) -> None:
    examples.write_dataset(tmp_path / "dataset")
    asked = ("run", "--dataset", tmp_path / "dataset", "--backend", "baseline", "--model", "uniform")
    done = evaluators(*asked, "--out", tmp_path / "runs", "--scorer", "default")
    assert_one_line_error(done, "--scorer: task coreference reads no scores of texts; leave it out")
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_several_runs_are_rescored_at_once(tmp_path: Path) -> None:
    write_gifi_model(tmp_path / "runs", "lab/model", 0.5)
    done = evaluators("rescore", tmp_path / "runs")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("0 of ") >= 4
    assert done.stdout.count("metrics changed") == 4
    done = evaluators("index", tmp_path / "runs", "--format", "json")
    (entry,) = json.loads(done.stdout)["models"]
    assert [index["name"] for index in entry["indices"]] == ["index", "index_paper", "index_gifi_repo"]
    assert all(index["interval"]["low"] < index["value"] < index["interval"]["high"] for index in entry["indices"])
    (tmp_path / "runs/lab__model/assignment/result.json").unlink()
    done = evaluators("index", tmp_path / "runs")
    assert (done.returncode, done.stdout) == (1, "")
    assert "nothing to average: lab/model on gifi" in done.stderr
    assert ": no result of assignment; run the model again with --prompt " in done.stderr
    write_gifi_model(tmp_path / "runs", "lab/whole", 0.5)
    done = evaluators("index", tmp_path / "runs")
    assert done.returncode == 0, done.stderr
    assert ": no index, no result of assignment; run the model again with --prompt " in done.stdout
