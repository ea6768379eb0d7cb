"""Ranks models by anybody's scores, as the board ranks its own: rank ranges, tiers and who is tied for the top.

The value of a model is the mean of its scores, in which each item weighs the same. Items stand for others that could
have been chosen, so that uncertainty is that of the choice of items, or of their clusters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from biasboard.ground.columns import FloatArray, IntArray
from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.plain_text import listed, printable
from biasboard.ground.strict_json import JsonValue
from evaluators.statistics.jackknife import STUDENT, WILSON, deviations_of, interval_of
from evaluators.statistics.record_tables import mean
from leaderboard.ranking.rank_ranges import (
    MIN_ANSWERED,
    Comparison,
    Contender,
    Ranking,
    RankRange,
    detectable_note,
    rank,
    top_note,
)
from leaderboard.ranking.scores import Columns, Scores, scores_of

if TYPE_CHECKING:
    import pandas as pd

MIN_TO_RANK = 10
"""Smallest number of items, or of clusters, that rank models. Of tables of 15 equal models, 3 % have a false difference
with 6 clusters and 4 % with 10. But a lead of 4.5 standard deviations of a score over the root of the number, which 120
clusters show in .88 of such tables, is found in .58 with 10 and in .24 with 6 (400 tables each, tests/bench)."""
_NEGLIGIBLE = 1e-12
"""Largest standard error that can come from the order of floating-point sums alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedModel:
    """A model with its mean score and its rank."""

    model: str
    rank: RankRange | None
    """None for a model without a rank; see ``reason``."""
    tier: int | None
    """1 for models that no other is separably better than, 2 for those that only models of tier 1 are, and so on; no
    two models of a tier are separable."""
    score: float | None
    """Mean of the scores; None if it is of fewer items than those of others and missing scores have no bounds."""
    low: float | None
    """Lower end of the 95 % interval of the mean for other items like these. If scores are missing, the interval is
    widened by what they could change."""
    high: float | None
    chance: float | None
    """Probability of having the best mean on other items like these; None without a rank."""
    n_scores: int
    reason: str | None
    """Reason why there is no rank; None if there is one."""


@dataclass(frozen=True, kw_only=True)
class ScoreRanks:
    """The ranks of models by their scores."""

    models: tuple[RankedModel, ...]
    """The best mean first, then the models without a rank."""
    n_items: int
    n_clusters: int | None
    """Number of clusters; None if each item is its own."""
    detectable: float | None
    """Difference of two means that is detected with a probability of 80 %; None if unknown."""
    notes: tuple[str, ...]
    """What a reader has to know before using the ranks, one sentence each."""
    ranking: Ranking
    """The ranking of scores that are scaled to the range from 0 to 1."""
    width: float
    """Width of that range in scores."""

    @property
    def tied_for_first(self) -> tuple[str, ...]:
        """The models that no other is separably better than."""
        return tuple(model.model for model in self.models if model.tier == 1)

    @property
    def n_separable(self) -> int:
        """The number of pairs of models that are told apart."""
        return sum(comparison.separable for comparison in self.ranking.comparisons)

    @cached_property
    def comparisons(self) -> tuple[Comparison, ...]:
        """All pairs of ranked models, with leads in scores."""

        def in_scores(pair: Comparison) -> Comparison:
            leads = {name: getattr(pair, name) for name in ("lead", "low", "high", "lead_at_worst", "lead_at_best")}
            return replace(pair, **{name: of and of * self.width for name, of in leads.items()})

        return tuple(map(in_scores, self.ranking.comparisons))

    @property
    def sentences(self) -> tuple[str, ...]:
        """Who is tied for the top, how many pairs are told apart, and which difference would be; one sentence each."""
        n_pairs = len(self.ranking.comparisons)
        return (
            f"{top_note([printable(name, most=60) for name in self.tied_for_first])}.",
            f"{self.n_separable:,} of {n_pairs:,} comparisons tell two models apart (at 95 % for all together).",
            detectable_note(self.detectable, "mean score"),
        )

    def rows(self) -> list[dict[str, JsonValue]]:
        """Return the fields of each model by name, with one for each end of its rank."""
        return [
            {
                "model": model.model,
                "rank_best": None if model.rank is None else model.rank.best,
                "rank_worst": None if model.rank is None else model.rank.worst,
                **{name: value for name, value in asdict(model).items() if name not in ("model", "rank")},
            }
            for model in self.models
        ]

    def frame(self) -> pd.DataFrame:
        """Return a row for each model, with the columns of :meth:`rows`."""
        import pandas as pd

        return pd.DataFrame(self.rows()).astype(dict.fromkeys(("rank_best", "rank_worst", "tier"), "Int64"))


