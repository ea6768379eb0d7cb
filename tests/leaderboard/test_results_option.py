"""Where results are read from: the working folder or what biasboard brings, or what ``--results`` names."""

from __future__ import annotations

from pathlib import Path

import pytest

from biasboard.ground.errors import ConfigError
from leaderboard.verify.board_files import accepted_results, keys_folder, results_folder, site_folder
from tests.commands import REPOSITORY, run
from tests.fake_hub import serving, variables

PROGRAM = """
import sys
from leaderboard.verify.board_files import accepted_results
with accepted_results(sys.argv[1]) as folder:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            print(path.relative_to(folder), path.is_symlink())
"""


BROUGHT = {name: REPOSITORY / name for name in ("leaderboard/keys", "leaderboard/results", "site")}


@pytest.mark.parametrize(
    ("has", "own"),
    [
        # A board that was built here is no settings of one, nor are plug-ins results.
        (("site/_build/x", "leaderboard/benchmarks/x"), ()),
        # Keys and results belong together.
        (("leaderboard/keys/x",), ("leaderboard/keys", "leaderboard/results")),
        (("site/mkdocs.yml",), ("site",)),
    ],
)
def test_a_working_folder_with_a_board_of_its_own_is_read_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has: tuple[str, ...], own: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in has:
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    expected = [Path(name) if name in own else path for name, path in BROUGHT.items()]
    assert [keys_folder(), results_folder(), site_folder()] == expected


def test_a_folder_is_read_where_it_is_and_an_address_has_a_form(tmp_path: Path) -> None:
    with accepted_results(str(tmp_path)) as folder:
        assert folder == tmp_path
    for given in ("hf://org/name", "https://huggingface.co/datasets/org/name"):
        with pytest.raises(ConfigError, match="write hf://datasets/ORG/NAME"), accepted_results(given):
            pass


@pytest.mark.slow
def test_a_dataset_of_the_hub_is_downloaded_as_plain_files(tmp_path: Path) -> None:
    with serving() as hub:
        files = {"a/result.json": b"{}", "notes.txt": b"x", "register.json": b"{}"}
        repository = hub.new("lab/results", files)
        repository.tags["v1"] = repository.head
        repository.add("more", {**files, "c/result.json/result.json": b"{}"})
        newest, tagged = (
            run("-c", PROGRAM, f"hf://datasets/lab/results{revision}", status=0, **variables(hub, tmp_path)).stdout
            for revision in ("", "@v1")
        )
    assert tagged.splitlines() == ["a/result.json False", "register.json False"]
    assert newest.splitlines() == ["a/result.json False", "c/result.json/result.json False", "register.json False"]
