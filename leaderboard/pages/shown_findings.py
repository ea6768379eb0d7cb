"""Computes for the front page who leads on each benchmark, and the findings of all benchmarks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest

from evaluators.benchmark import load_benchmark
from leaderboard.findings import LEAST_MODELS, Finding
from leaderboard.model_facts import display_name
from leaderboard.ranking.profiles import Profile
from leaderboard.ranking.rank_ranges import top_note
from leaderboard.verify.entries import Entry

_MOST_OWN = 4
_MOST_NAMED = 20


def shown_findings(parts: Sequence[Profile]) -> tuple[tuple[Finding, Sequence[Profile]], ...]:
    """Return the findings that the front page shows, each with the benchmarks that it is about.

    They are the first of each benchmark, then the second of each, and so on, and who is below the line.

    Args:
        parts: The benchmarks on the front page.
    """
    each = [list(_own(part)) for part in parts]
    in_turn = [shown for turn in zip_longest(*each) for shown in turn if shown is not None]
    return (*in_turn[:_MOST_OWN], *_below(parts))


def _own(part: Profile) -> Iterator[tuple[Finding, Sequence[Profile]]]:
    results: dict[str, list[Entry]] = {}
    # What models below the line do says nothing of those that can read.
    able = (entry for entry in part.entries if entry.result.model.identity_sha256 not in part.below)
    for entry in able:
        results.setdefault(entry.result.signature.config, []).append(entry)
    for compute in part.pages.findings:
        if (finding := compute(results)) is not None:
            yield finding, [part]


def _below(parts: Sequence[Profile]) -> Iterator[tuple[Finding, Sequence[Profile]]]:
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
        yield Finding(text, tuple(first.values())), list(below)


def leaders(parts: Sequence[Profile]) -> tuple[tuple[str, Profile], ...]:
    """Return in words who leads on each benchmark on which any two models can be told apart."""
    told = []
    for part in parts:
        pairs = part.table.comparisons
        if n_apart := sum(pair.separable for pair in pairs):
            top = top_note([*map(display_name, part.table.tied_for_first)])
            leading = f"On “{part.heading}”, {top} (no other ranked model is separably better)."
            told.append((f"{leading} {n_apart} of {len(pairs)} pairs can be told apart.", part))
    return tuple(told)
