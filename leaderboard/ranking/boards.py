"""Groups comparable results into tables, ranks them, and lists the results that are not shown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from biasboard.ground import strict_json
from evaluators.benchmark import RankingMetric, load_benchmark
from leaderboard.benchmark_pages import Column
from leaderboard.ranking.bounds import Bounds, bounds_of
from leaderboard.ranking.duplicates import Duplicate, FirstAnswers, precedence, singled, with_own_identities
from leaderboard.ranking.gates import Gates
from leaderboard.ranking.index_tables import Indices, index_tables
from leaderboard.ranking.rank_ranges import Comparison, Ranking, RankRange, by_rank
from leaderboard.ranking.revisions import Contender, rankings
from leaderboard.ranking.table_columns import Undefined, choose, undefined
from leaderboard.ranking.unranked import BY_INDEX, MIN_ANSWERED, reasons_of, why_unranked
from leaderboard.verify.entries import Entry, Match, model_label
from schemas.documents.result import Metric, Signature


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of a table: one result and its rank."""

    entry: Entry
    rank: RankRange | None
    unranked: str | None
    """Reason why the row has no rank; None if it has one."""
    shut: str | None = None
    """Reason why a model does not achieve more than every baseline; None if it does or the benchmark does not ask."""
    chance: float | None = None
    """Share of drawn tables in which the model is the nearest to the ideal; None without a rank or a second model."""
    rank_of_answers: RankRange | None = None
    """Rank range if missing answers are left out; None without missing answers or without a rank."""
    bounds: Bounds | None = None
    """The values of the ranking metric with missing answers at their worst and best; None if none are missing."""

    @property
    def is_imported(self) -> bool:
        """True if the answers were published elsewhere and imported."""
        return self.entry.is_imported

    @property
    def is_below(self) -> bool:
        """True if the row is below the line: a model that achieves no more than a baseline."""
        return self.shut is not None

    @property
    def reasons(self) -> tuple[str, ...]:
        """What the row says about its missing rank."""
        is_limited = self.entry.match.extent == "slice"
        return () if self.entry.is_baseline else reasons_of(self.unranked, self.shut, is_limited=is_limited)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultTable:
    """A table of all results with one signature.

    Rows with the best rank ranges come first, of equal ones that nearest to the ideal, then rows without a rank. Models
    that achieve no more than a baseline follow below.
    """

    signature: Signature
    signature_sha256: str
    columns: tuple[Column, ...]
    undefined: tuple[Undefined, ...]
    primary: str | None
    """Name of the metric by which the rows are ranked; None if the benchmark names none, or if none can rank models on
    these items."""
    sorted_by: str | None
    """Name of the metric by which the rows are sorted if none ranks them; None for their names."""
    rows: tuple[Row, ...]
    comparisons: tuple[Comparison, ...]
    """Comparisons of all pairs of ranked models, which are named by ``model_label``."""
    detectable: float | None
    """Difference between two ranked models that is detected with a probability of 80 %; None if unknown."""
    others: tuple[ResultTable, ...] = ()
    """The same results ranked by each other metric that the benchmark offers; empty if no result has a rank."""

    @property
    def is_whole(self) -> bool:
        """True if the rows answer all items of the config or suite, as the board knows it."""
        return self.rows[0].entry.match.extent == "whole"

    @property
    def ranked(self) -> tuple[Row, ...]:
        """The rows that have a rank."""
        return tuple(row for row in self.rows if row.rank is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """All tables, sorted by benchmark, dataset and config."""

    tables: tuple[ResultTable, ...]
    duplicates: tuple[Duplicate, ...]
    indices: Indices
    """Tables of the indices, for benchmarks that have an index over their configs."""
    apart: tuple[Entry, ...] = ()
    """Results on datasets that the board does not know; no table shows them."""

    @property
    def benchmarks(self) -> tuple[str, ...]:
        """The names of the benchmarks, sorted."""
        return tuple(sorted({table.signature.benchmark for table in self.tables}))

    @property
    def own_datasets(self) -> frozenset[tuple[str, str]]:
        """Name and version of each dataset without an accepted result, on a board that has accepted results."""
        entries = [row.entry for table in self.tables for row in table.rows]
        accepted = {_dataset(entry) for entry in entries if entry.origin == "accepted"}
        return frozenset(map(_dataset, entries)) - accepted if accepted else frozenset()


def _dataset(entry: Entry) -> tuple[str, str]:
    return entry.result.signature.dataset, entry.result.signature.dataset_version


_MOST_NAMED = 3


def table_title(table: ResultTable, tables: Sequence[ResultTable]) -> str:
    """Return the title of a table: dataset, config and prompt, and more if another table would have the same title."""
    signature = table.signature
    title = _short_title(signature)
    same = [other.signature for other in tables if _short_title(other.signature) == title]
    if len({other.n_items for other in same}) > 1:
        title += f", {signature.n_items:,} items"
    if len({other.normalisation for other in same}) > 1:
        title += f", {signature.normalisation}"
    if len({other.splits for other in same}) > 1:
        title += f", {'+'.join(signature.splits)}"
    if len({other.parts for other in same}) > 1:
        title += f", {_named_parts(signature.parts)}"
    if len({other.examples_sha256 for other in same}) > 1 and signature.examples_sha256 is not None:
        title += f", examples {signature.examples_sha256[:8]}"
    return title


def _named_parts(parts: Sequence[str]) -> str:
    """Return the names of a few parts; of many their number, with a hash by which choices of as many differ."""
    if len(parts) <= _MOST_NAMED:
        return ", ".join(parts)
    return f"{len(parts)} parts ({strict_json.sha256([*parts])[:8]})"


def _short_title(signature: Signature) -> str:
    return f"{signature.dataset} {signature.dataset_version}, {signature.config}, {signature.prompt}"


def assemble(entries: Sequence[Entry]) -> Board:
    """Group results by signature, one row per model identity.

    If a model has several results with one signature and the same answers, only one is shown: an accepted one before a
    local one, then the first by folder. The others are listed as duplicates. If their answers differ, all are shown and
    none is ranked. A different revision, precision or backend makes a different model. Results on unknown datasets
    are set apart, since their items cannot be checked.
    """
    by_signature: dict[str, list[Entry]] = {}
    checked = _with_the_same_items(with_own_identities(entries))
    apart = tuple(entry for entry in checked if entry.match.extent == "unknown")
    matched = [entry for entry in checked if entry.match.extent != "unknown"]
    for entry in sorted(matched, key=precedence):
        by_signature.setdefault(entry.result.signature_sha256, []).append(entry)
    answers = FirstAnswers(matched)
    singled_tables = [singled(of_table, answers) for of_table in by_signature.values()]
    # Of results that contradict each other, one represents all of them in indices and gates.
    alone = {
        (entry.result.signature_sha256, _identity(entry)): entry
        for of_signature in singled_tables
        for entry in of_signature.shown[::-1]
    }
    every_row = list(alone.values())
    gates = Gates(every_row)
    tables = [_table(of_signature.shown, gates) for of_signature in singled_tables]
    return Board(
        tables=tuple(sorted(tables, key=_table_order)),
        duplicates=tuple(duplicate for of_signature in singled_tables for duplicate in of_signature.duplicates),
        indices=index_tables(every_row, gates),
        apart=apart,
    )


def _with_the_same_items(entries: Sequence[Entry]) -> list[Entry]:
    """Return the results; slices of other items than those of the first slice with their signature are set apart.

    An answer key knows the items of a dataset, but not which of them are in a slice with a certain hash.
    """
    first: dict[str, Entry] = {}
    for entry in sorted(entries, key=precedence):
        if entry.match.extent == "slice":
            first.setdefault(entry.result.signature_sha256, entry)
    checked = []
    for entry in entries:
        other = first.get(entry.result.signature_sha256, entry)
        if other.items_sha256 != entry.items_sha256:
            reason = (
                f"its items are not those of {other.place}, though the signature is the same; run one of them again"
            )
            entry = replace(entry, match=Match("unknown", reason))
        checked.append(entry)
    return checked


def _table_order(table: ResultTable) -> tuple[str, str, tuple[int, ...], str, str, int, str]:
    signature = table.signature
    # The newest version comes first, and the table with the most items before those of parts of the dataset.
    version = tuple(-int(part) for part in signature.dataset_version.split("."))
    return (
        signature.benchmark,
        signature.dataset,
        version,
        signature.config,
        signature.prompt,
        -signature.n_items,
        table.signature_sha256,
    )


def _table(entries: Sequence[Entry], gates: Gates) -> ResultTable:
    signature = entries[0].result.signature
    benchmark = load_benchmark(signature.benchmark)
    primary, *others = benchmark.rankings or (None,)
    # A benchmark may have tasks with other metrics.
    metrics = {name for entry in entries for name, _ in entry.metrics}
    # On items without a right answer no model can be ranked, and none can fall short of a baseline.
    is_ranking = not all(_is_undefined(entry.primary) for entry in entries)
    shut = {id(entry): gates.why_shut(entry) if is_ranking else None for entry in entries}
    rows, ranking = _ranked_rows(entries, shut, primary)
    unranked_order = benchmark.unranked_order if benchmark.unranked_order in metrics else None
    if not is_ranking:
        rows.sort(key=lambda row: _unranked_order(unranked_order, row.entry))
    labels = {_identity(entry): model_label(entry) for entry in entries}
    table = ResultTable(
        signature=signature,
        signature_sha256=entries[0].result.signature_sha256,
        columns=choose(signature.benchmark, entries),
        undefined=undefined(entries),
        primary=benchmark.primary_metric if is_ranking else None,
        sorted_by=None if is_ranking else unranked_order,
        rows=tuple(rows),
        comparisons=tuple(comparison.named(labels) for comparison in ranking.comparisons),
        detectable=ranking.detectable,
    )
    also_ranking = [other for other in others if table.ranked and other.metric in metrics]
    return replace(table, others=tuple(_ranked_by(other, table, shut, labels) for other in also_ranking))


def _ranked_by(
    by: RankingMetric, table: ResultTable, shut: Mapping[int, str | None], labels: Mapping[str, str]
) -> ResultTable:
    """Return a table whose results another metric ranks."""
    rows, ranking = _ranked_rows([row.entry for row in table.rows], shut, by)
    return replace(
        table,
        primary=by.metric,
        rows=tuple(rows),
        comparisons=tuple(comparison.named(labels) for comparison in ranking.comparisons),
        detectable=ranking.detectable,
    )


class _Measured(NamedTuple):
    """A result and its value of a metric that ranks."""

    entry: Entry
    metric: Metric | None
    bounds: Bounds | None
    """The values with missing answers at their worst and best; None if none are missing."""

    @property
    def order(self) -> tuple[bool, float, str, str, str]:
        """The sort key: nearest to the ideal first, with missing answers at their worst, and unknown values last."""
        distance = _distance(self.metric, self.bounds)
        name = model_label(self.entry), _identity(self.entry), self.entry.place
        return distance is None, distance or 0.0, *name


def _distance(metric: Metric | None, bounds: Bounds | None) -> float | None:
    if metric is None or metric.value is None or metric.ideal is None:
        return None
    return abs((metric.value if bounds is None else bounds.worst) - metric.ideal)


def _measured(entry: Entry, by: RankingMetric | None) -> _Measured:
    metric = None if by is None else entry.metric(by.metric)
    counting = None if by is None or by.missing is None else entry.metric(by.missing)
    total = 0 if counting is None else counting.n + counting.n_excluded
    share = counting.n_excluded / total if counting is not None and total else entry.missing_share
    # What a metric excludes of a result that answers everything, no answer could have changed: WinoBias has pairs that
    # differ in more than the pronoun.
    counts = entry.result.counts
    lacks_answers = counts.scored < counts.items and metric is not None and bool(metric.n_excluded or share)
    return _Measured(entry, metric, bounds_of(metric, share) if lacks_answers else None)


def _ranked_rows(
    entries: Sequence[Entry], shut: Mapping[int, str | None], by: RankingMetric | None
) -> tuple[list[Row], Ranking]:
    """Return the rows of a table, those below the line last, and the ranking behind their ranks.

    Args:
        entries: Results with one signature.
        shut: Why each result does not pass the gates of its benchmark, by its ``id``; None if it passes.
        by: Metric that ranks.
    """
    ordered = sorted((_measured(entry, by) for entry in entries), key=lambda measured: measured.order)
    reasons = [_why_unranked(measured) or shut[id(measured.entry)] for measured in ordered]
    ranked = [measured for measured, reason in zip(ordered, reasons, strict=True) if reason is None]
    ranking, of_answers = rankings(_contenders(ranked))
    names = {id(measured.entry): _identity(measured.entry) for measured in ranked}
    rows = []
    for measured, reason in zip(ordered, reasons, strict=True):
        name = names.get(id(measured.entry), "")
        row = Row(
            entry=measured.entry,
            rank=ranking.ranges.get(name),
            unranked=reason,
            shut=shut[id(measured.entry)],
            chance=ranking.chances.get(name),
            rank_of_answers=None if measured.bounds is None else of_answers.ranges.get(name),
            bounds=measured.bounds,
        )
        rows.append(row)
    return sorted(rows, key=lambda row: (row.is_below, by_rank(row.rank))), ranking


def _identity(entry: Entry) -> str:
    return entry.result.model.identity_sha256


def _why_unranked(measured: _Measured) -> str | None:
    entry, metric = measured.entry, measured.metric
    signature = entry.result.signature
    retired = load_benchmark(signature.benchmark).retired.get(f"{signature.dataset}@{signature.dataset_version}")
    if retired is not None and not entry.is_baseline:
        return f"{signature.dataset} {signature.dataset_version} is retired: {retired}"
    if (reason := why_unranked(entry)) is not None:
        return reason
    if metric is None:
        if load_benchmark(signature.benchmark).indices:
            return BY_INDEX
        return f"benchmark {signature.benchmark} has no metric that ranks models"
    if metric.value is None:
        return metric.reason
    # A pair is lost if either of its items has no answer, so few missing items can exclude many pairs.
    total = metric.n + metric.n_excluded
    if metric.n < MIN_ANSWERED * total:
        return f"{metric.n} of {total} {metric.unit} could be scored; a rank needs at least half"
    return None


def _is_undefined(metric: Metric | None) -> bool:
    """Return True if the primary metric is undefined on the items, whatever the answers."""
    return metric is not None and metric.value is None and not metric.n + metric.n_excluded


def _unranked_order(metric: str | None, entry: Entry) -> tuple[float, str, str, str]:
    value = None if metric is None else getattr(entry.metric(metric), "value", None)
    return (math.inf if value is None else -float(value), model_label(entry), _identity(entry), entry.place)


def _contenders(ranked: Iterable[_Measured]) -> Iterator[Contender]:
    for entry, metric, bounds in ranked:
        if metric is not None and metric.value is not None and metric.ideal is not None:
            yield Contender(entry, metric.value, metric.ideal, bounds, entry.deviations.get(metric.name))
