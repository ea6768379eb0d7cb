"""One local Ray cluster for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluators.backends.ray.cluster import Cluster, join
from tests.evaluators.made_data import made_items, write_dataset


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Two CPUs of this machine, whatever it has."""
    yield join(None, n_cpus=2)
    import ray

    ray.shutdown()


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A hundred minimal pairs."""
    return write_dataset(tmp_path_factory.mktemp("dataset"), {"type2": made_items(100)})
