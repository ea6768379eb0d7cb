"""``--dataset ORG/NAME@REVISION``: datasets of a Hub on loopback, with the real client, online and from its cache."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.commands import run
from tests.evaluators.made_data import made_items, write_dataset
from tests.fake_hub import FakeHub, Repository, serving

NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    with serving() as hub:
        yield hub


@pytest.fixture
def repository(hub: FakeHub, tmp_path: Path) -> Repository:
    """A published dataset with two versions, of which the second has more items, and a file that is none of it."""
    repository = hub.new("lab/made")
    for version, n_pairs in (("1.0.0", 2), ("2.0.0", 3)):
        folder = write_dataset(tmp_path / version, {"type2": made_items(n_pairs)})
        files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        repository.add(version, {**files, ".gitattributes": b"", "weights.bin": b"of somebody else"})
        repository.tags[f"v{version}"] = repository.head
    return repository


def asked(address: str, place: Path, dataset: str, *, status: int = 0, **more: str) -> str:
    """What a run on a dataset prints, or its error."""
    variables: dict[str, Any] = {name: None for name in os.environ if name.startswith("HF_")} | more
    variables |= {"HF_ENDPOINT": address, "HF_HOME": str(place / "home"), "HF_HUB_DISABLE_XET": "1"}
    command = ("-m", "evaluators", "run", "--backend", "baseline", "--model", "uniform", "--out", place / "runs")
    done = run(*command, "--dataset", dataset, cwd=place, status=status, timeout=100, **variables)
    return done.stderr if status else done.stdout


@pytest.mark.slow
@pytest.mark.usefixtures("repository")
def test_a_dataset_of_the_hub_is_asked_and_then_found_offline_or_in_a_folder(hub: FakeHub, tmp_path: Path) -> None:
    assert "all 6 items scored" in asked(hub.address, tmp_path, "lab/made")
    first = asked(hub.address, tmp_path, "hf://datasets/lab/made@v1.0.0")
    assert "all 4 items scored" in first
    assert not list((tmp_path / "home").rglob("weights.bin"))
    assert "all 4 items scored" in asked(NOWHERE, tmp_path, "lab/made@v1.0.0", HF_HUB_OFFLINE="1")
    assert "all 6 items scored" in asked(NOWHERE, tmp_path, "lab/made")
    # A folder of the name comes before the Hub.
    write_dataset(tmp_path / "lab" / "made", {"type2": made_items(1)})
    assert "all 2 items scored" in asked(hub.address, tmp_path, "lab/made")


@pytest.mark.slow
def test_what_cannot_be_had_is_one_line(hub: FakeHub, repository: Repository, tmp_path: Path) -> None:
    hub.new("lab/other", {"train.csv": b"text\n"})
    files = repository.commits[repository.head].files
    (data,) = (name for name in files if name.endswith(".parquet") and name.startswith("data/"))
    older = repository.commits[repository.tags["v1.0.0"]].files
    hub.new("lab/changed", {**files, data: older[data]})
    for address, dataset, reason in (
        (hub.address, "lab/none", "lab/none: cannot be downloaded: the Hub at 127.0.0.1"),
        (hub.address, "lab/made@v9", "dataset lab/made has no branch, tag or commit 'v9'"),
        (hub.address, "lab/other", "lab/other: is a dataset of the Hub without dataset.json, so biasboard did not"),
        (hub.address, "lab/changed", f"{data}: 4 rows, dataset.json says 6"),
        (NOWHERE, "lab/unseen", "it is neither a folder nor downloaded, and the Hub at 127.0.0.1:9 cannot be reached"),
        (hub.address, "no/such/folder", "no/such/folder: no dataset.json here"),
    ):
        line = asked(address, tmp_path, dataset, status=1).splitlines()[-1]
        assert line.startswith("error: ")
        assert reason in line
    assert not (tmp_path / "runs").exists()
