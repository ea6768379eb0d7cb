"""Draws the summary of a model: a line for each headline measure, on its own scale."""

from __future__ import annotations

import math
from collections.abc import Iterator
from textwrap import shorten

from biasboard.ground.charts import FIRST, FONT_SIZE, GRID, MUTED, SECOND, TEXT, THIRD, shortened, svg_of, with_style
from biasboard.ground.strict_json import JsonValue
from leaderboard.model_facts import display_name
from leaderboard.pages.drawing import DASHED
from leaderboard.pages.summary_forms import number_of, placing_text, value_of
from schemas.documents.model_summary import MeasureValue, ModelSummary
from schemas.documents.result import within

_SCALE, _ROW = 220, 24
_LABELS, _END = -205, 8
"""Left end of the labels, and the distance of a scale from the numbers at its ends."""
_COLUMNS = (_SCALE + 34, _SCALE + 164, _SCALE + 284)
"""Left ends of the columns of numbers."""
_MOST_OF_REASON = 110
"""Largest number of characters of the reason for a missing rank: the width of the figure."""


def summary_figure(summary: ModelSummary) -> str:
    """Return a figure as SVG that can be read on a light and on a dark page.

    Raises:
        MissingExtraError: the extra ``site`` is not installed.
    """
    rows = list(_rows(summary))
    texts = [
        _text("heading", x=_LABELS, fontWeight="bold"),
        _text("label", x=_LABELS),
        _text("ideal", x=0, color=MUTED),
        _text("low_end", x=-_END, align="right", color=MUTED),
        _text("high_end", x=_SCALE + _END, color=MUTED),
        *(
            _text(name, x=x, color=colour)
            for name, x, colour in zip(("model", "useless", "against"), _COLUMNS, (FIRST, SECOND, THIRD), strict=True)
        ),
    ]
    spec: dict[str, JsonValue] = {
        "width": _SCALE,
        "height": _ROW * len(rows),
        "data": {"values": [*rows]},
        "encoding": {"y": {"field": "row", "type": "ordinal", "axis": None}},
        "layer": [
            _line("track", "track_end", strokeWidth=5, color=GRID),
            _mark("at_ideal", "tick", thickness=2, size=18, strokeDash=DASHED, color=MUTED),
            _line("at_low", "at_high", strokeWidth=2.5, opacity=0.55, color=FIRST),
            _mark("at_useless", "point", shape="diamond", filled=False, size=50, strokeWidth=1.6, color=SECOND),
            _mark("at_against", "point", shape="triangle-up", filled=True, size=60, opacity=1, color=THIRD),
            _mark("at_model", "point", shape="circle", filled=True, size=55, opacity=1, color=FIRST),
            *texts,
        ],
    }
    return svg_of(with_style(spec, background="white"))


def _rows(summary: ModelSummary) -> Iterator[dict[str, JsonValue]]:
    against = "" if summary.against is None else f"▲ {shortened(display_name(summary.against))}"
    head: dict[str, JsonValue] = {
        "ideal": "| ideal",
        "model": f"● {shortened(display_name(summary.model))}",
        "useless": "◊ useless predictor",
        "against": against,
    }
    number = 0
    for benchmark in summary.benchmarks:
        yield {"row": number, "heading": benchmark.heading, **(head if number == 0 else {})}
        number += 1
        if benchmark.rank is None:
            # A row of its own, since the reason is longer than the labels, and headings share theirs with the legend.
            yield {"row": number, "label": shorten(placing_text(benchmark), _MOST_OF_REASON, placeholder=" …")}
            number += 1
        for measure in benchmark.measures:
            yield {"row": number, "label": measure.label, **_cells(measure)}
            number += 1


def _cells(measure: MeasureValue) -> dict[str, JsonValue]:
    """Return the texts of a row, and where its marks lie on the scale, as shares of it."""
    if measure.value is None:
        return {"model": "no value"}
    interval, useless, difference = measure.interval, measure.useless, measure.difference
    values = {"model": measure.value, "ideal": measure.ideal}
    if interval is not None:
        values |= {"low": interval.low, "high": interval.high}
    if useless is not None:
        values["useless"] = useless.value
    if difference is not None:
        values["against"] = difference.value
    known = {name: value for name, value in values.items() if value is not None}
    low = measure.minimum
    # A measure without a largest value gets the next whole number as the end of its scale.
    high = float(math.floor(max(known.values())) + 1) if measure.maximum is None else measure.maximum
    cells: dict[str, JsonValue] = {
        f"at_{name}": (within(value, low, high) - low) / (high - low) for name, value in known.items()
    }
    ends = [f"{end:g}".replace("-", "\N{MINUS SIGN}") for end in (low, high)]
    cells |= {"track": 0, "track_end": 1, "low_end": ends[0], "high_end": ends[1], "model": value_of(measure)}
    if useless is not None:
        cells["useless"] = number_of(measure, useless.value)
    if difference is not None:
        cells["against"] = number_of(measure, difference.value)
    return cells


def _x(field: str) -> dict[str, JsonValue]:
    return {"field": field, "type": "quantitative", "scale": {"domain": [0, 1]}, "axis": None}


def _line(start: str, end: str, **look: JsonValue) -> JsonValue:
    encoding: JsonValue = {"x": _x(start), "x2": {"field": end}}
    return {
        "transform": [{"filter": f"isValid(datum.{start})"}],
        "mark": {"type": "rule", **look},
        "encoding": encoding,
    }


def _mark(field: str, kind: str, **look: JsonValue) -> JsonValue:
    return {
        "transform": [{"filter": f"isValid(datum.{field})"}],
        "mark": {"type": kind, **look},
        "encoding": {"x": _x(field)},
    }


def _text(field: str, *, x: int, **look: JsonValue) -> JsonValue:
    mark: JsonValue = {
        "type": "text",
        "align": "left",
        "baseline": "middle",
        "fontSize": FONT_SIZE - 1,
        "color": TEXT,
        **look,
    }
    encoding: JsonValue = {"x": {"value": x}, "text": {"field": field}}
    return {"transform": [{"filter": f"isValid(datum.{field})"}], "mark": mark, "encoding": encoding}
