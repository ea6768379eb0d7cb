"""The preference of models for the occupation mentioned first."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pyarrow.parquet
import pytest

from builders.synthbias import embedded
from builders.synthbias.position_lean import lean_table, measured_leans
from schemas.files.row_files import content_sha256
from tests import commands


def python(folder: Path, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return commands.run("-m", module, *arguments, cwd=folder)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lean")
    assert python(folder, "builders.synthbias", "--limit", "400", "--out", "dataset").returncode == 0
    baselines = ("--backend", "baseline", "--model", "all")
    run = python(folder, "evaluators", "run", "--dataset", "dataset", "--out", "runs", *baselines)
    assert run.returncode == 0, run.stderr
    return folder / "runs"


@pytest.mark.slow
def test_the_command_measures_each_model(runs: Path) -> None:
    done = python(runs.parent, "builders.synthbias", "lean", "runs", "--out", "lean.json")
    assert done.returncode == 0, done.stderr
    assert "baseline/first-mentioned: first in 1.0000 of 200 items" in done.stdout
    found = {row["model"]: row for row in json.loads((runs.parent / "lean.json").read_text())["leans"]}
    assert found["baseline/uniform"]["first_rate"] == 0.5
    assert found["baseline/last-mentioned"]["first_rate"] == found["baseline/last-mentioned"]["first_probability"] == 0
    # Recounted from the records: the stereotype of each item, not its position, decides.
    (records,) = runs.glob("synthbias@*/baseline__stereotype-0.7/type1-*/records.parquet")
    firsts = [
        dict(zip(row["reading"]["outcomes"], row["reading"]["probabilities"], strict=True))[row["reference"]]
        for row in pyarrow.parquet.read_table(records).to_pylist()
    ]
    assert len(firsts) == 200
    told = found["baseline/stereotype-0.7"]
    assert told["first_probability"] == pytest.approx(sum(firsts) / len(firsts))
    assert told["first_rate"] == pytest.approx(sum(p > 0.5 for p in firsts) / len(firsts))
    assert {round(p, 6) for p in firsts} == {0.3, 0.7}


@pytest.mark.slow
def test_a_folder_without_such_runs_is_refused(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    done = python(tmp_path, "builders.synthbias", "lean", "none", "--out", "lean.json")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    (type2,) = runs.glob("synthbias@*/baseline__first-mentioned/type2-*")
    done = python(tmp_path, "builders.synthbias", "lean", str(type2), "--out", "lean.json")
    assert done.returncode == 1
    assert "no run on type1 of synthbias; run a model on it first" in done.stderr
    assert not (tmp_path / "lean.json").exists()


@pytest.mark.slow
def test_what_the_card_shows_was_measured_on_this_version() -> None:
    draft = embedded.draft()
    (type1,) = [split for split in draft.splits if split.config == "type1"]
    leans = measured_leans()
    assert {lean.items_sha256 for lean in leans} == {content_sha256(type1.items)}
    assert {(lean.dataset_version, lean.n_scored) for lean in leans} == {(draft.version, len(type1.items))}
    by_model = {lean.model: lean for lean in leans}
    assert by_model["baseline/uniform"].first_rate == 0.5
    assert any(not model.startswith("baseline/") for model in by_model)
    for lean in leans:
        assert f"| {lean.model} | {lean.n_scored} | {lean.first_rate:.3f} |" in lean_table().markdown()
        assert f"| {lean.first_probability:.3f} |" in draft.card.known_limits
