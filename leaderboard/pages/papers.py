"""Prepares the pages of papers: what each found, its tables and figures beside ours, and what the rest would take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evaluators.runs.plan.estimate import rough_duration
from evaluators.runs.plan.gpu_hours import GPU_HOUR_USD, H100
from leaderboard.benchmark_pages import Paper, load_pages
from leaderboard.model_facts import display_name
from leaderboard.pages.addresses import permalink
from leaderboard.pages.bumps import Order, bump_chart
from leaderboard.pages.markup import slug
from leaderboard.pages.pictures import Picture, make_picture
from leaderboard.pages.tables import IndexView
from leaderboard.ranking.boards import Board
from leaderboard.ranking.index_tables import IndexRow
from leaderboard.ranking.profiles import Scope, scope_of, tables_of
from leaderboard.ranking.reproduced import (
    ComparedPart,
    CostOfModel,
    Ours,
    ReproducedPaper,
    Status,
    costs_of,
    reproduced,
)
from leaderboard.reproductions import citation_of, reproductions

_ORDERS = "How the order of the models changes from measure to measure: a line for each model, the nearest to 1 on top."
STATUS_CLASSES: Mapping[Status, str] = {
    "recomputed from published data": "recomputed",
    "run here on small models": "small",
    "needs these models": "needs",
    "not reproducible": "impossible",
}
"""Class of each status in the style sheet."""


class Spent(NamedTuple):
    """What the runs of a model here took."""

    name: str
    n_runs: int
    n_requests: int
    seconds: float
    devices: tuple[str, ...]

    @property
    def duration(self) -> str:
        """The time in words."""
        return rough_duration(self.seconds)


class Column(NamedTuple):
    """A compared measure."""

    key: str
    label: str
    text: str
    digits: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperView:
    """The page of one paper."""

    compared: ReproducedPaper
    citation: Paper
    pictures: Mapping[str, tuple[Picture, ...]]
    """Figures of each table or figure of the paper, by its number."""
    benchmark_pages: tuple[tuple[str, str | None], ...]
    """Heading and page of each benchmark of the paper; no page of one without results."""
    of_index: Mapping[int, str]
    """Page of each row of an index, by the ``id`` of the row."""
    planned: tuple[CostOfModel, ...]
    spent: tuple[Spent, ...]

    @property
    def name(self) -> str:
        """The name in addresses and commands."""
        return self.compared.name

    @property
    def page(self) -> str:
        """The path of the page, relative to the root of the site."""
        return f"papers/{self.name}.html"

    @property
    def counts(self) -> str:
        """How many tables and figures have each status, in words."""
        numbers = ((status, self.compared.n_of(status)) for status in STATUS_CLASSES)
        return " \N{MIDDLE DOT} ".join(f"{status} {n}" for status, n in numbers if n)

    @property
    def outcomes(self) -> str:
        """What became of the findings, in words."""
        counts = Counter(tested.outcome for tested in self.compared.claims)
        return "Findings here: " + " \N{MIDDLE DOT} ".join(f"{outcome} {n}" for outcome, n in counts.items())

    def usd(self, hours: float) -> float:
        """Return what hours of a GPU cost, by assumption."""
        return hours * GPU_HOUR_USD

    def columns_of(self, part: ComparedPart) -> tuple[Column, ...]:
        """Return the compared columns of a table or figure."""
        pages = load_pages(self.compared.paper.benchmarks[0])
        reported = {} if part.table is None else {column.key: column for column in part.table.columns}
        digits = 3 if part.table is None else part.table.digits
        return tuple(
            Column(key, reported[key].label, reported[key].text, digits)
            if key in reported
            else Column(key, measure.label or pages.label(measure.metric), "", digits)
            for key, measure in part.part.measures.items()
        )

    def address(self, ours: Ours) -> str:
        """Return the page behind one of our values."""
        return self.of_index[id(ours.row)] if isinstance(ours.row, IndexRow) else permalink(ours.entry.result)


def paper_views(
    board: Board, indices: Sequence[IndexView], figures: Mapping[Scope, tuple[Picture, ...]]
) -> tuple[PaperView, ...]:
    """Return the page of each paper, sorted by name.

    Args:
        board: All results.
        indices: Tables of indices, which know the pages of their rows.
        figures: Figures of all models that were asked alike.
    """
    of_index = {id(row.row): view.result_page(row) for view in indices for row in view.rows}
    return tuple(
        _view(reproduced(name, paper, board), board, figures, of_index) for name, paper in reproductions().items()
    )


def _view(
    compared: ReproducedPaper, board: Board, figures: Mapping[Scope, tuple[Picture, ...]], of_index: Mapping[int, str]
) -> PaperView:
    paper = compared.paper
    sizes = [(run.n_prompt_tokens, run.n_completion_tokens) for run in paper.runs if run.answers is None]
    drawn = [picture for scope in _scopes(paper.benchmarks, board) for picture in figures.get(scope, ())]
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
        of_index=of_index,
        planned=tuple(costs_of(paper, *(_sum([size[number] for size in sizes]) for number in range(2)))),
        spent=tuple(_spent(compared)),
    )


def _scopes(names: Sequence[str], board: Board) -> list[Scope]:
    return list(dict.fromkeys(scope_of(table) for name in names for table in tables_of(board, name)))


def _orders(part: ComparedPart, name: str) -> Iterator[Picture]:
    """Yield the drawing of the orders of models by each measure, if the part wants it and there are enough models."""
    if not part.part.draws_orders:
        return
    orders = [
        Order(
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


def _pictures(names: Sequence[str], drawn: Sequence[Picture]) -> Iterator[Picture]:
    """Yield for each name the first drawing of that figure."""
    for name in names:
        yield from [picture for picture in drawn if picture.path.endswith(f"-{name}.svg")][:1]


def _sum(numbers: Sequence[int | None]) -> int | None:
    known = [each for each in numbers if each is not None]
    return sum(known) if known and len(known) == len(numbers) else None


def _spent(compared: ReproducedPaper) -> Iterator[Spent]:
    models = dict.fromkeys(one.entry.result.model.id for one in compared.spent)
    for model in models:
        results = [one.entry.result for one in compared.spent if one.entry.result.model.id == model]
        devices = dict.fromkeys(one.environment.device or "an unknown device" for one in results)
        yield Spent(
            display_name(model),
            len(results),
            sum(one.usage.n_requests for one in results),
            sum(one.usage.seconds or 0.0 for one in results),
            tuple(devices),
        )


def assumptions() -> str:
    """Return by which assumptions hours and prices are computed, in a sentence."""
    return (
        f"Hours are those of one {H100.name}, by assumptions and not measured: two operations per parameter and token, "
        f"40 % of its {H100.flops / 1e12:.0f} TFLOP/s, a generated token as long as five of a prompt, each prompt "
        f"computed once; the price is US$ {GPU_HOUR_USD:.2f} for an hour, which is assumed too."
    )
