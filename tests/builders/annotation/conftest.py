"""A small dataset that is annotated."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.dataset.output import write_dataset
from builders.synthbias import embedded
from builders.synthbias.annotation.annotated import AnnotatedDataset, read_annotated
from tests.leaderboard.browsing import browser

__all__ = ("browser",)


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ten pairs of each type."""
    folder = tmp_path_factory.mktemp("annotated") / "data"
    write_dataset(embedded.draft(limit=40), folder)
    return folder


@pytest.fixture(scope="session")
def annotated(dataset: Path) -> AnnotatedDataset:
    return read_annotated(dataset)