def rank_scores(
    frame: pd.DataFrame,
    columns: Columns,
    *,
    lower_is_better: bool = False,
    limits: tuple[float, float] | None = None,
    common: bool = False,
) -> ScoreRanks:
    """Rank models by their mean scores on the same items.

    A model that lacks scores has no rank, unless ``limits`` or ``common`` say how to compare it.

    Args:
        frame: Scores, long or wide; see :mod:`leaderboard.ranking.scores`.
        columns: What the columns hold.
        lower_is_better: True for errors and losses.
        limits: Smallest and largest score that are possible. Missing scores then widen ranks by what they could change.
            None if unknown, unless every score is 0 or 1.
        common: True to compare on those items only for which every model has a score.

    Raises:
        ConfigError: an option cannot be used.
        DataError: the scores cannot be used.
    """
    scores = scores_of(frame, columns)
    if len(scores.models) < 2:
        raise DataError(f"ranks compare at least two models; the table has {len(scores.models)}, so add others")
    notes = []
    if scores.ignored:
        names = listed([f"'{printable(name, most=60)}'" for name in scores.ignored], most=12)
        notes.append(f"Left out, since by their names they sum up the others or number the rows: {names}.")
    if common:
        scores, whole = scores.on(np.asarray(~np.isnan(scores.values).any(axis=0))), scores
        counts = f"{len(scores.items):,} of {len(whole.items):,} items"
        if len(scores.items) < MIN_TO_RANK:
            raise DataError(
                f"{counts} have a score of every model, and ranks need at least {MIN_TO_RANK}; remove models with few "
                f"scores, such as '{_fewest(whole)}'"
            )
        notes += [f"Compared on the {counts} that have a score of every model."]
    cells = np.arange(len(scores.items)) if scores.clusters is None else scores.clusters
    n_clusters = len(np.unique(cells))
    if n_clusters < MIN_TO_RANK:
        need = f"and ranks need at least {MIN_TO_RANK}"
        if columns.cluster is not None:
            raise DataError(f"column '{columns.cluster}' has {n_clusters} clusters, {need}; name another one")
        raise DataError(f"there are {n_clusters} items with scores, {need}; give scores of single items")
    known = scores.values[~np.isnan(scores.values)]
    low, high = limits or (float(known.min()), float(known.max()))
    if limits is not None:
        _check_range(scores, limits)
    is_bounded = limits is not None or bool(np.isin(known, (0.0, 1.0)).all())
    # On the scale from 0 to 1, where the smallest difference that counts does not depend on the unit of the scores.
    low, width = (0.0, 1.0) if limits is None and is_bounded else (low, (high - low) or 1.0)
    units = (scores.values - low) / width
    measured = {
        name: _measured(name, values, cells, is_bounded, lower_is_better)
        for name, values in zip(scores.models, units, strict=True)
    }
    candidates = [value for value in measured.values() if isinstance(value, Contender)]
    if len(candidates) < 2:
        n_items, way_out = f"{len(scores.items):,} items", "so give more scores, or remove items that few have"
        lack = f"{len(candidates)} models have a score for half of the {n_items}"
        if not is_bounded:
            lack = f"{len(candidates)} of {len(scores.models):,} models have a score for each of the {n_items}"
            way_out = f"so {_remedies(scores)}, or remove those with few scores, such as '{_fewest(scores)}'"
        raise DataError(f"{lack}; ranks compare at least two, {way_out}")
    ideal = 0.0 if lower_is_better else 1.0
    ranking = rank(candidates, ideal=ideal, largest=1.0 if is_bounded else math.inf)
    tiers = _tiers(sorted(candidates, key=lambda model: (abs(model.worst - ideal), model.name)), ranking)
    rows = []
    for name in (*tiers, *sorted(set(scores.models) - set(tiers))):
        values, candidate = scores.values[scores.models.index(name)], measured[name]
        interval = _interval(candidate, is_bounded) if isinstance(candidate, Contender) else None
        rows.append(
            RankedModel(
                model=name,
                rank=ranking.ranges.get(name),
                tier=tiers.get(name),
                score=float(np.nanmean(values)) if isinstance(candidate, Contender) else None,
                low=None if interval is None else low + width * interval[0],
                high=None if interval is None else low + width * interval[1],
                chance=ranking.chances.get(name),
                n_scores=int(np.count_nonzero(~np.isnan(values))),
                reason=candidate if isinstance(candidate, str) else None,
            )
        )
    n_lacking = sum(row.n_scores < len(scores.items) for row in rows)
    if n_lacking and is_bounded:
        notes.append(f"Models that lack scores: {n_lacking:,}. Their ranks are widened by what these could change.")
    elif n_lacking:
        notes.append(f"Models that lack scores, and have no rank: {n_lacking:,}. To rank them, {_remedies(scores)}.")
    return ScoreRanks(
        models=tuple(rows),
        n_items=len(scores.items),
        n_clusters=None if scores.clusters is None else n_clusters,
        detectable=None if ranking.detectable is None else ranking.detectable * width,
        notes=tuple(notes),
        ranking=ranking,
        width=width,
    )


