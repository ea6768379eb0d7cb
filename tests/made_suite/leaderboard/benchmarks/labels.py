"""Pages of the labels."""

from __future__ import annotations

from leaderboard.benchmark_pages import BenchmarkPages, Column, Layout

PAGES = BenchmarkPages(
    name="labels",
    layouts=(Layout(deciders=("accuracy",), columns=(Column("accuracy"), Column("confidence"))),),
    baseline_note="Neither reads the text.",
)
