"""Results that several files of tests share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import leaderboard
from biasboard.ground.errors import DataError
from leaderboard import model_facts
from leaderboard.ranking import reproduced
from tests.leaderboard.browsing import address, browser, opened
from tests.leaderboard.forging import Places, honest_places
from tests.leaderboard.withheld_world import World, make_world
from tests.worlds import models, models_root, strangers

__all__ = ("address", "browser", "models", "models_root", "opened", "strangers")


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


@pytest.fixture
def package_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose files about models, tables and papers are the only ones there are."""
    remembered = (model_facts._by_id, reproduced._quoted, reproduced.reproductions)
    monkeypatch.setattr(leaderboard, "__path__", [str(tmp_path)])
    for name in ("models", "reported", "papers"):
        (tmp_path / name).mkdir()
    for read in remembered:
        read.cache_clear()
    yield tmp_path
    for read in remembered:
        read.cache_clear()


def message_of(path: Path, text: str, read: Callable[[], object]) -> str:
    """What is said about a faulty file: one line that begins with its path, here without it."""
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read()
    said = str(caught.value)
    assert said.startswith(f"{path}: ")
    assert "\n" not in said
    return said.removeprefix(f"{path}: ")