def _check_range(scores: Scores, limits: tuple[float, float]) -> None:
    """Check that all scores are between the smallest and the largest one that are possible."""
    low, high = limits
    if not -math.inf < low < high < math.inf:
        raise ConfigError(f"--range {low:g} {high:g}: give the smallest and then the largest score that are possible")
    outside = (scores.values < low) | (scores.values > high)
    if outside.any():
        model, item = np.unravel_index(int(outside.argmax()), outside.shape)
        name, asked = printable(scores.models[model]), printable(scores.items[item])
        raise DataError(
            f"model '{name}', item '{asked}': {scores.values[model, item]:g} is outside --range {low:g} {high:g}; give "
            "the smallest and the largest score that are possible"
        )


def _measured(
    name: str, values: FloatArray, cells: IntArray, is_bounded: bool, lower_is_better: bool
) -> Contender | str:
    """Return a model as a candidate for a rank, or the reason why it has none.

    Args:
        name: Name of the model.
        values: Its scores on the scale from 0 to 1, nan where they are missing, shape (n_items,).
        cells: Cluster of each item.
        is_bounded: True if missing scores are known to be from 0 to 1.
        lower_is_better: True if 0 is the best score.
    """
    is_known = ~np.isnan(values)
    n, n_items = int(np.count_nonzero(is_known)), len(values)
    lacks = f"{n:,} of {n_items:,} scores"
    if n < n_items and not is_bounded:
        return lacks
    if n < MIN_ANSWERED * n_items:
        return f"{lacks}; a rank needs half of them"
    n_cells = int(cells.max()) + 1
    sums = [np.bincount(cells[is_known], weights, n_cells) for weights in (values[is_known], np.ones(n))]
    deviations = deviations_of(np.stack(sums, axis=1), mean)
    if isinstance(deviations, str) or deviations.n_clusters < MIN_TO_RANK:
        return f"{lacks}, in too few clusters"
    low = float(values[is_known].sum()) / n_items
    high = low + (n_items - n) / n_items
    worst, best = (high, low) if lower_is_better else (low, high)
    given = float(values[is_known].mean())
    return Contender(name=name, worst=worst, best=best, value=given, deviations=deviations)


def _interval(candidate: Contender, is_bounded: bool) -> tuple[float, float] | None:
    """Return the interval of a mean on the scale from 0 to 1, widened by what missing scores could change."""
    deviations = candidate.deviations
    assert deviations is not None
    if not is_bounded and deviations.variance**0.5 <= _NEGLIGIBLE:
        return None  # Scores that are all equal do not say how much others would differ from them.
    low, high = sorted((candidate.worst, candidate.best))
    missing = high - low
    mean = low / (1 - missing)
    method, least, most = (WILSON, 0.0, 1.0) if is_bounded else (STUDENT, -math.inf, None)
    interval, _ = interval_of(mean, deviations, minimum=least, maximum=most, method=method)
    assert interval is not None
    # Half or more of the scores are known, whose share of the mean has this interval.
    return interval.low * (1 - missing), interval.high * (1 - missing) + missing


def _tiers(best_first: Sequence[Contender], ranking: Ranking) -> dict[str, int]:
    better: dict[str, list[str]] = {}
    for pair in ranking.comparisons:
        if pair.separable:
            winner, loser = (pair.first, pair.second) if pair.outcome == "first" else (pair.second, pair.first)
            better.setdefault(loser, []).append(winner)
    tiers: dict[str, int] = {}
    for model in best_first:  # Whoever is separably better comes before.
        tiers[model.name] = 1 + max((tiers[name] for name in better.get(model.name, ())), default=0)
    return tiers


def _fewest(scores: Scores) -> str:
    return printable(scores.models[int(np.isnan(scores.values).sum(axis=1).argmax())])


def _remedies(scores: Scores) -> str:
    n_common = int((~np.isnan(scores.values).any(axis=0)).sum())
    return (
        "give --range MIN MAX so that missing scores widen ranks instead, or "
        f"--common to compare on the {n_common:,} items that all have"
    )
