"""A small model and its adapters, which no test changes: it copies what it damages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evaluators.adapted import train, twin_dataset, twin_plans
from tests.evaluators.made_data import save_tiny_llama


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_llama(tmp_path_factory.mktemp("models") / "tiny-llama", positions=1024)


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return twin_dataset(tmp_path_factory.mktemp("twins") / "tasks")


@pytest.fixture(scope="session")
def adapters(model: Path, dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Adapters for both configs in both contexts."""
    folder = tmp_path_factory.mktemp("adapters") / "tiny"
    train(model, twin_plans(dataset), folder)
    return folder
