"""Groups comparable results into tables and indices, ranks them, and lists the results that are not shown."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from biasboard.ground import strict_json
from evaluators.benchmark import RankingMetric, load_benchmark
from evaluators.runs.measure.index_values import (
    Index,
    ModelResults,
    ScoredResult,
    index_of,
    results_by_model,
    set_tables,
)
from leaderboard.benchmark_pages import Column, load_pages
from leaderboard.ranking.rank_ranges import (
    BY_INDEX,
    MIN_ANSWERED,
    Bounds,
    Gates,
    bounds_of,
    in_config,
    is_settled,
    why_own_shut,
    why_unranked,
)
from leaderboard.ranking.rows import (
    Duplicate,
    RankableValue,
    Row,
    Scope,
    Table,
    compared,
    copied_answers,
    precedence,
    ranked_by,
    singled,
    with_own_identities,
)
from leaderboard.verify.entries import Entry, Match, model_label
from schemas.documents.result import Metric, Result, Signature, metric_key


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

    known_by = benchmark.headlines_of.get(signature.config, ())
    columns, lacking = _columns(signature.benchmark, entries, known_by), _undefined(entries)
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
    sorted_by = next((name for name in (*known_by, benchmark.unranked_order) if name in metrics), None)

    def best_first(row: Row) -> tuple[float, str, str, str]:
        value = None if sorted_by is None else getattr(row.metric(sorted_by), "value", None)
        return math.inf if value is None else -float(value), row.label, row.identity, row.entry.place

    rows = sorted(table.rows, key=best_first)
    return replace(table, primary=None, sorted_by=sorted_by, rows=tuple(rows))


def _columns(benchmark: str, entries: Sequence[Entry], known_by: Sequence[str]) -> tuple[Column, ...]:
    """Choose the columns of a table: first the metrics that its config is known by.

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
    place = {name: number for number, name in enumerate(known_by)}
    for column in sorted((*layout.columns, *plain), key=lambda column: place.get(column.metric, len(place))):
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


_OF_ONE_READING = frozenset({"items", "pairs", "answers"})
"""Units of which a metric excludes those that an answer is missing of."""


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
    counts = entry.result.counts
    if metric.unit not in _OF_ONE_READING and counts.items and not entry.result.signature.parts:
        # Its units, such as occupations, have a value while any of their items has.
        share = max(share, 1 - counts.scored / counts.items)
    # What a metric excludes of a result that answers everything, no answer could have changed: WinoBias has pairs that
    # differ in more than the pronoun.
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


class Incomplete(NamedTuple):
    """A model without an index, and the reason."""

    label: str
    reason: str
    model_id: str


class IndexTables(NamedTuple):
    """All tables of indices, and the models that are in none."""

    tables: tuple[Table, ...]
    incomplete: dict[Scope, tuple[Incomplete, ...]]


def index_tables(entries: Sequence[Entry]) -> IndexTables:
    """Build the tables of all indices, and list the models that have no index."""
    by_result = {_identity(entry.result): entry for entry in entries}
    rows: dict[tuple[Scope, str, tuple[str, ...]], list[Row]] = defaultdict(list)
    incomplete: dict[Scope, list[Incomplete]] = defaultdict(list)
    scored = []
    for entry in entries:
        overall = {name: metric for (name, group), metric in entry.metrics.items() if not group}
        # Not by more items or another prompt: nobody's result takes the place of one that a maintainer has registered.
        precedes = (not is_settled(entry) or entry.match.reason is not None, why_unranked(entry) is not None)
        scored.append(ScoredResult(entry.result, overall, entry.deviations, entry.by_part, precedes))
    for of_model in results_by_model(scored):
        scope = Scope(of_model.benchmark, of_model.dataset, of_model.dataset_version, of_model.asked)
        of_model_entries = [by_result[_identity(result)] for result in of_model.results]
        if of_model.missing:
            reason = f"no result of {', '.join(map(str, of_model.missing))}"
            first = of_model_entries[0]
            incomplete[scope].append(Incomplete(model_label(first), reason, first.result.model.id))
            continue
        sources = of_model.definitions[0].sources
        combined = tuple(by_result[_identity(of_model.scored[source].result)] for source in sources)
        row = _row(of_model, combined)
        if row.primary.value is None:
            incomplete[scope].append(Incomplete(row.label, row.primary.reason or "unknown", row.model.id))
            continue
        signatures = tuple(str(entry.result.signature) for entry in row.entries)
        rows[scope, row.primary.version, signatures].append(row)
    return IndexTables(
        tuple(_index_table(key[0], _of_one_version(rows[key])) for key in sorted(rows)),
        {scope: tuple(incomplete[scope]) for scope in sorted(incomplete)},
    )


def _of_one_version(rows: Sequence[Row]) -> list[Row]:
    """Return rows of which each index has the version that most owners have; others lose its value, with the reason.

    Only rows of the lowest level decide, and of as many owners those that were accepted first.
    """
    usual: list[str | None] = []
    ordered = sorted(rows, key=lambda row: (row.is_baseline, row.level, precedence(row.entry)))
    for column in zip(*(row.indices for row in ordered), strict=True):
        known = [(row, one.metric) for row, one in zip(ordered, column, strict=True) if one.metric.value is not None]
        deciding = [(row.is_baseline, row.level) for row, _ in known[:1]]
        owners: dict[str, set[str]] = defaultdict(set)
        for row, metric in known:
            if [(row.is_baseline, row.level)] == deciding:
                owners[metric.version].add(row.owner or row.identity)
        usual.append(max(owners, key=lambda version: len(owners[version]), default=None))

    def of_version(index: Index, version: str | None) -> Index:
        if index.metric.value is None or index.metric.version == version:
            return index
        reason = "it has another version, or is of other items, than that of most rows"
        metric = replace(index.metric, value=None, reason=reason, interval=None, interval_reason="there is no value")
        return index._replace(metric=metric, deviations=None)

    return [
        replace(row, indices=tuple(of_version(*pair) for pair in zip(row.indices, usual, strict=True))) for row in rows
    ]


