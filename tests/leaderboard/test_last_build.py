"""A build is spared only if nothing that it reads has changed, and its site neither."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from biasboard.ground import memory as memories
from biasboard.ground.memory import Memory
from leaderboard.pages.publishing import LastBuild
from schemas.outputs.documents import BenchmarkCounts, BuiltBoard, OwnResults, SetAside

BUILT = BuiltBoard(
    site="site/_build",
    is_new=False,
    n_results=1,
    benchmarks=(BenchmarkCounts(benchmark="made", n_models=1, n_ranked=1, n_baselines=0, n_tables=1),),
    left_out=(SetAside(place="a/b/c", reason="is no result"),),
    apart=(),
    repeated=(),
    own=(OwnResults(dataset="made", version="1.0.0", page="site/_build/benchmarks/made.html#made"),),
    next="biasboard serve",
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("runs/acme/result.json", "runs/acme/responses.sqlite", "site/docs/index.md", "site/_build/index.html"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("old")
    return tmp_path


def last_build(
    root: Path, *, out: str = "site/_build", is_fresh: bool = False, skip_invalid: bool = False
) -> LastBuild:
    folders = {name: root / name for name in ("runs", "site", "datasets")}
    return LastBuild(Memory(root / "memory", is_fresh=is_fresh), root / out, folders, {"skip_invalid": skip_invalid})


def change_unseen(path: Path) -> None:
    """Change a file, but neither its size nor its time."""
    status = path.stat()
    path.write_text("new")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def add(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("old")


CHANGES: dict[str, Callable[[Path], object]] = {
    "a result": lambda root: change_unseen(root / "runs/acme/result.json"),
    "a result is renamed": lambda root: (root / "runs/acme").rename(root / "runs/emca"),
    "a result is added": lambda root: add(root / "runs/other/result.json"),
    "a result is removed": lambda root: shutil.rmtree(root / "runs/acme"),
    "a dataset is built": lambda root: add(root / "datasets/made/dataset.json"),
    "a page": lambda root: change_unseen(root / "site/docs/index.md"),
    "a link to a file": lambda root: (root / "runs/link.json").symlink_to(root / "runs/acme/result.json"),
    "a pipe": lambda root: os.mkfifo(root / "runs/acme/records.parquet"),
    "the finished site": lambda root: (root / "site/_build/index.html").write_text("somebody else's"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_whatever_changes_is_built_anew(root: Path, change: Callable[[Path], object]) -> None:
    last_build(root).remember(BUILT)
    # No board reads it.
    (root / "runs/acme/responses.sqlite").write_text("more answers")
    assert last_build(root).board == BUILT
    change(root)
    assert last_build(root).board is None


def test_other_options_and_code_and_later_changes_are_built_anew(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = last_build(root)
    change_unseen(root / "runs/acme/result.json")
    started.remember(BUILT)
    (root / "runs/acme/result.json").write_text("old")
    assert last_build(root).board is None
    shutil.copytree(root / "site/_build", root / "elsewhere", copy_function=shutil.copy2)
    last_build(root).remember(BUILT)
    assert last_build(root, is_fresh=True).board is None
    assert last_build(root, skip_invalid=True).board is None
    assert last_build(root, out="elsewhere").board is None
    assert last_build(root).board == BUILT
    monkeypatch.setattr(memories, "code_sha256", lambda: "other code")
    assert last_build(root).board is None
