"""Describes builders and finds them: every module or package in ``builders`` that defines a ``BUILDER``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from biasboard.ground.kinds import BUILDERS
from builders.dataset.licences import ProtectedSource

DATASETS_FOLDER = Path("out/datasets")


@dataclass(frozen=True, slots=True, kw_only=True)
class BuilderSource:
    """One source that a builder can take its rows from."""

    name: str
    """Value of ``--source`` that selects it."""
    dataset: str
    """Name of the dataset that is built, and of its folder."""
    summary: str
    input: str | None = None
    """Description of the file or folder that ``--input`` must name; None if nothing is read."""
    licence: str
    """SPDX identifier of the dataset's licence."""
    redistributable: bool

    @property
    def default_out(self) -> Path:
        """The folder that the dataset is written to if ``--out`` is not given."""
        return DATASETS_FOLDER / self.dataset


def sources_of(settings: Mapping[str, Mapping[str, Any]]) -> tuple[BuilderSource, ...]:
    """Return the sources of a file of settings, with a table for each by the value of ``--source``."""
    keys = ("dataset", "summary", "input", "licence", "redistributable")
    return tuple(BuilderSource(name=name, **{key: of[key] for key in keys}) for name, of in settings.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Builder:
    """A builder, run with ``python -m builders.<name>``."""

    name: str
    summary: str
    sources: tuple[BuilderSource, ...]
    protected: tuple[ProtectedSource, ...] = ()
    """Data that the builder reads and whose texts must not be published in any form."""

    def source(self, name: str) -> BuilderSource:
        """Return the source with the given name.

        Raises:
            KeyError: the builder has no such source.
        """
        return {source.name: source for source in self.sources}[name]


def all_builders() -> tuple[Builder, ...]:
    """Return every builder of this package, sorted by name; modules without a ``BUILDER`` are shared parts."""
    modules = (BUILDERS.load(name) for name in BUILDERS.names())
    return tuple(builder for module in modules if isinstance(builder := getattr(module, "BUILDER", None), Builder))
