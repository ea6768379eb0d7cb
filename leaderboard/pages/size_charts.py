"""Draws what models achieve over their size, base models beside tuned ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from biasboard.ground.charts import FIRST, FONT_SIZE, MUTED, THIRD, Point, place_labels
from biasboard.ground.strict_json import JsonValue
from leaderboard.benchmark_pages import load_pages
from leaderboard.model_facts import facts_of
from leaderboard.pages.drawing import (
    Channel,
    Chart,
    draw,
    interval_of,
    intervals,
    kinds,
    label_fields,
    names_of_points,
    numbers,
    span,
)
from leaderboard.pages.markup import slug
from leaderboard.pages.pictures import Picture, make_picture
from leaderboard.ranking.boards import Board
from leaderboard.ranking.profiles import ProfileColumn, profile_of
from leaderboard.ranking.revisions import model_rows
from schemas.documents.result import Metric

Kind: TypeAlias = Literal["base", "tuned", "kind unknown"]
LEAST = 3
"""Smallest number of models for a chart: two points always lie on a line."""
_COLOURS: dict[str, str] = {"base": THIRD, "tuned": FIRST, "kind unknown": MUTED}
_SHAPES = {"base": "square", "tuned": "circle", "kind unknown": "triangle-up"}
_WIDTH, _HEIGHT = 560, 300
_LOW, _HIGH = -0.06, 1.06
_NEAR = 0.35


class SizedModel(NamedTuple):
    """A model of known size and its value."""

    label: str
    parameters: int
    kind: Kind
    metric: Metric


class _Axis(NamedTuple):
    """The ends of an axis, on which positions are drawn as shares of its length."""

    low: float
    high: float

    def share(self, value: float) -> float:
        return (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5

    def channel(self, field: str, title: str, labels: Mapping[float, str]) -> Channel:
        values: list[JsonValue] = [self.share(value) for value in labels]
        # Each tick is found again by its number, since its position is a share.
        ticks = "+".join(f"(datum.value > {self.share(value) - 1e-9}? 1: 0)" for value in labels)
        names = ", ".join(f"'{label}'" for label in labels.values())
        axis: Channel = {"values": values, "labelExpr": f"[{names}][{ticks} - 1]"}
        return numbers(field, _LOW, _HIGH, title=title, axis=axis)


def size_chart(models: Sequence[SizedModel], *, title: str) -> Chart | None:
    """Draw a metric over the number of parameters, on a logarithmic axis.

    Args:
        models: Models whose metrics lie between 0 and 1; those without a value are left out.
        title: Title of the vertical axis.

    Returns:
        The chart, or None if fewer than three models have a value.
    """
    drawn = [model for model in models if model.metric.value is not None]
    if len(drawn) < LEAST:
        return None
    logs = [math.log10(model.parameters) for model in drawn]
    ends = [interval_of(model.metric) for model in drawn]
    # Powers of ten near the ends are drawn too, since an axis with one number says little.
    low, high = min(logs), max(logs)
    across = _Axis(
        math.floor(low) if low - math.floor(low) < _NEAR or high - low < 1 else low,
        math.floor(high) + 1 if math.floor(high) + 1 - high < _NEAR or high - low < 1 else high,
    )
    # Models lie close together, and a chart of points need not begin at 0.
    up = _Axis(math.floor(10 * min(ends)[0]) / 10, math.ceil(10 * max(high for _, high in ends)) / 10)
    points = [
        Point(
            text=model.label,
            x=across.share(log),
            y=up.share(model.metric.value or 0.0),
            x_interval=(across.share(log), across.share(log)),
            y_interval=(up.share(interval[0]), up.share(interval[1])),
        )
        for model, log, interval in zip(drawn, logs, ends, strict=True)
    ]
    places = place_labels(points, width=_WIDTH, height=_HEIGHT, low=_LOW, high=_HIGH, font_size=FONT_SIZE - 1)
    values: list[JsonValue] = [
        {
            "x": point.x,
            "y": point.y,
            "y_low": point.y_interval[0],
            "y_high": point.y_interval[1],
            "kind": model.kind,
            **label_fields(place),
        }
        for model, point, place in zip(drawn, points, places, strict=True)
    ]
    powers = range(math.ceil(across.low), math.floor(across.high) + 1)
    x = across.channel("x", "parameters", {power: _power_text(power) for power in powers})
    tenths = range(round(10 * up.low), round(10 * up.high) + 1)
    y = up.channel("y", title, {tenth / 10: f"{tenth / 10:.1f}" for tenth in tenths})
    legend: JsonValue = {"title": None, "orient": "top", "symbolOpacity": 1}
    colour = kinds("kind", _COLOURS, legend=legend)
    leads, names = names_of_points(x, y, colour)
    layers: list[JsonValue] = [
        leads,
        intervals(x, y, along="y", look={"strokeWidth": 1.4}, color=colour),
        {
            "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
            "encoding": {"x": x, "y": y, "color": colour, "shape": kinds("kind", _SHAPES, legend=legend)},
        },
        names,
    ]
    values_of_models = span(title, [(model.label, model.metric) for model in drawn])
    alt = f"Points of {len(drawn)} models over the number of parameters: {values_of_models}."
    return draw({"width": _WIDTH, "height": _HEIGHT, "data": {"values": values}, "layer": layers}, alt)


def size_pictures(board: Board) -> tuple[Picture, ...]:
    """Return the first two headline measures of each benchmark over size, where enough models have a known size."""
    pictures = []
    for benchmark in board.benchmarks:
        profile = profile_of(board, benchmark)
        for number, column in enumerate(profile.columns[:2] if profile else ()):
            models = dict(_values(column))
            sized = [found for model, metric in models.items() if (found := _sized(model, metric))]
            if chart := size_chart(sized, title=column.headline.label):
                caption = (
                    f"{load_pages(benchmark).heading}: {column.headline.label}. "
                    f"Models whose size is known: {len(sized)} of {len(models)}."
                )
                pictures.append(make_picture(chart, f"charts/size-{slug(benchmark)}-{number + 1}", caption))
    return tuple(pictures)


def _values(column: ProfileColumn) -> Iterator[tuple[str, Metric]]:
    """Yield the id and the value of each language model, of its newest version."""
    found = [(cell.row.entry, cell.metric) for cell in column.cells.values() if cell.row is not None]
    newest = model_rows([entry for entry, _ in found])
    for entry, metric in found:
        if metric is not None and not entry.is_baseline and newest[entry.result.model.identity_sha256].is_counted:
            yield entry.result.model.id, metric


def _sized(model_id: str, metric: Metric) -> SizedModel | None:
    facts = facts_of(model_id)
    if facts is None or facts.parameters is None:
        return None
    kind: Kind = "kind unknown" if facts.kind is None else "base" if facts.kind == "base" else "tuned"
    return SizedModel(facts.short_name, facts.parameters, kind, metric)


def _power_text(power: int) -> str:
    """Return a power of ten as people say it.

    >>> _power_text(5), _power_text(6), _power_text(10)
    ('100 K', '1 M', '10 B')
    """
    unit = {0: "", 1: " K", 2: " M", 3: " B", 4: " T"}[min(power // 3, 4)]
    return f"{10 ** (power - 3 * min(power // 3, 4))}{unit}"
