"""Says in sentences how far a result can be trusted, and for which groups of items its values differ separably.

A value is better than another if it is nearer to the ideal, and separably so if the intervals of the two distances do
not overlap. Nothing here knows a benchmark or a metric by name. How a result lies beside other models and useless
predictors, its table, the page of its model and Compare say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from leaderboard.pages.markup import number, percent, value_text
from leaderboard.pages.tables import TableView
from leaderboard.verify.entries import Entry
from schemas.documents.result import Metric

_MOST_SLICES = 12
"""Number of slices above which the best and the worst are not named, because some of many would differ by chance."""


def doubts_of(entry: Entry) -> Iterator[str]:
    """Yield sentences on the items of a result that count and on answers that may be damaged."""
    counts = entry.result.counts
    missing = {
        "refused": counts.refused,
        "answered in a way that could not be read": counts.unparsed,
        "failed": counts.failed,
    }
    known = [f"{n:,} {words}" for words, n in missing.items() if n]
    rest = ", ".join(known) or "none was refused, unread or failed"
    yield f"{counts.scored:,} of {counts.items:,} items were scored ({percent(counts.scored, counts.items)}); {rest}."
    if counts.truncated:
        yield f"{counts.truncated:,} items have an answer that was cut off at the token limit."
    if (share := entry.first_token_share) is not None:
        yield (
            f"The letters of the options have {number(share)} of the probability of an answer's first token "
            "together (median); the rest is elsewhere."
        )
    if (reason := entry.result.environment.corruption) is not None:
        yield f"Its answers look corrupted: {reason}."


def uneven_groups(section: TableView, entry: Entry) -> Iterator[str]:
    """Yield sentences on groups of items that differ clearly, for each metric that summaries of a table are about."""
    names = section.pages.group_names
    for column in section.summarised:
        for key, slices in slices_by_group(entry, column.metric).items():
            if (ends := extremes(slices)) is not None:
                (best, best_value), (worst, worst_value), note = ends
                yield (
                    f"{column.heading} differs by {names.get(key, key.replace('_', ' '))}{note}: best for {best} with "
                    f"{value_text(best_value)} and worst for {worst} with {value_text(worst_value)}."
                )


def slices_by_group(entry: Entry, name: str) -> dict[str, list[tuple[str, Metric]]]:
    """Return the slices of a metric by group, each as its name for readers and its value."""
    slices: dict[str, list[tuple[str, Metric]]] = {}
    for (of_metric, group), metric in entry.metrics.items():
        if of_metric == name and len(group) == 1:
            slices.setdefault(group[0][0], []).append((group[0][1].replace("_", " "), metric))
    return slices


class Extremes(NamedTuple):
    """The slices on which a metric is nearest to its ideal and farthest from it."""

    best: tuple[str, Metric]
    worst: tuple[str, Metric]
    note: str
    """Which slices were compared, as the end of a clause; empty if all were."""


def extremes(slices: Sequence[tuple[str, Metric]]) -> Extremes | None:
    """Return the slices on which a metric is best and worst; None if their intervals overlap or there are too many.

    Slices of so few clusters that they have no interval are left out, and the note says so.
    """
    valued = [(name, metric) for name, metric in slices if metric.value is not None and metric.ideal is not None]
    defined = [(ends, name, metric) for name, metric in valued if (ends := distances(metric)) is not None]
    if not 2 <= len(defined) <= _MOST_SLICES:
        return None
    by_value = sorted(defined, key=lambda each: (abs((each[2].value or 0.0) - (each[2].ideal or 0.0)), each[1]))
    best, worst = by_value[0], by_value[-1]
    if best[0][1] >= worst[0][0]:
        return None
    known = f", of the {len(defined)} with an interval" if len(defined) < len(valued) else ""
    return Extremes(best[1:], worst[1:], known)


def distances(metric: Metric) -> tuple[float, float] | None:
    """Return the smallest and largest distance to the ideal that the interval allows; None if one is unknown."""
    if metric.value is None or metric.interval is None or metric.ideal is None:
        return None
    ends = sorted(abs(end - metric.ideal) for end in (metric.interval.low, metric.interval.high))
    contains = metric.interval.low <= metric.ideal <= metric.interval.high
    return (0.0 if contains else ends[0]), ends[1]
