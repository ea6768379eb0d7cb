"""Prepares the list of all models: facts about each, and which results it has."""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from leaderboard.benchmark_pages import BenchmarkPages, load_pages
from leaderboard.model_facts import display_name, facts_of, file_name
from leaderboard.pages.exports import DownloadTable, Files
from leaderboard.pages.model_views import ModelView
from leaderboard.ranking.fields import Fields, Kind, Scalar
from leaderboard.verify.entries import Provenance
from schemas.documents.model_facts import ModelFacts


class ListedModel(NamedTuple):
    """A row of the list."""

    view: ModelView
    facts: ModelFacts | None
    """None if no file is about the model."""
    benchmarks: tuple[BenchmarkPages, ...]
    """Those that it has results of."""
    vouching: tuple[Provenance, ...]
    """How far its results are vouched for, the strongest first."""

    @property
    def name(self) -> str:
        """The short name of the model."""
        return display_name(self.view.id)

    @property
    def file(self) -> str:
        """The file that the facts are in or belong in, relative to the repository."""
        return f"leaderboard/models/{file_name(self.facts.id if self.facts else self.view.id)}"

    def why_unknown(self, fact: str) -> str:
        """Return why a fact is unknown."""
        if self.facts is None:
            return f"nobody has added {self.file}"
        return {str(name): reason for name, reason in self.facts.unknown.items()}.get(fact, "")


def listed_models(models: Sequence[ModelView]) -> tuple[ListedModel, ...]:
    """Return a row for each model, sorted by name."""
    listed = []
    for model in models:
        names = {placement.section.benchmark for placement in model.placements}
        found = {placement.row.entry.provenance for placement in model.placements}
        vouching = tuple(level for level in typing.get_args(Provenance) if level in found)
        listed.append(ListedModel(model, facts_of(model.id), tuple(map(load_pages, sorted(names))), vouching))
    return tuple(sorted(listed, key=lambda one: (one.name.casefold(), one.view.id)))


def size_text(parameters: int) -> str:
    """Return a number of parameters as people say it.

    >>> size_text(656_000), size_text(135_000_000), size_text(3_800_000_000), size_text(70_000_000_000)
    ('656 K', '135 M', '3.8 B', '70 B')
    """
    for unit, size in (("B", 10**9), ("M", 10**6), ("K", 10**3)):
        if parameters >= size:
            return f"{parameters / size:.3g} {unit}"
    return str(parameters)


def _fact(name: str, listed: ListedModel) -> Scalar:
    value: Scalar = getattr(listed.facts, name, None)
    return value


_FACTS: Mapping[str, Kind] = {
    "family": str,
    "maker": str,
    "parameters": int,
    "open_weights": bool,
    "kind": str,
    "licence": str,
    "released": str,
    "released_by": str,
}
_FIELDS: Fields[ListedModel] = {
    "model": (str, lambda listed: listed.view.id),
    "name": (str, lambda listed: listed.name),
    **{name: (kind, partial(_fact, name)) for name, kind in _FACTS.items()},
    "benchmarks": (str, lambda listed: ", ".join(pages.heading for pages in listed.benchmarks)),
    "n_results": (int, lambda listed: len(listed.view.placements)),
    "vouching": (str, lambda listed: ", ".join(listed.vouching)),
    "backend": (str, lambda listed: listed.view.backends),
    "status": (str, lambda listed: listed.view.status),
    "baseline": (bool, lambda listed: listed.view.is_baseline),
}


def models_table(models: Sequence[ListedModel]) -> DownloadTable:
    """Return one row for each model."""
    return DownloadTable.of(Files("files/models"), _FIELDS, models)
