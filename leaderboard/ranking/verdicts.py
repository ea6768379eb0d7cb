"""Compares each pair of models over the headline measures of all benchmarks that both answered alike.

Measures are compared where both models were asked under the same conditions, on the same items. Each interval is
widened for the number of measures of the pair (Bonferroni), so that of two equal models 5 % differ in any measure.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from evaluators.statistics.jackknife import LEVEL, Deviations
from leaderboard.ranking.boards import Board
from leaderboard.ranking.bounds import Bounds, bounds_of
from leaderboard.ranking.index_tables import IndexRow
from leaderboard.ranking.profiles import AnyRow, Profile, ProfileCell, ProfileColumn, entries_of, profiles_of
from leaderboard.ranking.rank_ranges import Candidate, compare_pairs
from leaderboard.verify.entries import Entry
from schemas.documents.result import TOLERANCE, Metric

DeviationsOf: TypeAlias = Callable[[Entry, str], Deviations | None]
"""Function that returns the deviations of a metric of a result; None if it has none."""

Outcome: TypeAlias = Literal["first", "second", "same", "differs", "unknown"]
"""The model that is separably nearer to the ideal; *same* if the two cannot be told apart, *differs* if they can and
the measure has no ideal, *unknown* if one value has no interval."""


class Measure(NamedTuple):
    """A headline measure under the conditions of one scope."""

    profile: Profile
    column: ProfileColumn


class Verdict(NamedTuple):
    """What a pair of models differs by in one measure."""

    measure: int
    """Index of the measure."""
    lead: float
    """How much nearer the first model is to the ideal; without an ideal, how much larger its value is."""
    interval: tuple[float, float] | None
    """95 % interval of the lead, widened for all measures of the pair, within what is possible; None if unknown."""
    outcome: Outcome


class Verdicts(NamedTuple):
    """All measures, and what each pair of models differs by."""

    measures: tuple[Measure, ...]
    pairs: Mapping[tuple[str, str], tuple[Verdict, ...]]
    """Verdicts by the identities of two models, of which the smaller comes first."""


class _Lead(NamedTuple):
    measure: int
    lead: float
    at_least: float
    """The lead with missing answers at their worst; 0 if they could turn it round."""
    largest: float
    """Largest lead that is possible."""
    error: float | None
    freedom: float
    has_ideal: bool


def verdicts(board: Board, deviations_of: DeviationsOf) -> Verdicts:
    """Compare each pair of language models over the headline measures that both have under the same conditions.

    Of several conditions of a benchmark, those count that its page shows first among those that both models share.

    Args:
        board: All tables.
        deviations_of: Source of the deviations of metrics, which need not be those that rank.
    """
    measures: list[Measure] = []
    leads: dict[tuple[str, str], list[_Lead]] = {}
    for benchmark in board.benchmarks:
        compared: set[tuple[str, str]] = set()
        for profile in profiles_of(board, benchmark):
            shared: dict[tuple[str, str], list[_Lead]] = {}
            for column in profile.columns:
                for pair, lead in _leads(column, len(measures), deviations_of).items():
                    shared.setdefault(pair, []).append(lead)
                measures.append(Measure(profile, column))
            for pair in shared.keys() - compared:
                leads.setdefault(pair, []).extend(shared[pair])
            compared |= shared.keys()
    return Verdicts(tuple(measures), {pair: _judged(found) for pair, found in sorted(leads.items())})


def _leads(column: ProfileColumn, measure: int, deviations_of: DeviationsOf) -> dict[tuple[str, str], _Lead]:
    values = {
        identity: cell.metric
        for identity, cell in sorted(column.cells.items())
        if cell.metric is not None and cell.metric.value is not None and not _is_baseline(cell)
    }
    leads = {}
    for _, of_version in itertools.groupby(sorted(values, key=lambda one: values[one].version), _version(values)):
        identities = list(of_version)
        metric = values[identities[0]]
        ideal = metric.ideal
        origin = metric.minimum if ideal is None else ideal
        largest = math.inf if metric.maximum is None else max(metric.maximum - origin, origin - metric.minimum)
        candidates = [
            _candidate(identity, column.cells[identity], column.headline.name, deviations_of) for identity in identities
        ]
        known = [candidate for candidate in candidates if candidate.deviations is not None]
        pairs = compare_pairs(known, origin)
        columns = (pairs.first, pairs.second, pairs.differences, pairs.errors, pairs.freedom)
        errors = {
            (known[first].name, known[second].name): numbers
            for first, second, *numbers in zip(*map(np.ndarray.tolist, columns), strict=True)
        }
        for first, second in itertools.combinations(identities, 2):
            distances = [abs((values[one].value or 0.0) - origin) for one in (first, second)]
            lead = distances[0] - distances[1] if ideal is None else distances[1] - distances[0]
            difference, error, freedom = errors.get((first, second), (lead, None, 1))
            leads[first, second] = _Lead(measure, lead, abs(difference), largest, error, freedom, ideal is not None)
    return leads


def _version(values: Mapping[str, Metric]) -> Callable[[str], str]:
    return lambda identity: values[identity].version


def _candidate(identity: str, cell: ProfileCell, name: str, deviations_of: DeviationsOf) -> Candidate:
    assert cell.metric is not None
    assert cell.row is not None
    value, bounds = cell.metric.value or 0.0, _bounds(cell.row, cell.metric)
    return Candidate(
        name=identity,
        worst=value if bounds is None else bounds.worst,
        best=value if bounds is None else bounds.best,
        deviations=_deviations(cell.row, name, deviations_of),
    )


def _bounds(row: AnyRow, metric: Metric) -> Bounds | None:
    if isinstance(row, IndexRow):
        return row.bounds if metric.name == row.primary.name else None
    return bounds_of(metric, row.entry.missing_share)


def _deviations(row: AnyRow, name: str, deviations_of: DeviationsOf) -> Deviations | None:
    if isinstance(row, IndexRow):
        return next((index.deviations for index in row.indices if index.metric.name == name), None)
    return deviations_of(row.entry, name)


def _is_baseline(cell: ProfileCell) -> bool:
    return cell.row is not None and entries_of(cell.row)[0].is_baseline


def _judged(leads: list[_Lead]) -> tuple[Verdict, ...]:
    from scipy.special import stdtrit

    n_compared = sum(lead.error is not None for lead in leads)
    found = []
    for lead in leads:
        if lead.error is None:
            found.append(Verdict(lead.measure, lead.lead, None, "unknown"))
            continue
        half_width = -float(stdtrit(lead.freedom, (1 - LEVEL) / 2 / n_compared)) * lead.error
        outcome: Outcome = "same"
        if lead.at_least > max(half_width, TOLERANCE):
            outcome = "differs" if not lead.has_ideal else "first" if lead.lead > 0 else "second"
        interval = max(lead.lead - half_width, -lead.largest), min(lead.lead + half_width, lead.largest)
        found.append(Verdict(lead.measure, lead.lead, interval, outcome))
    return tuple(found)
