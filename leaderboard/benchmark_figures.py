"""The kinds of figures that a benchmark can describe: what its paper draws, for all models of a table at once.

A description names metrics and words; it holds no value and draws nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias


class Shown(NamedTuple):
    """A value that a figure shows of each model."""

    label: str
    metric: str
    """Name of a metric or index."""
    group: Mapping[str, str] = {}
    """Slice of the items; empty for all."""
    config: str | None = None
    """Config whose result has the metric; None for the first that has it."""


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
    """A row for each value of one group and a column for each value of another, as means over the models."""

    name: str
    row_title: str
    column_title: str
    caption: str
    metric: str
    row_group: str
    column_group: str
    values: tuple[str, ...]
    """Values of both groups. A cell without a slice is 0, since only what occurs has one."""
    rest: Shown | None = None
    """A last column, with a metric that has a slice for each value of the rows."""
    config: str | None = None


class Strips(NamedTuple):
    """A row for each model and a panel for each group of values, drawn as dots with their intervals."""

    name: str
    caption: str
    subject: str
    """What the panels are, as in "four stages of treating pronouns alike"."""
    panels: Mapping[str, tuple[Shown, ...]]
    """Values of each panel, by its title."""


Figure: TypeAlias = HeatMap | Matrix | Strips
