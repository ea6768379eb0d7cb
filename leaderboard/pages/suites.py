"""Prepares the parts of each suite for their pages: a table of all parts, and a file about each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlencode

from biasboard.ground.memory import Memory, machine_memory
from biasboard.ground.progress import Report, silent
from biasboard.ground.strict_json import JsonValue
from evaluators.task import load_task
from leaderboard.benchmark_pages import Column
from leaderboard.pages.addresses import dataset_page
from leaderboard.pages.dataset_views import BuiltDataset
from leaderboard.pages.definitions import Definition, define
from leaderboard.pages.exports import Files, Table, json_text
from leaderboard.pages.markup import slug
from leaderboard.pages.model_views import ModelView
from leaderboard.pages.part_files import Measured, Suite, context_id, part_texts, suite_files
from leaderboard.pages.part_values import PartOfResult, part_metrics, parts_of, shown_metrics, why_unmeasured
from leaderboard.pages.tables import TableView
from leaderboard.ranking.fields import Kind
from leaderboard.ranking.rows import Row

FOLDER = "files/parts"


class Spread(NamedTuple):
    """The values of several models on one part."""

    mean: float | None
    low: float | None
    """Smallest value of a model."""
    high: float | None
    """Largest value of a model."""
    n: int
    """Number of models with a value."""
    reason: str | None
    """Reason why there is no mean; None if there is one."""


class PartLine(NamedTuple):
    """One part in the table of all parts."""

    part: str
    groups: tuple[str | None, ...]
    """Values of ``SuiteView.groups``; None if the part has none."""
    n_labels: int | None
    """Number of labels; None if the task reports none."""
    n_items: int
    """Number of evaluated items."""
    spreads: tuple[Spread, ...]
    """Values of ``SuiteView.columns``."""
    link: str
    """Address of the page of the part, relative to the root of the site."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteView:
    """The parts of a suite under one prompt."""

    section: TableView
    """Table of the results whose parts these are."""
    suite_id: str
    """Name of the folder with the files of the suite."""
    columns: tuple[Column, ...]
    """Columns of metrics."""
    groups: tuple[str, ...]
    """Names of the facts about parts."""
    models: tuple[str, ...]
    """Ids of the models that count."""
    are_ranked: bool
    """True if the models that count are the ranked ones; False if no model is ranked and all count."""
    lines: tuple[PartLine, ...]
    left_out: tuple[tuple[str, str], ...]
    """Ids of the models whose parts could not be measured, each with the reason."""
    others: tuple[TableView, ...] = ()
    """Other tables of results on the suite."""

    @property
    def definitions(self) -> tuple[Definition, ...]:
        """What readers need to understand the columns."""
        known = {column.key: column for column in self.section.all_columns if column.example is not None}
        found = [known[column.key] for column in self.columns if column.key in known]
        return tuple(define(one.heading, one.example, one.text) for one in found if one.example is not None)

    @property
    def page(self) -> str:
        """The path of the page, relative to the root of the site."""
        return _page(self.section)

    @property
    def title(self) -> str:
        """The title of the page."""
        return f"Parts of {self.section.title}"

    @property
    def has_labels(self) -> bool:
        """True if the numbers of labels are known."""
        return any(line.n_labels is not None for line in self.lines)

    def group_name(self, group: str) -> str:
        """Return the name of a fact for readers."""
        name = self.section.pages.group_names.get(group, group).replace("_", " ")
        return name[:1].upper() + name[1:]

    @property
    def table(self) -> Table:
        """The table for download."""
        of_column = {"": float, "_low": float, "_high": float, "_n_models": int}
        columns: dict[str, Kind] = {"part": str, **dict.fromkeys(self.groups, str), "n_labels": int, "n_items": int}
        columns |= {f"{column.metric}{name}": kind for column in self.columns for name, kind in of_column.items()}
        rows = [
            (line.part, *line.groups, line.n_labels, line.n_items, *(one for of in line.spreads for one in of[:4]))
            for line in self.lines
        ]
        return Table(Files(f"files/parts-{self.section.anchor}"), columns, rows, str(self.section.table.signature))


class Suites(NamedTuple):
    """The pages and files of all suites with results."""

    views: tuple[SuiteView, ...]
    files: Mapping[str, str]
    """Text of each file, by its path relative to the root of the site."""

    @property
    def by_suite(self) -> dict[str, list[tuple[str, str]]]:
        """Each part with the path of its file below the folder of all parts, by name of the suite's folder."""
        return {
            view.suite_id: [(line.part, f"{view.suite_id}/{slug(line.part)}.json") for line in view.lines]
            for view in self.views
        }


def suite_page(section: TableView) -> str | None:
    """Return the path of the page with the parts of a table; None if its results have no parts."""
    return _page(section) if section.table.signature.parts else None


def _page(section: TableView) -> str:
    return f"suites/{section.anchor}.html"


