"""Draws badges: small SVG pictures that show the rank of a model in a benchmark, for use on other sites."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple
from typing import NamedTuple

from biasboard.ground.plain_text import printable
from evaluators.benchmark import load_benchmark
from leaderboard.pages.markup import row_page, slug, value_text
from leaderboard.pages.summary_forms import conditions, value_of
from leaderboard.pages.tables import TableView
from leaderboard.ranking.rank_ranges import RankRange
from leaderboard.ranking.rows import Row
from schemas.documents.model_summary import BenchmarkSummary

_MOST_LEFT = 40
_MOST_RIGHT = 80
_MOST_TITLE = 300
_HEIGHT = 20
_PADDING = 7
# A letter of the fonts below is at most this wide on average; the text is then set to exactly the width that it gets.
_LETTER = 6.6
_FONT = "Verdana,'DejaVu Sans','Liberation Sans',Arial,sans-serif"
# White text is at least 4.5:1 on each of them.
_LEFT_COLOUR, _RANKED, _UNRANKED, _BELOW = "#3a4250", "#1f5fbf", "#5f6875", "#8a3b00"


class Badge(NamedTuple):
    """A badge of a model, and its link."""

    path: str
    """Path of the SVG file, relative to the root of the site."""
    left: str
    right: str
    title: str
    """Sentence that says what the badge is about and why a model has no rank."""
    page: str
    """Page of the result, relative to the root of the site."""
    svg: str

    @property
    def alt(self) -> str:
        """The words of the badge."""
        return f"{self.left}: {self.right}"

    def markdown(self, address: str) -> str:
        """Return a line of Markdown that shows the badge and links to the result.

        Args:
            address: Address of the site, which ends with a slash.
        """
        # Markdown finds nothing to interpret in it.
        alt = "".join(
            sign if sign.isalnum() or sign in " .,:-" else f"\\{sign}" if sign.isascii() else sign for sign in self.alt
        )
        return f"[![{alt}]({address}{self.path})]({address}{self.page})"


def make_badges(tables: Sequence[TableView]) -> dict[str, tuple[Badge, ...]]:
    """Return the badges of each model, by its id: one for each benchmark in which it has a result.

    Baselines have no badge. The table that a badge is about does not depend on how well the model does: it is that of
    the benchmark's index if the model has one, and otherwise the first that asks whole configs. A model id with several
    identities, such as revisions, has a badge for each of them.

    Args:
        tables: All tables, in the order in which the pages of their benchmarks show them.
    """
    firsts: dict[tuple[str, str], tuple[TableView, Row]] = {}
    for view in sorted(tables, key=lambda view: (not view.table.is_index, not view.table.is_whole)):
        # Of results that contradict each other, the one that a maintainer preferred represents the model.
        for row in sorted(view.table.rows, key=lambda row: row.rank is None):
            if not row.is_baseline:
                firsts.setdefault((view.benchmark, row.identity), (view, row))
    benchmarks = [*dict.fromkeys(view.benchmark for view in tables)]
    n_identities = Counter((benchmark, row.model.id) for (benchmark, _), (_, row) in firsts.items())
    found: dict[str, list[Badge]] = {}
    for view, row in sorted(firsts.values(), key=lambda first: benchmarks.index(first[0].benchmark)):
        is_alone = n_identities[view.benchmark, row.model.id] == 1
        found.setdefault(row.model.id, []).append(_badge(view, row, is_alone=is_alone))
    return {model_id: tuple(badges) for model_id, badges in found.items()}


def _badge(view: TableView, row: Row, *, is_alone: bool) -> Badge:
    table, model, reason = view.table, row.model, row.unranked
    metric = None
    if table.primary is not None:
        metric = row.metric(table.primary)
    elif load_benchmark(view.benchmark).indices:
        reason = "the index of all configs ranks the models, and this model has none"
    detail = "" if is_alone else view.detail(row)
    ending = "" if is_alone else f"-{model.identity_sha256[:8]}"
    return _drawn(
        f"files/badges/{slug(view.benchmark)}/{slug(model.id)}{ending}.svg",
        row_page(table, row),
        f"{model.id} ({detail})" if detail else model.id,
        view.pages.heading,
        view.conditions,
        row.rank,
        None if metric is None else f"{view.primary_label} {value_text(metric)}",
        reason,
        is_below=row.is_below and row.unranked == row.shut,
    )


def summary_badge(model_id: str, benchmark: BenchmarkSummary) -> str:
    """Return the badge of a model in a benchmark as SVG, with the words that the board's badge has."""
    measure = next((measure for measure in benchmark.measures if measure.ranks), None)
    badge = _drawn(
        "",
        "",
        model_id,
        benchmark.heading,
        conditions(benchmark),
        None if benchmark.rank is None else RankRange(*astuple(benchmark.rank)),
        None if measure is None else f"{measure.label} {value_of(measure)}",
        benchmark.why_unranked,
        is_below=benchmark.is_below,
    )
    return badge.svg


def _drawn(
    path: str,
    page: str,
    name: str,
    heading: str,
    asked: str,
    rank: RankRange | None,
    value: str | None,
    reason: str | None,
    *,
    is_below: bool,
) -> Badge:
    """Draw a badge as SVG without scripts, outside fonts or references.

    A model is below if it is not shown to do better than a useless predictor, and nothing else is wrong.
    """
    words, colour = ("below the gate", _BELOW) if is_below else ("unranked", _UNRANKED)
    if rank is not None and value is not None:
        # The rank of the only ranked model means nothing.
        words, colour = value if rank.n_ranked == 1 else f"{value}, rank {rank} of {rank.n_ranked}", _RANKED
    title = printable(f"{name} in {asked}: {words}" + (f": {reason}" if reason else ""), most=_MOST_TITLE)
    left, right = _short(heading, _MOST_LEFT), _short(words, _MOST_RIGHT)
    left_width, right_width = (round(len(text) * _LETTER) + 2 * _PADDING for text in (left, right))
    width = left_width + right_width
    texts = "".join(
        f'<text x="{start + _PADDING}" y="14" textLength="{space - 2 * _PADDING}" lengthAdjust="spacingAndGlyphs">'
        f"{html.escape(text)}</text>"
        for text, start, space in ((left, 0, left_width), (right, left_width, right_width))
    )
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{_HEIGHT}" '
        f'viewBox="0 0 {width} {_HEIGHT}" role="img" aria-label="{html.escape(f"{left}: {right}")}">'
        f"<title>{html.escape(title)}</title>"
        f'<rect width="{left_width}" height="{_HEIGHT}" fill="{_LEFT_COLOUR}"/>'
        f'<rect x="{left_width}" width="{right_width}" height="{_HEIGHT}" fill="{colour}"/>'
        f'<g fill="#ffffff" font-family="{_FONT}" font-size="11">{texts}</g></svg>\n'
    )
    return Badge(path, left, right, title, page, svg)


def _short(text: str, most: int) -> str:
    """Return a text without invisible characters, with at most some number of characters."""
    shown = printable(text)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"
