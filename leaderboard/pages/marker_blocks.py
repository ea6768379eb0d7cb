"""Makes the blocks that hand-written pages of the site show instead of their markers."""

from __future__ import annotations

from collections.abc import Sequence

import jinja2

from biasboard.ground.errors import ConfigError
from leaderboard.benchmark_pages import BaselinePanel, pages_of_benchmarks
from leaderboard.pages.news import News
from leaderboard.pages.profile import TINTS, front_table
from leaderboard.pages.sections import Section
from leaderboard.ranking.boards import Board

_PROFILE, _NEWS, _APART = "profile", "news", "apart"
_MOST_NEWS = 3


def make_blocks(
    environment: jinja2.Environment, board: Board, sections: Sequence[Section], news: Sequence[News], n_apart: int
) -> dict[str, str]:
    """Return the blocks that replace the markers of hand-written pages, by name.

    They are the table of the front page, the newest events, the panel of baselines of each benchmark, and a link to the
    results that are set apart.

    Args:
        environment: Templates.
        board: All results.
        sections: All tables.
        news: Events of accepted results, the newest first.
        n_apart: Number of results that are set apart.

    Raises:
        ConfigError: two blocks have the same name.
    """
    panels: dict[str, str] = {}
    for pages in pages_of_benchmarks():
        if (panel := pages.baseline_panel) is not None:
            if panel.name in (_PROFILE, _NEWS, _APART, *panels):
                raise ConfigError(f"benchmark '{pages.name}': another block is called '{panel.name}'; rename its panel")
            panels[panel.name] = _panel(environment, sections, pages.name, panel)
    table = environment.get_template("profile.html.j2").render(table=front_table(board), tints=TINTS)
    lately = environment.get_template("lately.html.j2").render(news=news[:_MOST_NEWS])
    return {_PROFILE: table, _NEWS: lately, _APART: _apart_note(n_apart), **panels}


def _apart_note(n: int) -> str:
    if n == 0:
        return ""
    subject = "1 valid result has" if n == 1 else f"{n:,} valid results have"
    own = "its" if n == 1 else "their"
    link = '<a href="apart.html">results that stand apart</a>'
    return f'<p class="bb-note">{subject} no table or no place of {own} own in one: {link}.</p>'


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
