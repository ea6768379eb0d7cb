"""``--scorer`` of run and rescore, and the index, from the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from schemas.folders.run_folder import SCORES
from schemas.validate import problems
from tests import commands
from tests.evaluators.invoking import evaluators
from tests.leaderboard.gifi_results import write_gifi_model


def refused(message: str, *words: object) -> None:
    done = evaluators("rescore", *words)
    assert done.exit_code == 1, done.stdout
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
    # In a process of its own, which finds the plug-in.
    words = (word for one in scorers for word in ("--scorer", one))
    return commands.run("-m", "evaluators", "rescore", run, *words, status=0).stdout


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
    assert "0 of " in rescored(run)
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
    rescored(run, "sentiment=vader", "toxicity=lexicon")
    files = {path.name: path.read_bytes() for path in run.iterdir() if path.name != ".lock"}
    refused("has one lexicon, no model 'large'", run, "--scorer", "sentiment=vader:large")
    damaged = "was changed after the result was written: score the texts again"
    (run / SCORES).write_bytes(files[SCORES][:-20])
    refused(damaged, run)
    # With another kind in the file, scoring one kind anew would lose the other.
    refused(damaged, run, "--scorer", "toxicity=lexicon")
    assert {name: (run / name).read_bytes() for name in files if name != SCORES} == {
        name: content for name, content in files.items() if name != SCORES
    }
    assert any(SCORES in problem for problem in problems(run))
    rescored(run, "sentiment=vader", "toxicity=lexicon")
    assert list(problems(run)) == []


@pytest.mark.slow
def test_several_runs_are_rescored_at_once(tmp_path: Path) -> None:
    write_gifi_model(tmp_path / "runs", "lab/model", 0.5, n_templates=3)
    assert rescored(tmp_path / "runs").count("metrics changed") == 4
