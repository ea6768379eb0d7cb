"""What simulated models of known quality have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from biasboard.ground.columns import FloatArray
from evaluators.statistics.jackknife import WILSON, Crossing, Deviations, deviations_of, interval_of
from evaluators.statistics.record_tables import mean
from leaderboard.ranking.rank_ranges import Contender, Ranking, rank


class Estimate(NamedTuple):
    """The value of a model, and its deviations."""

    value: float
    deviations: Deviations

    @classmethod
    def of(
        cls,
        sums: FloatArray,
        aggregate: Callable[[FloatArray], FloatArray] = mean,
        crossing: Crossing | None = None,
        **options: Any,
    ) -> Estimate:
        """Estimate from the sums of clusters or cells."""
        deviations = deviations_of(sums, aggregate, crossing, **options)
        assert isinstance(deviations, Deviations), deviations
        return cls(float(aggregate(sums.sum(axis=0))), deviations)

    def covers(self, truth: float, *, minimum: float = 0.0, maximum: float | None = 1.0, method: str = WILSON) -> bool:
        """Whether the interval of 95 % contains the truth."""
        limits = {"minimum": minimum, "maximum": maximum}
        found, reason = interval_of(self.value, self.deviations, method=method, **limits)  # type: ignore[arg-type]
        assert found is not None, reason
        return found.low <= truth <= found.high


def ranked(models: Sequence[Estimate], ideal: float = 1.0) -> Ranking:
    """Rank models, whose names are their numbers."""
    return rank(
        [
            Contender(name=str(number), worst=one.value, best=one.value, value=one.value, deviations=one.deviations)
            for number, one in enumerate(models)
        ],
        ideal=ideal,
    )
