"""A working folder with a board of its own is read there, and any other folder gets what biasboard brings."""

from __future__ import annotations

from pathlib import Path

import pytest

from leaderboard.verify.board_files import keys_folder, results_folder, site_folder
from tests.commands import REPOSITORY


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_an_empty_folder_gets_what_biasboard_brings(folder: Path) -> None:
    # A board that was built here is no settings of one, nor are plug-ins results.
    (folder / "site" / "_build").mkdir(parents=True)
    (folder / "leaderboard" / "benchmarks").mkdir(parents=True)
    brought = (keys_folder(), results_folder(), site_folder())
    assert brought == (REPOSITORY / "leaderboard/keys", REPOSITORY / "leaderboard/results", REPOSITORY / "site")


@pytest.mark.parametrize("has", ["keys", "results"])
def test_keys_and_results_belong_together(folder: Path, has: str) -> None:
    (folder / "leaderboard" / has).mkdir(parents=True)
    assert (keys_folder(), results_folder()) == (Path("leaderboard/keys"), Path("leaderboard/results"))
    assert site_folder() == REPOSITORY / "site"


def test_settings_of_ones_own_are_taken(folder: Path) -> None:
    (folder / "site").mkdir()
    (folder / "site" / "mkdocs.yml").touch()
    assert site_folder() == Path("site")
    assert results_folder() == REPOSITORY / "leaderboard/results"
