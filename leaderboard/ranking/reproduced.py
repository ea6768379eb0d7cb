"""Finds what papers printed, and compares it with the results of this board.

Results are of two origins. Answers that a paper's authors published are imported, so that its own models are measured
again; all others were asked here. A finding is tested by the intervals of single models: it is seen in a model if the
difference is separable there.

Finds papers and what is quoted from them.

``papers/*.toml`` has their findings, tables and figures, and what is compared with each; ``reported/*.toml`` has
tables, whose numbers the board quotes and never ranks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple, TypeAlias

from biasboard.ground.errors import DataError
from biasboard.ground.kinds import TASKS
from evaluators.benchmark import benchmarks, load_benchmark
from evaluators.runs.measure.index_values import set_row_names
from evaluators.runs.measure.measuring import metric_definitions
from evaluators.task import load_task
from leaderboard.benchmark_pages import Paper, is_above, load_pages, metric_names
from leaderboard.model_facts import display_name, facts_of, read_documents
from leaderboard.ranking.boards import Board
from leaderboard.ranking.profiles import tables_of
from leaderboard.ranking.rank_ranges import rank_correlation
from leaderboard.ranking.rows import Row, Table
from leaderboard.verify.entries import Entry
from schemas.documents.papers import Claim, NumberList, PaperMeasure, PaperModel, PaperPart, ReportedTable, Reproduction
from schemas.documents.result import Metric

Status: TypeAlias = Literal[
    "recomputed from published data",
    "run here on small models",
    "shown by other measures",
    "needs these models",
    "not reproducible",
]
_LEAST_ORDERED = 5
"""Models from which the agreement of two orders is told; of four, one order in 24 agrees fully by chance."""


class Ours(NamedTuple):
    """A value of a model here."""

    value: float
    metric: Metric
    """Of a mean over chosen sets of examples, the metric that is averaged."""
    row: Row
    table: Table
    """Table of the row."""
    has_own_interval: bool = True
    """False if the interval of the metric is not that of the value."""

    @property
    def entry(self) -> Entry:
        """The result behind it, of an index the first one."""
        return self.row.entry

    @property
    def data(self) -> tuple[str, str]:
        """The name and version of the dataset."""
        return self.entry.result.signature.dataset, self.entry.result.signature.dataset_version

    @property
    def is_published(self) -> bool:
        """True if the answers were published, and not given here."""
        return self.entry.is_imported


class ComparedCell(NamedTuple):
    """A published value beside ours."""

    published: float | None
    ours: Ours | None
    is_of_other_data: bool = False
    """True if ours is of a dataset that the paper's runs are not of, so that the values need not agree."""

    @property
    def deviation(self) -> float | None:
        """Ours minus the published value; None without one of them, or if they are of different datasets."""
        if self.published is None or self.ours is None or self.is_of_other_data:
            return None
        return self.ours.value - self.published


class ComparedRow(NamedTuple):
    """A model of the paper, or one that was asked here."""

    label: str
    model: str | None
    is_of_paper: bool
    cells: Mapping[str, ComparedCell]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedPart:
    """A table or figure of the paper with what there is of it here."""

    part: PaperPart
    table: ReportedTable | None
    columns: tuple[str, ...]
    """Keys of the columns that are compared, or that the paper prints, if nothing is."""
    rows: tuple[ComparedRow, ...]
    recounted: tuple[tuple[NumberList, Mapping[str, float]], ...]
    """Each list of printed numbers with what we compute from it."""
    models: tuple[str, ...]
    """Ids of the models with a value here."""
    status: Status

    @property
    def deviations(self) -> tuple[tuple[str, str, float], ...]:
        """Model, column and deviation of each printed value whose answers were published, the largest ones first."""
        found = [
            (row.label, key, cell.deviation)
            for row in self.rows
            for key, cell in row.cells.items()
            if cell.deviation is not None and cell.ours is not None and cell.ours.is_published
        ]
        return tuple(sorted(found, key=lambda each: -abs(each[2])))

    @property
    def orders(self) -> Mapping[str, Order]:
        """How alike the printed values and ours order the models that have both, by column."""
        both = {
            key: [
                (cell.published, cell.ours.value)
                for cell in (row.cells[key] for row in self.rows)
                if cell.published is not None and cell.ours is not None and not cell.is_of_other_data
            ]
            for key in self.columns
        }
        return {key: _agreement(values) for key, values in both.items()}

    @property
    def differing(self) -> tuple[tuple[str, str, float], ...]:
        """Those that differ by more than one in the last printed digit; from the same answers they should not."""
        unit = 10.0 ** -(self.table.digits if self.table is not None else 0)
        # Half of the last digit may be rounding, here and there.
        return tuple(each for each in self.deviations if abs(each[2]) > 1.5 * unit)


