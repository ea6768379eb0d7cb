"""Draws bump charts: how the order of models changes from one way to measure to the next."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import NamedTuple

from biasboard.ground.charts import FONT_SIZE, TEXT, shortened
from biasboard.ground.strict_json import JsonValue
from leaderboard.pages.drawing import SERIES, Channel, Chart, distinct, draw, literal, row_names
from leaderboard.ranking.rank_ranges import rank_correlation

# A number with three decimals fits between the lines of a column, and a tau over it.
_STEP, _ROW, _LINE = 74, 19, FONT_SIZE + 2
_HALF = 19
"""Half the width that lines leave free for a number."""
_TITLE = 11
"""Number of characters of a line that fit over a column."""
LEAST_ROWS = 3
"""Smallest number of rows whose orders are compared: those of two are the same or reversed, whatever they are worth."""


class Order(NamedTuple):
    """A column of a bump chart: values by which its rows are ordered."""

    title: str
    values: Sequence[float | str]
    """Value of each row, or the reason why it has none."""
    ideal: float = 1.0
    """Best value; rows are ordered by their distance from it."""


def bump_chart(names: Sequence[str], orders: Sequence[Order], *, subject: str) -> Chart | None:
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
    labels = distinct([shortened(name) for name in names])
    rows: dict[str, list[float]] = {}
    left_out = []
    for label, values in zip(labels, zip(*(order.values for order in orders), strict=True), strict=True):
        reasons = [value for value in values if isinstance(value, str)]
        if reasons:
            left_out.append(f"{label} ({reasons[0]})")
        else:
            rows[label] = [value for value in values if not isinstance(value, str)]
    if len(rows) < LEAST_ROWS:
        return None
    by_column = zip(orders, zip(*rows.values(), strict=True), strict=True)
    distances = [[abs(value - order.ideal) for value in column] for order, column in by_column]
    taus = ["", *(_written(rank_correlation(distances[0], column)) for column in distances[1:])]
    sorted_rows = [_sorted([*rows], column, distances[0]) for column in distances]
    note = (
        f"τ is Kendall's rank correlation (tau-b) with the first column over these {len(rows)} models: 1 is the same "
        "order, 0 no relation, \N{MINUS SIGN}1 the reverse."
    )
    note += f" Left out: {', '.join(left_out)}." if left_out else ""
    words = (
        f"{order.title}: {tau}{', ' if tau else ''}first is {column[0]}, last {column[-1]}"
        for order, tau, column in zip(orders, taus, sorted_rows, strict=True)
    )
    titles = [
        [*textwrap.wrap(order.title, _TITLE), *([tau] if tau else [])] for order, tau in zip(orders, taus, strict=True)
    ]
    alt = f"Bump chart of {len(rows)} models, {subject}. {'; '.join(words)}."
    return draw(_spec(rows, titles, sorted_rows), alt, note)


def _written(tau: float | None) -> str:
    return "τ undefined" if tau is None else f"τ {tau:.2f}".replace("-", "\N{MINUS SIGN}")


def _sorted(labels: Sequence[str], distances: Sequence[float], first: Sequence[float]) -> list[str]:
    """Return the rows, the nearest to the ideal first; those that tie keep the order of the first column."""
    return [label for _, _, _, label in sorted(zip(distances, first, range(len(labels)), labels, strict=True))]


def _spec(
    rows: dict[str, list[float]], title_lines: Sequence[Sequence[str]], sorted_rows: Sequence[Sequence[str]]
) -> dict[str, JsonValue]:
    # The lines of a label hang from their first one, so that those of all columns have to be as many to end alike.
    n_lines = max(map(len, title_lines))
    blank = "\N{NO-BREAK SPACE}"
    titles = distinct(["\n".join([*[blank] * (n_lines - len(lines)), *lines]) for lines in title_lines])
    # A place has the name of the row that is there in the first column, so that the axis shows these names.
    names = sorted_rows[0]
    # Colours go round in the order of the first column, so that rows of the same colour start far apart.
    colours = {name: [*SERIES][number % len(SERIES)] for number, name in enumerate(names)}
    values: list[JsonValue] = []
    for number, (title, column) in enumerate(zip(titles, sorted_rows, strict=True)):
        for place, name in zip(names, column, strict=True):
            point: dict[str, JsonValue] = {
                "column": title,
                "place": place,
                "text": f"{rows[name][number]:.3f}",
                "colour": colours[name],
            }
            if number + 1 < len(titles):
                point |= {"next": titles[number + 1], "next_place": names[sorted_rows[number + 1].index(name)]}
            else:
                point["name"] = name
            values.append(point)
    x: Channel = {
        "field": "column",
        "type": "nominal",
        "sort": [*titles],
        "title": None,
        "scale": {"type": "point", "padding": 0.3, "domain": [*titles]},
        "axis": {
            "orient": "top",
            "labelAngle": 0,
            "labelExpr": "split(datum.label, '\\n')",
            "labelColor": TEXT,
            "labelLimit": 0,
            "labelOverlap": False,
            "labelLineHeight": _LINE,
            "labelPadding": (n_lines - 1) * _LINE + 4,
            "domain": False,
            "ticks": False,
            "grid": False,
        },
    }
    y = row_names("place", names, domain=False, grid=False, labelColor=TEXT)
    y["scale"] = {"type": "point", "padding": 0.5, "domain": [*names]}
    at: Channel = {"x": x, "y": y, "color": literal("colour")}
    text: Channel = {"type": "text", "baseline": "middle", "fontSize": FONT_SIZE - 1}
    return {
        "width": {"step": _STEP},
        "height": {"step": _ROW},
        "data": {"values": values},
        # The fonts of readers may be wider than the one that the names are measured with.
        "padding": {"left": 5, "top": 5, "bottom": 5, "right": 24},
        "layer": [
            {
                "transform": [{"filter": "isValid(datum.next)"}],
                "mark": {"type": "rule", "strokeWidth": 1.6, "xOffset": _HALF, "x2Offset": -_HALF},
                "encoding": {**at, "x2": {"field": "next"}, "y2": {"field": "next_place"}},
            },
            {"mark": text, "encoding": {**at, "text": {"field": "text"}}},
            {
                "transform": [{"filter": "isValid(datum.name)"}],
                "mark": {**text, "align": "left", "dx": _HALF + 5},
                "encoding": {**at, "text": {"field": "name"}},
            },
        ],
    }
