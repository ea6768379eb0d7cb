"""Chooses the metrics that the columns of a table show, and their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from leaderboard.benchmark_pages import Column, load_pages
from leaderboard.verify.entries import Entry


class Undefined(NamedTuple):
    """A metric without a value in any row of a table, and the reason."""

    metric: str
    reason: str


def choose(benchmark: str, entries: Sequence[Entry]) -> tuple[Column, ...]:
    """Choose the columns of a table.

    The columns that the benchmark describes come first. Every other metric on all items follows under its label,
    unless the benchmark excludes it. A column without a value in any row is left out;
    :func:`undefined` gives the reason.
    """
    pages = load_pages(benchmark)
    layout = pages.layout(lambda name: _has_value(Column(name), entries))
    described = {column.metric for column in layout.columns} | layout.without_column
    names = dict.fromkeys(name for entry in entries for name, group in entry.metrics if not group)
    plain = [Column(name, pages.label(name)) for name in names if name not in described]
    named = [column if column.label else replace(column, label=pages.label(column.metric)) for column in layout.columns]
    return _of_one_version([column for column in (*named, *plain) if _has_value(column, entries)], entries)


def _of_one_version(columns: Sequence[Column], entries: Sequence[Entry]) -> tuple[Column, ...]:
    """Split each column whose rows have several versions, such as those of two scorers, into one column per version."""
    split: list[Column] = []
    for column in columns:
        metrics = [metric for entry in entries if (metric := column.of(entry)) is not None]
        versions = sorted({metric.version for metric in metrics if metric.value is not None})
        if len(versions) == 1:
            split.append(column)
        else:
            split += [replace(column, key=f"{column.key}@{version}", version=version) for version in versions]
    return tuple(split)


def undefined(entries: Sequence[Entry]) -> tuple[Undefined, ...]:
    """Return the metrics on all items that have no value in any of the results, with the reason from the first."""
    reasons = {}
    for name, group in dict.fromkeys(key for entry in entries for key in entry.metrics):
        metrics = [metric for entry in entries if (metric := entry.metrics.get((name, group)))]
        if not group and all(metric.value is None for metric in metrics):
            reasons[name] = metrics[0].reason or ""
    return tuple(Undefined(name, reason) for name, reason in reasons.items())


def _has_value(column: Column, entries: Sequence[Entry]) -> bool:
    return any((metric := column.of(entry)) is not None and metric.value is not None for entry in entries)
