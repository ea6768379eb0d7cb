"""Makes the figures that a benchmark describes, and the chart of a table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import singledispatch
from itertools import chain
from statistics import fmean
from typing import Literal, NamedTuple

import numpy as np

from biasboard.ground.charts import LEAST_SHOWN, Chart
from evaluators.benchmark import PartSource, load_benchmark
from leaderboard.benchmark_figures import (
    BumpChart,
    Clouds,
    Curves,
    Figure,
    HeatMap,
    Lorenz,
    Matrix,
    Ordering,
    Shown,
    Strips,
)
from leaderboard.benchmark_pages import Column, load_pages
from leaderboard.model_facts import display_name, facts_of
from leaderboard.pages.charts import (
    BaselineLine,
    BumpColumn,
    Cloud,
    GridCell,
    Panel,
    RowValue,
    ScatterPoint,
    SizedModel,
    Spot,
    bump_chart,
    chosen,
    curves,
    dots,
    grid,
    interval_of,
    multiples,
    scatter,
    size_chart,
    strips,
)
from leaderboard.pages.markup import slug
from leaderboard.ranking.boards import Board
from leaderboard.ranking.profiles import profile_of, scope_of, tables_of
from leaderboard.ranking.rank_ranges import best_baselines
from leaderboard.ranking.rows import Row, Scope, Table, newest_versions
from leaderboard.verify.entries import Entry
from schemas.documents.result import Metric, Model

_SIGN = "\N{NO-BREAK SPACE}\N{DAGGER}"
"""Sign behind the names of models whose values are unreliable."""
_MOST_SIDE_BY_SIDE = 3
"""Number of models that have panels of their own in one figure."""


class Subject(NamedTuple):
    """A model or baseline and all that figures can show of it."""

    label: str
    model: Model
    is_baseline: bool
    is_below: bool
    """True if it is not shown to achieve more than every baseline, so that nothing it does alike says much."""
    indices: Mapping[str, Metric]
    entries: tuple[Entry, ...]
    versions: Mapping[str, str]
    """Version of each metric that a figure shows, since values of two versions, as of two scorers, share no picture."""
    adapted: Subject | None = None
    """The same model with adapters; None if there is no such model."""

    def metric(self, shown: Shown) -> Metric | None:
        """Return a value; None if no result has it in this version, or if it is unknown."""
        if shown.with_adapters:
            return None if self.adapted is None else self.adapted.metric(shown._replace(with_adapters=False))
        if shown.contexts:
            return self._mean(shown)
        index = None if shown.group else self.indices.get(shown.metric)
        metrics = (
            entry.metric(shown.metric, shown.group)
            for entry in self.entries
            if shown.config in (None, entry.result.signature.config)
        )
        known = (metric for metric in (index, *metrics) if metric is not None and metric.value is not None)
        version = self.versions.get(shown.metric)
        return next((metric for metric in known if version in (None, metric.version)), None)

    def _mean(self, shown: Shown) -> Metric | None:
        """Return the mean over results in several contexts, on the items of the first result; None if any lacks it."""
        items = self.entries[0].result.signature.items_sha256
        metrics = []
        for context in shown.contexts:
            # A result stands in the table of its prompt and behind an index.
            of_context = (
                metric
                for entry in self.entries
                if entry.result.signature.items_sha256 == items
                and PartSource(entry.result.signature.task, context=context).fits(entry.result.signature)
                and (metric := entry.metric(shown.metric, shown.group)) is not None
                and metric.version == self.versions.get(shown.metric, metric.version)
            )
            metrics.append(next(of_context, None))
        values = [metric.value for metric in metrics if metric is not None and metric.value is not None]
        if metrics[0] is None or len(values) < len(metrics):
            return None
        reason = "it is a mean over several results"
        return replace(metrics[0], value=fmean(values), interval=None, interval_reason=reason)


def figures_of(board: Board) -> dict[Scope, tuple[PageChart, ...]]:
    """Return the figures of the models that were asked alike, for each way to ask."""
    tables: dict[Scope, list[Table]] = {}
    for benchmark in board.benchmarks:
        for table in tables_of(board, benchmark):
            tables.setdefault(scope_of(table), []).append(table)
    return {
        scope: tuple(
            _pictures(load_pages(scope.benchmark).figures, subjects_of(alike), f"charts/{slug('-'.join(scope))}")
        )
        for scope, alike in tables.items()
    }


def figures_of_result(entry: Entry, stem: str) -> tuple[PageChart, ...]:
    """Return the figures that show a single result, for its page.

    Args:
        entry: The result.
        stem: Start of the paths of the drawings.
    """
    signature, model = entry.result.signature, entry.result.model
    described = [figure for figure in load_pages(signature.benchmark).figures if isinstance(figure, Matrix)]
    of_config = [figure for figure in described if figure.config in (None, signature.config)]
    subject = Subject(display_name(model.id), model, entry.is_baseline, False, {}, (entry,), {})
    return tuple(_pictures(of_config, [subject], stem))


def subjects_of(tables: Sequence[Table]) -> list[Subject]:
    """Return the models and baselines of some tables, in the order of the first table that has them.

    A model with adapters is shown with what it is without them, in place of the two beside each other. Several lists of
    adapters may be trained for one model; the first one in its table is taken, and the others stay.
    """
    entries: dict[str, list[Entry]] = {}
    indices: dict[str, dict[str, Metric]] = {}
    versions: dict[str, str] = {}
    below: set[str] = set()
    for row in (row for table in tables for row in table.rows):
        entries.setdefault(row.identity, []).extend(row.entries)
        for index in row.indices:
            indices.setdefault(row.identity, {}).setdefault(index.metric.name, index.metric)
        if row.is_below:
            below.add(row.identity)
    # The first table decides, as about the order.
    for identity, found in entries.items():
        for metric in chain(indices.get(identity, {}).values(), *(entry.metrics.values() for entry in found)):
            if metric.value is not None:
                versions.setdefault(metric.name, metric.version)
    subjects = {
        identity: Subject(
            label=display_name(found[0].result.model.id),
            model=found[0].result.model,
            is_baseline=found[0].is_baseline,
            is_below=identity in below,
            indices=indices.get(identity, {}),
            entries=tuple(found),
            versions=versions,
        )
        for identity, found in entries.items()
    }
    adapted: dict[str, Subject] = {}
    for subject in subjects.values():
        base = subject.model.base_sha256
        if subject.model.adapters_sha256 is not None and base in subjects:
            adapted.setdefault(base, subject)
    taken = {subject.model.identity_sha256 for subject in adapted.values()}
    return [one._replace(adapted=adapted.get(identity)) for identity, one in subjects.items() if identity not in taken]


def _pictures(figures: Sequence[Figure], subjects: Sequence[Subject], stem: str) -> Iterator[PageChart]:
    models = [subject for subject in subjects if not subject.is_baseline] or subjects
    for figure in figures:
        chart = _chart(figure, models)
        if chart is not None:
            of_all = " Each cell is the mean over all models." if isinstance(figure, Matrix) and len(models) > 1 else ""
            yield make_picture(chart, f"{stem}-{figure.name}", figure.caption + of_all)


@singledispatch
def _chart(figure: Figure, models: Sequence[Subject]) -> Chart | None:
    """Draw a figure of models; nothing if too few of them have a value."""
    raise NotImplementedError(type(figure))


def _filled(panels: Mapping[str, tuple[Shown, ...]], models: Sequence[Subject]) -> tuple[list[Subject], list[Panel]]:
    """Return the models that have a value in any panel, and the panels with a value of any model."""
    values = [[[model.metric(shown) for shown in each] for each in panels.values()] for model in models]
    drawn = [place for place, of_model in enumerate(values) if any(map(any, of_model))]
    filled = [
        Panel(title, tuple(shown.label for shown in each), [values[place][number] for place in drawn])
        for number, (title, each) in enumerate(panels.items())
    ]
    return [models[place] for place in drawn], [panel for panel in filled if panel.known]


@_chart.register
def _strips(figure: Strips, models: Sequence[Subject]) -> Chart | None:
    drawn, panels = _filled(figure.panels, models)
    if not drawn:
        return None
    # The last values are left out if no model has them, such as those with adapters.
    lasts = [max(place for place in range(len(panel.names)) if panel.column(place)) for panel in panels]
    panels = [panel.at(range(last + 1)) for panel, last in zip(panels, lasts, strict=True)]
    words = []
    for panel in panels:
        known = [(name, values) for place, name in enumerate(panel.names) if (values := panel.column(place))]
        ranges = [f"{name} from {min(values):.2f} to {max(values):.2f}" for name, values in known]
        words.append(f"{panel.title}: {', '.join(ranges)}")
    alt = f"Dots with intervals for {_count(drawn)}, {figure.subject}. {'; '.join(words)}."
    needed = figure.needed
    unreliable = [
        needed is not None
        and any(
            entry.result.signature.config == needed.config and entry.standing is not None and not entry.standing.passes
            for entry in model.entries
        )
        for model in drawn
    ]
    labels = [f"{model.label}{_SIGN if is_so else ''}" for model, is_so in zip(drawn, unreliable, strict=True)]
    chart = strips(labels, panels, alt=alt)
    return chart._replace(note=f"{_SIGN.strip()} {needed.note}") if needed and any(unreliable) else chart


@_chart.register
def _curves(figure: Curves, models: Sequence[Subject]) -> Chart | None:
    if figure.lines:
        return _curves_of_each(figure, models)
    drawn, panels = _filled(figure.panels, models)
    lasting = [panel for panel in panels if any(sum(map(bool, row)) > 1 for row in panel.rows)]
    if not lasting:
        return None
    # Positions that no model was asked at would only push the others together.
    asked = [place for place in range(len(lasting[0].names)) if any(panel.column(place) for panel in lasting)]
    lasting = [panel.at(asked) for panel in lasting]
    changes = [
        f"{panel.title} changes from {fmean(first):.2f} to {fmean(last):.2f} on average"
        for panel in lasting
        if (first := panel.column(0)) and (last := panel.column(-1))
    ]
    return curves(
        [("", lasting)],
        [model.label for model in drawn],
        x_title=figure.x_title,
        alt=f"Lines of {_count(drawn)}, {figure.subject}: {'; '.join(changes)}.",
    )


def _curves_of_each(figure: Curves, models: Sequence[Subject]) -> Chart | None:
    """Draw the lines of the first models, at the positions and for the values of which any of them has a value."""
    titles = [*dict.fromkeys(title for panels in figure.lines.values() for title in panels)]
    names = [shown.label for shown in next(iter(next(iter(figure.lines.values())).values()))]
    values = np.full((len(models), len(titles), len(figure.lines), len(names)), None, dtype=object)
    for number, model in enumerate(models):
        for line, panels in enumerate(figure.lines.values()):
            for title, each in panels.items():
                # The intervals of several lines of one model would hide the lines.
                values[number, titles.index(title), line] = [
                    metric and replace(metric, interval=None, interval_reason="tables have it")
                    for metric in map(model.metric, each)
                ]
    # A single line compares nothing, and at a single position it is none.
    n_lines = (values.astype(bool).sum(axis=3) > 1).any(axis=1).sum(axis=1)
    drawn = np.flatnonzero(n_lines > 1)[:_MOST_SIDE_BY_SIDE]
    if not len(drawn):
        return None
    # Titles, lines and positions of which none of them has a value are left out.
    known = values[drawn].astype(bool)
    shown, rows, places = (np.flatnonzero(known.any(axis=others)) for others in ((0, 2, 3), (0, 1, 3), (0, 1, 2)))
    columns = [
        (
            models[number].label,
            [
                Panel(titles[title], tuple(names[place] for place in places), of_lines)
                for title, of_lines in zip(shown, of_model, strict=True)
            ],
        )
        for number, of_model in zip(drawn, values[np.ix_(drawn, shown, rows, places)].tolist(), strict=True)
    ]
    lines = [[*figure.lines][line] for line in rows]
    words = [f"{label}: {', '.join(_last_range(panel, lines) for panel in panels)}" for label, panels in columns]
    return curves(
        columns,
        lines,
        x_title=figure.x_title,
        alt=f"Lines of {_count(columns)}, {figure.subject}. {'; '.join(words)}.",
    )


def _last_range(panel: Panel, lines: Sequence[str]) -> str:
    """Return in words between which lines the values at the last position lie."""
    last = {line: row[-1].value or 0.0 for line, row in zip(lines, panel.rows, strict=True) if row[-1] is not None}
    if not last:
        return f"{panel.title} has no value at {panel.names[-1]}"
    low, high = min(last, key=last.__getitem__), max(last, key=last.__getitem__)
    return f"{panel.title} at {panel.names[-1]} from {last[low]:.2f} ({low}) to {last[high]:.2f} ({high})"


@_chart.register
def _lorenz(figure: Lorenz, models: Sequence[Subject]) -> Chart | None:
    drawn, panels = _filled(figure.panels, models)
    n_parts = len(next(iter(figure.panels.values())))
    places = [number / n_parts for number in range(n_parts + 1)]
    names = tuple(f"{100 * place:.0f} %" for place in places)
    shares = [Panel(panel.title, names, [_cumulated(row) for row in panel.rows]) for panel in panels]
    known = [panel for panel in shares if panel.known]
    if not known:
        return None
    half = n_parts // 2
    halves = [(panel.title, panel.column(half)) for panel in known]
    words = [f"{title}: {100 * min(values):.0f} to {100 * max(values):.0f} %" for title, values in halves]
    return curves(
        [("", known)],
        [model.label for model in drawn],
        x_title=figure.x_title,
        alt=f"Lorenz curves of {_count(drawn)}. {figure.subject}: {'; '.join(words)}.",
        even=places,
        decisive=half,
    )


def _cumulated(parts: Sequence[Metric | None]) -> list[Metric | None]:
    """Return the share of the sum up to each part, from 0 to 1; nothing if a part is unknown or the sum is 0."""
    known = [metric for metric in parts if metric is not None]
    values = [metric.value or 0.0 for metric in known]
    if len(known) < len(parts) or not sum(values):
        return [None] * (len(parts) + 1)
    shares = np.cumsum([0.0, *values]) / sum(values)
    first = replace(known[0], interval=None, interval_reason="it is a share of values that have intervals")
    return [replace(first, value=share) for share in shares.tolist()]


@_chart.register
def _clouds(figure: Clouds, models: Sequence[Subject]) -> Chart | None:
    clouds = [cloud for model in models if (cloud := _cloud(figure, model)).spots]
    if not clouds:
        return None
    steepest, flattest = (end(clouds, key=lambda cloud: abs(cloud.line[0])) for end in (max, min))
    xs = [spot.x for cloud in clouds for spot in cloud.spots]
    changes = [f"{cloud.label} changes by {cloud.line[0] * (max(xs) - min(xs)):+.2f}" for cloud in (steepest, flattest)]
    drawn = chosen(clouds)
    return multiples(
        drawn,
        x_title=figure.x_title,
        y_title=figure.y_title,
        x_range=figure.x_range,
        alt=f"Points of {len(drawn)} of {_count(clouds)}, {figure.subject}: from {min(xs):g} to "
        f"{max(xs):g} the line of {' and that of '.join(dict.fromkeys(changes))}.",
    )


def _cloud(figure: Clouds, model: Subject) -> Cloud:
    """Return the slices of a model whose fact is known."""
    values = dict.fromkeys(
        value
        for entry in model.entries
        if figure.config in (None, entry.result.signature.config)
        for name, group in entry.metrics
        if name == figure.metric
        for key, value in group
        if len(group) == 1 and key == figure.group
    )
    spots = []
    for value in values:
        metric = model.metric(Shown("", figure.metric, {figure.group: value}, figure.config))
        x = figure.x(value)
        if metric is None or metric.value is None or x is None:
            continue
        ends = () if metric.interval is None else (metric.interval.low, metric.interval.high)
        leads = [figure.y(value, end) for end in ends]
        is_separable = bool(leads) and (min(leads) > 0 or max(leads) < 0)
        spots.append(Spot(x, figure.y(value, metric.value), is_separable))
    return Cloud(model.label, tuple(spots))


@_chart.register
def _bump_chart(figure: BumpChart, models: Sequence[Subject]) -> Chart | None:
    asked = [model for model in models if any(map(model.metric, figure.orderings[0].parts))]
    return bump_chart(
        [model.label for model in asked],
        [
            BumpColumn(ordering.label, [_ordered_by(ordering, model) for model in asked])
            for ordering in figure.orderings
        ],
        subject=figure.subject,
    )


def _ordered_by(ordering: Ordering, model: Subject) -> float | str:
    if model.is_below:
        return "below the line of the benchmark's table"
    values = []
    for shown in ordering.parts:
        metric = model.metric(shown)
        if metric is None or metric.value is None:
            return f"no {shown.label}"
        values.append(metric.value)
    return ordering.together(values)


@_chart.register
def _heat_map(figure: HeatMap, models: Sequence[Subject]) -> Chart | None:
    # Values that no model has belong to other data, such as groups in another language.
    drawn, panels = _filled({shown.label: (shown,) for shown in figure.columns}, models)
    if len(panels) < 2:
        return None
    labels = [panel.title for panel in panels]
    rows = [*zip(*([metric for (metric,) in panel.rows] for panel in panels), strict=True)]
    means = {panel.title: fmean(panel.column(0)) for panel in panels}
    most, least = max(means, key=means.__getitem__), min(means, key=means.__getitem__)
    chance = -math.inf if figure.chance is None else figure.chance
    return grid(
        [model.label for model in drawn],
        labels,
        [
            [
                GridCell(None) if metric is None else GridCell(metric.value, is_pale=interval_of(metric)[0] <= chance)
                for metric in of_model
            ]
            for of_model in rows
        ],
        column_title=figure.title,
        sets_first_apart=not next(shown for shown in figure.columns if shown.label == labels[0]).group,
        alt=f"Heat map of {figure.subject} for {_count(drawn)}: on average most for {most} "
        f"({means[most]:.2f}) and least for {least} ({means[least]:.2f}).",
    )


@_chart.register
def _matrix(figure: Matrix, models: Sequence[Subject]) -> Chart | None:
    """Draw the mean of each cell over the models that have the metric."""
    having = [model for model in models if model.metric(Shown("", figure.metric, config=figure.config)) is not None]
    shown = {
        (row, column): Shown("", figure.metric, group, figure.config)
        for row in figure.rows
        for column in figure.columns
        if (group := figure.slice_of(row, column)) is not None
    }
    names = [*figure.columns]
    if figure.rest is not None:
        rest = {row: figure.rest(row) for row in figure.rows}
        names.append(rest[figure.rows[0]].label)
        shown |= {(row, names[-1]): one for row, one in rest.items()}
    values = {
        place: [value for model in having if (value := getattr(model.metric(one), "value", figure.missing)) is not None]
        for place, one in shown.items()
    }
    if not any(map(any, values.values())):
        return None
    means = {place: fmean(of_place) for place, of_place in values.items() if of_place}
    cells = [
        [
            GridCell(means.get((row, column)), is_framed=figure.frames_diagonal and row == column)
            if (row, column) in shown
            else None
            for column in names
        ]
        for row in figure.rows
    ]
    known = {(row, column): mean for (row, column), mean in means.items() if column in figure.columns}
    over = f"means over {len(having)} models" if len(having) > 1 else having[0].label
    return grid(
        [figure.row_label(row) for row in figure.rows],
        names,
        cells,
        column_title=figure.column_title,
        row_title=figure.row_title,
        palest=math.floor(10 * min(known.values())) / 10 if figure.from_least else 0.0,
        alt=f"Matrix of {figure.column_title} by {figure.row_title}, {over}: {figure.summary(known)}.",
    )


def _count(models: Sequence[object]) -> str:
    return f"{len(models)} model{'' if len(models) == 1 else 's'}"


_AXES: tuple[Literal["y", "x"], ...] = ("y", "x")
"""Axes in the order in which a benchmark names the columns of a plane."""


class PageChart(NamedTuple):
    """A chart and the path of its drawing, relative to the root of the site."""

    chart: Chart
    path: str
    caption: str

    @property
    def alt(self) -> str:
        """The description of the chart in words."""
        return self.chart.alt

    @property
    def least_width(self) -> int:
        """Width in pixels below which it is not shown, so that its letters can be read on a phone."""
        return math.ceil(self.chart.width * LEAST_SHOWN)


def make_picture(chart: Chart, stem: str, caption: str) -> PageChart:
    """Return a chart with the path of its drawing.

    Args:
        chart: Chart to place.
        stem: Path of the drawing without the ending.
        caption: Caption below the chart, which the note of the chart follows.
    """
    return PageChart(chart, f"{stem}.svg", f"{caption} {chart.note}".strip())


def _marks(rows: Sequence[Row]) -> str:
    """Return what the marks of a chart say."""
    useless = ", hollow diamonds are useless predictors," if any(row.is_baseline for row in rows) else ""
    return f"Filled circles are models{useless} and lines are 95 % intervals."


def results_pictures(table: Table, stem: str) -> tuple[PageChart, ...]:
    """Return the chart of a table of results: the plane that its benchmark names, or else its first column."""
    pages = load_pages(table.signature.benchmark)
    layout = pages.layout(lambda name: any(column.metric == name for column in table.columns))
    columns = {column.key: column for column in table.columns}
    axes = [columns[key] for key in layout.plane or () if key in columns]
    chart: Chart | None = None
    lines: list[BaselineLine] = []
    if len(axes) == len(_AXES):
        y, x = axes
        points = [
            ScatterPoint(display_name(row.model.id), across, upwards, row.is_baseline)
            for row in table.rows
            if (across := x.of(row.entry)) is not None and (upwards := y.of(row.entry)) is not None
        ]
        lines = list(_baseline_lines(table, axes))
        chart = scatter(points, x_title=x.heading, y_title=y.heading, lines=lines)
    first = next((column for column in table.columns if column.metric not in pages.variants), None)
    if chart is None and first is not None and len(table.rows) > 1:
        found = ((row, first.of(row.entry)) for row in table.rows)
        rows = [RowValue(display_name(row.model.id), one, row.is_baseline) for row, one in found if one is not None]
        chart = dots(rows, title=first.heading)
    caption = " ".join(filter(None, [layout.plane_note, _marks(table.rows), *(line.caption for line in lines)]))
    return () if chart is None else (make_picture(chart, stem, caption),)


def index_pictures(table: Table, stem: str) -> tuple[PageChart, ...]:
    """Return the chart of the table of an index: the index of each model."""
    rows = [RowValue(display_name(row.model.id), row.primary, row.is_baseline) for row in table.rows]
    chart = dots(rows, title=load_pages(table.signature.benchmark).label(table.rows[0].primary.name))
    return () if chart is None else (make_picture(chart, stem, f"The index of each model. {_marks(table.rows)}"),)


def _baseline_lines(table: Table, axes: Sequence[Column]) -> Iterator[BaselineLine]:
    """Yield the lines of the best baselines if an axis shows what a model must achieve before it is ranked.

    One is that of the best baseline that models must lead, another that of the best one that solves the items.
    """
    gate = load_benchmark(table.signature.benchmark).gate(table.signature.task)
    for axis, column in zip(_AXES, axes, strict=True):
        if gate is None or column.metric != gate.metric or column.group:
            continue
        baselines = best_baselines(row.entry for row in table.rows)
        if rival := next((lead for lead in baselines if not lead.solves), None):
            caption = (
                f"Only models beyond the dashed line can have a rank: {rival.baseline} gets so far knowing nothing."
            )
            yield BaselineLine(axis, rival.value, caption)
        if solver := next((lead for lead in baselines if lead.solves), None):
            caption = f"The dotted line is {solver.baseline}, which solves these items, so that they cannot show skill."
            yield BaselineLine(axis, solver.value, caption, is_solver=True)


def size_pictures(board: Board) -> tuple[PageChart, ...]:
    """Return the first two headline measures of each benchmark over size, where enough models have a known size."""
    pictures = []
    for benchmark in board.benchmarks:
        profile = profile_of(board, benchmark)
        for number, column in enumerate(profile.columns[:2] if profile else ()):
            # The newest version of each model in this column.
            newest = {*newest_versions([row.entry for row in column.rows.values()]).values()}
            models = {
                column.rows[identity].model.id: metric
                for identity, metric in column.metrics.items()
                if identity in newest and not column.rows[identity].is_baseline
            }
            sized = [
                SizedModel(
                    facts.short_name,
                    facts.parameters,
                    "kind unknown" if facts.kind is None else "base" if facts.kind == "base" else "tuned",
                    metric,
                )
                for model, metric in models.items()
                if (facts := facts_of(model)) is not None and facts.parameters is not None
            ]
            if chart := size_chart(sized, title=column.headline.label):
                caption = (
                    f"{load_pages(benchmark).heading}: {column.headline.label}. "
                    f"Models whose size is known: {len(sized)} of {len(models)}."
                )
                pictures.append(make_picture(chart, f"charts/size-{slug(benchmark)}-{number + 1}", caption))
    return tuple(pictures)
