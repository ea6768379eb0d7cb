"""Finds papers and what is quoted from them.

``papers/*.toml`` has their findings, tables and figures, and what is compared with each; ``reported/*.toml`` has
tables, whose numbers the board quotes and never ranks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from biasboard.ground.errors import DataError
from biasboard.ground.kinds import TASKS
from evaluators.benchmark import benchmarks, load_benchmark
from evaluators.runs.measure.index_values import set_row_names
from evaluators.task import load_task
from leaderboard.benchmark_pages import Paper, load_pages, metric_names
from leaderboard.model_facts import read_documents
from schemas.documents.papers import PaperMeasure, PaperPart, ReportedTable, Reproduction


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
