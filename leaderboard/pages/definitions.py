"""Collects what readers need to understand a metric: its name, definition, range, ideal value and unit."""

from __future__ import annotations

from typing import NamedTuple

from schemas.documents.result import Metric


class Definition(NamedTuple):
    """An entry in the list of definitions below a table."""

    label: str
    name: str
    """Name of the metric in files."""
    version: str
    text: str
    facts: str
    """Sentence about range, ideal value and unit."""


def define(label: str, metric: Metric, text: str, seen: str = "") -> Definition:
    """Return the definition of a metric.

    Args:
        label: Name of the metric for readers.
        metric: Any value of the metric.
        text: Description of the metric.
        seen: Sentence on the values in a table, by which readers judge others; empty without a table.
    """
    ideal = "no value is ideal" if metric.ideal is None else f"ideal {metric.ideal:g}"
    limits = f"From {metric.minimum:g}" + (" up" if metric.maximum is None else f" to {metric.maximum:g}")
    facts = f"{limits}, {ideal}; computed from {metric.unit}."
    facts = facts.replace("-", "\N{MINUS SIGN}")
    return Definition(label, metric.name, metric.version, text, f"{facts} {seen}".strip())
