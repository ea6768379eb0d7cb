"""Draws bump charts: how the order of models changes from one way to measure to the next."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from biasboard.ground.charts.drawing import MUTED, SERIES, TEXT, Chart, Drawing
from biasboard.ground.charts.labels import row_names
from biasboard.ground.charts.planes import LINE_HEIGHT, Plane
from leaderboard.ranking.rank_ranges import rank_correlation

# A number with three decimals fits between the lines of a column, and a tau over it.
_STEP, _ROW = 76, 19
_HALF = 20
"""Half the width that lines leave free for a number."""
_TITLE = 10
"""Number of characters of a line that fit over a column."""
LEAST_ROWS = 3
"""Smallest number of rows whose orders are compared: those of two are the same or reversed, whatever they are worth."""


class BumpColumn(NamedTuple):
    """A column of a bump chart: values whose distance from 1, the best one, orders its rows."""

    title: str
    values: Sequence[float | str]
    """Value of each row, or the reason why it has none."""


def bump_chart(names: Sequence[str], orders: Sequence[BumpColumn], *, subject: str) -> Chart | None:
    """Draw the order of the rows in each column, with a line for each row.

    Rows without a value in every column are left out, since places among different rows cannot be compared. Above each
    column but the first stands its rank correlation with the first. The note of the chart says over how many rows, and
    which ones are left out for which reason.

    Args:
        names: Names of the rows; rows that tie in all columns keep this order.
        orders: Columns from the left, at least two.
        subject: What orders the rows, as in "ordered by evenness with other weights", for the description.

    Returns:
        The chart, or None if fewer than ``LEAST_ROWS`` rows have all values.
    """
    rows: dict[str, list[float]] = {}
    left_out = []
    for label, values in zip(row_names(names), zip(*(order.values for order in orders), strict=True), strict=True):
        reasons = [value for value in values if isinstance(value, str)]
        if reasons:
            left_out.append(f"{label} ({reasons[0]})")
        else:
            rows[label] = [value for value in values if not isinstance(value, str)]
    if len(rows) < LEAST_ROWS:
        return None
    distances = [[abs(value - 1) for value in column] for column in zip(*rows.values(), strict=True)]
    correlations = (rank_correlation(distances[0], column) for column in distances[1:])
    written = ("τ undefined" if tau is None else f"τ {tau:.2f}" for tau in correlations)
    taus = ["", *(text.replace("-", "\N{MINUS SIGN}") for text in written)]
    # The nearest to the ideal first; those that tie keep the order of the first column.
    orderings = [
        [label for *_, label in sorted(zip(column, distances[0], range(len(rows)), rows, strict=True))]
        for column in distances
    ]
    note = (
        f"τ is Kendall's rank correlation (tau-b) with the first column over these {len(rows)} models: 1 is the same "
        "order, 0 no relation, \N{MINUS SIGN}1 the reverse."
    )
    note += f" Left out: {', '.join(left_out)}." if left_out else ""
    words = (
        f"{order.title}: {tau}{', ' if tau else ''}first is {column[0]}, last {column[-1]}"
        for order, tau, column in zip(orders, taus, orderings, strict=True)
    )
    drawing = Drawing()
    plane = Plane(drawing, _STEP * (len(orders) - 1), _ROW * len(rows), x=(0.0, len(orders) - 1), y=(len(rows), 0.0))
    for number, (order, tau) in enumerate(zip(orders, taus, strict=True)):
        lines = [*textwrap.wrap(order.title, _TITLE), *([tau] if tau else [])]
        for line, text in enumerate(reversed(lines)):
            is_tau = bool(tau) and line == 0
            down = -8 - line * LINE_HEIGHT
            drawing.text(plane.across(number), down, text, anchor="middle", colour=MUTED if is_tau else TEXT)
    # Colours go round in the order of the first column, so that rows of the same colour start far apart.
    for start, name in enumerate(orderings[0]):
        colour = [*SERIES][start % len(SERIES)]
        ends = [(plane.across(number), plane.down(of.index(name) + 0.5)) for number, of in enumerate(orderings)]
        for (x, y), (next_x, next_y) in pairwise(ends):
            drawing.line([(x + _HALF, y), (next_x - _HALF, next_y)], colour, width=1.6)
        for (x, y), value in zip(ends, rows[name], strict=True):
            drawing.text(x, y, f"{value:.3f}", anchor="middle", colour=colour)
        drawing.text(-_HALF - 5, ends[0][1], name, anchor="end")
        drawing.text(ends[-1][0] + _HALF + 5, ends[-1][1], name, colour=colour)
    return drawing.chart(f"Bump chart of {len(rows)} models, {subject}. {'; '.join(words)}.", note)
