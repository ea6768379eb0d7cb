"""Prepares the list of all models, with facts about each and its results, and that of the useless predictors."""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

from evaluators.benchmark import load_benchmark
from leaderboard.benchmark_pages import BenchmarkPages, Headline, load_pages
from leaderboard.model_facts import display_name, facts_of, file_name
from leaderboard.pages.addresses import model_page
from leaderboard.pages.exports import DownloadTable, Files
from leaderboard.pages.model_views import ModelView
from leaderboard.ranking.boards import Board
from leaderboard.ranking.fields import Fields, Kind, Scalar
from leaderboard.ranking.profiles import profiles_of
from leaderboard.verify.entries import Entry, Provenance
from schemas.documents.model_facts import ModelFacts
from schemas.documents.result import Metric

UselessPredictor: TypeAlias = tuple[str, str, str, list[Metric | None]]
"""Name, anchor on the page, what it does, and what it gets in each headline measure."""


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
    def entries(self) -> list[Entry]:
        """Its results."""
        return [placement.row.entry for placement in self.view.placements]

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
    "backend": (str, lambda listed: ", ".join(sorted({one.result.model.backend for one in listed.entries}))),
    "status": (str, lambda listed: ", ".join(sorted({one.origin for one in listed.entries}))),
    "baseline": (bool, lambda listed: listed.view.is_baseline),
}


def models_table(models: Sequence[ListedModel]) -> DownloadTable:
    """Return one row for each model."""
    return DownloadTable.of(Files("files/models"), _FIELDS, models)


def useless_predictors(board: Board) -> Iterator[tuple[BenchmarkPages, list[Headline], list[UselessPredictor]]]:
    """Yield the baselines of each benchmark with their headline measures, under the first conditions that have any."""
    anchors: set[str] = set()
    for benchmark in board.benchmarks:
        texts = {baseline.name: baseline.description for baseline in load_benchmark(benchmark).baselines}
        rows = [row for table in board.tables if table.signature.benchmark == benchmark for row in table.rows]
        known = (one.columns for one in profiles_of(board, benchmark))
        columns = next((each for each in known if any(row.is_baseline for one in each for row in one.table.rows)), ())
        predictors: list[UselessPredictor] = []
        for model_id in sorted({row.model.id for row in rows if row.is_baseline}):
            metrics = [
                next((row.metric(one.headline.name) for row in one.rows.values() if row.model.id == model_id), None)
                for one in columns
            ]
            # The first benchmark of several that have a baseline has its anchor.
            name, anchor = model_id.removeprefix("baseline/"), model_page(model_id).partition("#")[2]
            predictors.append((name, "" if anchor in anchors else anchor, texts.get(name, ""), metrics))
            anchors.add(anchor)
        if predictors:
            yield load_pages(benchmark), [one.headline for one in columns], predictors
