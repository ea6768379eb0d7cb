"""Tables of an index: a model per row, from its results on several configs, ranked where they may be compared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evaluators.runs.indices import Index, ModelResults, ScoredResult, index_of, results_by_model
from leaderboard.checking.entries import MIN_COVERAGE, Entry, model_label, why_unranked
from leaderboard.ranking.rank_ranges import Candidate, Comparison, RankRange, rank
from schemas.result import Metric, Model, Result
from schemas.score import Scorer


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRow:
    """A model in the table of an index."""

    entries: tuple[Entry, ...]
    """Its results, in the order of the configs."""
    indices: tuple[Index, ...]
    """The index that ranks, then those beside it."""
    rank: RankRange | None
    unranked: str | None
    """Why the row has no rank; null if it has one."""

    @property
    def model(self) -> Model:
        """Whose row it is."""
        return self.entries[0].result.model

    @property
    def label(self) -> str:
        """Model id with revision and precision."""
        return model_label(self.entries[0])

    @property
    def primary(self) -> Metric:
        """The index that ranks."""
        return self.indices[0].metric

    @property
    def parts(self) -> tuple[Metric, ...]:
        """The metrics that it is the mean of."""
        return self.indices[0].parts

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was noted of the answers themselves."""
        return tuple(
            f"{entry.result.signature.config}: {reason}"
            for entry in self.entries
            if (reason := entry.result.environment.corruption) is not None
        )

    @property
    def others(self) -> tuple[Metric, ...]:
        """The other variants."""
        return tuple(index.metric for index in self.indices[1:])


class Incomplete(NamedTuple):
    """A model without an index, and why."""

    label: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexTable:
    """Models whose results are of the same items, prompts and versions of all metrics."""

    benchmark: str
    dataset: str
    dataset_version: str
    protocol: str
    version: str
    """Of the index that ranks: it stands for the versions of all parts, scorers included."""
    signatures: tuple[str, ...]
    """Of the results, in the order of the configs."""
    rows: tuple[IndexRow, ...]
    comparisons: tuple[Comparison, ...]

    @property
    def scorers(self) -> tuple[Scorer, ...]:
        """Who scored the texts, for all rows alike."""
        stored = [entry.result.scores for entry in self.rows[0].entries]
        return tuple(scorer for scores in stored if scores is not None for scorer in scores.scorers)

    @property
    def ranked(self) -> tuple[IndexRow, ...]:
        """The rows that have a rank."""
        return tuple(row for row in self.rows if row.rank is not None)


class IndexPlace(NamedTuple):
    """What an index is of."""

    benchmark: str
    dataset: str
    dataset_version: str
    protocol: str


class Indices(NamedTuple):
    """All tables of indices, and who is in none."""

    tables: tuple[IndexTable, ...]
    incomplete: dict[IndexPlace, tuple[Incomplete, ...]]


class _Key(NamedTuple):
    benchmark: str
    dataset: str
    dataset_version: str
    protocol: str
    version: str
    signatures: tuple[str, ...]


def index_tables(entries: Sequence[Entry]) -> Indices:
    """Every table of an index that some entries give, by dataset, version and protocol, and who has no index."""
    by_result = {_identity(entry.result): entry for entry in entries}
    rows: dict[_Key, list[IndexRow]] = defaultdict(list)
    incomplete: dict[IndexPlace, list[Incomplete]] = defaultdict(list)
    for of_model in results_by_model([_scored(entry) for entry in entries]):
        place = IndexPlace(of_model.benchmark, of_model.dataset, of_model.dataset_version, of_model.protocol)
        found = [by_result[_identity(scored.result)] for scored in of_model.scored.values()]
        if of_model.missing:
            reason = f"no result of {', '.join(of_model.missing)}"
            incomplete[place].append(Incomplete(model_label(found[0]), reason))
            continue
        row = _row(of_model, tuple(by_result[_identity(of_model.scored[task].result)] for task in _tasks(of_model)))
        if row.primary.value is None:
            incomplete[place].append(Incomplete(row.label, row.primary.reason or "unknown"))
            continue
        signatures = tuple(str(entry.result.signature) for entry in row.entries)
        rows[_Key(*place, row.primary.version, signatures)].append(row)
    return Indices(
        tuple(_table(key, rows[key]) for key in sorted(rows)),
        {place: tuple(incomplete[place]) for place in sorted(incomplete)},
    )


def _identity(result: Result) -> tuple[str, str]:
    return result.signature_sha256, result.model.identity_sha256


def _tasks(of_model: ModelResults) -> tuple[str, ...]:
    return of_model.definitions[0].tasks


def _scored(entry: Entry) -> ScoredResult:
    overall = {name: metric for (name, group), metric in entry.metrics.items() if not group}
    return ScoredResult(entry.result, overall, entry.index_resamples)


def _row(of_model: ModelResults, entries: tuple[Entry, ...]) -> IndexRow:
    indices = tuple(index_of(definition, of_model.scored) for definition in of_model.definitions)
    reasons = {
        entry.result.signature.config: why_unranked(entry) or _why_uncovered(entry, indices[0]) for entry in entries
    }
    found = {config: reason for config, reason in reasons.items() if reason is not None}
    unranked = None
    if found:
        config, unranked = next(iter(found.items()))
        if len(set(reasons.values())) > 1:
            unranked = f"{config}: {unranked}"
    return IndexRow(entries=entries, indices=indices, rank=None, unranked=unranked)


def _why_uncovered(entry: Entry, index: Index) -> str | None:
    """A part of the index that rests on too few answers of a config: refusing is no way up."""
    ours = {name for name, group in entry.metrics if not group}
    for part in index.parts:
        total = part.n + part.n_excluded
        if part.name not in ours or total == 0:
            continue
        # Of a pair both answers are needed.
        covered = (part.n / total) ** (0.5 if part.unit == "pairs" else 1.0)
        if covered < MIN_COVERAGE:
            return (
                f"{part.name} rests on {part.n} of {total} {part.unit}, a rank needs {MIN_COVERAGE:.0%} of the answers"
            )
    return None


def _table(key: _Key, rows: Sequence[IndexRow]) -> IndexTable:
    candidates = [
        Candidate(
            name=row.model.identity_sha256,
            value=row.primary.value,
            resamples=row.indices[0].resamples,
            n_clusters=None if row.primary.interval is None else row.primary.interval.n_clusters,
        )
        for row in rows
        if row.unranked is None and row.primary.value is not None
    ]
    ranking = rank(candidates, ideal=1.0)
    labels = {row.model.identity_sha256: row.label for row in rows}
    shown = [
        IndexRow(
            entries=row.entries,
            indices=row.indices,
            rank=ranking.ranges.get(row.model.identity_sha256),
            unranked=row.unranked,
        )
        for row in sorted(rows, key=lambda row: (-(row.primary.value or 0.0), row.label, row.model.identity_sha256))
    ]
    return IndexTable(
        benchmark=key.benchmark,
        dataset=key.dataset,
        dataset_version=key.dataset_version,
        protocol=key.protocol,
        version=key.version,
        signatures=key.signatures,
        rows=tuple(shown),
        comparisons=tuple(comparison.named(labels) for comparison in ranking.comparisons),
    )
