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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--source", "csv"], "error: --source csv needs --input: a CSV file"),
        (["--out", "other.csv/below"], "error: other.csv"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing_behind(tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "other.csv").touch()
    done = run(tmp_path, *arguments)
    said = without_progress(done.stderr)
    assert (done.returncode, done.stdout, said.count("\n")) == (1, "", 1)
    assert said.startswith(message)
    assert [path.name for path in tmp_path.iterdir()] == ["other.csv"]


@pytest.mark.slow
def test_help_imports_neither_evaluators_nor_what_only_one_command_needs() -> None:
    program = (
        "import sys\n"
        "from builders.synthbias.__main__ import app\n"
        "try: app(['annotate', '--help'])\n"
        "except SystemExit: pass\n"
        "of = 'builders.synthbias.annotation.'\n"
        "heavy = {'evaluators', 'datasketch', of + 'vote_page', of + 'agreement'} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)\n"
    )
    said = commands.run("-c", program, status=0, fresh=True).stdout
    assert all(name in said for name in ("plan", "export", "ingest", "exclude", "decide", "report", "serve"))


@pytest.mark.slow
def test_a_published_source_builds_from_its_files(shared_data: Path, tmp_path: Path) -> None:
    done = run(tmp_path, "--source", "winobias", "--input", str(shared_data / "winobias"), "--limit", "40")
    assert done.returncode == 0, done.stderr
    manifest = read_manifest(tmp_path / "out/datasets/winobias")
    assert (manifest.name, manifest.benchmark, manifest.seed) == ("winobias", "synthbias", None)
    assert sum(entry.n_items for entry in manifest.splits) == 40
    for file in (tmp_path / "out/datasets/winobias").glob("*.*"):
        assert str(shared_data).encode() not in file.read_bytes()
