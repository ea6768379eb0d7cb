"""Makes the blocks that hand-written pages of the site show instead of their markers."""

from __future__ import annotations

from collections.abc import Sequence

import jinja2

from biasboard.ground.errors import ConfigError
from evaluators.benchmark import load_benchmark
from leaderboard.benchmark_pages import BaselinePanel, pages_of_benchmarks
from leaderboard.pages.index_views import IndexView
from leaderboard.pages.sections import SUMMARY_ROWS, Section

_RANKINGS, _APART = "rankings", "apart"


def make_blocks(
    environment: jinja2.Environment, sections: Sequence[Section], indices: Sequence[IndexView], n_apart: int
) -> dict[str, str]:
    """Return the blocks that replace the markers of hand-written pages, by name.

    They are the rankings, the panel of baselines of each benchmark, and a link to the results that are set apart.

    Args:
        environment: Templates.
        sections: All tables.
        indices: All tables of indices.
        n_apart: Number of results that are set apart.

    Raises:
        ConfigError: two blocks have the same name.
    """
    panels: dict[str, str] = {}
    for pages in pages_of_benchmarks():
        if (panel := pages.baseline_panel) is not None:
            if panel.name in (_RANKINGS, _APART, *panels):
                raise ConfigError(f"benchmark '{pages.name}': another block is called '{panel.name}'; rename its panel")
            panels[panel.name] = _panel(environment, sections, pages.name, panel)
    fullest = _fullest(sections)
    rankings = environment.get_template("rankings.html.j2").render(
        sections=fullest, indices=indices, summary_rows=SUMMARY_ROWS, figures=_figures(fullest, indices)
    )
    return {_RANKINGS: rankings, _APART: _apart_note(n_apart), **panels}


def _apart_note(n: int) -> str:
    if n == 0:
        return ""
    subject = "1 valid result has" if n == 1 else f"{n:,} valid results have"
    own = "its" if n == 1 else "their"
    link = '<a href="apart.html">results that stand apart</a>'
    return f'<p class="bb-note">{subject} no table or no place of {own} own in one: {link}.</p>'


def _figures(sections: Sequence[Section], indices: Sequence[IndexView]) -> frozenset[str]:
    """Return the anchors of the tables whose charts are on the front page, one for each benchmark.

    An index summarises a benchmark. Without one, the most telling chart shows which models beat the baselines.
    """
    chosen: dict[str, str] = {}
    for index in indices:
        if index.picture is not None:
            chosen.setdefault(index.table.benchmark, index.anchor)
    for section in sorted(sections, key=lambda one: not one.lines):
        if section.picture is not None:
            chosen.setdefault(section.table.signature.benchmark, section.anchor)
    return frozenset(chosen.values())


def _panel(environment: jinja2.Environment, sections: Sequence[Section], benchmark: str, panel: BaselinePanel) -> str:
    section = next(
        (
            section
            for section in sections
            if section.table.signature.benchmark == benchmark
            and section.n_baselines
            and any(column.key == panel.decider for column in section.table.columns)
        ),
        None,
    )
    rows = () if section is None else tuple(row for row in section.table.rows if row.entry.is_baseline)
    columns = () if section is None else tuple(c for c in section.table.columns if c.key in panel.columns)
    return environment.get_template("baselines.html.j2").render(section=section, rows=rows, columns=columns)


def _fullest(sections: Sequence[Section]) -> list[Section]:
    """Return the tables that the front page summarises.

    Of the tables that have the same dataset, version, config and prompt, this is the first one with the most items.
    Benchmarks that are ranked by an index have no tables there.
    """
    best: dict[tuple[str, ...], Section] = {}
    for section in sections:
        signature = section.table.signature
        if load_benchmark(signature.benchmark).indices or not section.table.is_whole:
            continue  # The index ranks its models, or a slice of the items ranks none.
        key = (signature.dataset, signature.dataset_version, signature.config, signature.prompt)
        if key not in best or signature.n_items > best[key].table.signature.n_items:
            best[key] = section
    return list(best.values())
