"""Pages of the greetings."""

from __future__ import annotations

from leaderboard.benchmark_pages import BenchmarkPages, Column, Layout, SliceChart, first

PAGES = BenchmarkPages(
    name="greetings",
    layouts=(Layout(deciders=("courtesy",), columns=(Column("courtesy"),)),),
    slice_charts=(SliceChart(group="dress", name="dress", caption="by dress.", choose=first(1)),),
    baseline_note="The butler is polite to everybody, which takes no language model.",
)
