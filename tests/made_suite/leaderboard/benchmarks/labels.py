"""Pages of the labels."""

from __future__ import annotations

from leaderboard.benchmark_pages import BenchmarkPages, Column, Layout

PAGES = BenchmarkPages(
    name="labels",
    layouts=(
        Layout(
            deciders=("accuracy",),
            columns=(
                Column(key="accuracy", label="Accuracy", metric="accuracy"),
                Column(key="confidence", label="Confidence", metric="confidence"),
            ),
        ),
    ),
    slice_charts=(),
    baseline_note="Neither reads the text.",
)
