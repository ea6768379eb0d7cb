"""Pages of the greetings."""

from leaderboard.benchmark_pages import BenchmarkPages, Column, Layout, SliceChart

PAGES = BenchmarkPages(
    name="greetings",
    layouts=(Layout(deciders=("courtesy",), columns=(Column("courtesy"),)),),
    slice_charts=(SliceChart(group="dress", name="dress", caption="by dress."),),
    baseline_note="The butler is polite to everybody, which takes no language model.",
)
