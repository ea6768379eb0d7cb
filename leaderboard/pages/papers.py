"""Prepares the pages of papers: what each found, its tables and figures beside ours, and what the rest would take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from leaderboard.benchmark_pages import Paper, load_pages
from leaderboard.pages.charts import BumpColumn, bump_chart
from leaderboard.pages.figures import PageChart, make_picture
from leaderboard.pages.markup import slug
from leaderboard.ranking.boards import Board
from leaderboard.ranking.profiles import scope_of, tables_of
from leaderboard.ranking.reproduced import (
    FLOPS,
    GPU_HOUR_USD,
    ComparedPart,
    CostOfModel,
    ReproducedPaper,
    Status,
    citation_of,
    costs_of,
    reproduced,
    reproductions,
)
from leaderboard.ranking.rows import Scope

_ORDERS = "How the order of the models changes from measure to measure: a line for each model, the nearest to 1 on top."
STATUS_CLASSES: Mapping[Status, str] = {
    "recomputed from published data": "recomputed",
    "run here on small models": "small",
    "shown by other measures": "small",
    "needs these models": "needs",
    "not reproducible": "impossible",
}
"""Class of each status in the style sheet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperView:
    """The page of one paper."""

    compared: ReproducedPaper
    citation: Paper
    pictures: Mapping[str, tuple[PageChart, ...]]
    """Figures of each table or figure of the paper, by its number."""
    benchmark_pages: tuple[tuple[str, str | None], ...]
    """Heading and page of each benchmark of the paper; no page of one without results."""
    planned: tuple[CostOfModel, ...]

    @property
    def name(self) -> str:
        """The name in addresses and commands."""
        return self.compared.name

    @property
    def page(self) -> str:
        """The path of the page, relative to the root of the site."""
        return f"papers/{self.name}.html"

    @property
    def detailed(self) -> tuple[int, ...]:
        """Numbers, from 1, of the tables and figures that have a section of their own."""
        return tuple(
            number
            for number, one in enumerate(self.compared.parts, 1)
            if one.rows or one.recounted or self.pictures[one.part.number]
        )

    @property
    def counts(self) -> str:
        """How many tables and figures have each status, in words."""
        numbers = Counter(part.status for part in self.compared.parts)
        return " \N{MIDDLE DOT} ".join(f"{status} {numbers[status]}" for status in STATUS_CLASSES if numbers[status])

    @property
    def outcomes(self) -> str:
        """What became of the findings, in words."""
        counts = Counter(tested.outcome for tested in self.compared.claims)
        return "Findings here: " + " \N{MIDDLE DOT} ".join(f"{outcome} {n}" for outcome, n in counts.items())

    def usd(self, hours: float) -> float:
        """Return what hours of a GPU cost, by assumption."""
        return hours * GPU_HOUR_USD

    def columns_of(self, part: ComparedPart) -> dict[str, tuple[str, str, str]]:
        """Return the heading and the description of each compared column of a table or figure, and what ours is called.

        That is empty if the heading says it, or if nothing is compared.
        """
        pages = load_pages(self.compared.paper.benchmarks[0])
        reported = {} if part.table is None else {column.key: column for column in part.table.columns}
        columns = {}
        for key in part.columns:
            measure, printed = part.part.measures.get(key), reported.get(key)
            ours = "" if measure is None else measure.label or pages.label(measure.metric)
            label, text = (ours, "") if printed is None else (printed.label, printed.text)
            # A mean over chosen sets is named by their choice, as the printed one is.
            is_named = printed is not None and measure is not None and measure.set_row is None
            columns[key] = label, text, ours if is_named else ""
        return columns


def paper_views(board: Board, figures: Mapping[Scope, tuple[PageChart, ...]]) -> tuple[PaperView, ...]:
    """Return the page of each paper, sorted by name.

    Args:
        board: All results.
        figures: Figures of all models that were asked alike.
    """
    return tuple(_view(reproduced(name, paper, board), board, figures) for name, paper in reproductions().items())


def _view(compared: ReproducedPaper, board: Board, figures: Mapping[Scope, tuple[PageChart, ...]]) -> PaperView:
    paper = compared.paper
    sizes = [(run.n_prompt_tokens, run.n_completion_tokens) for run in paper.runs if run.answers is None]
    scopes = dict.fromkeys(scope_of(table) for name in paper.benchmarks for table in tables_of(board, name))
    drawn = [picture for scope in scopes for picture in figures.get(scope, ())]
    return PaperView(
        compared=compared,
        citation=citation_of(paper),
        pictures={
            part.part.number: (*_orders(part, compared.name), *_pictures(part.part.figures, drawn))
            for part in compared.parts
        },
        benchmark_pages=tuple(
            (load_pages(name).heading, f"benchmarks/{slug(name)}.html" if name in board.benchmarks else None)
            for name in paper.benchmarks
        ),
        planned=tuple(costs_of(paper, *(_sum([size[number] for size in sizes]) for number in range(2)))),
    )


def _orders(part: ComparedPart, name: str) -> Iterator[PageChart]:
    """Yield the drawing of the orders of models by each measure, if the part wants it and there are enough models."""
    if not part.part.draws_orders:
        return
    orders = [
        BumpColumn(
            measure.label or measure.metric,
            [cell.ours.value if (cell := row.cells[key]).ours else "no result" for row in part.rows],
        )
        for key, measure in part.part.measures.items()
    ]
    chart = bump_chart(
        [row.label for row in part.rows], orders, subject="ordered by each measure, the nearest to 1 first"
    )
    if chart is not None:
        yield make_picture(chart, f"charts/{slug(f'paper-{name}-{part.part.number}')}", _ORDERS)


def _pictures(names: Sequence[str], drawn: Sequence[PageChart]) -> Iterator[PageChart]:
    """Yield for each name the first drawing of that figure."""
    for name in names:
        yield from [picture for picture in drawn if picture.path.endswith(f"-{name}.svg")][:1]


def _sum(numbers: Sequence[int | None]) -> int | None:
    known = [each for each in numbers if each is not None]
    return sum(known) if known and len(known) == len(numbers) else None


def assumptions() -> str:
    """Return by which assumptions hours and prices are computed, in a sentence."""
    return (
        f"Hours are those of one H100, by assumptions and not measured: two operations per parameter and token, "
        f"40 % of its {FLOPS / 1e12:.0f} TFLOP/s, a generated token as long as five of a prompt, each prompt "
        f"computed once; the price is US$ {GPU_HOUR_USD:.2f} for an hour, which is assumed too."
    )
