"""Prepares the pages of papers: what each found, its tables and figures beside ours, and what the rest would take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evaluators.runs.plan.gpu_hours import GPU_HOUR_USD, H100
from evaluators.task import load_task
from leaderboard.benchmark_pages import Paper, load_pages
from leaderboard.charts.bumps import Order, bump_chart
from leaderboard.model_facts import display_name
from leaderboard.pages.addresses import permalink
from leaderboard.pages.markup import slug
from leaderboard.pages.pictures import Picture, make_picture
from leaderboard.pages.tables import TableView
from leaderboard.ranking.boards import Board
from leaderboard.ranking.profiles import Scope, scope_of, tables_of
from leaderboard.ranking.reproduced import (
    ComparedPart,
    CostOfModel,
    Ours,
    ReproducedPaper,
    SpentRun,
    Status,
    canonical_id,
    costs_of,
    reproduced,
)
from leaderboard.reproductions import citation_of, reproductions
from schemas.documents.reproduction import PaperRun, UnkeptRun
from schemas.documents.result import Result

_ORDERS = "How the order of the models changes from measure to measure: a line for each model, the nearest to 1 on top."
STATUS_CLASSES: Mapping[Status, str] = {
    "recomputed from published data": "recomputed",
    "run here on small models": "small",
    "shown by other measures": "small",
    "needs these models": "needs",
    "not reproducible": "impossible",
}
"""Class of each status in the style sheet."""


class SpentCell(NamedTuple):
    """What a run of the paper took of a model here, and what is left of it."""

    n_parts: int
    """Number of configs and prompts that were asked."""
    n_requests: int
    seconds: float
    notes: tuple[str, ...]
    """Why some of the results are not kept, or some questions not asked."""
    left: float | None
    """Seconds that the rest would take at the pace of the model's results on the board; None if nothing is left, if it
    cannot be asked, or if that pace is unknown."""


class Spent(NamedTuple):
    """What the runs of a model here took."""

    name: str
    devices: tuple[str, ...]
    cells: Mapping[str, SpentCell]
    """By the name of the run."""

    @property
    def seconds(self) -> float:
        """The time of all runs."""
        return sum(cell.seconds for cell in self.cells.values())


class Column(NamedTuple):
    """A compared measure."""

    key: str
    label: str
    text: str
    digits: int
    ours: str
    """What ours is called on other pages; empty if the label says it, or if nothing is compared."""


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
        columns = []
        for key in part.columns:
            measure, printed = part.part.measures.get(key), reported.get(key)
            ours = "" if measure is None else measure.label or pages.label(measure.metric)
            if printed is None:
                columns.append(Column(key, ours, "", digits, ""))
            else:
                # A mean over chosen sets is named by their choice, as the printed one is.
                is_named = measure is not None and measure.set_row is None
                columns.append(Column(key, printed.label, printed.text, digits, ours if is_named else ""))
        return tuple(columns)

    def address(self, ours: Ours) -> str:
        """Return the page behind one of our values."""
        return self.of_index[id(ours.row)] if ours.row.indices else permalink(ours.entry.result)


def paper_views(
    board: Board, indices: Sequence[TableView], figures: Mapping[Scope, tuple[Picture, ...]]
) -> tuple[PaperView, ...]:
    """Return the page of each paper, sorted by name.

    Args:
        board: All results.
        indices: Tables of indices, which know the pages of their rows.
        figures: Figures of all models that were asked alike.
    """
    of_index = {id(row): view.result_page(row) for view in indices for row in view.table.rows}
    return tuple(
        _view(reproduced(name, paper, board), board, figures, of_index) for name, paper in reproductions().items()
    )


def _view(
    compared: ReproducedPaper, board: Board, figures: Mapping[Scope, tuple[Picture, ...]], of_index: Mapping[int, str]
) -> PaperView:
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
        of_index=of_index,
        planned=tuple(costs_of(paper, *(_sum([size[number] for size in sizes]) for number in range(2)))),
        spent=tuple(_spent(compared, board)),
    )


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


def _spent(compared: ReproducedPaper, board: Board) -> Iterator[Spent]:
    runs = [run for run in compared.paper.runs if run.answers is None]
    results = [row.entry.result for table in board.tables for row in table.rows]
    ids = [one.entry.result.model.id for one in compared.spent] + [one.model for one in compared.paper.unkept]
    for model in dict.fromkeys(map(canonical_id, ids)):
        own = [one for one in compared.spent if canonical_id(one.entry.result.model.id) == model]
        others = [one for one in compared.paper.unkept if canonical_id(one.model) == model]
        on_board = [result for result in results if canonical_id(result.model.id) == model]
        devices = [one.entry.result.environment.device or "an unknown device" for one in own]
        yield Spent(
            display_name(model),
            tuple(dict.fromkeys([*devices, *(one.device for one in others)])),
            {run.name: _spent_cell(run, own, others, on_board) for run in runs},
        )


def _spent_cell(
    run: PaperRun, spent: Sequence[SpentRun], unkept: Sequence[UnkeptRun], board: Sequence[Result]
) -> SpentCell:
    """Return what a run took of a model.

    Args:
        run: The run.
        spent: The model's results of all runs of the paper.
        unkept: Its runs whose results are not kept.
        board: Its results on the board, which show how fast it answers.
    """
    results = [one.entry.result for one in spent if one.run is run]
    others = [one for one in unkept if one.run == run.name]
    asked = {(result.signature.config, result.signature.prompt) for result in results}
    n_requests = sum(one.usage.n_requests for one in results) + sum(one.n_requests for one in others)
    n_parts = min(len(asked) + sum(one.n_parts for one in others), run.n_parts)
    left = None
    if n_parts < run.n_parts and run.n_requests and not (run.unasked or any(one.missing for one in others)):
        missing = [prompt for config in run.configs for prompt in run.prompts if (config, prompt) not in asked]
        pace = _pace(board, missing, writes=bool(run.n_completion_tokens))
        left = None if pace is None else max(run.n_requests - n_requests, 0) * pace
    return SpentCell(
        n_parts,
        n_requests,
        sum(one.usage.seconds or 0.0 for one in results) + sum(one.seconds for one in others),
        tuple(note for one in others for note in (f"results not kept: {one.why}", one.missing) if note),
        left,
    )


def _pace(results: Sequence[Result], prompts: Sequence[str], *, writes: bool) -> float | None:
    """Return the mean number of seconds for a request under these prompts; None if nothing alike was asked.

    Of a prompt that was not asked, it is that of all that were asked to write a text as well, or to choose.

    Args:
        results: The model's results on the board.
        prompts: Names of the prompts.
        writes: True if the model is asked to write a text.
    """
    alike = []
    for result in results:
        usage, name = result.usage, result.signature.prompt
        prompt = load_task(result.signature.task).prompts.get(name)
        is_written = prompt is not None and prompt.max_tokens is not None
        if usage.seconds and usage.n_requests and is_written == writes:
            alike.append((name, usage.n_requests, usage.seconds))
    if not alike:
        return None
    groups = ([one for one in alike if one[0] == prompt] or alike for prompt in prompts)
    paces = [sum(seconds for *_, seconds in group) / sum(n for _, n, _ in group) for group in groups]
    return sum(paces) / len(paces)


def assumptions() -> str:
    """Return by which assumptions hours and prices are computed, in a sentence."""
    return (
        f"Hours are those of one {H100.name}, by assumptions and not measured: two operations per parameter and token, "
        f"40 % of its {H100.flops / 1e12:.0f} TFLOP/s, a generated token as long as five of a prompt, each prompt "
        f"computed once; the price is US$ {GPU_HOUR_USD:.2f} for an hour, which is assumed too."
    )
