"""Makes the blocks that hand-written pages of the site show instead of their markers."""

from __future__ import annotations

from collections.abc import Sequence

import jinja2

from leaderboard.pages.news import News
from leaderboard.pages.profile import TINTS, FrontTable, front_parts
from leaderboard.pages.shown_findings import leaders, shown_findings
from leaderboard.ranking.boards import Board

_MOST_NEWS = 3


def make_blocks(
    environment: jinja2.Environment,
    board: Board,
    front: FrontTable,
    news: Sequence[News],
    n_apart: int,
) -> dict[str, str]:
    """Return the blocks that replace the markers of hand-written pages, by name.

    They are the table of the front page, who leads, findings, an example of each benchmark, the newest events, and a
    link to the results that are set apart.

    Args:
        environment: Templates.
        board: All results.
        front: The table of the front page.
        news: Events of accepted results, the newest first.
        n_apart: Number of results that are set apart.
    """
    parts = front_parts(board)

    def block(template: str, **context: object) -> str:
        return environment.get_template(template).render(**context)

    return {
        "profile": block("profile.html.j2", table=front, tints=TINTS),
        "leaders": block("leaders.html.j2", leaders=leaders(parts)),
        "findings": block("findings.html.j2", findings=shown_findings(parts)),
        "examples": block("examples.html.j2", parts=parts),
        "news": block("lately.html.j2", news=news[:_MOST_NEWS]),
        "apart": _apart_note(n_apart),
    }


def _apart_note(n: int) -> str:
    if n == 0:
        return ""
    subject = "1 valid result has" if n == 1 else f"{n:,} valid results have"
    own = "its" if n == 1 else "their"
    link = '<a href="apart.html">results that stand apart</a>'
    return f'<p class="bb-note">{subject} no table or no place of {own} own in one: {link}.</p>'
