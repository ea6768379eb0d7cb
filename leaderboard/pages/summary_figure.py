"""Draws the summary of a model: a line for each headline measure, on its own scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from textwrap import shorten

from biasboard.ground.charts.drawing import DASHED, FIRST, GRID, MUTED, SECOND, THIRD, Drawing
from biasboard.ground.charts.labels import shortened
from biasboard.ground.charts.planes import Dot, Plane
from leaderboard.model_facts import display_name
from leaderboard.pages.summary_forms import number_of, placing_text, value_of
from schemas.documents.model_summary import MeasureValue, ModelSummary
from schemas.documents.result import within

_SCALE, _ROW = 220, 24
_LABELS, _END = -215, 8
"""Left end of the labels, and the distance of a scale from the numbers at its ends."""
_COLUMNS = (_SCALE + 34, _SCALE + 184, _SCALE + 314)
"""Left ends of the columns of numbers."""
_COLOURS = (FIRST, SECOND, THIRD)
"""Colours of the model, the useless predictor and the model beside it."""
_MOST_OF_REASON = 110
"""Largest number of characters of the reason for a missing rank: the width of the figure."""


def summary_figure(summary: ModelSummary) -> str:
    """Return a figure as SVG that can be read on a light and on a dark page."""
    drawing = Drawing()
    against = "" if summary.against is None else f"▲ {shortened(display_name(summary.against))}"
    head = (f"● {shortened(display_name(summary.model))}", "◊ useless predictor", against)
    y = 0.0
    for number, benchmark in enumerate(summary.benchmarks):
        drawing.text(_LABELS, y, benchmark.heading, bold=True)
        if number == 0:
            drawing.text(0, y, "¦ ideal", colour=MUTED)
            _columns(drawing, y, head)
        y += _ROW
        if benchmark.rank is None:
            # A row of its own, since the reason is longer than the labels, and headings share theirs with the legend.
            drawing.text(_LABELS, y, shorten(placing_text(benchmark), _MOST_OF_REASON, placeholder=" …"))
            y += _ROW
        for measure in benchmark.measures:
            drawing.text(_LABELS, y, measure.label)
            _measure(drawing, y, measure)
            y += _ROW
    return drawing.chart("", background="white").svg


def _columns(drawing: Drawing, y: float, texts: Sequence[str]) -> None:
    for x, text, colour in zip(_COLUMNS, texts, _COLOURS, strict=True):
        drawing.text(x, y, text, colour=colour)


def _measure(drawing: Drawing, y: float, measure: MeasureValue) -> None:
    """Draw the scale of a measure with the values on it, and write them behind it."""
    if measure.value is None:
        _columns(drawing, y, ("no value", "", ""))
        return
    interval, low = measure.interval, measure.minimum
    useless = None if measure.useless is None else measure.useless.value
    against = None if measure.difference is None else measure.difference.value
    known = [measure.value, *((interval.low, interval.high) if interval else ())]
    known += [value for value in (measure.ideal, useless, against) if value is not None]
    # A measure without a largest value gets the next whole number as the end of its scale.
    high = float(math.floor(max(known)) + 1) if measure.maximum is None else measure.maximum
    plane = Plane(drawing, _SCALE, _ROW, x=(low, high), top=y - _ROW / 2)
    plane.line([(low, 0.5), (high, 0.5)], GRID, width=5)
    if measure.ideal is not None:
        plane.line([(measure.ideal, 0.1), (measure.ideal, 0.9)], MUTED, width=2, dash=DASHED)
    ends = None if interval is None else (within(interval.low, low, high), within(interval.high, low, high))
    marks = [
        Dot(within(value, low, high), 0.5, colour, shape=shape, is_hollow=shape == "diamond", across=across)
        for value, colour, shape, across in (
            (useless, SECOND, "diamond", None),
            (against, THIRD, "triangle-up", None),
            (measure.value, FIRST, "circle", ends),
        )
        if value is not None
    ]
    plane.dots(marks, size=4.2)
    for end, x in ((low, -_END), (high, _SCALE + _END)):
        text = f"{end:g}".replace("-", "\N{MINUS SIGN}")
        drawing.text(x, y, text, anchor="end" if x < 0 else "start", colour=MUTED)
    others = ["" if value is None else number_of(measure, value) for value in (useless, against)]
    _columns(drawing, y, [value_of(measure), *others])
