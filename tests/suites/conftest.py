"""A dataset with a suite of six parts, and runs on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.leaderboard.browsing import address, browser, opened
from tests.suites.commands import ask, board, copied, made, run

__all__ = ("address", "browser", "opened")


@pytest.fixture(scope="package")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("labels") / "labels")


@pytest.fixture(scope="package")
def runs(dataset: Path) -> Path:
    """Runs of three models and both baselines on the suite, and of one model on one of its configs."""
    out = dataset.parent / "runs"
    for model in ("lab/first-0.8", "lab/second-0.8", "lab/worst-0.1"):
        ask(dataset, out, model=model)
    ask(dataset, out, "--config", "wood001")
    run("-m", "evaluators", "run", "--dataset", dataset, "--out", out, "--backend", "baseline", "--model", "all")
    return out


@pytest.fixture(scope="package")
def built(dataset: Path, runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A board with the runs of the suite under three prompts, of which one lost the answers to a part."""
    root = tmp_path_factory.mktemp("parts")
    all_runs = copied(runs, root / "runs")
    lost = ("--prompt", "shown-v1", "--max-failure-rate", "0.9")
    ask(dataset, all_runs, *lost, model="lab/lost-0.8", PLANTED_FAILS="wood003")
    ask(dataset, all_runs, "--prompt", "shown-v1", "--prompt", "shown-other-v1", model="lab/first-0.8")
    board(all_runs, dataset=dataset, out=root)
    return root / "built"
