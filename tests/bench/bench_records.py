"""What rescoring and importing cost, on a machine that remembers nothing and on one that has done it before.

``make bench ARGS='-k bench_records'``.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.bench.checkouts import compare, taken
from tests.commands import REPOSITORY

MEMORIES = pytest.mark.parametrize("remembers", [False, True], ids=["fresh", "remembered"])


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, shared_data: Path) -> Path:
    """Runs on the embedded pairs of synthbias, and published answers of gifi, made by this checkout."""
    root = tmp_path_factory.mktemp("records")
    taken(REPOSITORY, "-m", "builders.synthbias", "--out", root / "synthbias")
    asked = ("--dataset", root / "synthbias", "--backend", "baseline", "--model", "stereotype-0.7")
    taken(REPOSITORY, "-m", "evaluators", "run", *asked, "--out", root / "runs")
    made_from = ("--source", "gifi", "--input", shared_data / "gifi" / "template", "--compat", "gifi-repo")
    taken(REPOSITORY, "-m", "builders.gifi", *made_from, "--out", root / "published")
    taken(REPOSITORY, *imported(root, shared_data), "--out", root / "runs")
    return root


def imported(root: Path, shared_data: Path) -> tuple[object, ...]:
    answers = ("--input", shared_data / "gifi" / "model-generation", "--model", "gpt-4o")
    return ("-m", "evaluators", "import", "gifi", *answers, "--dataset", root / "published")


@MEMORIES
@pytest.mark.parametrize("name", ["stereotype", "gpt-4o"])
def bench_rescore(root: Path, tmp_path: Path, name: str, remembers: bool) -> None:
    """The command ``rescore`` on all runs of a model."""
    model = next(path.parents[1] for path in sorted((root / "runs").rglob("result.json")) if name in str(path.parent))
    memory = tmp_path / "memory" if remembers else "off"

    def once(checkout: Path) -> float:
        copy = tmp_path / "runs" / model.parent.name / model.name
        shutil.rmtree(tmp_path / "runs", ignore_errors=True)
        shutil.copytree(model, copy)
        return taken(checkout, "-m", "evaluators", "rescore", copy, BIASBOARD_MEMORY=memory).cpu

    if remembers:
        once(REPOSITORY)
    compare(f"rescore {name}{', remembered' * remembers}", once)


@MEMORIES
def bench_import(root: Path, shared_data: Path, tmp_path: Path, remembers: bool) -> None:
    """The command ``import gifi``."""
    memory = tmp_path / "memory" if remembers else "off"

    def once(checkout: Path) -> float:
        shutil.rmtree(tmp_path / "runs", ignore_errors=True)
        words = (*imported(root, shared_data), "--out", tmp_path / "runs")
        return taken(checkout, *words, BIASBOARD_MEMORY=memory).cpu

    if remembers:
        once(REPOSITORY)
    compare(f"import gifi{', remembered' * remembers}", once)
