"""Builds the tables of an index, with one row per model that combines its results on several configs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from evaluators.benchmark import Part, Source, load_benchmark
from evaluators.runs.measure.example_sets import SetTable, set_tables
from evaluators.runs.measure.index_values import Index, ModelResults, ScoredResult, index_of, results_by_model
from evaluators.scorer import WORD_LISTS
from leaderboard.benchmark_pages import load_pages
from leaderboard.ranking.bounds import Bounds, bounds_of
from leaderboard.ranking.gates import Gates, in_config
from leaderboard.ranking.rank_ranges import Comparison, RankRange, by_rank
from leaderboard.ranking.revisions import Contender, rankings
from leaderboard.ranking.unranked import MIN_ANSWERED, reasons_of, why_unranked
from leaderboard.verify.entries import Entry, model_label
from schemas.documents.result import Metric, Model, Result
from schemas.documents.run_files import Scorer


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRow:
    """A row in the table of an index: one model and its rank."""

    entries: tuple[Entry, ...]
    """Results of the model, in the order of the configs."""
    indices: tuple[Index, ...]
    """Index that ranks the models, followed by its variants."""
    rank: RankRange | None
    unranked: str | None
    """Reason why the row has no rank; None if it has one."""
    shut: str | None = None
    """Reason why a model does not achieve more than every baseline; None if it does."""
    sets: tuple[SetTable, ...] = ()
    """Comparison of the sets of examples, for each number of examples with several sets."""
    chance: float | None = None
    """Share of drawn tables in which the model is the nearest to the ideal; None without a rank or a second model."""
    rank_of_answers: RankRange | None = None
    """Rank range if missing answers are left out; None without missing answers or without a rank."""

    @property
    def is_baseline(self) -> bool:
        """True if the results come from a baseline."""
        return self.entries[0].is_baseline

    @property
    def is_imported(self) -> bool:
        """True if the answers were published elsewhere and imported."""
        return self.entries[0].is_imported

    @property
    def is_below(self) -> bool:
        """True if the row is below the line: a model that achieves no more than a baseline."""
        return self.shut is not None

    @property
    def reasons(self) -> tuple[str, ...]:
        """What the row says about its missing rank."""
        is_limited = any(entry.match.extent == "slice" for entry in self.entries)
        return () if self.is_baseline else reasons_of(self.unranked, self.shut, is_limited=is_limited)

    def entry_of(self, part: Part) -> Entry | None:
        """Return the result that a part of an index is computed from; None if the model lacks it."""
        return next((entry for entry in self.entries if part.source.fits(entry.result.signature)), None)

    @property
    def shut_parts(self) -> frozenset[str]:
        """The keys of the parts whose own task the model solves no better than a baseline."""
        return frozenset(
            part.key
            for index in self.indices
            for part in index.definition.parts
            if (entry := self.entry_of(part)) and entry.standing is not None and not entry.standing.passes
        )

    @property
    def model(self) -> Model:
        """The model of the row."""
        return self.entries[0].result.model

    @property
    def label(self) -> str:
        """The model id with revision and precision."""
        return model_label(self.entries[0])

    @property
    def primary(self) -> Metric:
        """The index that ranks the models."""
        return self.indices[0].metric

    @property
    def bounds(self) -> Bounds | None:
        """The values of the index with the missing answers of its parts at their worst and best; None if none are."""
        missing = [self._missing_share(part.source) for part in self.indices[0].definition.parts]
        if not any(part.n_excluded or share for part, share in zip(self.parts, missing, strict=True)):
            return None
        parts = [(bounds_of(part, share), part.value or 0.0) for part, share in zip(self.parts, missing, strict=True)]
        down = sum(bounds.worst - value for bounds, value in parts if bounds is not None) / len(parts)
        up = sum(bounds.best - value for bounds, value in parts if bounds is not None) / len(parts)
        value = self.primary.value or 0.0
        return Bounds(worst=value + down, best=value + up)

    def _missing_share(self, source: Source) -> float:
        return next(entry.missing_share for entry in self.entries if source.fits(entry.result.signature))

    @property
    def worst(self) -> float:
        """The index with the missing answers of each of its parts at their worst."""
        bounds = self.bounds
        return (self.primary.value or 0.0) if bounds is None else bounds.worst

    @property
    def parts(self) -> tuple[Metric, ...]:
        """The metrics whose mean is the ranking index."""
        return self.indices[0].parts

    @property
    def warnings(self) -> tuple[str, ...]:
        """Notes on results whose answers look corrupted: the config and the reason."""
        return tuple(
            f"{entry.result.signature.config}: {reason}"
            for entry in self.entries
            if (reason := entry.result.environment.corruption) is not None
        )

    @property
    def others(self) -> tuple[Metric, ...]:
        """The variants of the index, which do not rank."""
        return tuple(index.metric for index in self.indices[1:])


class Incomplete(NamedTuple):
    """A model without an index, and the reason."""

    label: str
    reason: str
    model_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexTable:
    """A table of the models whose results agree in items, prompts and the versions of all metrics."""

    benchmark: str
    dataset: str
    dataset_version: str
    protocol: str
    version: str
    """Version of the ranking index, which covers the versions of all its parts and of their scorers."""
    signatures: tuple[str, ...]
    """Signatures of the results, in the order of the configs."""
    rows: tuple[IndexRow, ...]
    comparisons: tuple[Comparison, ...]
    detectable: float | None
    """Difference between two ranked models that is detected with a probability of 80 %; None if unknown."""

    @property
    def scorers(self) -> tuple[Scorer, ...]:
        """The scorers of the texts, the same for all rows."""
        return tuple(scorer for entry in self.rows[0].entries for scorer in entry.result.scorers)

    @property
    def is_demo(self) -> bool:
        """True if lists of words judged the texts, which do for a demonstration."""
        return any(scorer.name in WORD_LISTS for scorer in self.scorers)

    @property
    def ranked(self) -> tuple[IndexRow, ...]:
        """The rows that have a rank."""
        return tuple(row for row in self.rows if row.rank is not None)


class IndexPlace(NamedTuple):
    """The benchmark, dataset and protocol that an index belongs to."""

    benchmark: str
    dataset: str
    dataset_version: str
    protocol: str


class Indices(NamedTuple):
    """All tables of indices, and the models that are in none."""

    tables: tuple[IndexTable, ...]
    incomplete: dict[IndexPlace, tuple[Incomplete, ...]]


class _Key(NamedTuple):
    benchmark: str
    dataset: str
    dataset_version: str
    protocol: str
    version: str
    signatures: tuple[str, ...]


def index_tables(entries: Sequence[Entry], gates: Gates) -> Indices:
    """Build the tables of all indices, and list the models that have no index.

    Args:
        entries: Results to combine; those of benchmarks without an index are ignored.
        gates: The gates of all results.
    """
    by_result = {_identity(entry.result): entry for entry in entries}
    rows: dict[_Key, list[IndexRow]] = defaultdict(list)
    incomplete: dict[IndexPlace, list[Incomplete]] = defaultdict(list)
    for of_model in results_by_model([_scored(entry) for entry in entries]):
        scope = IndexPlace(of_model.benchmark, of_model.dataset, of_model.dataset_version, of_model.asked)
        of_model_entries = [by_result[_identity(result)] for result in of_model.results]
        if of_model.missing:
            reason = f"no result of {', '.join(map(str, of_model.missing))}"
            incomplete[scope].append(
                Incomplete(model_label(of_model_entries[0]), reason, of_model_entries[0].result.model.id)
            )
            continue
        sources = of_model.definitions[0].sources
        combined = tuple(by_result[_identity(of_model.scored[source].result)] for source in sources)
        row = _row(of_model, combined, gates)
        if row.primary.value is None:
            incomplete[scope].append(Incomplete(row.label, row.primary.reason or "unknown", row.model.id))
            continue
        signatures = tuple(str(entry.result.signature) for entry in row.entries)
        rows[_Key(*scope, row.primary.version, signatures)].append(row)
    return Indices(
        tuple(_table(key, _of_one_version(rows[key])) for key in sorted(rows)),
        {scope: tuple(incomplete[scope]) for scope in sorted(incomplete)},
    )


def _of_one_version(rows: Sequence[IndexRow]) -> list[IndexRow]:
    """Return rows of which each index has the version that most rows have; others lose its value, with the reason."""
    usual: list[str | None] = []
    for column in zip(*(row.indices for row in rows), strict=True):
        versions = Counter(index.metric.version for index in column if index.metric.value is not None)
        usual.append(max(versions, key=lambda version: (versions[version], version), default=None))
    return [
        replace(row, indices=tuple(_of_version(*pair) for pair in zip(row.indices, usual, strict=True))) for row in rows
    ]


def _of_version(index: Index, version: str | None) -> Index:
    if index.metric.value is None or index.metric.version == version:
        return index
    reason = "it has another version, or is of other items, than that of most rows"
    metric = replace(index.metric, value=None, reason=reason, interval=None, interval_reason="there is no value")
    return index._replace(metric=metric, deviations=None)


def _identity(result: Result) -> tuple[str, str]:
    return result.signature_sha256, result.model.identity_sha256


def _scored(entry: Entry) -> ScoredResult:
    overall = {name: metric for (name, group), metric in entry.metrics.items() if not group}
    return ScoredResult(entry.result, overall, entry.deviations, entry.by_part)


def _row(of_model: ModelResults, entries: tuple[Entry, ...], gates: Gates) -> IndexRow:
    indices = tuple(
        _titled(index_of(definition, of_model.scored), of_model.benchmark) for definition in of_model.definitions
    )
    reasons = {_name(entry, entries): why_unranked(entry) or _why_uncovered(entry, indices[0]) for entry in entries}
    judged = [(entry, gates.why_shut(entry)) for entry in entries if entry.standing is not None]
    unranked_reasons = {config: reason for config, reason in reasons.items() if reason is not None}
    unranked = None
    if unranked_reasons:
        config, unranked = next(iter(unranked_reasons.items()))
        if len(set(reasons.values())) > 1:
            unranked = f"{config}: {unranked}"
    shut = why_all_shut(judged)
    sets = tuple(set_tables(of_model, load_benchmark(of_model.benchmark).compared_over_sets))
    return IndexRow(entries=entries, indices=indices, rank=None, unranked=unranked or shut, shut=shut, sets=sets)


def why_all_shut(judged: Sequence[tuple[Entry, str | None]]) -> str | None:
    """Return why results of one model do not pass the gates together; None if all of them pass.

    Args:
        judged: Each result with right answers, with the reason why it does not pass.
    """
    failing = [(entry, reason) for entry, reason in judged if reason is not None]
    if not failing:
        return None
    entry, reason = failing[0]
    shut = in_config(entry, reason)
    if len(judged) == len({entry.result.signature.config for entry, _ in judged}):
        return shut
    # A config that is asked with several prompts has a value under each, and the reason holds that of one.
    return f"{shut} (with {entry.result.signature.prompt}; {len(failing)} of {len(judged)} prompts fall short)"


def _titled(index: Index, benchmark: str) -> Index:
    """Return an index that names the part for which it has no value by its title."""
    parts = zip(index.definition.parts, index.parts, strict=True)
    part, metric = next(((part, metric) for part, metric in parts if metric.value is None), (None, None))
    if part is None or metric is None or index.metric.reason != f"{metric.name}: {metric.reason}":
        return index
    title = load_pages(benchmark).label(part.metric)
    if part.prompt is not None or part.context is not None:
        title = part.label or part.key
    return index._replace(metric=replace(index.metric, reason=f"{title}: {metric.reason}"))


def _name(entry: Entry, entries: Sequence[Entry]) -> str:
    """Return the config of a result, with its prompt if the index needs several results of that config."""
    signature = entry.result.signature
    same = [other for other in entries if other.result.signature.config == signature.config]
    return signature.config if len(same) == 1 else f"{signature.config} with {signature.prompt}"


def _why_uncovered(entry: Entry, index: Index) -> str | None:
    """Return why a part of the index rests on too few answers of a result; None if none does.

    Without this rule, a model could rise by refusing to answer.
    """
    for part, defined in zip(index.parts, index.definition.parts, strict=True):
        total = part.n + part.n_excluded
        if not defined.source.fits(entry.result.signature) or total == 0:
            continue
        # A pair needs both of its answers, so the share of answers is about the square root of the share of pairs.
        covered = (part.n / total) ** (0.5 if part.unit == "pairs" else 1.0)
        if covered < MIN_ANSWERED:
            return f"{part.name} rests on {part.n} of {total} {part.unit}; a rank needs half of the answers"
    return None


def _row_order(row: IndexRow) -> tuple[bool, float, str, str]:
    ideal = row.indices[0].definition.ideal
    return row.is_below, abs(row.worst - ideal), row.label, row.model.identity_sha256


def _table(key: _Key, rows: Sequence[IndexRow]) -> IndexTable:
    ranked = [row for row in rows if row.unranked is None and row.primary.value is not None]
    ideal = rows[0].indices[0].definition.ideal
    ranking, of_answers = rankings(
        Contender(row.entries[0], row.primary.value or 0.0, ideal, row.bounds, row.indices[0].deviations)
        for row in ranked
    )
    labels = {row.model.identity_sha256: row.label for row in rows}
    shown = [
        IndexRow(
            entries=row.entries,
            indices=row.indices,
            rank=ranking.ranges.get(row.model.identity_sha256),
            unranked=row.unranked,
            shut=row.shut,
            sets=row.sets,
            chance=ranking.chances.get(row.model.identity_sha256),
            rank_of_answers=None if row.bounds is None else of_answers.ranges.get(row.model.identity_sha256),
        )
        for row in sorted(rows, key=_row_order)
    ]
    return IndexTable(
        benchmark=key.benchmark,
        dataset=key.dataset,
        dataset_version=key.dataset_version,
        protocol=key.protocol,
        version=key.version,
        signatures=key.signatures,
        rows=tuple(sorted(shown, key=lambda row: (row.is_below, by_rank(row.rank)))),
        comparisons=tuple(comparison.named(labels) for comparison in ranking.comparisons),
        detectable=ranking.detectable,
    )
