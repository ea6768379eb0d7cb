"""The corrections that a run stores: handed on, verified, refused when changed, and fitted again."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from biasboard.ground.memory import Memory
from evaluators.runs.measure.rescoring import rescore
from leaderboard.verify.keys import KeyBook
from leaderboard.verify.verdicts import judge
from tests.evaluators.label_data import made_dataset
from tests.leaderboard.handed_in import hand_in
from tests.suites.commands import ask

PROMPT = "release-4096b-k8-set0-v1"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a dataset of two tasks and the run of a planted model on both."""
    folder = tmp_path_factory.mktemp("corrected")
    dataset = made_dataset(folder / "datasets" / "tasks", ("two", "letters"))
    ask(dataset, folder / "runs", "--limit", "0", "--prompt", PROMPT)
    return folder


@pytest.fixture
def folder(root: Path, tmp_path: Path) -> Path:
    """A copy of the run."""
    (found,) = (path.parent for path in (root / "runs").rglob("result.json"))
    return Path(shutil.copytree(found, tmp_path / "runs" / found.name))


def reason(folder: Path, root: Path) -> str:
    """Why a result is refused; empty if it is not."""
    (found,) = judge([folder], KeyBook(None, root / "datasets"), Memory(None), advance=lambda n_done, n: None)
    return found.reason or ""


def change(folder: Path, how: Callable[[Any], None], *, rehash: bool) -> None:
    """Change the stored corrections of a result, and its hash of them."""
    path, result = folder / "corrections.json", folder / "result.json"
    value = json.loads(path.read_text(encoding="utf-8"))
    how(value["corrections"])
    path.write_text(json.dumps(value), encoding="utf-8")
    if rehash:
        told = json.loads(result.read_text(encoding="utf-8"))
        told["corrections"]["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
        result.write_text(json.dumps(told), encoding="utf-8")


def forbid_first_label(corrections: Any) -> None:
    corrections[0]["weights"][0] = 1e-9


def drop_first(corrections: Any) -> None:
    del corrections[0]


@pytest.mark.slow
def test_the_corrections_of_both_tasks_are_stored_handed_on_and_verified(
    root: Path, folder: Path, tmp_path: Path
) -> None:
    stored = json.loads((folder / "corrections.json").read_text(encoding="utf-8"))["corrections"]
    assert [(one["config"], one["calibration"]) for one in stored] == [("two", "gini"), ("letters", "gini")]
    assert all(one["n_items"] > 20 and max(one["weights"]) == 1.0 for one in stored)
    assert reason(folder, root) == ""
    handed = hand_in(folder, tmp_path / "results")
    assert (handed / "corrections.json").read_bytes() == (folder / "corrections.json").read_bytes()
    assert reason(handed, root) == ""


@pytest.mark.slow
def test_a_changed_correction_is_refused(root: Path, folder: Path) -> None:
    change(folder, forbid_first_label, rehash=False)
    assert "corrections.json: sha256 " in reason(folder, root)
    change(folder, lambda corrections: None, rehash=True)
    assert "_gini is " in reason(folder, root)


@pytest.mark.slow
def test_a_missing_correction_is_refused(root: Path, folder: Path) -> None:
    change(folder, drop_first, rehash=True)
    assert "no correction gini 1.0 of config two is stored, though others are" in reason(folder, root)
    (folder / "corrections.json").unlink()
    assert "corrections.json: no such file, though result.json names it" in reason(folder, root)


def test_weights_that_are_no_numbers_above_0_break_the_contract(root: Path, folder: Path) -> None:
    change(folder, lambda corrections: corrections[0]["weights"].__setitem__(0, 0.0), rehash=True)
    assert "corrections[0].weights[0]: " in reason(folder, root)


def test_two_corrections_of_one_config_break_the_contract(root: Path, folder: Path) -> None:
    change(folder, lambda corrections: corrections.append(corrections[1]), rehash=True)
    assert "twice" in reason(folder, root)


@pytest.mark.slow
def test_other_weights_with_their_metrics_are_refused(root: Path, folder: Path) -> None:
    change(folder, forbid_first_label, rehash=True)
    changed = rescore(folder)
    assert any("_gini: " in line for line in changed.changes)
    said = reason(folder, root)
    assert "corrections.json: a weight of gini of config two differs by the factor " in said
    assert said.endswith("; rescore the run")


@pytest.mark.slow
def test_another_normalisation_fits_anew(root: Path, folder: Path) -> None:
    before = (folder / "corrections.json").read_bytes()
    other = rescore(folder, normalisation="byte_mean", root=folder.parent / "others")
    assert (other.folder / "corrections.json").read_bytes() != before
    assert reason(other.folder, root) == ""
    assert rescore(folder).changes == ()
    assert (folder / "corrections.json").read_bytes() == before
