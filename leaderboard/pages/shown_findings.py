"""Collects the findings of all benchmarks for the front page, with links to the results behind them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest
from typing import NamedTuple

from biasboard.ground.plain_text import listed
from evaluators.benchmark import load_benchmark
from leaderboard.findings import LEAST_MODELS, Finding
from leaderboard.model_facts import display_name
from leaderboard.pages.addresses import permalink
from leaderboard.pages.markup import metric_number, percent
from leaderboard.pages.profile import best_by_skill, profile_page
from leaderboard.ranking.bounds import top_note
from leaderboard.ranking.profiles import Profile
from leaderboard.ranking.rows import Row, Table
from leaderboard.verify.entries import Entry

_MOST_OWN = 4
_MOST_LINKS = 20


class ShownFinding(NamedTuple):
    """A finding and where to look it up."""

    text: str
    links: tuple[tuple[str, str], ...]
    """Name and address of the first results behind it."""
    n_more: int
    """Number of further results behind it."""
    pages: tuple[tuple[str, str], ...]
    """Name and address of the pages of their benchmarks."""


def shown_findings(parts: Sequence[Profile]) -> tuple[ShownFinding, ...]:
    """Return the findings that the front page shows.

    They are the first of each benchmark, then the second of each, and so on, and who is below the line.

    Args:
        parts: The benchmarks on the front page.
    """
    each = [list(_own(part)) for part in parts]
    in_turn = [shown for turn in zip_longest(*each) for shown in turn if shown is not None]
    return (*in_turn[:_MOST_OWN], *_below(parts))


def _own(part: Profile) -> Iterator[ShownFinding]:
    results: dict[str, list[Entry]] = {}
    # What models below the line do says nothing of those that can read.
    able = (entry for entry in part.entries if entry.result.model.identity_sha256 not in part.below)
    for entry in able:
        results.setdefault(entry.result.signature.config, []).append(entry)
    for compute in part.pages.findings:
        if (finding := compute(results)) is not None:
            yield _shown(finding, [part])


class Leaders(NamedTuple):
    """Who leads on a benchmark."""

    text: str
    first: str
    """Name of the model in the first row of its table."""
    why: str
    """Why a model with a better value stands behind that one; empty if none does."""
    page: str
    """Page of the benchmark, relative to the root of the site."""


def leaders(parts: Sequence[Profile]) -> tuple[Leaders, ...]:
    """Return who leads, for each benchmark on which any two models can be told apart."""
    return tuple(_leading(part) for part in parts if any(pair.separable for pair in part.table.comparisons))


def _leading(part: Profile) -> Leaders:
    first, pairs = part.table.tied_for_first, part.table.comparisons
    top = top_note([*map(display_name, first)])
    sentences = [f"On “{part.heading}”, {top} (no other ranked model is separably better)."]
    for label, best in best_by_skill(part).items():
        able = [display_name(model_id) for model_id in first if model_id in best]
        sentences.append(f"Of these, not beaten in “{label}” either: {listed(able, most=_MOST_LINKS) or 'none'}.")
    sentences.append(f"{sum(pair.separable for pair in pairs)} of {len(pairs)} pairs can be told apart.")
    sentences += _best_without_rank(part)
    why = " ".join(_better_behind(part.table))
    return Leaders(" ".join(sentences), display_name(part.table.ranked[0].model.id), why, profile_page(part))


def _better_behind(table: Table) -> Iterator[str]:
    """Yield why the model with the best value has a wider rank than others, which looks like a mistake."""
    values = [(row, metric) for row in table.ranked if (metric := row.metric(table.primary or ""))]
    nearest, value = min(values, key=lambda each: abs((each[1].value or 0.0) - (each[1].ideal or 0.0)))
    if nearest.rank_of_answers in (None, nearest.rank):
        return
    name, rank = display_name(nearest.model.id), nearest.rank_of_answers
    said = f"By the given answers alone, {name} has the best value ({metric_number(value, digits=2)}, rank {rank})"
    yield f"{said}, but {percent(*_n_missing(nearest))} of its answers are missing."
    head = table.ranked[0]
    if head is not nearest:
        n_lost, n_items = _n_missing(head)
        missing = f"{n_lost:,} of {n_items:,} answers missing"
        told = f"{display_name(head.model.id)} has the first row, with rank {head.rank} and {missing}"
        yield f"Ranks count these at their worst and at their best, so {told}."


def _n_missing(row: Row) -> tuple[int, int]:
    """Return how many answers a model left out in the results of its row, and of how many."""
    counts = [entry.result.counts for entry in row.entries]
    return sum(one.items - one.scored for one in counts), sum(one.items for one in counts)


def _best_without_rank(part: Profile) -> Iterator[str]:
    """Yield which models have the best value of a column, and no place in the table that ranks."""
    best: dict[str, list[str]] = {}
    for column in part.columns:
        metrics = ((model_id, column.metrics.get(identity)) for model_id, identity in part.models.items())
        far = {
            model_id: abs(metric.value - metric.ideal)
            for model_id, metric in metrics
            if metric is not None and metric.value is not None and metric.ideal is not None
        }
        if far and part.models[first := min(far, key=far.__getitem__)] not in part.rows:
            best.setdefault(first, []).append(f"“{column.headline.label}”")
    for model_id, labels in best.items():
        leads = f"{display_name(model_id)} has the best value in {listed(labels, most=_MOST_LINKS)}"
        yield f"{leads}, and no rank, since it lacks results that the ranking needs."


def _below(parts: Sequence[Profile]) -> Iterator[ShownFinding]:
    """Yield how many models do no better than a useless predictor, if any does not."""
    # Where nothing says what a model must beat, none is below it.
    asked = [part for part in parts if len(part.newest) >= LEAST_MODELS and load_benchmark(part.benchmark).gates]
    below = {part: [row for row in part.newest if row.is_below] for part in asked}
    if any(below.values()):
        counts = [
            f"{len(rows)} of {len(part.newest)} models asked alike on “{part.heading}”" for part, rows in below.items()
        ]
        # A model that is below the line on several benchmarks is named once.
        first: dict[str, Entry] = {}
        for row in chain.from_iterable(below.values()):
            first.setdefault(row.model.id, row.entry)
        text = f"Not shown to know more than a useless predictor: {', '.join(counts)}."
        yield _shown(Finding(text, tuple(first.values())), list(below))


def _shown(finding: Finding, parts: Sequence[Profile]) -> ShownFinding:
    first = finding.entries[:_MOST_LINKS]
    links = tuple((display_name(entry.result.model.id), permalink(entry.result)) for entry in first)
    pages = tuple((part.heading, profile_page(part)) for part in parts)
    return ShownFinding(finding.text, links, len(finding.entries) - len(first), pages)
