"""Prepares the list of models and the results of each for their pages, and how far each can be trusted.

How a result lies beside other models and useless predictors, its table, the page of its model and Compare say.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

from biasboard.ground.memory import Memory, machine_memory
from biasboard.ground.progress import Report, silent
from evaluators.benchmark import load_benchmark
from evaluators.runs.measure.measuring import metric_definitions, read_inputs
from evaluators.statistics.class_accuracies import mean_accuracy
from evaluators.task import ClassReport, CorrectedClasses, ReportsLabels, load_task
from leaderboard.benchmark_pages import BenchmarkPages, Headline, load_pages
from leaderboard.model_facts import display_name, facts_of, file_name
from leaderboard.pages.dataset_views import ResultExamples, make_answers
from leaderboard.pages.figures import PageChart, figures_of_result
from leaderboard.pages.markup import model_page, number, percent, permalink, result_anchor, slug
from leaderboard.pages.model_summary import missing_of_groups
from leaderboard.pages.summary_forms import groups_apart, lacking_words
from leaderboard.pages.tables import TableView, define, result_files
from leaderboard.ranking.boards import Board
from leaderboard.ranking.frames import Columns, DownloadTable, Fields, Files, Kind, Line, Scalar
from leaderboard.ranking.profiles import profiles_of
from leaderboard.ranking.rows import Row
from leaderboard.verify.entries import Entry, Provenance
from leaderboard.verify.intake import contents_of
from schemas.documents.dataset import Manifest
from schemas.documents.model_facts import ModelFacts
from schemas.documents.result import Metric
from schemas.folders.run_folder import verified_parts

_CLASS_COLUMNS: Columns = {
    **dict.fromkeys(("row", "kind", "correction"), str),
    "n_items": int,
    **dict.fromkeys(("value", "low", "high", "relative_change"), float),
}


class Slice(NamedTuple):
    """One slice of the items and its metrics."""

    key: str
    value: str
    metrics: tuple[Metric | None, ...]
    """Metrics in the order of ``Placement.slice_metrics``; None if a metric has no such slice."""


class ClassTable(NamedTuple):
    """The classes of a task before and after each correction.

    It is the form of the tables of arXiv:2603.15654, for every correction that a result has, with the accuracy over all
    items and what always answering the most frequent class would get.
    """

    columns: tuple[CorrectedClasses, ...]
    """The corrections that there are, of which the first is none."""
    missing: tuple[CorrectedClasses, ...]
    """Those that there are not, with reasons."""
    table: DownloadTable
    """The accuracies of all classes, then measures over them: a line for each column."""
    most_frequent: str
    constant_accuracy: float
    """Share of the items that always answering the most frequent class gets right."""
    constant_mean: float
    """Mean of the class accuracies that it gets."""
    above: tuple[str, ...]
    """Headings of the columns whose accuracy over all items is larger."""
    n_items: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """One result of a model and the table that contains it."""

    section: TableView
    row: Row
    detail: str
    """Revision and precision of the model, if the table has several of its id; else empty."""
    anchor: str
    files: Files
    overall: tuple[Metric, ...]
    """Metrics on all items, without variants."""
    variants: tuple[Metric, ...]
    """Variants of metrics on all items, which the page folds away."""
    answers: ResultExamples
    doubts: tuple[str, ...]
    """Sentences on the items that count and on answers that may be damaged."""
    slice_metrics: tuple[str, ...]
    slices: tuple[Slice, ...]
    pictures: tuple[PageChart, ...]
    of_classes: ClassTable | None
    """Classes before and after corrections; None unless the result is of one task with classes."""

    @property
    def page(self) -> str:
        """The path of the page of the result, relative to the root of the site."""
        return permalink(self.row.entry.result)

    def text(self, metric: str) -> str:
        """Return the description of a metric."""
        known = metric_definitions(self.section.table.signature.task)
        return next((one.description for one in known if one.name == metric), "")

    def define(self, metric: Metric) -> str:
        """Return the description of a metric, with its range and ideal value."""
        found = define(self.section.pages.label(metric.name), metric, self.text(metric.name))
        return f"{found.text} {found.facts}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelView:
    """A model and all its results on the board."""

    id: str
    page: str
    placements: tuple[Placement, ...]

    @property
    def is_baseline(self) -> bool:
        """True if all its results come from a baseline and not from a language model."""
        return all(placement.row.entry.is_baseline for placement in self.placements)


def make_models(
    sections: Sequence[TableView], manifests: Sequence[Manifest] = (), report: Report = silent
) -> tuple[ModelView, ...]:
    """Return a view of each model that has a result in the sections, sorted by id; baselines come last.

    Args:
        sections: All tables.
        manifests: Manifests of the datasets that were built here, whose licences say which texts may be shown.
        report: Callback for progress.
    """
    rows = [(section, row) for section in sections for row in section.table.rows]
    found = {(manifest.name, manifest.version): manifest for manifest in manifests}
    placements: dict[str, list[Placement]] = {}
    for n_drawn, (section, row) in enumerate(rows):
        report("drawing charts", n_drawn, len(rows))
        signature = section.table.signature
        manifest = found.get((signature.dataset, signature.dataset_version))
        placements.setdefault(row.model.id, []).append(_placement(section, row, manifest))
    views = [
        ModelView(id=model_id, page=model_page(model_id), placements=tuple(placements[model_id]))
        for model_id in sorted(placements)
    ]
    return tuple(sorted(views, key=lambda view: view.is_baseline))


def _placement(section: TableView, row: Row, manifest: Manifest | None) -> Placement:
    entry, pages = row.entry, section.pages
    n_same_id = sum(other.model.id == row.model.id for other in section.table.rows)
    anchor = result_anchor(entry.result)
    name = f"{slug(row.model.id)}-{anchor}"
    # By group, a baseline shows its rule and nothing of a model.
    sliced = () if row.is_baseline else entry.metrics
    slice_metrics = tuple(dict.fromkeys(metric for metric, group in sliced if group and metric not in pages.variants))
    groups = dict.fromkeys(group for metric, group in sliced if len(group) == 1 and metric not in pages.variants)
    # In the order of the table's columns, then the others, unknown values last.
    order = {column.metric: index for index, column in reversed(list(enumerate(section.table.columns)))}
    overall = [metric for (_, group), metric in entry.metrics.items() if not group]
    overall.sort(key=lambda metric: (metric.value is None, order.get(metric.name, len(order))))
    return Placement(
        section=section,
        row=row,
        detail=section.detail(row) if n_same_id > 1 else "",
        anchor=anchor,
        files=result_files(entry.result),
        overall=tuple(metric for metric in overall if metric.name not in pages.variants),
        variants=tuple(metric for metric in overall if metric.name in pages.variants and not row.is_baseline),
        answers=make_answers(entry, f"files/{name}", manifest, pages.may_offend.get(section.table.signature.task)),
        doubts=tuple(doubts_of(entry)),
        slice_metrics=slice_metrics,
        slices=tuple(
            Slice(*group[0], tuple(entry.metrics.get((metric, group)) for metric in slice_metrics)) for group in groups
        ),
        pictures=() if row.is_baseline else figures_of_result(entry, f"charts/{name}"),
        of_classes=class_table(entry, name, machine_memory()),
    )


def doubts_of(entry: Entry) -> Iterator[str]:
    """Yield sentences on the items of a result that count and on answers that may be damaged."""
    counts = entry.result.counts
    missing = {
        "refused": counts.refused,
        "answered in a way that could not be read": counts.unparsed,
        "failed": counts.failed,
    }
    known = [f"{n:,} {words}" for words, n in missing.items() if n]
    rest = ", ".join(known) or "none was refused, unread or failed"
    yield f"{counts.scored:,} of {counts.items:,} items were scored ({percent(counts.scored, counts.items)}); {rest}."
    # Whom a model refuses is a bias too.
    some_lack = 0 < counts.scored < counts.items
    groups = missing_of_groups(entry.folder, entry.result) if some_lack and entry.folder is not None else ()
    if (lacking := lacking_words(groups_apart(groups))) is not None:
        yield f"Scores are missing {lacking}."
    if counts.truncated:
        yield f"{counts.truncated:,} items have an answer that was cut off at the token limit."
    if (share := entry.first_token_share) is not None:
        yield (
            f"The letters of the options have {number(share)} of the probability of an answer's first token "
            "together (median); the rest is elsewhere."
        )
    if (reason := entry.result.environment.corruption) is not None:
        yield f"Its answers look corrupted: {reason}."


def class_table(entry: Entry, name: str, memory: Memory) -> ClassTable | None:
    """Return the classes of a result before and after each correction.

    Args:
        entry: A result.
        name: Name of its files without what tells them apart and the ending.
        memory: The memory of this machine.

    Returns:
        The table; None if the result is of a suite, a baseline or a task without classes, or if its records are not
        here.
    """
    if entry.folder is None or entry.is_baseline or entry.result.signature.parts:
        return None
    report = _class_report(entry, entry.folder, memory)
    if report is None or not any(one.n_items for one in report.columns[0].accuracies):
        return None
    # A task may have no metric of some correction, because it makes no sense for its items.
    known = [column for column in report.columns if entry.metric(column.metrics[0]) is not None]
    columns = tuple(column for column in known if column.accuracies)
    supports = [one.n_items for one in columns[0].accuracies]
    top, n_items = int(np.argmax(supports)), sum(supports)
    share = supports[top] / n_items
    return ClassTable(
        columns=columns,
        missing=tuple(column for column in known if not column.accuracies),
        table=DownloadTable(
            Files(f"files/{name}-classes"),
            _CLASS_COLUMNS,
            [tuple(line.values()) for line in _class_lines(entry, report, columns)],
            str(entry.result.signature),
        ),
        most_frequent=report.labels[top],
        constant_accuracy=share,
        constant_mean=1 / np.count_nonzero(supports),
        above=tuple(
            column.label
            for column in columns
            if (accuracy := entry.metric(column.metrics[0])) is not None and (accuracy.value or 0.0) > share
        ),
        n_items=n_items,
    )


def _class_report(entry: Entry, folder: Path, memory: Memory) -> ClassReport | None:
    """Return the report of the task, which takes reading all records and fitting what is not stored."""
    task, result = load_task(entry.result.signature.task), entry.result

    def made() -> list[ClassReport]:
        if not isinstance(task, ReportsLabels):
            return []
        inputs = read_inputs(folder, result)
        reports = [task.class_report(records, inputs) for records in verified_parts(folder, result)]
        return [report for report in reports if report is not None]

    return next(iter(memory.remembered("classes of a task", contents_of(result), list[ClassReport], made)), None)


def _class_lines(entry: Entry, report: ClassReport, columns: Sequence[CorrectedClasses]) -> Iterator[Line]:
    """Yield the accuracies of the classes, then the measures over them with their changes from no correction."""
    unknown = dict.fromkeys(_CLASS_COLUMNS)
    for place, label in enumerate(report.labels):
        for column in columns:
            about = {"row": label, "kind": "class", "correction": column.label}
            yield unknown | about | column.accuracies[place]._asdict()
    measures: dict[str, list[float | None]] = {}
    for place, heading in enumerate(report.measures):
        metrics = [entry.metric(column.metrics[place]) for column in columns]
        measures[heading] = [None if metric is None else metric.value for metric in metrics]
        if place == 0:  # Beside the accuracy over all items, from which it can be far.
            of_classes = [[np.nan if one.value is None else one.value for one in each.accuracies] for each in columns]
            measures["Mean class accuracy"] = [float(mean_accuracy(values)) for values in of_classes]
    for heading, values in measures.items():
        before = values[0]
        for column, value in zip(columns, values, strict=True):
            change = None if column is columns[0] or value is None or not before else value / before - 1
            about = {"row": heading, "kind": "measure", "correction": column.label}
            yield unknown | about | {"value": value, "relative_change": change}


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
