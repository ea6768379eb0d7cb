"""An honest result that the tests of trust share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from leaderboard.verify.keys import key_of_dataset, write_key
from schemas.folders.dataset_folder import read_manifest
from tests.evaluators.logging_backend import ask
from tests.evaluators.made_data import made_items, write_dataset
from tests.leaderboard.browsing import ARGUMENTS
from tests.leaderboard.forging import Places, SkilledBackend


@pytest.fixture(scope="session")
def places(tmp_path_factory: pytest.TempPathFactory) -> Places:
    root = tmp_path_factory.mktemp("trust")
    dataset = write_dataset(root / "dataset", {"type2": made_items(100)})
    made = key_of_dataset(dataset, read_manifest(dataset), config="type2", task="coreference", prompt="intrinsic-v1")
    write_key(root / "keys", made)
    folder = ask(dataset, root / "runs", SkilledBackend(root / "log", name="acme/honest"), prompt="intrinsic-v1")
    return Places(root / "keys", folder)


@pytest.fixture(scope="package")
def browser(chromium_executable: str | None) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium_executable, args=ARGUMENTS)
        yield started
        started.close()