def _identity(result: Result) -> tuple[str, str]:
    return result.signature_sha256, result.model.identity_sha256


def _row(of_model: ModelResults, entries: tuple[Entry, ...]) -> Row:
    indices = tuple(
        _titled(index_of(definition, of_model.scored), of_model.benchmark) for definition in of_model.definitions
    )
    n_of_configs = Counter(entry.result.signature.config for entry in entries)
    reasons: dict[str, str | None] = {}
    for entry in entries:
        signature = entry.result.signature
        with_prompt = f" with {signature.prompt}" if n_of_configs[signature.config] > 1 else ""
        reasons[signature.config + with_prompt] = why_unranked(entry) or _why_uncovered(entry, indices[0])
    judged = [(entry, shut) for entry in entries if (shut := why_own_shut(entry)) or entry.standing is not None]
    found = ((config, reason) for config, reason in reasons.items() if reason is not None)
    config, unranked = next(found, ("", None))
    if unranked is not None and len(set(reasons.values())) > 1:
        unranked = f"{config}: {unranked}"
    shut = why_all_shut(judged)
    sets = tuple(set_tables(of_model, load_benchmark(of_model.benchmark).compared_over_sets))
    return Row(
        entries=entries,
        indices=indices,
        unranked=unranked or shut,
        shut=shut,
        bounds=index_bounds(indices[0], entries),
        sets=sets,
    )


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


def _why_uncovered(entry: Entry, index: Index) -> str | None:
    """Return why a part of the index rests on too few answers of a result; None if none does.

    Without this rule, a model could rise by refusing to answer, or by answering all alike.
    """
    for part, defined in zip(index.parts, index.definition.parts, strict=True):
        total = part.n + part.n_excluded
        if not defined.source.fits(entry.result.signature) or total == 0:
            continue
        saying = None if defined.answering is None else entry.metric(defined.answering)
        if saying is not None and saying.value is None:
            return f"{saying.name} has no value: {saying.reason}"
        if saying is not None and saying.value is not None and saying.value < MIN_ANSWERED:
            said = f"{saying.value:.3f} of the answers say what no answer to another text says"
            return f"{part.name}: {said}; a rank needs half"
        # A pair needs both of its answers, so the share of answers is about the square root of the share of pairs.
        covered = (part.n / total) ** (0.5 if part.unit == "pairs" else 1.0)
        if covered < MIN_ANSWERED:
            return f"{part.name} rests on {part.n} of {total} {part.unit}; a rank needs half of the answers"
    return None


def index_bounds(index: Index, entries: Sequence[Entry]) -> Bounds | None:
    """Return the values of an index with the missing answers of its parts at their worst and best.

    It is None if none are missing, or if a part is of a result that the row does not stand for, as in an index over
    other numbers of examples.
    """
    sources = [
        next((entry for entry in entries if part.source.fits(entry.result.signature)), None)
        for part in index.definition.parts
    ]
    known = [entry for entry in sources if entry is not None]
    if index.metric.value is None or len(known) < len(sources):
        return None
    bounds = []
    for metric, part, entry in zip(index.parts, index.definition.parts, known, strict=True):
        ends, value = bounds_of(metric, entry.missing_share), metric.value or 0.0
        saying = None if part.answering is None else entry.metric(part.answering)
        # An answer that says nothing is worth nothing, but it was given: no other could have been better. Where it is
        # unknown how many say something, there is no rank.
        share = 1.0 if saying is None or saying.value is None else saying.value
        lower = bounds_of(metric, 1 - (1 - entry.missing_share) * share)
        bounds.append(
            (lower.worst - value, ends.best - value) if ends is not None and lower is not None else (0.0, 0.0)
        )
    down, up = (sum(ends) / len(bounds) for ends in zip(*bounds, strict=True))
    value = index.metric.value
    return Bounds(worst=value + down, best=value + up) if down or up else None


def _index_table(scope: Scope, rows: Sequence[Row]) -> Table:
    shown, ranking = ranked_by(_index_measured(rows, 0))
    pairs = {rows[0].primary.name: ranking.comparisons}
    headlines = {headline.name for headline in load_pages(scope.benchmark).headlines}
    for number, index in enumerate(rows[0].indices):
        if number and index.metric.name in headlines:
            pairs[index.metric.name] = compared(_index_measured(rows, number)).comparisons
    return Table(
        signatures=tuple(entry.result.signature for entry in rows[0].entries),
        protocol=scope.protocol,
        version=rows[0].primary.version,
        primary=rows[0].primary.name,
        rows=shown,
        pairs=pairs,
        detectable=ranking.detectable,
    )


def _index_measured(rows: Sequence[Row], number: int) -> list[RankableValue]:
    """Return the rows with their values of the index of a number, and whether that can rank them."""
    measured = []
    for row in rows:
        index = row.indices[number]
        lacking = (reason for entry in row.entries if (reason := _why_uncovered(entry, index)) is not None)
        own = row if number == 0 else replace(row, unranked=row.unranked or next(lacking, None))
        measured.append(RankableValue(own, index.metric, index_bounds(index, row.entries), index.deviations))
    return measured
