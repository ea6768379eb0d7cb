"""What a wheel holds: every file of the packages, with its types, and everything that a board is built from."""

from __future__ import annotations

import shutil
import subprocess
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.commands import REPOSITORY, run

NEEDED_TO_BUILD = ("pyproject.toml", "README.md", "LICENSE")
MOST_BYTES = 30_000_000
"""Maximum size of a wheel; PyPI takes files of 100 MB."""


@pytest.mark.slow
def test_a_built_wheel_holds_every_file_of_the_packages_and_of_the_board(tmp_path: Path) -> None:
    setuptools = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    packages = {name.partition(".")[0] for name in setuptools["packages"]}
    installed_as = {folder: name.replace(".", "/") for name, folder in setuptools["package-dir"].items()}
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *packages, *installed_as],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    files = [name for name in listed.stdout.split("\0") if (REPOSITORY / name).is_file()]
    # Building writes beside the sources, so it works on a copy.
    for name in (*files, *NEEDED_TO_BUILD):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / name, tmp_path / name)
    run("-c", "from setuptools.build_meta import build_wheel; build_wheel('dist')", cwd=tmp_path, status=0, fresh=True)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    assert wheel.stat().st_size < MOST_BYTES
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert {f"{package}/py.typed" for package in packages} <= held
    folders = [(name.partition("/")[0], name) for name in files]
    assert held == {name.replace(top, installed_as.get(top, top), 1) for top, name in folders}
    for folder in ("leaderboard/keys", "leaderboard/results", installed_as["site"]):
        assert any(name.startswith(f"{folder}/") for name in held)
    # An installed package of this name would hide a module of the standard library.
    assert {name.partition("/")[0] for name in held} == packages
