"""Results that several files of tests share, and the browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from evaluators.runs.measure.answer_keys import key_of_dataset
from leaderboard.verify.keys import write_key
from schemas.folders.dataset_folder import read_manifest
from tests.evaluators.logging_backend import ask
from tests.evaluators.made_data import made_items, write_dataset
from tests.leaderboard.browsing import ARGUMENTS
from tests.leaderboard.forging import Places, SkilledBackend
from tests.leaderboard.withheld_world import World, make_world


@pytest.fixture(scope="session")
def places(tmp_path_factory: pytest.TempPathFactory) -> Places:
    root = tmp_path_factory.mktemp("trust")
    dataset = write_dataset(root / "dataset", {"type2": made_items(100)})
    made = key_of_dataset(dataset, read_manifest(dataset), config="type2", task="coreference", prompt="intrinsic-v1")
    write_key(root / "keys", made)
    folder = ask(dataset, root / "runs", SkilledBackend(root / "log", name="acme/honest"), prompt="intrinsic-v1")
    return Places(root / "keys", folder)


@pytest.fixture(scope="package")
def made_world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("withheld"))


@pytest.fixture
def world(made_world: World, tmp_path: Path) -> World:
    """A world with files that a test may change."""
    return made_world.copied(tmp_path)


@pytest.fixture(scope="package")
def browser(chromium_executable: str | None) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium_executable, args=ARGUMENTS)
        yield started
        started.close()
