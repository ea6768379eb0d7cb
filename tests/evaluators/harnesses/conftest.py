"""A dataset that the tests of harnesses export; none of them changes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evaluators.made_data import made_items, write_dataset


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "made"
    return write_dataset(folder, {"type2": made_items(6), "type1": made_items(4, ambiguous=True)})
