"""Summarises a model by its headline measures, beside useless predictors and, if wanted, beside another model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import starmap
from pathlib import Path

import numpy as np

from biasboard.ground.plain_text import listed
from evaluators.runs.measure.recording import statuses_of_groups
from leaderboard.benchmark_pages import Column, Headline
from leaderboard.pages.summary_forms import groups_apart
from leaderboard.ranking.boards import Board
from leaderboard.ranking.frames import bounds_of_row
from leaderboard.ranking.profiles import Profile, ProfileColumn, placing, profiles_of, ranked_row, scope_of
from leaderboard.ranking.rank_ranges import Outcome
from leaderboard.ranking.rows import Row, renamed_identity
from leaderboard.verify.entries import Entry
from schemas.documents.base import SCHEMA_VERSION
from schemas.documents.model_summary import (
    BenchmarkSummary,
    ComparedAs,
    MeasureValue,
    MissingOfGroup,
    ModelDifference,
    ModelSummary,
    NamedValue,
    Rank,
)
from schemas.documents.result import MODELS_THAT_ANSWERED, Metric, Model, Result
from schemas.folders.run_folder import StoredParts

_OUTCOMES: Mapping[Outcome, ComparedAs] = {"first": "better", "second": "worse", "tied": "tied", "unknown": "unknown"}


def summarise(
    board: Board, model: Model, *, against: str | None = None, also: Mapping[str, Sequence[str]] | None = None
) -> ModelSummary:
    """Summarise a model.

    Of several conditions under which it was asked, those count that the benchmark shows first, among those that the
    model to compare with was asked under too, if there are any.

    Args:
        board: All tables.
        model: The model.
        against: Id of the model to compare with; None for none. It may be on no table of the board, which need not hold
            all results.
        also: Names of further measures by benchmark; None for the headlines alone.
    """
    other, why_none = (None, None) if against is None else _identity_of(board, against, model)
    # A board gives a local run an identity of its own if its weights are there under another name.
    identities = renamed_identity(model), model.identity_sha256
    summaries, shares_prompts = [], False
    for benchmark in board.benchmarks:
        of_benchmark = profiles_of(board, benchmark)
        known = [each for each in identities if any(each in _identities(profile) for profile in of_benchmark)]
        profiles = [profile for profile in of_benchmark if known and known[0] in _identities(profile)]
        shared = [profile for profile in profiles if other in _identities(profile)]
        for profile in (shared or profiles)[:1]:
            entries = _results(board, profile, known[0])
            why = why_none or (None if against is None else _why_not_compared(board, profile, other, against))
            more = _further_columns(profile, known[0], (also or {}).get(benchmark, ()))
            summaries.append(_of_benchmark(board, profile, (*profile.columns, *more), entries, other, why))
            shares_prompts |= bool(shared)
    notes = []
    is_whole = all(benchmark.is_whole for benchmark in summaries)
    if against is not None and why_none is None and not shares_prompts and is_whole:
        notes.append(
            f"to compare with {against}, score that one with --against {model.id}, which takes the prompts of this "
            "model where they fit both; if that says the same, no prompt fits both"
        )
    return ModelSummary(
        schema_version=SCHEMA_VERSION,
        model=model.id,
        revision=model.revision,
        backend=model.backend,
        precision=model.precision,
        identity_sha256=model.identity_sha256,
        against=against,
        benchmarks=tuple(summaries),
        notes=tuple(notes),
    )


def several_answered(results: Iterable[Result]) -> str | None:
    """Return which models answered, if an endpoint named several in some runs; None if it named one or none."""
    told = (result.environment.settings.get(MODELS_THAT_ANSWERED, "") for result in results)
    # Names of one opening of the endpoint have a comma between them, and those of several a slash.
    models = sorted({name for names in told for name in names.replace(" / ", ", ").split(", ") if name})
    return (
        f"the endpoint says that {len(models)} models answered: {listed(models, most=4)}" if len(models) > 1 else None
    )


def missing_of_groups(folder: Path, result: Result) -> tuple[MissingOfGroup, ...]:
    """Return the numbers of items without a score in each group of a result with its records."""
    config = result.signature.config
    return tuple(
        _missing_of_group((config, *group), statuses) for group, statuses in statuses_of_groups(folder, result).items()
    )


def _missing_of_group(group: tuple[str, str, str], statuses: Counter[str]) -> MissingOfGroup:
    config, name, value = group
    return MissingOfGroup(
        config=config,
        name=name,
        value=value,
        n_items=statuses.total(),
        n_refused=statuses["refused"],
        n_unparsed=statuses["unparsed"],
        n_failed=statuses["failed"],
    )


def with_missing_of_groups(summary: ModelSummary, runs: Iterable[tuple[Path, Result]]) -> ModelSummary:
    """Return a summary with the numbers of items without a score in each group, for benchmarks that lack any.

    ``runs`` are folders of results with their records; those that the summary does not rest on are passed over.
    """
    lacking = {sha256 for benchmark in summary.benchmarks if benchmark.n_missing for sha256 in benchmark.results}
    counted = {
        result.signature_sha256: (result.signature.config, statuses_of_groups(folder, result))
        for folder, result in runs
        if result.signature_sha256 in lacking
    }

    def groups_of(benchmark: BenchmarkSummary) -> Iterator[MissingOfGroup]:
        of_groups: dict[tuple[str, str, str], Counter[str]] = {}
        for sha256 in benchmark.results:
            config, statuses_of = counted.get(sha256, ("", {}))
            for group, statuses in statuses_of.items():
                of_groups.setdefault((config, *group), Counter()).update(statuses)
        return starmap(_missing_of_group, sorted(of_groups.items()))

    benchmarks = []
    for one in summary.benchmarks:
        groups = tuple(groups_of(one))
        benchmarks.append(replace(one, missing_of_groups=groups, lacking_more=tuple(groups_apart(groups))))
    return replace(summary, benchmarks=tuple(benchmarks))


def _identity_of(board: Board, against: str, model: Model) -> tuple[str | None, str | None]:
    """Return the identity of the model to compare with, or why there is none; neither if there are no results of it.

    Several models can have one id: accepted ones in several precisions, of which the first counts, or runs of one's own
    in which new weights took an old name.
    """
    of_id: dict[str, bool] = {}
    is_there = False
    weights = {model.identity_sha256, renamed_identity(model)}

    def is_of(row: Row) -> bool:
        return row.model.id == against

    for row in (row for table in board.tables for row in table.rows if is_of(row)):
        is_there = True
        # A local run of weights that are on the board under another name has an identity of its own.
        if weights.isdisjoint({row.identity, *(entry.shared_identity for entry in row.entries)}):
            is_accepted = any(entry.origin == "accepted" for entry in row.entries)
            of_id[row.identity] = of_id.get(row.identity, False) or is_accepted
    accepted = [identity for identity, is_accepted in of_id.items() if is_accepted]
    if accepted or len(of_id) == 1:
        return (accepted or list(of_id))[0], None
    if of_id:
        several = f"{len(of_id)} models of other weights or settings are stored as {against}"
        places = {entry.place for table in board.tables for row in table.rows for entry in row.entries if is_of(row)}
        told = listed(sorted(places), most=8)
        return None, f"{several}, in {told}; score each release with a --name of its own, or remove the runs of one"
    return (
        None,
        f"{against} is this model, by the hash of its weights and settings, or at an endpoint of its name and address"
        if is_there
        else None,
    )


def _identities(profile: Profile) -> frozenset[str]:
    # Also of models that have no value of any headline, as where no answer could be read.
    return frozenset(profile.rows).union(*(column.rows for column in profile.columns))


def _results(board: Board, profile: Profile, identity: str) -> list[Entry]:
    """Return all results of a model under the conditions of a profile, once each: its rank can need more than values.

    Those that its values come from are the first.
    """
    shown = [entry for column in profile.columns if identity in column.rows for entry in column.rows[identity].entries]
    tables = (table for table in board.tables if scope_of(table) == profile.scope)
    own = (row.entry for table in tables for row in table.rows if row.identity == identity)
    extents = {entry.match.extent for entry in shown}
    found = {(entry.origin, entry.place): entry for entry in (*shown, *own)}
    return [entry for entry in found.values() if not extents or entry.match.extent in extents]


def _of_benchmark(
    board: Board,
    profile: Profile,
    shown: Sequence[ProfileColumn],
    entries: Sequence[Entry],
    other: str | None,
    why_not_compared: str | None,
) -> BenchmarkSummary:
    model = entries[0].result.model
    row = ranked_row(profile, model.identity_sha256, model.id)
    rank = None if row is None else row.rank
    counts = [entry.result.counts for entry in entries]
    columns = [column for column in shown if model.identity_sha256 in column.metrics]
    measures = tuple(_measure(column, model.identity_sha256, other) for column in columns)
    is_compared = any(measure.difference is not None for measure in measures)
    return BenchmarkSummary(
        benchmark=profile.benchmark,
        heading=profile.title,
        dataset=profile.scope.dataset,
        dataset_version=profile.scope.dataset_version,
        protocol=profile.scope.protocol,
        rank=None if rank is None else Rank(best=rank.best, worst=rank.worst, n_ranked=rank.n_ranked),
        why_unranked=placing(board, profile, model.id, row).removeprefix("no rank: ") if rank is None else None,
        beats_useless=model.identity_sha256 not in profile.below,
        why_below=profile.below.get(model.identity_sha256),
        is_below=row is not None and row.is_below and row.unranked == row.shut,
        is_other_below=other in profile.below,
        n_missing_of_other=None if not is_compared else sum(map(_n_missing, _results(board, profile, other or ""))),
        why_not_compared=None if is_compared else why_not_compared,
        not_measured=_not_measured(profile, model.identity_sha256, other),
        measures=measures,
        results=tuple(sorted({entry.result.signature_sha256 for entry in entries})),
        is_whole=all(entry.match.extent == "whole" for entry in entries),
        claims=tuple(dict.fromkeys(entry.claim for entry in entries if entry.claim is not None)),
        n_missing=sum(map(_n_missing, entries)),
        n_refused=sum(count.refused for count in counts),
        n_unparsed=sum(count.unparsed for count in counts),
        n_failed=sum(count.failed for count in counts),
        n_items=sum(count.items for count in counts),
    )


def _further_columns(profile: Profile, identity: str, names: Sequence[str]) -> Iterator[ProfileColumn]:
    """Yield columns of measures that are no headlines, each from the first table in which the model has it."""
    tables = [table for table in profile.tables if scope_of(table) == profile.scope]
    for name in names:
        for table in tables:
            description = Column(name).description(table.signature.task)
            headline = Headline(name, profile.pages.label(name), description, "")
            column = ProfileColumn(headline=headline, table=table)
            if identity in column.metrics and name not in {one.headline.name for one in profile.columns}:
                yield column
                break


def _missing_alike(entries: Sequence[Entry], others: Sequence[Entry]) -> float:
    """Return the share of the items without a score of either model that have none of both; 0 if it is unknown."""
    n_both = n_either = 0
    of_other = {entry.result.signature_sha256: entry for entry in others}
    for entry in entries:
        other = of_other.get(entry.result.signature_sha256)
        if other is None or entry.folder is None or other.folder is None:
            return 0.0
        own, theirs = _unscored(entry.folder, entry.result), _unscored(other.folder, other.result)
        n_both, n_either = n_both + len(own & theirs), n_either + len(own | theirs)
    return n_both / n_either if n_either else 0.0


def _unscored(folder: Path, result: Result) -> set[tuple[int, str]]:
    """Return the items without a score, each with the number of its part."""
    found = set[tuple[int, str]]()
    for number, records in enumerate(StoredParts(folder, result)):
        lacks = ~records.columns["status"].coded.is_one_of("scored")
        items = records.columns["item_id"].texts
        found |= {(number, str(items[row])) for row in np.flatnonzero(lacks).tolist()}
    return found


def _n_missing(entry: Entry) -> int:
    return entry.result.counts.items - entry.result.counts.scored


def _not_measured(profile: Profile, identity: str, other: str | None) -> tuple[str, ...]:
    """Return the headline measures of which another model has a value, and a model has none."""

    def has_value(column: ProfileColumn, owner: str | None) -> bool:
        return owner is not None and owner in column.metrics and column.metrics[owner].value is not None

    return tuple(
        column.headline.name
        for column in profile.columns
        if has_value(column, other) and not has_value(column, identity)
    )


def _why_not_compared(board: Board, profile: Profile, other: str | None, against: str) -> str:
    """Return why no measure of a profile compares a model with another, if none does."""
    others = [each for each in profiles_of(board, profile.benchmark) if other in _identities(each)]
    if not others:
        dataset = f"{profile.scope.dataset} {profile.scope.dataset_version}"
        return f"no result of {against} on {dataset} has the same questions and prompt"
    if any(other.scope == profile.scope for other in others):
        return f"no measure has a value of both this model and {against}"
    scope = others[0].scope
    return f"{against} was asked otherwise ({scope.dataset} {scope.dataset_version}, {scope.protocol})"


def _measure(column: ProfileColumn, identity: str, other: str | None) -> MeasureValue:
    metric, headline, useless = column.metrics[identity], column.headline, column.useless
    entries = column.rows[identity].entries
    signature = entries[0].result.signature if len(entries) == 1 else None
    return MeasureValue(
        name=headline.name,
        label=headline.label,
        sentence=headline.sentence,
        version=metric.version,
        config=None if signature is None else signature.config,
        splits=() if signature is None else signature.splits,
        value=metric.value,
        reason=metric.reason,
        interval=metric.interval,
        interval_reason=None if metric.value is None else metric.interval_reason,
        at_worst=_at_worst(column.rows[identity], metric),
        n=metric.n,
        unit=metric.unit,
        ideal=metric.ideal,
        minimum=metric.minimum,
        maximum=metric.maximum,
        ranks=column.ranks,
        useless=None if useless is None else NamedValue(name=useless.name, value=useless.metric.value or 0.0),
        difference=_difference(column, identity, other),
    )


def _at_worst(row: Row, metric: Metric) -> float | None:
    """Return a value with all missing answers at their worst; None if that is unknown."""
    bounds = bounds_of_row(row, metric.name)
    if bounds is not None:
        return bounds.worst
    counts = [entry.result.counts for entry in row.entries]
    is_bounded = metric.ideal is not None and metric.maximum is not None
    return metric.value if is_bounded or all(count.scored == count.items for count in counts) else None


def _difference(column: ProfileColumn, identity: str, other: str | None) -> ModelDifference | None:
    """Return what the table of a measure says of two models; None if it does not compare them."""
    found = next((one for one in column.pairs if {one.first, one.second} == {identity, other}), None)
    theirs = None if other is None else column.metrics.get(other)
    if found is None or theirs is None or theirs.value is None:
        return None
    seen = found.seen_from(identity)
    return ModelDifference(
        value=theirs.value,
        lead=seen.lead,
        low=seen.low,
        high=seen.high,
        lead_at_worst=seen.lead_at_worst,
        lead_at_best=seen.lead_at_best,
        outcome=_OUTCOMES[seen.outcome],
        missing_alike=_missing_alike(column.rows[identity].entries, column.rows[other or ""].entries),
    )
