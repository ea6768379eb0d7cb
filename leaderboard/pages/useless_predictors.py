"""Prepares the page of the baselines: what each does, and the headline measures that it gets."""

from __future__ import annotations

from typing import NamedTuple

from evaluators.benchmark import load_benchmark
from leaderboard.benchmark_pages import BenchmarkPages, Headline, load_pages
from leaderboard.pages.addresses import model_page
from leaderboard.ranking.boards import Board
from leaderboard.ranking.profiles import profiles_of
from schemas.documents.result import Metric


class Predictor(NamedTuple):
    """A baseline in one benchmark."""

    name: str
    anchor: str
    """Its anchor on the page; empty if an earlier benchmark has it too."""
    text: str
    metrics: tuple[Metric | None, ...]


class BenchmarkBaselines(NamedTuple):
    """The baselines of one benchmark."""

    pages: BenchmarkPages
    headlines: tuple[Headline, ...]
    predictors: tuple[Predictor, ...]


def useless_predictors(board: Board) -> tuple[BenchmarkBaselines, ...]:
    """Return the baselines with results, by benchmark, with their values under the first conditions that have any."""
    groups = []
    anchors: set[str] = set()
    for benchmark in board.benchmarks:
        texts = {baseline.name: baseline.description for baseline in load_benchmark(benchmark).baselines}
        rows = [row for table in board.tables if table.signature.benchmark == benchmark for row in table.rows]
        ids = sorted({row.model.id for row in rows if row.is_baseline})
        known = (one.columns for one in profiles_of(board, benchmark))
        columns = next((each for each in known if any(row.is_baseline for one in each for row in one.table.rows)), ())
        predictors = []
        for model_id in ids:
            metrics = tuple(
                next((row.metric(one.headline.name) for row in one.rows.values() if row.model.id == model_id), None)
                for one in columns
            )
            name, anchor = model_id.removeprefix("baseline/"), model_page(model_id).partition("#")[2]
            predictors.append(Predictor(name, "" if anchor in anchors else anchor, texts.get(name, ""), metrics))
            anchors.add(anchor)
        if predictors:
            groups.append(
                BenchmarkBaselines(load_pages(benchmark), tuple(one.headline for one in columns), tuple(predictors))
            )
    return tuple(groups)
