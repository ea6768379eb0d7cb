"""``python -m builders.gifi`` as a user runs it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from schemas.folders.dataset_folder import read_manifest
from schemas.validate import problems
from tests import commands
from tests.terminal import without_progress


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return commands.run("-m", "builders.gifi", *arguments, cwd=folder)


@pytest.mark.slow
def test_the_plain_command_builds_four_configs(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert (done.returncode, without_progress(done.stderr)) == (0, "")
    assert "math/test: 484 rows, 44 templates" in done.stdout
    folder = tmp_path / "out/datasets/gifi"
    manifest = read_manifest(folder)
    shapes = {"recognition": "recognition", "continuation": "continuation", "assignment": "assignment"}
    assert {entry.config: entry.item_shape for entry in manifest.splits} == shapes | {"math": "word_problem"}
    assert list(problems(folder)) == []
    assert run(tmp_path, "--overwrite", "--limit", "200").returncode == 0
    shorter = {entry.config: entry.n_items for entry in read_manifest(folder).splits}
    assert shorter == {"recognition": 66, "continuation": 66, "assignment": 6, "math": 55}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--compat", "gifi-repo"], "error: --compat gifi-repo: only --source gifi has published strings"),
        (["--revision", "abc"], "error: --revision abc: --source embedded is not read from the Hub"),
        (["--limit", "20"], "error: --limit 20: one template from each of recognition/test"),
    ],
)
def test_bad_arguments_are_one_line_and_leave_nothing(tmp_path: Path, arguments: list[str], message: str) -> None:
    done = run(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(message)
    assert without_progress(done.stderr).count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_published_templates_are_built_both_ways(shared_data: Path, tmp_path: Path) -> None:
    source = str(shared_data / "gifi" / "template")
    assert run(tmp_path, "--source", "gifi", "--input", source).returncode == 0
    done = run(tmp_path, "--source", "gifi", "--input", source, "--compat", "gifi-repo")
    assert "552 wrong_case" in done.stdout
    repaired, compat = (tmp_path / "out/datasets" / name for name in ("gifi-published", "gifi-published-compat"))
    assert list(problems(repaired)) == list(problems(compat)) == []
    assert sum(entry.n_items for entry in read_manifest(compat).splits) == 5700
    assert [(entry.rule, entry.n) for entry in read_manifest(repaired).rejects] == [("unclear_pronoun", 4)]
    card = (repaired / "README.md").read_text(encoding="utf-8")
    assert yaml.safe_load(card.split("---\n")[1])["license"] == ["cc-by-sa-4.0", "apache-2.0", "mit"]
