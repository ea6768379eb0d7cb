"""Chooses the table that a benchmark shows first, and the values of its headline measures, one row for each model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evaluators.benchmark import load_benchmark
from evaluators.runs.measure.index_values import protocol_of
from evaluators.task import load_task
from leaderboard.benchmark_pages import Headline, load_pages
from leaderboard.ranking.boards import Board
from leaderboard.ranking.rows import Row, Table
from schemas.documents.result import Metric


class Scope(NamedTuple):
    """The results that models have under the same conditions: one dataset version, asked by one protocol."""

    benchmark: str
    dataset: str
    dataset_version: str
    protocol: str

    @property
    def data(self) -> tuple[str, str]:
        """The name and version of the dataset."""
        return self.dataset, self.dataset_version

    @property
    def is_retired(self) -> bool:
        """True if a later version of the dataset mends a flaw of this one."""
        return f"{self.dataset}@{self.dataset_version}" in load_benchmark(self.benchmark).retired


def scope_of(table: Table) -> Scope:
    """Return the scope that a table belongs to; all results behind an index share one."""
    # Not the protocol of the index table, which also names prompts that differ from the protocol's own.
    signature = table.signature
    protocol = protocol_of(signature.task, signature.prompt)
    return Scope(signature.benchmark, signature.dataset, signature.dataset_version, protocol)


def tables_of(board: Board, benchmark: str) -> tuple[Table, ...]:
    """Return the tables of a benchmark; the first one is what its page shows.

    Tables with most models come first, counted over all configs of their scope, and those of retired versions last.
    Data that only local runs are on come after those of accepted results: pages show them besides.
    Within a scope the index comes before single configs, that of trained scorers before that of word lists, then the
    configs that rank, under the default prompt.
    """
    tables: list[Table] = [*board.indices.tables, *board.tables]
    of_benchmark = [table for table in tables if scope_of(table).benchmark == benchmark]
    own = board.own_datasets
    models: dict[Scope, set[str]] = {}
    for table in of_benchmark:
        entries = (entry for row in table.rows for entry in row.entries)
        ids = {entry.result.model.id for entry in entries if not entry.is_baseline}
        models.setdefault(scope_of(table), set()).update(ids)

    def order(table: Table) -> tuple[object, ...]:
        scope = scope_of(table)
        n_models = len(models[scope])
        version = tuple(-int(part) for part in scope.dataset_version.split("."))
        prompt = _default_prompt_order(table)
        by_scope = (n_models == 0, scope.is_retired, scope.data in own, -n_models, version, min(prompt, 1), scope)
        if table.is_index:
            return *by_scope, 0, table.is_demo, -len(table.rows), "", 0
        return *by_scope, 1, not table.is_whole, table.primary is None, table.signature.config, prompt

    return tuple(sorted(of_benchmark, key=order))


def _default_prompt_order(table: Table) -> int:
    """Return how far the prompt of a table is from the default prompt of its task, which is 0."""
    prompts, prompt = list(load_task(table.signature.task).prompts), table.signature.prompt
    return prompts.index(prompt) if prompt in prompts else len(prompts)


class ProfileCell(NamedTuple):
    """The value of a headline measure of one model."""

    metric: Metric | None
    """None if the model has no result there."""
    row: Row | None
    """Row of the table of the column; None if the model has none."""

    @property
    def is_baseline(self) -> bool:
        """True if the value is that of a useless predictor."""
        return self.row is not None and self.row.is_baseline


class ProfileColumn(NamedTuple):
    """A headline measure and the table that its values come from."""

    headline: Headline
    table: Table
    cells: Mapping[str, ProfileCell]
    """Cell of each row of the table, by the identity of the model, baselines included."""

    @property
    def ranks(self) -> bool:
        """True if the measure ranks the models of its table."""
        return self.headline.name == self.table.primary


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What a benchmark says about all its models at a glance."""

    benchmark: str
    scope: Scope
    table: Table
    """The default table, whose ranks are the model's."""
    columns: tuple[ProfileColumn, ...]

    @property
    def rows(self) -> Mapping[str, Row]:
        """The rows of the default table by the identity of the model, in the table's order."""
        return {row.identity: row for row in self.table.rows}

    @property
    def below(self) -> frozenset[str]:
        """The identities of the models that are not shown to beat a useless predictor in a table of the profile."""
        rows = [*self.rows.items(), *((one, cell.row) for column in self.columns for one, cell in column.cells.items())]
        return frozenset(identity for identity, row in rows if row is not None and row.is_below)


def profile_of(board: Board, benchmark: str) -> Profile | None:
    """Return the first profile of a benchmark on a version that is not retired; None if no language model has one.

    A retired version keeps its tables, but its flaw must not make headlines and findings.
    """
    return next((profile for profile in profiles_of(board, benchmark) if not profile.scope.is_retired), None)


def profiles_of(board: Board, benchmark: str) -> tuple[Profile, ...]:
    """Return a profile for each scope in which a language model has a result, that of the default table first.

    All values of a profile come from one scope, so that the columns of a row describe the same model under the same
    conditions.
    """
    scopes: dict[Scope, list[Table]] = {}
    for table in tables_of(board, benchmark):
        scopes.setdefault(scope_of(table), []).append(table)
    profiles = []
    for scope, tables in scopes.items():
        if all(entry.is_baseline for row in tables[0].rows for entry in row.entries):
            continue
        columns = [_column(headline, tables) for headline in load_pages(benchmark).headlines]
        named = tuple(column for column in columns if column)
        profiles.append(Profile(benchmark=benchmark, scope=scope, table=tables[0], columns=named))
    return tuple(profiles)


def _column(headline: Headline, tables: Sequence[Table]) -> ProfileColumn | None:
    """Return the column of a headline measure from the first table that has it; None if no table does."""
    for table in tables:
        if headline.config is not None and (table.is_index or table.signature.config != headline.config):
            continue
        cells = {row.identity: ProfileCell(row.metric(headline.name), row) for row in table.rows}
        if any(cell.metric is not None for cell in cells.values()):
            return ProfileColumn(headline, table, cells)
    return None
