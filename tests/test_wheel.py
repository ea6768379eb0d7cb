"""What a wheel holds: every file of the packages, with its types."""

from __future__ import annotations

import shutil
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.commands import REPOSITORY, run

NEEDED_TO_BUILD = ("pyproject.toml", "README.md", "LICENSE")


@pytest.mark.slow
def test_a_built_wheel_holds_every_file_of_the_packages(tmp_path: Path) -> None:
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    packages = sorted({name.partition(".")[0] for name in settings["tool"]["setuptools"]["packages"]})
    # Building writes beside the sources, so it works on a copy.
    copy = tmp_path / "copy"
    for package in packages:
        shutil.copytree(REPOSITORY / package, copy / package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in NEEDED_TO_BUILD:
        shutil.copy(REPOSITORY / name, copy)
    files = {
        str(path.relative_to(copy)) for package in packages for path in (copy / package).rglob("*") if path.is_file()
    }
    run("-c", "from setuptools.build_meta import build_wheel; build_wheel('dist')", cwd=copy, status=0, fresh=True)
    (wheel,) = (copy / "dist").glob("*.whl")
    held = set(zipfile.ZipFile(wheel).namelist())
    assert {f"{package}/py.typed" for package in packages} <= held
    # Results and requests are data of the board, not of the program.
    data = ("leaderboard/results/", "leaderboard/queue/", "leaderboard/keys/")
    assert sorted(name for name in files - held if not name.startswith(data)) == []