class Sighting(NamedTuple):
    """What a claim comes to in one model."""

    model: str
    values: tuple[Ours, ...]
    """The values that are compared, the higher one of the claim first."""
    sign: int
    """1 if the claim is seen, -1 if its reverse is, 0 if the intervals leave it open."""

    @property
    def is_published(self) -> bool:
        """True if the answers were published."""
        return self.values[0].is_published

    @property
    def why_useless(self) -> str | None:
        """Where and how the model solves the task no better than a useless predictor, so that it says nothing.

        None if it does better, or if the task has no right answers, as for pronouns that a model is free to choose.
        """
        for entry in (entry for ours in self.values for entry in ours.row.entries):
            if entry.standing is not None and not entry.standing.passes:
                return f"on {entry.result.signature.dataset}, {entry.standing.reason}"
        return None

    def __str__(self) -> str:
        """Say it in a few words."""
        words = {1: "seen", -1: "the reverse", 0: "undecided"}
        return words[self.sign] if self.why_useless is None else f"does not count: {self.why_useless}"


class ClaimTally(NamedTuple):
    """In how many models a claim is seen, of those that do better than useless predictors."""

    n: int
    n_seen: int
    n_reversed: int
    n_at_chance: int = 0
    """Models that do no better, which do not count."""

    @classmethod
    def of(cls, sightings: Sequence[Sighting]) -> ClaimTally | None:
        """Count the models; None without any."""
        if not sightings:
            return None
        counted = [one.sign for one in sightings if one.why_useless is None]
        return cls(len(counted), counted.count(1), counted.count(-1), len(sightings) - len(counted))

    def __str__(self) -> str:
        """Say it in words.

        >>> str(ClaimTally(15, 13, 0)), str(ClaimTally(2, 2, 0)), str(ClaimTally(3, 0, 3))
        ('in 13 of 15 models, undecided in 2', 'in both models', 'in none of 3 models, the reverse in 3')
        >>> str(ClaimTally(1, 1, 0, 1))
        'in the only model; 1 is no better than a useless predictor'
        >>> str(ClaimTally(0, 0, 0, 2))
        'no model counts: 2 are no better than a useless predictor'
        """
        at_chance = f"{self.n_at_chance} {'is' if self.n_at_chance == 1 else 'are'} no better than a useless predictor"
        if not self.n:
            return f"no model counts: {at_chance}"
        parts = [f"in {self.n_seen or 'none'} of {self.n} {'model' if self.n == 1 else 'models'}"]
        if self.n_seen == self.n:
            every = {1: "the only model", 2: "both models"}
            parts = [f"in {every.get(self.n, f'all {self.n} models')}"]
        if self.n_reversed:
            parts.append(f"the reverse in {self.n_reversed}")
        if undecided := self.n - self.n_seen - self.n_reversed:
            parts.append(f"undecided in {undecided}")
        return ", ".join(parts) + (f"; {at_chance}" if self.n_at_chance else "")


