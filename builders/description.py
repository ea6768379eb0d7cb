"""What a builder says about itself, and how builders are found: a file or folder of this package with a ``BUILDER``."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path

from schemas import plugins

DATASETS_FOLDER = Path("out/datasets")


@dataclass(frozen=True, slots=True, kw_only=True)
class BuilderSource:
    """One place that a builder can take its rows from."""

    name: str
    """The value of ``--source``."""
    dataset: str
    """Name of the dataset that comes out, and of its folder."""
    summary: str
    input: str | None
    """What ``--input`` has to be; null where nothing is read."""
    licence: str
    """SPDX identifier of the dataset."""
    redistributable: bool

    @property
    def default_out(self) -> Path:
        """Where the dataset goes without ``--out``."""
        return DATASETS_FOLDER / self.dataset


@dataclass(frozen=True, slots=True, kw_only=True)
class Builder:
    """A builder, run with ``python -m builders.<name>``."""

    name: str
    summary: str
    sources: tuple[BuilderSource, ...]

    def source(self, name: str) -> BuilderSource:
        """The source of that name.

        Raises:
            KeyError: the builder has no such source.
        """
        return {source.name: source for source in self.sources}[name]


def all_builders() -> tuple[Builder, ...]:
    """Every builder of this package, by name; modules without a ``BUILDER`` are parts that builders share."""
    found = (
        getattr(importlib.import_module(f"builders.{name}"), "BUILDER", None) for name in plugins.names("builders")
    )
    return tuple(builder for builder in found if isinstance(builder, Builder))
