"""Draws grids of numbers whose cells are coloured by the number: heat maps and matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from biasboard.ground.charts import FONT_SIZE, LABEL_PADDING, MUTED, TEXT, room_for, shortened
from biasboard.ground.strict_json import JsonValue
from leaderboard.pages.drawing import INK, N_INKED, PAPER, STEPS, Chart, distinct, draw
from leaderboard.pages.markup import printed

# A number such as .45 fits a column, and twelve columns with names of models a phone.
_STEP, _HEIGHT = 29, 21
_STEPS = list(STEPS)


class Cell(NamedTuple):
    """A cell of a grid."""

    value: float | None
    """Number in [0, 1]; None if unknown."""
    is_pale: bool = False
    """True if it says nothing, such as a number that chance explains."""
    is_framed: bool = False


def grid(
    rows: Sequence[str],
    columns: Sequence[str],
    cells: Sequence[Sequence[Cell | None]],
    *,
    column_title: str,
    alt: str,
    row_title: str | None = None,
    sets_first_apart: bool = False,
    palest: float = 0.0,
) -> Chart:
    """Draw a grid with a number in each cell.

    Args:
        rows: Names of the rows, from the top.
        columns: Names of the columns, each different from the others.
        cells: The cells of each row; None for one that stays empty.
        column_title: Words over the columns.
        alt: Description of the chart.
        row_title: Words beside the rows; None for none.
        sets_first_apart: True to draw a line behind the first column, if it sums up the others.
        palest: Value of the palest colour; 1 has the darkest.
    """
    names = distinct([shortened(row) for row in rows])
    values = [
        _drawn(name, column, cell, palest)
        for name, of_row in zip(names, cells, strict=True)
        for column, cell in zip(columns, of_row, strict=True)
        if cell is not None
    ]
    axis: dict[str, JsonValue] = {"domain": False, "ticks": False, "labelLimit": 0, "labelOverlap": False}
    x: JsonValue = {
        "field": "column",
        "type": "ordinal",
        "sort": [*columns],
        "title": column_title,
        "axis": {
            **axis,
            "orient": "top",
            "labelAngle": 0,
            "labelColor": TEXT,
            "labelFontSize": FONT_SIZE - 1,
            "titleAnchor": "start",
        },
        "scale": {"paddingInner": 0.06},
    }
    y: JsonValue = {
        "field": "row",
        "type": "ordinal",
        "sort": [*names],
        "title": row_title,
        "axis": {
            **axis,
            "labelColor": TEXT,
            "labelPadding": LABEL_PADDING / 2,
            "minExtent": room_for(names),
            "titlePadding": 10,
        },
        "scale": {"paddingInner": 0.08},
    }
    fill: JsonValue = {"field": "fill", "type": "nominal", "scale": None}
    layers: list[JsonValue] = [
        {
            "transform": [{"filter": "isValid(datum.fill)"}],
            "mark": {"type": "rect"},
            "encoding": {"color": fill},
        },
        {
            "transform": [{"filter": "datum.pale"}],
            "mark": {"type": "rect", "filled": False, "stroke": MUTED, "strokeDash": [1.5, 2.5], "strokeWidth": 0.8},
        },
        {
            "transform": [{"filter": "datum.framed"}],
            "mark": {"type": "rect", "filled": False, "stroke": TEXT, "strokeWidth": 1.4},
        },
        {
            "transform": [{"filter": "datum.text"}],
            "mark": {"type": "text", "fontSize": FONT_SIZE - 1, "baseline": "middle", "dy": 0.5},
            "encoding": {"text": {"field": "text"}, "color": {"field": "ink", "type": "nominal", "scale": None}},
        },
    ]
    if sets_first_apart:
        layers.append(
            {
                "data": {"values": [{}]},
                "mark": {"type": "rule", "stroke": TEXT, "strokeWidth": 1.2},
                # Behind the cell, where the gap to the next one begins.
                "encoding": {
                    "x": {"datum": columns[0], "type": "ordinal", "bandPosition": 1.03},
                    "y": {"value": 0},
                    "y2": {"value": {"expr": "height"}},
                },
            }
        )
    spec: dict[str, JsonValue] = {
        "width": {"step": _STEP},
        "height": {"step": _HEIGHT},
        "data": {"values": values},
        "encoding": {"x": x, "y": y},
        "layer": layers,
    }
    return draw(spec, alt)


def _drawn(row: str, column: str, cell: Cell, palest: float) -> JsonValue:
    step = None
    if cell.value is not None and not cell.is_pale:
        # By the number that the cell shows: what reads alike has one colour.
        share = (float(printed(cell.value, 2)) - palest) / (1 - palest) if palest < 1 else 1.0
        step = min(int(share * len(STEPS)), len(STEPS) - 1)
    return {
        "row": row,
        "column": column,
        "text": "?" if cell.value is None else short_number(cell.value),
        "fill": None if step is None else _STEPS[step],
        "ink": MUTED if step is None else INK if step < N_INKED else PAPER,
        "pale": cell.is_pale,
        "framed": cell.is_framed,
    }


def short_number(value: float) -> str:
    """Return a number with two decimals, without the zero before the point; nothing if it rounds to 0.

    >>> short_number(0.457), short_number(1.0), short_number(0.001)
    ('.46', '1', '')
    """
    text = f"{printed(value, 2)}"
    return {"0.00": "", "1.00": "1"}.get(text, text.removeprefix("0"))
