"""Results that several files of tests share, and the browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.leaderboard.browsing import ARGUMENTS
from tests.leaderboard.forging import Places, honest_places
from tests.leaderboard.withheld_world import World, make_world
from tests.worlds import models, models_root, strangers

__all__ = ("models", "models_root", "strangers")


@pytest.fixture(scope="session")
def places(tmp_path_factory: pytest.TempPathFactory) -> Places:
    return honest_places(tmp_path_factory.mktemp("trust"), "intrinsic-v1")


@pytest.fixture(scope="session")
def reasoned(tmp_path_factory: pytest.TempPathFactory) -> Places:
    """Options that are scored after the model's own reasoning."""
    return honest_places(tmp_path_factory.mktemp("reasoned"), "cot-logprob-v1")


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
