"""Where results are read from: the working folder or what biasboard brings, or what ``--results`` names."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from biasboard.ground.errors import ConfigError
from leaderboard.commands.results_option import accepted_results
from leaderboard.verify.board_files import keys_folder, results_folder, site_folder
from tests.commands import REPOSITORY, run
from tests.fake_hub import FakeHub, serving

REGISTERED = {
    "place": "made@1.0.0/acme__small/type2",
    "result_sha256": "0" * 64,
    "accepted": "2026-01-02",
    "owner": "acme",
    "decision": "accepted",
    "reason": None,
    "rerun": None,
}
PROGRAM = """
import sys
from biasboard.ground.errors import BiasboardError
from leaderboard.commands.results_option import accepted_results
try:
    with accepted_results(sys.argv[1]) as folder:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                print(path.relative_to(folder), path.read_bytes()[:20], path.is_symlink())
except BiasboardError as error:
    print("error:", error)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


BROUGHT = {name: REPOSITORY / name for name in ("leaderboard/keys", "leaderboard/results", "site")}


@pytest.mark.parametrize(
    ("has", "own"),
    [
        # A board that was built here is no settings of one, nor are plug-ins results.
        (("site/_build/x", "leaderboard/benchmarks/x"), ()),
        # Keys and results belong together.
        (("leaderboard/keys/x",), ("leaderboard/keys", "leaderboard/results")),
        (("leaderboard/results/x",), ("leaderboard/keys", "leaderboard/results")),
        (("site/mkdocs.yml",), ("site",)),
    ],
)
def test_a_working_folder_with_a_board_of_its_own_is_read_there(
    folder: Path, has: tuple[str, ...], own: tuple[str, ...]
) -> None:
    for name in has:
        (folder / name).parent.mkdir(parents=True)
        (folder / name).touch()
    expected = [Path(name) if name in own else path for name, path in BROUGHT.items()]
    assert [keys_folder(), results_folder(), site_folder()] == expected


def register(*decisions: dict[str, Any]) -> bytes:
    return json.dumps({"schema_version": "1.0", "results": decisions}).encode()


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    with serving() as hub:
        yield hub


def listed(hub: FakeHub | None, home: Path, results: str, **more: str) -> list[str]:
    """The files of the one folder, in a process where the Hub may be looked for."""
    variables: dict[str, Any] = {name: None for name in os.environ if name.startswith("HF_")} | more
    address = "http://127.0.0.1:9" if hub is None else hub.address
    variables |= {"HF_ENDPOINT": address, "HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1"}
    done = run("-c", PROGRAM, results, timeout=120, **variables)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_folder_is_read_where_it_is_and_an_address_has_a_form(tmp_path: Path) -> None:
    with accepted_results(str(tmp_path)) as folder:
        assert folder == tmp_path
    for given in ("hf://org/name", "https://huggingface.co/datasets/org/name"):
        with pytest.raises(ConfigError, match="write hf://datasets/ORG/NAME"), accepted_results(given):
            pass


@pytest.mark.slow
def test_a_dataset_of_the_hub_is_downloaded_and_then_found_offline(hub: FakeHub, tmp_path: Path) -> None:
    repository = hub.new(
        "lab/results", {"a/result.json": b"{}", "notes.txt": b"x", "register.json": register(REGISTERED)}
    )
    repository.tags["v1"] = repository.head
    more = {"b/result.json": b"{}", "c/result.json/result.json": b"{}"}
    repository.add("more", {**repository.commits[repository.head].files, **more})
    home = tmp_path / "home"
    newest = listed(hub, home, "hf://datasets/lab/results")
    assert [line.split()[0] for line in newest] == ["a/result.json", *more, "register.json"]
    assert not any(line.endswith("True") for line in newest)
    tagged = listed(hub, home, "hf://datasets/lab/results@v1")
    assert [line.split()[0] for line in tagged] == ["a/result.json", "register.json"]
    assert listed(hub, home, "hf://datasets/lab/results@v1", HF_HUB_OFFLINE="1") == tagged
    assert listed(None, home, "hf://datasets/lab/results@v1") == tagged


@pytest.mark.slow
def test_what_cannot_be_had_is_one_line_with_the_remedy(hub: FakeHub, tmp_path: Path) -> None:
    hub.new("lab/results")
    for asked, address, offline in (
        (hub, "hf://datasets/lab/nothing", None),
        (hub, "hf://datasets/lab/results@v9", None),
        (None, "hf://datasets/lab/results", None),
        (hub, "hf://datasets/lab/results", "1"),
    ):
        variables = {} if offline is None else {"HF_HUB_OFFLINE": offline}
        (line,) = listed(asked, tmp_path / "home", address, **variables)
        assert line.startswith(f"error: --results {address}: cannot be ")
        assert "local folder" in line
