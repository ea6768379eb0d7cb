"""Groups comparable results into tables, ranks them, and lists the results that are not shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from biasboard.ground import strict_json
from evaluators.benchmark import RankingMetric, load_benchmark
from leaderboard.benchmark_pages import Column, load_pages
from leaderboard.ranking.rows import Duplicate, copied_answers, precedence, singled, with_own_identities
from leaderboard.ranking.rank_ranges import BY_INDEX, MIN_ANSWERED, Gates, why_unranked
from leaderboard.ranking.index_tables import IndexTables, index_tables
from leaderboard.ranking.rank_ranges import Bounds, bounds_of
from leaderboard.ranking.rows import RankableValue, Row, Table, compared, ranked_by
from leaderboard.verify.entries import Entry, Match
from schemas.documents.result import Metric, Signature, metric_key


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """All tables, sorted by benchmark, dataset and config."""

    tables: tuple[Table, ...]
    duplicates: tuple[Duplicate, ...]
    indices: IndexTables
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
        signed = [(table, table.signature.dataset, table.signature.dataset_version) for table in self.tables]
        origins = {((name, version), row.entry.origin) for table, name, version in signed for row in table.rows}
        accepted = {data for data, origin in origins if origin == "accepted"}
        return frozenset(data for data, _ in origins) - accepted if accepted else frozenset()


def table_title(table: Table, tables: Sequence[Table]) -> str:
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
        parts = signature.parts
        # Of many their number, with a hash by which choices of as many differ.
        many = f"{len(parts)} parts ({strict_json.sha256([*parts])[:8]})"
        title += f", {', '.join(parts) if len(parts) <= 3 else many}"
    if len({other.examples_sha256 for other in same}) > 1 and signature.examples_sha256 is not None:
        title += f", examples {signature.examples_sha256[:8]}"
    return title


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
    copied = copied_answers(matched)
    of_tables = [singled(of_table, copied) for of_table in by_signature.values()]
    # Of results that contradict each other, one represents all in indices and gates: one with an own rank, if any.
    alone: dict[tuple[str, str], Entry] = {}
    for shown, _ in of_tables:
        for entry in sorted(shown, key=lambda entry: entry.double is not None):
            alone.setdefault((entry.result.signature_sha256, entry.result.model.identity_sha256), entry)
    every_row = list(alone.values())
    gates = Gates(every_row)
    tables = [_table(shown, gates) for shown, _ in of_tables]

    def place_of(table: Table) -> tuple[object, ...]:
        asked = table.signature
        # The newest version comes first, and the table with the most items before those of parts of the dataset.
        version = tuple(-int(part) for part in asked.dataset_version.split("."))
        data = asked.benchmark, asked.dataset, version
        return (*data, asked.config, asked.prompt, -asked.n_items, table.signature_sha256)

    return Board(
        tables=tuple(sorted(tables, key=place_of)),
        duplicates=tuple(duplicate for _, duplicates in of_tables for duplicate in duplicates),
        indices=index_tables(every_row),
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


def _table(entries: Sequence[Entry], gates: Gates) -> Table:
    signature = entries[0].result.signature
    benchmark = load_benchmark(signature.benchmark)
    # A benchmark may have tasks with other metrics.
    metrics = {name for entry in entries for name, _ in entry.metrics}
    # Where the primary metric is undefined whatever the answers, as on items without a right one, no model can be
    # ranked, and none can fall short of a baseline.
    is_ranking = any(
        (metric := entry.primary) is None or metric.value is not None or metric.n + metric.n_excluded > 0
        for entry in entries
    )
    shut = [gates.why_shut(entry) for entry in entries]

    def ranked(by: RankingMetric | None) -> Table:
        """Return the table with the ranks that a metric gives."""
        reasons = shut if is_ranking else [None] * len(entries)
        rows, ranking = ranked_by([_measured(*each, by) for each in zip(entries, reasons, strict=True)])
        return Table(
            signatures=(signature,),
            columns=columns,
            undefined=lacking,
            primary=None if by is None else by.metric,
            rows=rows,
            pairs={} if by is None else {by.metric: ranking.comparisons},
            detectable=ranking.detectable,
        )

    columns, lacking = _columns(signature.benchmark, entries), _undefined(entries)
    primary, *others = benchmark.rankings or (None,)
    table = ranked(primary)
    also_ranking = [ranked(other) for other in others if table.ranked and other.metric in metrics]
    pairs = {name: of_metric for one in (table, *also_ranking) for name, of_metric in one.pairs.items()}
    shown = {headline.name for headline in load_pages(benchmark.name).headlines}
    for name in benchmark.compared_metrics:
        if name in metrics and name in shown and name not in pairs:
            # Here, too, models that are not shown to achieve more than a baseline do not count.
            of_metric = [_measured(*each, RankingMetric(name)) for each in zip(entries, shut, strict=True)]
            pairs[name] = compared(of_metric).comparisons
    table = replace(table, pairs=pairs, others=tuple(replace(other, pairs=pairs) for other in also_ranking))
    if is_ranking:
        return table
    sorted_by = benchmark.unranked_order if benchmark.unranked_order in metrics else None

    def best_first(row: Row) -> tuple[float, str, str, str]:
        value = None if sorted_by is None else getattr(row.metric(sorted_by), "value", None)
        return math.inf if value is None else -float(value), row.label, row.identity, row.entry.place

    rows = sorted(table.rows, key=best_first)
    return replace(table, primary=None, sorted_by=sorted_by, rows=tuple(rows))


def _columns(benchmark: str, entries: Sequence[Entry]) -> tuple[Column, ...]:
    """Choose the columns of a table.

    The columns that the benchmark describes come first. Every other metric on all items follows under its label,
    unless the benchmark excludes it. A column without a value in any row is left out. One whose rows have several
    versions, such as those of two scorers, is split into one column per version.
    """

    def versions_of(column: Column) -> set[str]:
        metrics = [metric for entry in entries if (metric := column.of(entry)) is not None]
        return {metric.version for metric in metrics if metric.value is not None}

    pages = load_pages(benchmark)
    layout = pages.layout(lambda name: bool(versions_of(Column(name))))
    described = {column.metric for column in layout.columns} | layout.without_column
    names = dict.fromkeys(name for entry in entries for name, group in entry.metrics if not group)
    plain = [Column(name) for name in names if name not in described]
    columns: list[Column] = []
    for column in (*layout.columns, *plain):
        labelled = column if column.label else replace(column, label=pages.label(column.metric))
        versions = sorted(versions_of(column))
        several = [replace(labelled, key=f"{column.key}@{version}", version=version) for version in versions]
        columns += [labelled] if len(versions) == 1 else several
    return tuple(columns)


def _undefined(entries: Sequence[Entry]) -> dict[str, str]:
    """Return the reason of each metric on all items that has no value in any of the results, from the first of them."""
    overall = [(name, metric) for entry in entries for (name, group), metric in entry.metrics.items() if not group]
    known = {name for name, metric in overall if metric.value is not None}
    reasons: dict[str, str] = {}
    for name, metric in overall:
        reasons.setdefault(name, metric.reason or "")
    return {name: reason for name, reason in reasons.items() if name not in known}


def _measured(entry: Entry, shut: str | None, by: RankingMetric | None) -> RankableValue:
    """Return a result with its value of a metric, and whether that can rank it; ``shut`` says why it passes no gate."""
    metric = None if by is None else entry.metric(by.metric)
    bounds = missing_bounds(entry, metric)
    row = Row(entries=(entry,), unranked=_why_unranked(entry, metric) or shut, shut=shut, bounds=bounds)
    return RankableValue(row, metric, bounds, None if metric is None else entry.deviations.get(metric.name))


def missing_bounds(entry: Entry, metric: Metric | None) -> Bounds | None:
    """Return what missing answers could make of a value of a result; None if none is missing that could change it."""
    if metric is None:
        return None
    metric = _settled(entry, metric)
    rankings = load_benchmark(entry.result.signature.benchmark).rankings
    missing = next((one.missing for one in rankings if one.metric == metric.name and not metric.group), None)
    counting = None if missing is None else entry.metric(missing)
    counting = None if counting is None else _settled(entry, counting)
    total = 0 if counting is None else counting.n + counting.n_excluded
    share = entry.missing_share
    if counting is not None and total:
        share = max(counting.n_excluded / total, entry.unread_share)
    # What a metric excludes of a result that answers everything, no answer could have changed: WinoBias has pairs that
    # differ in more than the pronoun.
    counts = entry.result.counts
    lacks_some = counts.scored < counts.items or bool(entry.settled or entry.unread_share)
    lacks_answers = lacks_some and bool(metric.n_excluded or share)
    return bounds_of(metric, share) if lacks_answers else None


def _settled(entry: Entry, metric: Metric) -> Metric:
    """Return a metric of a result without the readings that may turn, so that these count as missing."""
    kept = next((one for one in entry.settled if metric_key(one) == metric_key(metric)), metric)
    return kept if kept.value is not None else replace(metric, n=0, n_excluded=metric.n + metric.n_excluded)


def _why_unranked(entry: Entry, metric: Metric | None) -> str | None:
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
    metric = _settled(entry, metric)
    # A pair is lost if either of its items has no answer, so few missing items can exclude many pairs.
    total = metric.n + metric.n_excluded
    if metric.n < MIN_ANSWERED * total:
        return f"{metric.n} of {total} {metric.unit} could be scored; a rank needs at least half"
    return None