class Order(NamedTuple):
    """How alike two measures order models."""

    n: int
    tau: float | None
    """Kendall's tau-b; None with too few models, or if all are equal in one measure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestedClaim:
    """A claim with what is seen of it here."""

    claim: Claim
    sightings: tuple[Sighting, ...]
    """What it comes to in each model in which all values are known."""
    order: Order | None

    @property
    def published(self) -> ClaimTally | None:
        """The verdict on models whose answers were published; None if there are none."""
        return ClaimTally.of([one for one in self.sightings if one.is_published])

    @property
    def asked(self) -> ClaimTally | None:
        """The verdict on models that were asked here; None if there are none."""
        return ClaimTally.of([one for one in self.sightings if not one.is_published])

    @property
    def outcome(self) -> str:
        """What is seen, in one word or a few."""
        if self.claim.untested is not None:
            return "not tested"
        if self.order is not None:
            few = "too few models" if self.order.n else "not asked yet"
            return few if self.order.tau is None else f"orders agree by {self.order.tau:.2f}"
        all_models = ClaimTally.of(self.sightings)
        if all_models is None:
            return "not asked yet"
        if not all_models.n:
            return "cannot be judged"
        if all_models.n_seen == all_models.n:
            return "holds"
        if all_models.n_seen > all_models.n / 2:
            return "holds in most"
        if all_models.n_reversed > all_models.n / 2:
            return "does not hold"
        # One of several may be chance: without an effect, intervals of 95 % show one in one of twenty models.
        return "holds in some" if all_models.n_seen > 1 else "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReproducedPaper:
    """A paper with everything that is compared."""

    name: str
    paper: Reproduction
    claims: tuple[TestedClaim, ...]
    parts: tuple[ComparedPart, ...]


def reproduced(name: str, paper: Reproduction, board: Board) -> ReproducedPaper:
    """Compare a paper with the results of a board."""
    look = _Lookup(paper, board)
    return ReproducedPaper(
        name=name,
        paper=paper,
        claims=tuple(
            TestedClaim(
                claim=claim,
                sightings=tuple(_sightings(claim, look)),
                order=_order(claim, look) if claim.orders else None,
            )
            for claim in paper.claims
        ),
        parts=tuple(_compared(part, paper, look) for part in paper.parts),
    )


class _Lookup:
    """The rows of all tables of a paper's benchmarks, in the order of their pages."""

    def __init__(self, paper: Reproduction, board: Board) -> None:
        self._rows = {
            name: [
                (table, row)
                for table in tables_of(board, name)
                for row in table.rows
                if not row.is_baseline and not row.entry.is_second
            ]
            for name in paper.benchmarks
        }
        self._first = paper.benchmarks[0]

    def values(self, measure: PaperMeasure) -> dict[str, Ours]:
        """Return the first value of each model that fits, by the id in the file about the model."""
        return {model: values[0] for model, values in self._all(measure).items()}

    def pairs(self, first: PaperMeasure, second: PaperMeasure) -> dict[str, tuple[Ours, Ours]]:
        """Return of each model the first values of two measures that one version of it gives.

        If the measures name the same dataset, both values are of the same version of it.
        """
        others = self._all(second)
        is_of_one_dataset = (first.benchmark, first.dataset) == (second.benchmark, second.dataset)
        found: dict[str, tuple[Ours, Ours]] = {}
        for model, values in self._all(first).items():
            alike = (
                (ours, other)
                for ours in values
                for other in others.get(model, ())
                if ours.entry.result.model.identity_sha256 == other.entry.result.model.identity_sha256
                and (not is_of_one_dataset or ours.data == other.data)
            )
            if (pair := next(alike, None)) is not None:
                found[model] = pair
        return found

    def _all(self, measure: PaperMeasure) -> dict[str, list[Ours]]:
        found: dict[str, list[Ours]] = {}
        # A copy of a model under another name is no second model.
        names: dict[str, str] = {}
        for table, row in self._rows[measure.benchmark or self._first]:
            if (ours := _ours(table, row, measure)) is not None:
                model = ours.entry.result.model
                name = names.setdefault(model.identity_sha256, canonical_id(model.id))
                found.setdefault(name, []).append(ours)
        return found


def canonical_id(model_id: str) -> str:
    """Return the id in the file about a model, which may have others; the id itself without such a file."""
    facts = facts_of(model_id)
    return model_id if facts is None else facts.id


