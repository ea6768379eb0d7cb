"""Says in sentences what a model does well and badly, as far as the intervals of its metrics support it.

A value is better than another if it is nearer to the ideal, and separably so if the intervals of the two distances do
not overlap. Nothing here knows a benchmark or a metric by name.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias

from biasboard.ground.plain_text import listed
from leaderboard.pages.markup import interval_text, metric_number, number
from schemas.documents.result import TOLERANCE, Metric

Verdict: TypeAlias = Literal["well", "badly", "uneven", "neither", "trivial", "alone", "unknown"]
VERDICTS: dict[Verdict, str] = {
    "well": "Well",
    "badly": "Badly",
    "uneven": "Unevenly",
    "neither": "Neither well nor badly",
    "trivial": "Says little by itself: trivial baselines reach the ideal",
    "alone": "Alone in its table, so compared with the ideal only",
    "unknown": "Nothing can be said",
}
"""Headings of the verdicts, in the order in which pages show them."""
_MOST_NAMES = 3
_MOST_SLICES = 12


class Rival(NamedTuple):
    """The value of another row of the same table."""

    name: str
    metric: Metric
    is_baseline: bool


class Claim(NamedTuple):
    """A sentence about one metric of a model."""

    verdict: Verdict
    label: str
    text: str


class _Split(NamedTuple):
    """The rivals of one kind, sorted by verdict."""

    better: list[str]
    """Rivals than which the model is separably better."""
    worse: list[str]
    same: list[str]


def claim(label: str, metric: Metric, rivals: Sequence[Rival]) -> Claim:
    """Say how good the value of a metric is, compared with its ideal and with the other rows of its table.

    The verdict is *well* if the value is separably better than all baselines, *badly* if it is separably worse than a
    baseline and better than none, or as far from the ideal as possible. In a table without baselines, the other models
    take their place; also where a baseline reaches the ideal, since a measure that is ideal for a predictor that reads
    nothing tells no model from such a predictor.

    Args:
        label: Name of the metric for readers.
        metric: Value to judge.
        rivals: Values of the other rows; those without a value or an interval are left out.
    """
    if metric.value is None:
        return Claim("unknown", label, f"without a value: {metric.reason}.")
    if metric.interval is None:
        text = f"is {metric_number(metric)}, without an interval ({metric.interval_reason}), so it is not compared."
        return Claim("unknown", label, text)
    own = distances(metric)
    if own is None or metric.ideal is None:
        return Claim("unknown", label, f"is {_valued(metric)}; it has no ideal value to compare it with.")
    trivial = [rival.name for rival in rivals if rival.is_baseline and _is_ideal(rival.metric)]
    baselines = _split(own, [] if trivial else [rival for rival in rivals if rival.is_baseline])
    models = _split(own, [rival for rival in rivals if not rival.is_baseline])
    judges = baselines if any(baselines) else models
    verdict: Verdict = "neither" if any(judges) else "trivial" if trivial else "alone"
    if judges.better and not judges.worse and not judges.same:
        verdict = "well"
    elif (judges.worse and not judges.better) or own[0] >= _largest_distance(metric, metric.ideal):
        verdict = "badly"
    parts = [
        _against_ideal(own, metric),
        f"baselines with an ideal value: {listed(trivial, most=_MOST_NAMES)}" if trivial else "",
        _against(baselines, "baseline"),
        _against(models, "other model"),
    ]
    return Claim(verdict, label, f"is {_valued(metric)}; {'; '.join(part for part in parts if part)}.")


def uneven(label: str, group: str, slices: Sequence[tuple[str, Metric]]) -> Claim | None:
    """Say on which slice of a group a metric is best and worst; None if the intervals of the two overlap.

    Args:
        label: Name of the metric for readers.
        group: Name of the group for readers.
        slices: Name and value of each slice. Groups with many slices are left out, because some of many would differ by
            chance.
    """
    ends = extremes(slices)
    if ends is None:
        return None
    (best, best_value), (worst, worst_value) = ends
    n_compared = sum(distances(metric) is not None for _, metric in slices)
    text = (
        f"differs by {group}: best for {best} with {_valued(best_value)} and worst for {worst} with "
        f"{_valued(worst_value)}, of {n_compared} compared."
    )
    return Claim("uneven", label, text)


def extremes(slices: Sequence[tuple[str, Metric]]) -> tuple[tuple[str, Metric], tuple[str, Metric]] | None:
    """Return the slices on which a metric is best and worst; None if their intervals overlap or there are too many."""
    defined = [(ends, name, metric) for name, metric in slices if (ends := distances(metric)) is not None]
    if not 2 <= len(defined) <= _MOST_SLICES:
        return None
    best = min(defined, key=lambda each: (each[0][1], each[1]))
    worst = max(defined, key=lambda each: (each[0][0], each[1]))
    return None if best[0][1] >= worst[0][0] else (best[1:], worst[1:])


def sorted_claims(claims: Iterable[Claim]) -> tuple[Claim, ...]:
    """Return claims in the order of their verdicts."""
    order = list(VERDICTS)
    return tuple(sorted(claims, key=lambda each: order.index(each.verdict)))


def joined(claims: Sequence[Claim]) -> tuple[Claim, ...]:
    """Join claims of one verdict that say the same of several metrics."""
    labels: dict[str, list[str]] = {}
    for found in claims:
        labels.setdefault(found.text, []).append(found.label)
    return tuple(Claim(claims[0].verdict, ", ".join(names), text) for text, names in labels.items())


def distances(metric: Metric) -> tuple[float, float] | None:
    """Return the smallest and largest distance to the ideal that the interval allows; None if one is unknown."""
    if metric.value is None or metric.interval is None or metric.ideal is None:
        return None
    ends = sorted(abs(end - metric.ideal) for end in (metric.interval.low, metric.interval.high))
    contains = metric.interval.low <= metric.ideal <= metric.interval.high
    return (0.0 if contains else ends[0]), ends[1]


def _is_ideal(metric: Metric) -> bool:
    """Return True if a value is ideal, up to rounding."""
    return metric.value is not None and metric.ideal is not None and abs(metric.value - metric.ideal) <= TOLERANCE


def _split(own: tuple[float, float], rivals: Sequence[Rival]) -> _Split:
    split = _Split([], [], [])
    for rival in rivals:
        theirs = distances(rival.metric)
        if theirs is None:
            continue
        if own[1] < theirs[0]:
            split.better.append(rival.name)
        elif theirs[1] < own[0]:
            split.worse.append(rival.name)
        else:
            split.same.append(rival.name)
    return split


def _valued(metric: Metric) -> str:
    interval = "" if metric.interval is None else f" {interval_text(metric.interval, signed=metric.minimum < 0)}"
    return f"{metric_number(metric)}{interval}"


def _largest_distance(metric: Metric, ideal: float) -> float:
    return max(ideal - metric.minimum, math.inf if metric.maximum is None else metric.maximum - ideal)


def _against_ideal(own: tuple[float, float], metric: Metric) -> str:
    ideal = metric.ideal or 0.0
    if own[0] == 0:
        return f"it cannot be told apart from the ideal {ideal:g}"
    if own[0] >= _largest_distance(metric, ideal):
        return f"it is as far from the ideal {ideal:g} as possible"
    low, high = number(own[0]), number(own[1])
    return f"it misses the ideal {ideal:g} by {low}" + ("" if low == high else f" to {high}")


def _against(split: _Split, kind: str) -> str:
    n = sum(map(len, split))
    said = [
        f"{words} {_counted(names, n, kind)}"
        for words, names in (
            ("separably better than", split.better),
            ("separably worse than", split.worse),
            ("not told apart from", split.same),
        )
        if names
    ]
    return ", ".join(said)


def _counted(names: Sequence[str], n: int, kind: str) -> str:
    """Return how many of the n rivals are meant, and the first names."""
    shown = listed(names, most=_MOST_NAMES)
    if n == 1:
        return f"the only {kind} ({shown})"
    if len(names) == n:
        return f"all {n} {kind}s ({shown})"
    return f"{len(names)} of {n} {kind}s ({shown})"
