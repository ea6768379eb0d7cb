"""A dataset with a suite of six parts, and runs on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.suites.commands import ask, made, run


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
