"""Compares results that differ only in the set of examples that their prompts show, part by part.

A mean over sets hides how much depends on the choice of examples. Oracles show it: for each part they choose the best,
median or worst set by one metric, and all metrics are averaged over the chosen sets (Reif & Schwartz 2024,
arXiv:2405.02743, tables 1 and 5 to 9).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from biasboard.ground.columns import FloatArray
from evaluators.benchmark import PartSource
from evaluators.runs.measure.index_values import ModelResults
from evaluators.statistics.cluster_sums import ratio
from evaluators.statistics.jackknife import deviations_of, interval_of
from evaluators.statistics.record_tables import mean
from schemas.documents.result import Interval

_LEAST_SETS = 2
_MEAN, _DEVIATION = "mean of the sets", "standard deviation over the sets"


class SetMean(NamedTuple):
    """The mean of a metric over parts, each with the set chosen for it."""

    value: float | None
    interval: Interval | None
    n: int
    """Number of parts with a value."""


class SetRow(NamedTuple):
    """A rule that chooses a set for each part, with the mean of each metric under it."""

    name: str
    means: Mapping[str, SetMean]


class SetTable(NamedTuple):
    """The comparison of all sets with the same number of examples."""

    n_examples: int
    n_sets: int
    n_defined: int
    """Number of sets that the indices of the benchmark have; more than are compared if the model was asked with few."""
    n_parts: int
    rows: tuple[SetRow, ...]

    @property
    def of_sets(self) -> str:
        """The number of sets in words, as in ``3 of 5 sets``."""
        return f"{self.n_sets} sets" if self.n_sets == self.n_defined else f"{self.n_sets} of {self.n_defined} sets"


def set_tables(of_model: ModelResults, ideals: Mapping[str, float]) -> list[SetTable]:
    """Return a table for each number of examples with several sets; none if the results are not of a suite.

    ``ideals`` has the ideal value of each metric to compare.
    """
    defined = _by_number(dict.fromkeys(source for index in of_model.definitions for source in index.sources))
    tables = []
    for n_examples, of_number in sorted(_by_number(of_model.scored).items()):
        results = [of_model.scored[source] for source in sorted(of_number, key=lambda scored: str(scored.context))]
        signatures = {(scored.result.signature.items_sha256, scored.result.signature.parts) for scored in results}
        are_known = all(scored.by_part.keys() >= ideals.keys() for scored in results)
        if len(results) < _LEAST_SETS or len(signatures) > 1 or not are_known or not results[0].result.signature.parts:
            continue
        values = {name: np.vstack([scored.by_part[name] for scored in results]) for name in ideals}
        n_defined = max(len(defined.get(n_examples, [])), len(results))
        n_parts = len(results[0].result.signature.parts)
        tables.append(SetTable(n_examples, len(results), n_defined, n_parts, tuple(_rows(values, ideals))))
    return tables


def _by_number(sources: Iterable[PartSource]) -> dict[int, list[PartSource]]:
    """Return the sources with a set of examples that no rule chooses, by the number of examples."""
    by_number: dict[int, list[PartSource]] = {}
    for source in sources:
        context = source.context
        if context is not None and context.example_set is not None and context.rule is None:
            by_number.setdefault(context.n_examples, []).append(source)
    return by_number


def set_row_names(ideals: Mapping[str, float]) -> tuple[str, ...]:
    """Return the names of the rows that the tables of some metrics have.

    >>> set_row_names({"rsd": 0.0})[2:]
    ('least rsd', 'median rsd', 'most rsd')
    """
    return _MEAN, _DEVIATION, *(row for name, ideal in ideals.items() for row in _oracles(name, ideal))


def _oracles(name: str, ideal: float) -> tuple[str, str, str]:
    """Return the names of the rows that choose sets by a metric: the nearest to its ideal, the median, the farthest."""
    first, last = ("least", "most") if ideal == 0.0 else ("best", "worst")
    return f"{first} {name}", f"median {name}", f"{last} {name}"


def _rows(values: Mapping[str, FloatArray], ideals: Mapping[str, float]) -> Iterator[SetRow]:
    """Yield all rows, from the value of each metric by set and part, shape (n_sets, n_parts); nan if it has none."""
    over_sets = {name: _over_sets(of_metric) for name, of_metric in values.items()}
    for place, row in enumerate((_MEAN, _DEVIATION)):
        yield SetRow(row, {name: _mean(of_metric[place]) for name, of_metric in over_sets.items()})
    for name, ideal in ideals.items():
        distances = np.abs(values[name] - ideal)
        # Stable, so that the first of several equal sets is taken.
        order = np.argsort(np.where(np.isnan(distances), np.inf, distances), axis=0, kind="stable")
        n_known = (~np.isnan(distances)).sum(axis=0)
        parts = np.arange(len(n_known))
        for row, ranks in zip(_oracles(name, ideal), (0 * n_known, (n_known - 1) // 2, n_known - 1), strict=True):
            chosen = np.take_along_axis(order, np.maximum(ranks, 0)[None], axis=0)[0]
            under = {one: np.where(n_known > 0, of_one[chosen, parts], np.nan) for one, of_one in values.items()}
            yield SetRow(row, {one: _mean(of_one) for one, of_one in under.items()})


def _over_sets(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean and the standard deviation (n - 1) over the sets that have a value, each of shape (n_parts,)."""
    has_value = ~np.isnan(values)
    n = has_value.sum(axis=0).astype(np.float64)
    means = ratio(np.where(has_value, values, 0.0).sum(axis=0), n)
    variances = ratio((np.where(has_value, values - means, 0.0) ** 2).sum(axis=0), n - 1)
    return means, np.sqrt(variances)


def _mean(values: FloatArray) -> SetMean:
    """Return the mean over the parts that have a value, with an interval over the parts."""
    has_value = ~np.isnan(values)
    if not has_value.any():
        return SetMean(None, None, 0)
    sums = np.column_stack([np.where(has_value, values, 0.0), has_value.astype(np.float64)])
    value = float(values[has_value].mean())
    interval, _ = interval_of(value, deviations_of(sums, mean), minimum=-np.inf, maximum=None)
    return SetMean(value, interval, int(has_value.sum()))