def _ours(table: Table, row: Row, measure: PaperMeasure) -> Ours | None:
    signature = row.entry.result.signature
    if measure.dataset not in (None, signature.dataset):
        return None
    if row.indices:
        means = [
            (of_row.means.get(measure.metric), row.entry.metric(measure.metric))
            for sets in row.sets
            for of_row in sets.rows
            if sets.n_examples == measure.n_examples and of_row.name == measure.set_row
        ]
        for mean, averaged in means:
            if mean is not None and mean.value is not None and averaged is not None:
                return Ours(mean.value, averaged, row, table, has_own_interval=False)
        if measure.set_row is not None:
            return None
        is_open = not measure.group and measure.config is None and measure.prompt is None
        metrics = [index.metric for index in row.indices if is_open and index.metric.name == measure.metric]
    else:
        fits = measure.config in (None, signature.config) and measure.prompt in (None, signature.prompt)
        metric = row.entry.metric(measure.metric, measure.group) if fits and measure.set_row is None else None
        metrics = [metric] if metric is not None else []
    for metric in metrics:
        if metric.value is not None:
            return Ours(metric.value, metric, row, table)
    return None


def _compared(part: PaperPart, paper: Reproduction, look: _Lookup) -> ComparedPart:
    table = None if part.reported is None else table_of_file(part.reported)
    found = {key: look.values(measure) for key, measure in part.measures.items()}
    columns = tuple(found) if found or table is None else tuple(column.key for column in table.columns)
    known = {run.dataset for run in paper.runs if run.name in part.runs}
    known |= {measure.dataset for measure in part.measures.values() if measure.dataset is not None}
    rows = []
    for row in () if table is None else table.rows:
        cells = {}
        for key in columns:
            ours = found.get(key, {}).get(canonical_id(row.model)) if row.model else None
            is_of_other_data = ours is not None and bool(known) and ours.data[0] not in known
            cells[key] = ComparedCell(row.values.get(key), ours, is_of_other_data)
        rows.append(ComparedRow(row.label, row.model, True, cells))
    shown = {canonical_id(row.model) for row in rows if row.model}
    others = dict.fromkeys(model for values in found.values() for model in values if model not in shown)
    of_paper = {canonical_id(model.id): model.label for model in paper.models if model.id is not None}
    rows += [
        ComparedRow(
            of_paper.get(model, display_name(model)),
            model,
            model in of_paper,
            {key: ComparedCell(None, values.get(model)) for key, values in found.items()},
        )
        for model in others
    ]
    functions = {name: of for one in paper.benchmarks for name, of in load_pages(one).recounts.items()}
    recounted = [(one, {name: float(functions[name](one.numbers)) for name in one.printed}) for one in part.lists]
    values = [ours for of_key in found.values() for ours in of_key.values()]
    status: Status = "run here on small models" if values else "needs these models"
    if part.impossible is not None:
        status = "not reproducible"
    elif part.instead is not None:
        status = "shown by other measures"
    elif recounted or part.tests or any(ours.is_published for ours in values):
        status = "recomputed from published data"
    return ComparedPart(
        part=part,
        table=table,
        columns=columns,
        rows=tuple(rows),
        recounted=tuple(recounted),
        models=tuple(dict.fromkeys(model for of_key in found.values() for model in of_key)),
        status=status,
    )


def _sightings(claim: Claim, look: _Lookup) -> Iterator[Sighting]:
    if claim.higher is not None and claim.lower is not None:
        for model, (higher, lower) in look.pairs(claim.higher, claim.lower).items():
            above, below = higher.metric, lower.metric
            yield Sighting(model, (higher, lower), is_above(above, below) - is_above(below, above))
    elif (measure := claim.higher or claim.lower) is not None and claim.than is not None:
        for model, ours in look.values(measure).items():
            sign = side_of(ours.metric, claim.than) * (1 if claim.higher else -1)
            # A p-value on the other side of the bound shows nothing.
            yield Sighting(model, (ours,), sign if ours.metric.interval is not None else max(sign, 0))


def side_of(metric: Metric, than: float) -> int:
    """Return 1 if a metric is separably above a value, -1 if below, else 0; a p-value is exact."""
    value = metric.value or 0.0
    if metric.interval is not None:
        return (metric.interval.low > than) - (metric.interval.high < than)
    return (value > than) - (value < than) if _is_exact(metric.name) else 0


@cache
def _is_exact(name: str) -> bool:
    """Return True if a metric has no interval by its definition, and not because there are too few items."""
    of_tasks = (metric_definitions(task) for task in TASKS.names())
    return any(metric.name == name and metric.no_interval is not None for of_task in of_tasks for metric in of_task)


