"""The version of a dataset: given on the command line of each builder, and named by every file of the folder."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from biasboard.ground import strict_json
from builders.publishable import read_dataset
from builders.synthbias.embedded import DATASET_VERSION
from tests import commands

REPOSITORY = Path(__file__).parents[2]
BUILDERS = {
    "gifi": ("--limit", "400"),
    "superni": ("--tasks", "course_topics", "--limit", "20"),
    "synthbias": ("--limit", "40"),
}


def build(builder: str, *words: str, out: Path) -> subprocess.CompletedProcess[str]:
    return commands.run("-m", f"builders.{builder}", *BUILDERS[builder], "--out", out, *words)


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
@pytest.mark.parametrize("builder", BUILDERS)
def test_each_builder_takes_a_version_that_every_file_names(builder: str, tmp_path: Path) -> None:
    done = build(builder, "--dataset-version", "2.10.0", out=tmp_path / "d")
    assert done.returncode == 0, done.stderr
    assert f"{builder} 2.10.0 from source embedded:" in done.stdout
    files = files_of(tmp_path / "d")
    told: Any = strict_json.read(tmp_path / "d" / "dataset.json")
    assert (told["version"], told["parameters"]["dataset_version"]) == ("2.10.0", "2.10.0")
    assert json.loads(files["croissant.json"])["version"] == "2.10.0"
    assert "version 2.10.0" in yaml.safe_load(files["eval.yaml"])["description"]
    assert f"Dataset `{builder}`, version 2.10.0," in files["README.md"].decode()
    assert read_dataset(tmp_path / "d").tag == "v2.10.0"


@pytest.mark.slow
def test_the_builders_own_version_is_the_default_and_changes_nothing(tmp_path: Path) -> None:
    build("synthbias", out=tmp_path / "one")
    build("synthbias", "--dataset-version", DATASET_VERSION, out=tmp_path / "two")
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")
    build("synthbias", "--dataset-version", "1.0.1", out=tmp_path / "three")
    items = {name for name in files_of(tmp_path / "one") if name.endswith(".parquet")}
    assert len(items) == 3
    for name in items:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "three" / name).read_bytes()


@pytest.mark.parametrize("version", ["1.0", "v1.0.0", "1.0.0-rc1", "01.0.0", "1.0.0 ", ""])
def test_what_is_no_version_is_a_wrong_option(version: str, tmp_path: Path) -> None:
    done = build("synthbias", "--dataset-version", version, out=tmp_path / "d")
    assert done.returncode == 2
    assert f"'{version}' is not MAJOR.MINOR.PATCH, such as 1.2.0" in done.stderr
    assert not (tmp_path / "d").exists()
