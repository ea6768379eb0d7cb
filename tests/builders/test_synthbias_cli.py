"""``python -m builders.synthbias`` as a user runs it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from schemas.folders.dataset_folder import read_manifest
from tests import commands
from tests.terminal import without_progress


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return commands.run("-m", "builders.synthbias", *arguments, cwd=folder)


@pytest.mark.slow
def test_the_plain_command_builds_the_embedded_dataset(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert done.returncode == 0, done.stderr
    assert without_progress(done.stderr) == ""
    manifest = read_manifest(tmp_path / "out/datasets/synthbias")
    assert (manifest.name, manifest.benchmark, manifest.seed) == ("synthbias", "synthbias", 0)
    assert sum(entry.n_items for entry in manifest.splits) == 12_640
    assert "type2/test: 6320 rows, 3160 pairs, 0 orphans" in done.stdout
    assert "5 gap_too_small" in done.stdout
    assert "next: biasboard run --dataset out/datasets/synthbias " in done.stdout

    again = run(tmp_path)
    assert again.returncode == 1
    assert again.stdout == ""
    assert without_progress(again.stderr).count("\n") == 1
    assert "--overwrite" in again.stderr
    assert run(tmp_path, "--overwrite", "--limit", "8", "--seed", "2").returncode == 0
    shorter = read_manifest(tmp_path / "out/datasets/synthbias")
    assert (sum(entry.n_items for entry in shorter.splits), shorter.seed) == (8, 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--source", "synthbias"], "error: --source synthbias needs --input: the file synthbias_data.csv"),
        (["--source", "synthbias", "--input", "none.csv"], "error: --input none.csv: no such file"),
        (["--source", "synthbias", "--input", "empty.csv"], "error: empty.csv: is empty"),
        (["--source", "synthbias", "--input", "other.csv"], "error: other.csv:1: column type, sample"),
        (["--input", "other.csv"], "error: --input other.csv: the embedded source reads no file"),
        (
            ["--source", "winobias", "--input", ".", "--seed", "1"],
            "error: --seed 1: only the embedded and families sources have a seed",
        ),
        (["--limit", "2"], "error: --limit 2: one pair from each of"),
        (["--out", "other.csv/below"], "error: other.csv"),
        (["--out", ".", "--overwrite"], "error: --out .: holds files but no dataset.json"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing_behind(tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "empty.csv").write_bytes(b"")
    (tmp_path / "other.csv").write_bytes(b"a,b\r\n1,2\r\n")
    done = run(tmp_path, *arguments)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith(message), done.stderr
    assert without_progress(done.stderr).count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty.csv", "other.csv"]


@pytest.mark.slow
def test_published_sources_build_from_their_files(shared_data: Path, tmp_path: Path) -> None:
    for source, path, name in (
        ("synthbias", shared_data / "synthbias" / "synthbias_data.csv", "synthbias-published"),
        ("winobias", shared_data / "winobias", "winobias"),
    ):
        done = run(tmp_path, "--source", source, "--input", str(path), "--limit", "40")
        assert done.returncode == 0, done.stderr
        manifest = read_manifest(tmp_path / "out/datasets" / name)
        assert (manifest.name, manifest.benchmark, manifest.seed) == (name, "synthbias", None)
        assert sum(entry.n_items for entry in manifest.splits) == 40
        for file in (tmp_path / "out/datasets" / name).glob("*.*"):
            assert str(shared_data).encode() not in file.read_bytes()
