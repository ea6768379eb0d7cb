"""Builds the tables of an index, with one row per model that combines its results on several configs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from evaluators.benchmark import load_benchmark
from evaluators.runs.measure.index_values import (
    Index,
    ModelResults,
    ScoredResult,
    index_of,
    results_by_model,
    set_tables,
)
from leaderboard.benchmark_pages import load_pages
from leaderboard.ranking.rows import precedence
from leaderboard.ranking.rank_ranges import MIN_ANSWERED, in_config, is_settled, why_own_shut, why_unranked
from leaderboard.ranking.rank_ranges import Bounds, bounds_of
from leaderboard.ranking.rows import RankableValue, Row, Scope, Table, compared, ranked_by
from leaderboard.verify.entries import Entry, model_label
from schemas.documents.result import Result


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
        tuple(_table(key[0], _of_one_version(rows[key])) for key in sorted(rows)),
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


def _table(scope: Scope, rows: Sequence[Row]) -> Table:
    shown, ranking = ranked_by(_measured(rows, 0))
    pairs = {rows[0].primary.name: ranking.comparisons}
    headlines = {headline.name for headline in load_pages(scope.benchmark).headlines}
    for number, index in enumerate(rows[0].indices):
        if number and index.metric.name in headlines:
            pairs[index.metric.name] = compared(_measured(rows, number)).comparisons
    return Table(
        signatures=tuple(entry.result.signature for entry in rows[0].entries),
        protocol=scope.protocol,
        version=rows[0].primary.version,
        primary=rows[0].primary.name,
        rows=shown,
        pairs=pairs,
        detectable=ranking.detectable,
    )


def _measured(rows: Sequence[Row], number: int) -> list[RankableValue]:
    """Return the rows with their values of the index of a number, and whether that can rank them."""
    measured = []
    for row in rows:
        index = row.indices[number]
        lacking = (reason for entry in row.entries if (reason := _why_uncovered(entry, index)) is not None)
        own = row if number == 0 else replace(row, unranked=row.unranked or next(lacking, None))
        measured.append(RankableValue(own, index.metric, index_bounds(index, row.entries), index.deviations))
    return measured