def make_suites(
    sections: Sequence[TableView],
    models: Sequence[ModelView],
    built: Sequence[BuiltDataset],
    report: Report = silent,
) -> Suites:
    """Measure the parts of all suites.

    Args:
        sections: All tables.
        models: All models with their results.
        built: The datasets on this machine.
        report: Callback for progress.
    """
    memory = machine_memory()
    local_builds = {dataset.name: dataset for dataset in built}
    placements = {(one.row.entry.origin, one.row.entry.place): one for model in models for one in model.placements}
    of_suites: dict[tuple[str, str, str], list[TableView]] = {}
    for section in sections:
        signature = section.table.signature
        if signature.parts:
            of_suites.setdefault((signature.dataset, signature.dataset_version, signature.config), []).append(section)
    tables = [one.table for own in of_suites.values() for one in own]
    n_results, n_done = sum(not row.entry.is_computed for table in tables for row in table.rows), 0
    views: list[SuiteView] = []
    files: dict[str, str] = {}
    listed: list[JsonValue] = []
    for (name, version, config), own in of_suites.items():
        local = local_builds.get((name, version))
        suite = Suite(
            id=slug(f"{name}-{version}-{config}"),
            title=f"{name} {version}, {config}",
            dataset=f"{name} {version}",
            dataset_page=dataset_page(name, version),
            sources=() if local is None else tuple((one.name, one.address) for one in local.manifest.sources),
            texts=part_texts(own[0], local, memory),
        )
        measured: list[Measured] = []
        for section in own:
            found = []
            for row in section.table.rows:
                if row.entry.is_computed:  # There are no records of its parts.
                    continue
                report("measuring parts", n_done, n_results)
                n_done += 1
                found.append((placements[row.entry.origin, row.entry.place], _parts(row, section, memory)))
            one = Measured(section, _page(section), part_metrics(section), found)
            views.append(_view(one, suite, own))
            measured.append(one)
        listed.append({"id": suite.id, "title": suite.title})
        files |= {f"{FOLDER}/{suite.id}/{path}": text for path, text in suite_files(suite, measured).items()}
    if listed:
        files[f"{FOLDER}/suites.json"] = json_text({"suites": listed})
    return Suites(tuple(views), files)


def _parts(row: Row, section: TableView, memory: Memory) -> Sequence[PartOfResult] | str:
    """Return the parts of a result, or the reason why they cannot be measured one by one."""
    reason = why_unmeasured(row.entry)
    return parts_of(row.entry, part_metrics(section), memory) if reason is None else reason


def _view(measured: Measured, suite: Suite, sections: Sequence[TableView]) -> SuiteView:
    section = measured.section
    rows = [placement.row for placement, _ in measured.results]
    # A baseline is no model, and models without a rank count only where there are no others.
    ranked = [row.rank is not None for row in rows]
    counted = ranked if any(ranked) else [_is_of_model(row) for row in rows]
    known = [parts for _, parts in measured.results if not isinstance(parts, str)]
    of_models = [
        {one.part: one for one in parts}
        for (_, parts), counts in zip(measured.results, counted, strict=True)
        if counts and not isinstance(parts, str)
    ]
    facts = {one.part: one for one in (known[0] if known else ())}
    groups = tuple(dict.fromkeys(name for one in facts.values() for name in one.groups))
    shown = shown_metrics(section)
    return SuiteView(
        section=section,
        suite_id=suite.id,
        columns=tuple(_column(section, name) for name in shown),
        groups=groups,
        models=tuple(
            placement.row.entry.result.model.id
            for (placement, parts), counts in zip(measured.results, counted, strict=True)
            if counts and not isinstance(parts, str)
        ),
        are_ranked=any(ranked),
        lines=tuple(
            PartLine(
                part=part,
                groups=tuple(facts[part].groups.get(name) if part in facts else None for name in groups),
                n_labels=_n_labels(facts.get(part)),
                n_items=_n_items(section, part),
                spreads=tuple(_spread(name, [one[part] for one in of_models if part in one]) for name in shown),
                link=part_link(suite, section, part),
            )
            for part in section.table.signature.parts
        ),
        left_out=tuple(
            (placement.row.entry.result.model.id, parts)
            for placement, parts in measured.results
            if isinstance(parts, str)
        ),
        others=tuple(one for one in sections if one is not section),
    )


def _is_of_model(row: Row) -> bool:
    """Return True if a row counts where models are counted: no baseline, no withdrawn result and no repeated one."""
    entry = row.entry
    is_withdrawn = entry.acceptance is not None and entry.acceptance.decision == "withdrawn"
    is_own = entry.double is None and (entry.is_imported or not entry.is_replayed)
    return not entry.is_baseline and is_own and not is_withdrawn and entry.folder is not None


def part_link(suite: Suite, section: TableView, part: str) -> str:
    """Return the address of the page of a part, relative to the root of the site."""
    chosen = {"suite": suite.id, "part": slug(part), "context": context_id(section)}
    return f"part.html#{urlencode(chosen)}"


def _column(section: TableView, metric: str) -> Column:
    named = (column for column in section.table.columns if column.metric == metric and not column.group)
    return next(named, Column(metric, section.pages.label(metric)))


def _n_labels(part: PartOfResult | None) -> int | None:
    return None if part is None or part.labels is None else len(part.labels.names)


def _n_items(section: TableView, part: str) -> int:
    """Return the number of items of a part, without those that support the measurement."""
    support = load_task(section.table.signature.task).support_splits
    coverage = section.table.rows[0].entry.coverage
    return sum(one.counts.items for one in coverage if one.part == part and one.split not in support)


def _spread(name: str, parts: Sequence[PartOfResult]) -> Spread:
    found = [part.values[name] for part in parts]
    values = [part.value for part in found if part.value is not None]
    if values:
        return Spread(sum(values) / len(values), min(values), max(values), len(values), None)
    reasons = list(dict.fromkeys(part.reason for part in found if part.reason is not None))
    return Spread(None, None, None, 0, reasons[0] if reasons else "no model has a result here that counts")