def _order(claim: Claim, look: _Lookup) -> Order:
    """Return how alike models are ordered on the one dataset that most have answered: owners, then their models."""
    by_data: dict[tuple[tuple[str, str], tuple[str, str]], list[tuple[Ours, Ours]]] = {}
    for pair in look.pairs(*claim.orders).values():
        by_data.setdefault((pair[0].data, pair[1].data), []).append(pair)

    def weight(data: tuple[tuple[str, str], tuple[str, str]]) -> tuple[int, int, int]:
        rows = [ours.row for ours, _ in by_data[data]]
        owners = [row.owner for row in rows if row.owner is not None]
        return len({*owners}), len(owners), sum(row.level == 1 for row in rows)

    chosen = max(by_data, key=weight, default=None)
    return _agreement([(first.value, second.value) for first, second in by_data[chosen]] if chosen else [])


def _agreement(values: Sequence[tuple[float, float]]) -> Order:
    """Return how alike the first and the second values of models order them."""
    if len(values) < _LEAST_ORDERED:
        return Order(len(values), None)
    return Order(len(values), rank_correlation(*map(list, zip(*values, strict=True))))


# A model takes two floating-point operations per parameter and token. Prompts are assumed to reach 40 % of the
# throughput of the GPU's matrix units, as large batches do. Generated tokens are assumed to reach a fifth of that,
# because each step reads all weights for few tokens.
_UTILISATION, _GENERATED = 0.4, 5
FLOPS = 790e12
"""Throughput of the matrix units of an H100 in bfloat16, in floating-point operations per second."""
_BYTES = 0.8 * 80e9
"""Bytes of its memory that weights may take at most; the rest holds keys and values."""
GPU_HOUR_USD = 3.0
"""Assumed price of an hour of one GPU. Prices differ threefold between providers, so that pages call it assumed."""


def gpu_hours(n_parameters: int, n_prompt_tokens: int, n_completion_tokens: int) -> float:
    """Return the hours of one H100, summed over the GPUs that a model needs, without loading the weights.

    >>> round(gpu_hours(7_000_000_000, 81_360_000, 0), 2)
    1.0
    """
    n_tokens = n_prompt_tokens + _GENERATED * n_completion_tokens
    return 2 * n_parameters * n_tokens / (_UTILISATION * FLOPS) / 3600


def n_gpus(n_parameters: int) -> int:
    """Return the number of H100 that hold the weights in bfloat16, a power of two, as engines split layers.

    >>> n_gpus(7_000_000_000), n_gpus(70_000_000_000)
    (1, 4)
    """
    return 1 << max(0, math.ceil(math.log2(2 * n_parameters / _BYTES)))


class CostOfModel(NamedTuple):
    """What all runs of a paper take of one of its models, by assumptions; None for what is unknown."""

    model: PaperModel
    parameters: int | None
    n_gpus: int | None
    hours: float | None
    """Hours of one GPU, summed over the GPUs."""


def costs_of(paper: Reproduction, n_prompt_tokens: int | None, n_completion_tokens: int | None) -> list[CostOfModel]:
    """Return what each model of a paper takes.

    Args:
        paper: The paper.
        n_prompt_tokens: Number of prompt tokens of all runs; None if it is unknown.
        n_completion_tokens: Largest number of generated tokens of all runs; None if it is unknown.
    """
    costs = []
    for model in paper.models:
        facts = None if model.id is None else facts_of(model.id)
        parameters = model.parameters if facts is None else facts.parameters
        on_gpus = None if model.is_remote else parameters
        hours = None
        if on_gpus is not None and n_prompt_tokens is not None and n_completion_tokens is not None:
            hours = gpu_hours(model.active_parameters or on_gpus, n_prompt_tokens, n_completion_tokens)
        costs.append(CostOfModel(model, parameters, None if on_gpus is None else n_gpus(on_gpus), hours))
    return costs


@cache
def reproductions() -> dict[str, Reproduction]:
    """Return every paper by the name of its file, sorted by it.

    Raises:
        DataError: a file is invalid, or names something that does not exist.
    """
    found: dict[str, Reproduction] = {}
    for path, paper in read_documents("papers", Reproduction):
        for problem in _problems(paper):
            raise DataError(f"{path}: {problem}")
        found[path.stem] = paper
    return found


