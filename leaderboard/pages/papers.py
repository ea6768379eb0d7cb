"""Prepares the pages of papers: what each found, its tables and figures beside ours, and what the rest would take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evaluators.runs.plan.gpu_hours import FLOPS, GPU_HOUR_USD
from evaluators.task import load_task
from leaderboard.benchmark_pages import Paper, load_pages
from leaderboard.charts.bumps import BumpColumn, bump_chart
from leaderboard.model_facts import display_name
from leaderboard.pages.addresses import anchor_of, result_page, row_anchor
from leaderboard.pages.markup import slug
from leaderboard.pages.pictures import PageChart, make_picture
from leaderboard.ranking.boards import Board
from leaderboard.ranking.profiles import Scope, scope_of, tables_of
from leaderboard.ranking.reproduced import (
    ComparedPart,
    CostOfModel,
    Ours,
    ReproducedPaper,
    Status,
    canonical_id,
    costs_of,
    reproduced,
)
from leaderboard.reproductions import citation_of, reproductions
from schemas.documents.reproduction import PaperRun, Reproduction, UnkeptRun
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


class ComparedMeasure(NamedTuple):
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
    pictures: Mapping[str, tuple[PageChart, ...]]
    """Figures of each table or figure of the paper, by its number."""
    benchmark_pages: tuple[tuple[str, str | None], ...]
    """Heading and page of each benchmark of the paper; no page of one without results."""
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

    def columns_of(self, part: ComparedPart) -> tuple[ComparedMeasure, ...]:
        """Return the compared columns of a table or figure."""
        pages = load_pages(self.compared.paper.benchmarks[0])
        reported = {} if part.table is None else {column.key: column for column in part.table.columns}
        digits = 3 if part.table is None else part.table.digits
        columns = []
        for key in part.columns:
            measure, printed = part.part.measures.get(key), reported.get(key)
            ours = "" if measure is None else measure.label or pages.label(measure.metric)
            label, text = (ours, "") if printed is None else (printed.label, printed.text)
            # A mean over chosen sets is named by their choice, as the printed one is.
            is_named = printed is not None and measure is not None and measure.set_row is None
            columns.append(ComparedMeasure(key, label, text, digits, ours if is_named else ""))
        return tuple(columns)

    def address(self, ours: Ours) -> str:
        """Return the page behind one of our values."""
        model = ours.row.model
        return result_page(model.id, row_anchor(anchor_of(ours.table), model))


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
        spent=tuple(_spent(paper, board)),
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


def _spent(paper: Reproduction, board: Board) -> Iterator[Spent]:
    """Yield what the runs of each model took here; imported answers took nothing."""
    runs = {
        (run.dataset, config, prompt): run for run in paper.runs for config in run.configs for prompt in run.prompts
    }
    entries = [row.entry for table in board.tables for row in table.rows]
    kept: list[tuple[PaperRun, Result]] = []
    for entry in entries:
        signature = entry.result.signature
        run = runs.get((signature.dataset, signature.config, signature.prompt))
        if run and signature.benchmark in paper.benchmarks and not (entry.is_baseline or entry.is_imported):
            kept.append((run, entry.result))
    ids = [result.model.id for _, result in kept] + [one.model for one in paper.unkept]
    for model in dict.fromkeys(map(canonical_id, ids)):
        own = [(run, result) for run, result in kept if canonical_id(result.model.id) == model]
        others = [one for one in paper.unkept if canonical_id(one.model) == model]
        on_board = [entry.result for entry in entries if canonical_id(entry.result.model.id) == model]
        devices = [result.environment.device or "an unknown device" for _, result in own]
        cells = {
            run.name: _spent_cell(
                run,
                [result for its, result in own if its is run],
                [one for one in others if one.run == run.name],
                on_board,
            )
            for run in paper.runs
            if run.answers is None
        }
        yield Spent(display_name(model), tuple(dict.fromkeys([*devices, *(one.device for one in others)])), cells)


def _spent_cell(
    run: PaperRun, results: Sequence[Result], unkept: Sequence[UnkeptRun], on_board: Sequence[Result]
) -> SpentCell:
    """Return what a run took of a model.

    Args:
        run: The run.
        results: The model's results of the run.
        unkept: What it took whose results are not kept.
        on_board: All results of the model on the board, which show how fast it answers.
    """
    asked = {(result.signature.config, result.signature.prompt) for result in results}
    n_requests = sum(one.usage.n_requests for one in results) + sum(one.n_requests for one in unkept)
    n_parts = min(len(asked) + sum(one.n_parts for one in unkept), run.n_parts)
    left = None
    if n_parts < run.n_parts and run.n_requests and not (run.unasked or any(one.missing for one in unkept)):
        missing = [prompt for config in run.configs for prompt in run.prompts if (config, prompt) not in asked]
        pace = _pace(on_board, missing, writes=bool(run.n_completion_tokens))
        left = None if pace is None else max(run.n_requests - n_requests, 0) * pace
    return SpentCell(
        n_parts,
        n_requests,
        sum(one.usage.seconds or 0.0 for one in results) + sum(one.seconds for one in unkept),
        tuple(note for one in unkept for note in (f"results not kept: {one.why}", one.missing) if note),
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
        f"Hours are those of one H100, by assumptions and not measured: two operations per parameter and token, "
        f"40 % of its {FLOPS / 1e12:.0f} TFLOP/s, a generated token as long as five of a prompt, each prompt "
        f"computed once; the price is US$ {GPU_HOUR_USD:.2f} for an hour, which is assumed too."
    )
