"""Draws grids of numbers whose cells are coloured by the number: heat maps and matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from biasboard.ground.charts import (
    DOTTED,
    INK,
    LINE_HEIGHT,
    MUTED,
    N_INKED,
    PAPER,
    STEPS,
    TEXT,
    Chart,
    Drawing,
    row_names,
    width_of,
)
from biasboard.ground.plain_text import printed

# A number such as .45 fits a column, and twelve columns with names of models a phone.
_STEP, _HEIGHT, _BETWEEN = 32, 21, 2
_ABOVE = 10
"""Distance of the names of the columns from the grid."""


class GridCell(NamedTuple):
    """A cell of a grid."""

    value: float | None
    """Number in [0, 1]; None if unknown."""
    is_pale: bool = False
    """True if it says nothing, such as a number that chance explains."""
    is_framed: bool = False


def grid(
    rows: Sequence[str],
    columns: Sequence[str],
    cells: Sequence[Sequence[GridCell | None]],
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
        palest: Value of the palest colour; 1 has the strongest.
    """
    names = row_names(rows)
    drawing = Drawing()
    drawing.text(0, -_ABOVE - LINE_HEIGHT - 3, column_title, bold=True)
    for number, column in enumerate(columns):
        drawing.text((number + 0.5) * _STEP, -_ABOVE, column, anchor="middle")
    for number, name in enumerate(names):
        drawing.text(-6, (number + 0.5) * _HEIGHT, name, anchor="end")
    if row_title is not None:
        left = -6 - max(map(width_of, names)) - LINE_HEIGHT
        drawing.text(left, len(rows) * _HEIGHT / 2, row_title, anchor="middle", bold=True, upwards=True)
    placed = [
        (place * _STEP, row * _HEIGHT, cell, _step(cell, palest))
        for row, of_row in enumerate(cells)
        for place, cell in enumerate(of_row)
        if cell is not None
    ]
    size = _STEP - _BETWEEN, _HEIGHT - _BETWEEN
    # Boxes of one colour are drawn together, then what is written on those of one ink.
    for step, fill in enumerate(STEPS):
        for x, y, _, of_cell in placed:
            if of_cell == step:
                drawing.box(x + 1, y + 1, *size, fill=fill)
    for x, y, cell, _ in placed:
        if cell.is_pale:
            drawing.box(x + 1, y + 1, *size, frame=MUTED, dash=DOTTED)
    for x, y, cell, _ in placed:
        if cell.is_framed:
            drawing.box(x + 1, y + 1, *size, frame=TEXT)
    for ink in (MUTED, INK, PAPER):
        for x, y, cell, of_cell in placed:
            text = "?" if cell.value is None else short_number(cell.value)
            if text and ink == (MUTED if of_cell is None else INK if of_cell < N_INKED else PAPER):
                drawing.text(x + _STEP / 2, y + _HEIGHT / 2, text, anchor="middle", colour=ink)
    if sets_first_apart:
        drawing.line([(_STEP, 0), (_STEP, len(rows) * _HEIGHT)], TEXT, width=1.2)
    return drawing.chart(alt)


def _step(cell: GridCell, palest: float) -> int | None:
    """Return the number of the colour of a cell; None for none."""
    if cell.value is None or cell.is_pale:
        return None
    # By the number that the cell shows: what reads alike has one colour.
    share = (float(printed(cell.value, 2)) - palest) / (1 - palest) if palest < 1 else 1.0
    return min(int(share * len(STEPS)), len(STEPS) - 1)


def short_number(value: float) -> str:
    """Return a number with two decimals, without the zero before the point; nothing if it rounds to 0.

    >>> short_number(0.457), short_number(1.0), short_number(0.001)
    ('.46', '1', '')
    """
    text = f"{printed(value, 2)}"
    return {"0.00": "", "1.00": "1"}.get(text, text.removeprefix("0"))
