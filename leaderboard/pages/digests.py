"""Collects what the summary of a model says about each of its results and indices."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from leaderboard.benchmark_pages import Column
from leaderboard.pages.summaries import VERDICTS, Claim, Rival, claim, joined, sorted_claims, uneven
from leaderboard.pages.tables import IndexPlacement, Section
from leaderboard.ranking.boards import Row
from leaderboard.verify.entries import Entry
from schemas.documents.result import Metric


class Digest(NamedTuple):
    """The summary of one result or index of a model."""

    doubts: tuple[str, ...]
    """Sentences that say how much the result can be trusted."""
    claims: tuple[Claim, ...]
    """Sentences about its metrics, in the order of their verdicts."""

    @property
    def by_verdict(self) -> tuple[tuple[str, str, tuple[Claim, ...]], ...]:
        """The verdicts that occur, each with its heading and its claims; claims in the same words are joined."""
        groups = groupby(self.claims, lambda each: each.verdict)
        return tuple((name, VERDICTS[name], joined(list(found))) for name, found in groups)


def digest_of_result(section: Section, row: Row) -> Digest:
    """Summarise a result, compared with the other rows of its table.

    Args:
        section: Table of the result.
        row: Row of the result.
    """
    columns = section.summarised
    claims = [
        claim(column.heading, metric, list(_rivals(section, row, column)))
        for column in columns
        if (metric := column.of(row.entry)) is not None and (metric.value is None or metric.ideal is not None)
    ]
    if row.is_below:
        # Below the line, equality is no achievement: a model that answers at random treats everybody alike.
        claims = [each._replace(verdict="neither") if each.verdict == "well" else each for each in claims]
    claims += [found for column in columns for found in _by_group(section, row.entry, column)]
    shown = {column.metric for column in section.table.columns}
    claims += [
        claim(section.pages.label(name), metric, ())
        for name in section.pages.summarised
        if name not in shown and (metric := row.entry.metric(name)) is not None and metric.value is None
    ]
    # Where the index ranks and not this table, a missing rank here means nothing: say only why the gate is shut.
    doubts = tuple(_doubts(row.entry, row.shut if section.table.primary is None else row.unranked))
    return Digest(doubts, sorted_claims(claims))


def digest_of_index(placement: IndexPlacement) -> Digest:
    """Summarise the index of a model, compared with the other rows of its table."""
    view, row = placement
    rivals = [
        Rival(_short(other.model.id), other.primary, other.model.endpoint == "baseline")
        for other in view.table.rows
        if other.model.identity_sha256 != row.model.identity_sha256
    ]
    warnings = [f"Its answers look corrupted: {warning}." for warning in row.warnings]
    unranked = [] if row.unranked is None else [f"It is not ranked: {row.unranked}."]
    claims = (claim(view.label(row.primary.name), row.primary, rivals),)
    return Digest((*warnings, *unranked), claims)


def _rivals(section: Section, row: Row, column: Column) -> Iterator[Rival]:
    for other in section.table.rows:
        # A model below the line is no point of comparison: equal treatment says little where nothing is achieved.
        if other is not row and not other.is_below and (metric := column.of(other.entry)) is not None:
            yield Rival(_short(other.entry.result.model.id), metric, other.entry.is_baseline)


def _short(model_id: str) -> str:
    return model_id.rpartition("/")[2]


def _by_group(section: Section, entry: Entry, column: Column) -> Iterator[Claim]:
    """Yield what can be said about the slices of a metric, one claim for each group."""
    slices: dict[str, list[tuple[str, Metric]]] = {}
    for (name, group), metric in entry.metrics.items():
        if name == column.metric and len(group) == 1:
            slices.setdefault(group[0][0], []).append((group[0][1].replace("_", " "), metric))
    names = section.pages.group_names
    for key, found in slices.items():
        said = uneven(column.heading, names.get(key, key.replace("_", " ")), found)
        if said is not None:
            yield said


def _doubts(entry: Entry, unranked: str | None) -> Iterator[str]:
    """Yield sentences about coverage, truncation, corruption and the reason for having no rank."""
    counts = entry.result.counts
    missing = [
        f"{n:,} {words}"
        for n, words in (
            (counts.refused, "refused"),
            (counts.unparsed, "answered in a way that could not be read"),
            (counts.failed, "failed"),
        )
        if n
    ]
    rest = f"; {', '.join(missing)}" if missing else "; none was refused, unread or failed"
    yield f"{counts.scored:,} of {counts.items:,} items were scored ({counts.scored / counts.items:.0%}){rest}."
    if counts.truncated:
        yield f"{counts.truncated:,} items have an answer that was cut off at the token limit."
    if (reason := entry.result.environment.corruption) is not None:
        yield f"Its answers look corrupted: {reason}."
    if unranked is not None and not entry.is_baseline:
        yield f"It is not ranked: {unranked}."
