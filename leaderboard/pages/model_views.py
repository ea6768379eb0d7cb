"""Prepares the results of a model for their pages: metrics, slices, charts, and how far each can be trusted.

How a result lies beside other models and useless predictors, its table, the page of its model and Compare say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from biasboard.ground.memory import machine_memory
from biasboard.ground.progress import Report, silent
from evaluators.runs.measure.measuring import metric_definitions
from leaderboard.pages.addresses import model_page, permalink, result_anchor
from leaderboard.pages.answers import ResultExamples, make_answers
from leaderboard.pages.class_tables import ClassTable, class_table
from leaderboard.pages.exports import Files
from leaderboard.pages.figures import figures_of_result
from leaderboard.pages.markup import number, percent, slug
from leaderboard.pages.pictures import PageChart
from leaderboard.pages.tables import TableView, define, result_files
from leaderboard.ranking.rows import Row
from leaderboard.verify.entries import Entry
from schemas.documents.dataset import Manifest
from schemas.documents.result import Metric


class Slice(NamedTuple):
    """One slice of the items and its metrics."""

    key: str
    value: str
    metrics: tuple[Metric | None, ...]
    """Metrics in the order of ``Placement.slice_metrics``; None if a metric has no such slice."""


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
    if counts.truncated:
        yield f"{counts.truncated:,} items have an answer that was cut off at the token limit."
    if (share := entry.first_token_share) is not None:
        yield (
            f"The letters of the options have {number(share)} of the probability of an answer's first token "
            "together (median); the rest is elsewhere."
        )
    if (reason := entry.result.environment.corruption) is not None:
        yield f"Its answers look corrupted: {reason}."