def citation_of(paper: Reproduction) -> Paper:
    """Return the bibliographic data of a paper."""
    return next(one for one in load_pages(paper.benchmarks[0]).papers if one.key == paper.cites)


def _problems(paper: Reproduction) -> Iterator[str]:
    known = [one.name for one in benchmarks()]
    for name in paper.benchmarks:
        if name not in known:
            yield f"benchmarks: '{name}' does not exist; have: {', '.join(known)}"
    pages = load_pages(paper.benchmarks[0])
    if paper.cites not in (keys := [one.key for one in pages.papers]):
        yield f"cites: the pages of {paper.benchmarks[0]} cite no '{paper.cites}'; have: {', '.join(keys)}"
    metrics = metric_names() | {index.name for one in benchmarks() for index in one.indices}
    for where, measure in _measures(paper):
        if measure.metric not in metrics:
            yield f"{where}: metric '{measure.metric}' does not exist; see biasboard list"
        if measure.benchmark not in (None, *paper.benchmarks):
            yield f"{where}: benchmark '{measure.benchmark}' is none of the paper; have: {', '.join(paper.benchmarks)}"
        elif measure.set_row is not None:
            rows = set_row_names(load_benchmark(measure.benchmark or paper.benchmarks[0]).compared_over_sets)
            if measure.set_row not in rows:
                yield f"{where}: no row '{measure.set_row}'; have: {', '.join(rows)}"
    figures = {figure.name for name in paper.benchmarks for figure in load_pages(name).figures}
    recounts = {name for benchmark in paper.benchmarks for name in load_pages(benchmark).recounts}
    for part in paper.parts:
        yield from _problems_of_part(part, figures, recounts)
    prompts = {prompt for task in TASKS.names() for prompt in load_task(task).prompts}
    for run in paper.runs:
        if unknown := sorted({*run.prompts} - prompts):
            yield f"runs: {run.name}: prompt '{unknown[0]}' does not exist; see biasboard list"


def _problems_of_part(part: PaperPart, figures: set[str], recounts: set[str]) -> Iterator[str]:
    if part.reported is not None:
        table = table_of_file(part.reported)
        if table is None:
            yield f"parts: {part.number}: no file {part.reported}.toml in leaderboard/reported"
        elif unknown := sorted(part.measures.keys() - {column.key for column in table.columns}):
            yield f"parts: {part.number}: measures.{unknown[0]} is no column of {part.reported}.toml"
    if unknown := sorted({*part.figures} - figures):
        yield f"parts: {part.number}: no figure '{unknown[0]}'; have: {', '.join(sorted(figures))}"
    if unknown := sorted({name for one in part.lists for name in one.printed} - recounts):
        yield f"parts: {part.number}: nothing computes '{unknown[0]}'; have: {', '.join(sorted(recounts)) or 'none'}"


def _measures(paper: Reproduction) -> Iterator[tuple[str, PaperMeasure]]:
    for number, claim in enumerate(paper.claims):
        for measure in (claim.higher, claim.lower, *claim.orders):
            if measure is not None:
                yield f"claims[{number}]", measure
    for part in paper.parts:
        for key, measure in part.measures.items():
            yield f"parts: {part.number}: measures.{key}", measure


def reported_tables(benchmark: str) -> tuple[ReportedTable, ...]:
    """Return the published tables about a benchmark, sorted by file name.

    Raises:
        DataError: a file is invalid, or names a benchmark that does not exist.
    """
    return tuple(table for table in _quoted().values() if table.benchmark == benchmark)


def table_of_file(name: str) -> ReportedTable | None:
    """Return the published table in the file of a name, without ending; None if there is no such file."""
    return _quoted().get(name)


@cache
def _quoted() -> Mapping[str, ReportedTable]:
    names = sorted(known.name for known in benchmarks())
    tables: dict[str, ReportedTable] = {}
    for path, table in read_documents("reported", ReportedTable):
        if table.benchmark not in names:
            have = ", ".join(names)
            raise DataError(f"{path}: benchmark: '{table.benchmark}' does not exist; have: {have}")
        tables[path.stem] = table
    return tables
