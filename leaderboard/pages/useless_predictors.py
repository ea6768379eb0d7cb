"""Prepares the page of the baselines: what each does, and the headline measures that it gets."""

from __future__ import annotations

from typing import NamedTuple

from evaluators.benchmark import load_benchmark
from leaderboard.benchmark_pages import BenchmarkPages, Headline, load_pages
from leaderboard.pages.addresses import model_page
from leaderboard.ranking.boards import Board
from leaderboard.ranking.profiles import Profile, profiles_of
from schemas.documents.result import Metric


class Predictor(NamedTuple):
    """A baseline in one benchmark."""

    name: str
    anchor: str
    """Its anchor on the page; empty if an earlier benchmark has it too."""
    text: str
    metrics: tuple[Metric | None, ...]


class Group(NamedTuple):
    """The baselines of one benchmark."""

    pages: BenchmarkPages
    headlines: tuple[Headline, ...]
    predictors: tuple[Predictor, ...]


def useless_predictors(board: Board) -> tuple[Group, ...]:
    """Return the baselines with results, by benchmark, with their values under the first conditions that have any."""
    groups = []
    anchors: set[str] = set()
    for benchmark in board.benchmarks:
        texts = {baseline.name: baseline.description for baseline in load_benchmark(benchmark).baselines}
        entries = [row.entry for table in board.tables if table.signature.benchmark == benchmark for row in table.rows]
        ids = sorted({entry.result.model.id for entry in entries if entry.is_baseline})
        if not ids:
            continue
        profile = next((one for one in profiles_of(board, benchmark) if _has_baselines(one)), None)
        columns = () if profile is None else profile.columns
        predictors = []
        for model_id in ids:
            identities = {entry.result.model.identity_sha256 for entry in entries if entry.result.model.id == model_id}
            metrics = tuple(
                next((cell.metric for identity, cell in column.cells.items() if identity in identities), None)
                for column in columns
            )
            name, anchor = model_id.removeprefix("baseline/"), model_page(model_id).partition("#")[2]
            predictors.append(Predictor(name, "" if anchor in anchors else anchor, texts.get(name, ""), metrics))
            anchors.add(anchor)
        groups.append(Group(load_pages(benchmark), tuple(one.headline for one in columns), tuple(predictors)))
    return tuple(groups)


def _has_baselines(profile: Profile) -> bool:
    return any(cell.is_baseline for column in profile.columns for cell in column.cells.values())
