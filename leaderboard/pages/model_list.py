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


def population(models: Sequence[ModelView]) -> str:
    """Return the sentences on how many language models there are, where their answers are from, and how new they are.

    The text is empty if there is none.
    """
    views = [model for model in models if not model.is_baseline]
    if not views:
        return ""
    imported = sum(all(placed.row.entry.is_imported for placed in model.placements) for model in views)
    given = [placed.row.entry for model in views for placed in model.placements if not placed.row.entry.is_imported]
    # Who misses large models here asks why.
    where = " on a CPU, which suits small models" if {one.result.environment.device for one in given} == {"cpu"} else ""
    origins = {"published elsewhere": imported, f"given for this board{where}": len(views) - imported}
    told = " and ".join(f"{n} {'has' if n == 1 else 'have'} answers {origin}" for origin, n in origins.items() if n)
    known = [facts for model in views if (facts := facts_of(model.id))]
    dated = [(facts.released, facts.id) for facts in known if facts.released]
    bounds = [facts.released_by for facts in known if facts.released_by]
    newest = ""
    if dated:
        date, model_id = max(dated)
        newest = f" The newest of the {len(dated)} whose date a source tells is {display_name(model_id)} ({date})"
        # Who looks for models of this year wants to know it of all.
        newest += f"; the others were there by {max(bounds)}." if len(dated) + len(bounds) == len(views) else "."
    models_of = "1 language model" if len(views) == 1 else f"{len(views)} language models"
    rule = "they are few, since a row needs answers from which its numbers can be computed again"
    joins = "A newer one joins the tables of what can be asked today once somebody hands in its answers."
    return f"{models_of}: {told}; {rule}.{newest} {joins}"


def models_table(models: Sequence[ListedModel]) -> DownloadTable:
    """Return one row for each model."""
    return DownloadTable.of(Files("files/models"), _FIELDS, models)
