"""The kinds of figures that a benchmark can describe: what its paper draws, for all models of a table at once.

A description names metrics and words; it holds no value and draws nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import mean
from typing import NamedTuple, TypeAlias

from evaluators.benchmark import ShownContext


class Shown(NamedTuple):
    """A value that a figure shows of each model."""

    label: str
    metric: str
    """Name of a metric or index."""
    group: Mapping[str, str] = {}
    """Slice of the items; empty for all."""
    config: str | None = None
    """Config whose result has the metric; None for the first that has it."""
    contexts: tuple[ShownContext, ...] = ()
    """Examples that prompts show: the value is the mean over the results with them; empty for any result."""
    with_adapters: bool = False
    """True for the value of the same model with adapters, which is drawn as one way to change the model."""


class HeatMap(NamedTuple):
    """A row for each model and a column for each value, with the value in the cell."""

    name: str
    """Suffix of the file name."""
    title: str
    """Words over the columns."""
    caption: str
    """How to read it, in plain words, and what would be even."""
    subject: str
    """What the values are, as in "shares of continuations that keep the pronoun"."""
    columns: tuple[Shown, ...]
    chance: float | None = None
    """Value that needs no skill; cells that are not separably above it are pale."""


class Matrix(NamedTuple):
    """A row and a column for each value of two groups, with the slice of both in the cell, as means over the models."""

    name: str
    row_title: str
    column_title: str
    caption: str
    metric: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    slice_of: Callable[[str, str], Mapping[str, str] | None]
    """Function of a row and a column that returns their slice; None for a cell that stays empty."""
    summary: Callable[[Mapping[tuple[str, str], float]], str]
    """Function from the known means, by row and column, to the words that sum them up for those who cannot see them."""
    missing: float | None = None
    """Value of a slice that a model does not have, which is 0 where only what occurs has one; None if it is unknown."""
    frames_diagonal: bool = False
    """True to frame the cells whose row and column are the same."""
    from_least: bool = False
    """True to begin the colours at the smallest value, rounded down to a tenth, if all values may be close to 1."""
    row_label: Callable[[str], str] = str
    rest: Callable[[str], Shown] | None = None
    """Function of a row that returns the value of a last column; its label is the same in all rows."""
    config: str | None = None


class Needed(NamedTuple):
    """A config in which a model has to achieve more than every baseline, or its other values are unreliable."""

    config: str
    note: str
    """What the sign beside the names of the other models means, as a sentence without its subject."""


class Strips(NamedTuple):
    """A row for each model and a panel for each group of values, drawn as dots with their intervals."""

    name: str
    caption: str
    subject: str
    """What the panels are, as in "four stages of treating pronouns alike"."""
    panels: Mapping[str, tuple[Shown, ...]]
    """Values of each panel, by its title."""
    needed: Needed | None = None


class Curves(NamedTuple):
    """A line for each model over a few positions, and a panel for each value; or such panels for each of few models."""

    name: str
    caption: str
    subject: str
    """What the values are, as in "label bias after examples"."""
    x_title: str
    panels: Mapping[str, tuple[Shown, ...]]
    """Value at each position, by the title of the panel; all panels have the same positions."""
    lines: Mapping[str, Mapping[str, tuple[Shown, ...]]] = {}
    """Lines of one model by name, such as one for each correction of it, each with its part of ``panels``. The first
    models then have panels of their own, side by side; empty for one line per model."""


class Lorenz(NamedTuple):
    """A Lorenz curve for each model: the shares of a sum that the smallest of equal parts have."""

    name: str
    caption: str
    subject: str
    """What the shares of the smaller half of the parts are, as in "Accuracy in the worse half of the classes"."""
    x_title: str
    panels: Mapping[str, tuple[Shown, ...]]
    """Value of each part, from the smallest, by the title of the panel; all panels have as many."""


class Clouds(NamedTuple):
    """A panel for each model with a point for each slice of one group, over a fact about the slice."""

    name: str
    caption: str
    subject: str
    """What the points are, as in "occupations"."""
    metric: str
    group: str
    x_title: str
    y_title: str
    x_range: tuple[float, float]
    x: Callable[[str], float | None]
    """Function that returns the fact about a slice; None if it is unknown."""
    y: Callable[[str, float], float]
    """Function of a slice and its value that returns how far it is from even, which is 0; linear in the value."""
    config: str | None = None


class Ordering(NamedTuple):
    """A way to order the models: by one value, or by several that are put together."""

    label: str
    parts: tuple[Shown, ...]
    together: Callable[[Sequence[float]], float | str] = mean
    """Function that returns one value for those of the parts, or the reason why there is none."""


class BumpChart(NamedTuple):
    """A column for each way to order the models, the nearest to 1 first, and a line for each model."""

    name: str
    caption: str
    subject: str
    """What the columns are, as in "ordered by evenness with other weights"."""
    orderings: tuple[Ordering, ...]
    """Columns from the left; the first is the one that the others are compared with."""


Figure: TypeAlias = BumpChart | HeatMap | Matrix | Strips | Curves | Lorenz | Clouds
