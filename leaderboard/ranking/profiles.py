"""Chooses the table that a benchmark shows first, and the values of its headline measures, one row for each model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

from evaluators.benchmark import load_benchmark
from evaluators.runs.measure.index_values import protocol_of
from evaluators.runs.plan.plan import normalisation_of
from evaluators.task import load_task, prompt_of
from leaderboard.benchmark_pages import BenchmarkPages, Headline, load_pages
from leaderboard.ranking.boards import Board
from leaderboard.ranking.rank_ranges import Comparison, Named, best_baselines, best_useless, rank_words
from leaderboard.ranking.rows import Row, Scope, Table, newest_versions, precedence
from leaderboard.verify.entries import Entry
from schemas.documents.result import Metric, Signature


def scope_of(table: Table) -> Scope:
    """Return the scope that a table belongs to; all results behind an index share one."""
    # Not the protocol of the index table, which also names prompts that differ from the protocol's own.
    signature = table.signature
    protocol = protocol_of(signature.task, signature.prompt)
    return Scope(signature.benchmark, signature.dataset, signature.dataset_version, protocol)


_ONLY_RANKED, _EMPTY = 1, 4


class Weight(NamedTuple):
    """The rows by which one of several tables is chosen: those of the lowest level among language models."""

    level: int
    """Their :attr:`Row.level`; 4 without any language model."""
    accepted: str
    """Date on which the first of them was accepted; empty if they are not registered."""
    models: Mapping[str, str | None]
    """Owners of their models, None if they are not registered, by the model's id; none of level 3."""

    @property
    def is_registered(self) -> bool:
        """True if a maintainer has registered them, whether they are ranked or not."""
        return self.level in (0, 2)

    @property
    def order(self) -> tuple[int, int, str, int]:
        """The sort key: the level, then most owners, whose many models count once, then what was accepted first."""
        return self.level, -len({*self.models.values()}), self.accepted, -len(self.models)


def weight_of(tables: Iterable[Table]) -> Weight:
    """Return what counts where one of several tables is chosen."""
    rows = [row for table in tables for row in table.rows if not row.is_baseline]
    level = min((row.level for row in rows), default=_EMPTY)
    counting = [row for row in rows if row.level == level < 3]
    dates = [one.acceptance.accepted for row in counting if row.owner for one in row.entries if one.acceptance]
    return Weight(level, min(dates, default=""), {row.model.id: row.owner for row in counting})


def tables_of(board: Board, benchmark: str) -> tuple[Table, ...]:
    """Return the tables of a benchmark; the first one is what its page shows.

    The benchmark's own dataset comes first if a maintainer has registered results on it, unless models have ranks and
    none of these is registered. Then scopes with registered models that are ranked come before those with other ranked
    ones, and these before all others; of each the own dataset, the newest version of each dataset, those of the default
    protocol, then those with most owners of such models, counted over all configs. Retired versions come last, and data
    that only local runs are on after those of accepted results: pages show them besides.
    Within a scope the default normalisation comes first, then the index before single configs, that of trained scorers
    before that of word lists, and the configs that rank, under the default prompt. Whatever is still alike, what was
    accepted first decides, and never a hash.
    """
    tables: list[Table] = [*board.indices.tables, *board.tables]
    scopes: dict[Scope, list[Table]] = {}
    for table in tables:
        if (scope := scope_of(table)).benchmark == benchmark:
            scopes.setdefault(scope, []).append(table)
    own = board.own_datasets
    weights = {scope: weight_of(of_scope) for scope, of_scope in scopes.items()}
    is_known = any(
        scope.is_of_benchmark and not scope.is_retired and weight.is_registered for scope, weight in weights.items()
    )
    # What the gate shuts, registered or not, never comes before the only models that have a rank.
    is_known &= min((weight.level for weight in weights.values()), default=_EMPTY) != _ONLY_RANKED

    def by_scope(scope: Scope) -> tuple[object, ...]:
        (level, *others), is_other = weights[scope].order, not scope.is_of_benchmark
        alike = (one for one, weight in weights.items() if (one.dataset, weight.level) == (scope.dataset, level))
        is_asked_otherwise = scope.protocol != _default_protocol(scopes[scope][0].signature)
        return (
            *(level == _EMPTY, scope.is_retired, scope.data in own, is_known and is_other, level, is_other),
            *(scope.version < max(one.version for one in alike), is_asked_otherwise, *others, scope),
        )

    return tuple(
        table
        for scope in sorted(scopes, key=by_scope)
        for table in sorted(scopes[scope], key=partial(_order_in_scope, level_of_scope=weights[scope].level))
    )


def _order_in_scope(table: Table, level_of_scope: int) -> tuple[object, ...]:
    signature = table.signature
    prompts = [load_task(one.task).prompts.get(one.prompt) for one in table.signatures]
    is_scored_otherwise = any(
        prompt is None or one.normalisation != normalisation_of(prompt, None)
        for one, prompt in zip(table.signatures, prompts, strict=True)
    )
    if table.is_index:
        is_asked_otherwise, config, place = table.protocol != scope_of(table).protocol, "", 0
    else:
        place = [*load_task(signature.task).prompts.values(), None].index(prompts[0])
        is_asked_otherwise, config = place > 0, signature.config
    level, *others = (weight := weight_of([table])).order
    # That every model fails to beat a baseline in some config of the index does not make one config the first table.
    is_led = table.is_index and not table.is_demo and weight.is_registered and not is_scored_otherwise
    is_led &= level_of_scope != _ONLY_RANKED
    accepted = (precedence(entry) for row in table.rows if not row.is_baseline for entry in row.entries)
    return (
        *(not is_led, level, is_scored_otherwise, not table.is_index, not table.is_whole),
        *(table.is_index and table.is_demo, table.primary is None, is_asked_otherwise, config, place),
        *(*others, -signature.n_items, min(accepted, default=())),
    )


def _default_protocol(signature: Signature) -> str:
    """Return the protocol by which a dataset is asked unless the user chooses another."""
    importer = load_benchmark(signature.benchmark).importer_of(signature.dataset)
    prompt = prompt_of(load_task(signature.task), None if importer is None else importer.prompt)
    return protocol_of(signature.task, prompt.id)


@dataclass(frozen=True, kw_only=True, eq=False)
class ProfileColumn:
    """A headline measure and the table that its values come from."""

    headline: Headline
    table: Table

    @cached_property
    def rows(self) -> Mapping[str, Row]:
        """The rows of the table by the identity of the model, baselines included."""
        return {row.identity: row for row in self.table.rows}

    @cached_property
    def metrics(self) -> Mapping[str, Metric]:
        """The values by the identity of the model, unknown ones included; a model without the metric has none."""
        found = {identity: row.metric(self.headline.name) for identity, row in self.rows.items()}
        return {identity: metric for identity, metric in found.items() if metric is not None}

    @property
    def pairs(self) -> tuple[Comparison, ...]:
        """The comparisons of the models that have a value."""
        return self.table.pairs.get(self.headline.name, ())

    @property
    def ranks(self) -> bool:
        """True if the measure ranks the models of its table."""
        return self.headline.name == self.table.primary

    @property
    def direction(self) -> str:
        """Words that say which values are good; empty if nothing says it."""
        metric = next(iter(self.metrics.values()), None)
        if metric is None or metric.ideal is None:
            return ""
        if metric.ideal == metric.maximum:
            return "higher is better"
        return "lower is better" if metric.ideal == metric.minimum else f"ideal {metric.ideal:g}"

    @property
    def high_end(self) -> float:
        """The upper end of the scale on which all values of the column are drawn."""
        return max((metric.drawn_maximum for metric in self.metrics.values()), default=1.0)

    @property
    def useless(self) -> Named | None:
        """The useless predictor that comes nearest to the ideal; None if there is none.

        Without results of any, it is the gate's own value of them, if the column is its metric.
        """
        values = [
            Named(self.rows[identity].model.id.rpartition("/")[2], metric)
            for identity, metric in self.metrics.items()
            if self.rows[identity].is_baseline and metric.value is not None
        ]
        signature = self.table.signature
        benchmark = load_benchmark(signature.benchmark)
        gate = None if self.table.is_index else benchmark.gate(signature.task)
        if not values and gate is not None and gate.metric == self.headline.name and self.metrics:
            metric = replace(next(iter(self.metrics.values())), interval=None, interval_reason="not computed")
            leads = best_baselines(entry for row in self.table.rows for entry in row.entries)
            values = [Named(lead.baseline, replace(metric, value=lead.value)) for lead in leads]
        return best_useless(benchmark, values)


@dataclass(frozen=True, kw_only=True, eq=False)
class Profile:
    """What a benchmark says about all its models at a glance, under the same conditions."""

    scope: Scope
    table: Table
    """The first table of the scope, whose ranks are the model's."""
    columns: tuple[ProfileColumn, ...]
    tables: tuple[Table, ...]
    """All tables of the benchmark, in order."""
    is_own: bool
    """True if only local runs are on its data, whose name then stands for that of the benchmark."""

    @property
    def benchmark(self) -> str:
        """The name of the benchmark."""
        return self.scope.benchmark

    @property
    def is_default(self) -> bool:
        """True if its table is the first of its benchmark; another one is told by its conditions."""
        return self.table is self.tables[0]

    @property
    def pages(self) -> BenchmarkPages:
        """What pages say of the benchmark."""
        return load_pages(self.benchmark)

    @property
    def conditions(self) -> str:
        """The data and the protocol."""
        return f"{' '.join(self.scope.data)}, {self.scope.protocol}"

    @property
    def heading(self) -> str:
        """The name of the benchmark, with the conditions if others come first; of own data theirs."""
        if self.is_own:
            return " ".join(self.scope.data)
        return self.title if self.is_default else f"{self.title} ({self.conditions})"

    @property
    def title(self) -> str:
        """The name of its data for readers, or else that of the benchmark."""
        return self.pages.title_of(self.table.signature.config)

    @property
    def key(self) -> str:
        """The name for scripts, which no other profile has."""
        return "-".join([self.benchmark, *(self.scope[1:] if self.heading != self.pages.heading else ())])

    @cached_property
    def rows(self) -> Mapping[str, Row]:
        """The rows of the first table by the identity of the model, in the table's order."""
        return {row.identity: row for row in self.table.rows}

    @cached_property
    def below(self) -> Mapping[str, str]:
        """Why models are not shown to beat a useless predictor in a table of the profile, by their identities."""
        rows = [*self.table.rows, *(row for column in self.columns for row in column.rows.values())]
        return {row.identity: row.shut for row in rows if row.shut is not None}

    @cached_property
    def _entries(self) -> tuple[Entry, ...]:
        """The results of language models behind the table and the columns, each once."""
        rows = [*self.table.rows, *(row for column in self.columns for row in column.rows.values())]
        found = {id(entry): entry for row in rows for entry in row.entries}
        return tuple(entry for entry in found.values() if not entry.is_baseline)

    @cached_property
    def models(self) -> Mapping[str, str]:
        """The identity of the newest version of each language model, by the model's id."""
        return newest_versions(self._entries)

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """The results of these versions."""
        newest = frozenset(self.models.values())
        return tuple(entry for entry in self._entries if entry.result.model.identity_sha256 in newest)

    @property
    def newest(self) -> tuple[Row, ...]:
        """The rows of these versions in the first table."""
        shown = frozenset(self.models.values())
        return tuple(row for identity, row in self.rows.items() if identity in shown)

    @cached_property
    def weight(self) -> Weight:
        """The models that count where the profile stands among others."""
        return weight_of(table for table in self.tables if scope_of(table) == self.scope)

    @property
    def is_local(self) -> bool:
        """True if one of these results is a local run."""
        return any(entry.origin == "local" for entry in self.entries)


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
    ordered, own = tables_of(board, benchmark), board.own_datasets
    scopes: dict[Scope, list[Table]] = {}
    for table in ordered:
        scopes.setdefault(scope_of(table), []).append(table)

    def column_of(headline: Headline, tables: Sequence[Table]) -> ProfileColumn | None:
        """Return the column of a headline measure from the first table that has it; None if no table does."""
        columns = (
            ProfileColumn(headline=headline, table=table)
            for table in tables
            if headline.config is None or (not table.is_index and table.signature.config == headline.config)
        )
        return next((column for column in columns if column.metrics), None)

    return tuple(
        Profile(
            scope=scope,
            table=tables[0],
            columns=tuple(column for one in load_pages(benchmark).headlines if (column := column_of(one, tables))),
            tables=ordered,
            is_own=scope.data in own,
        )
        for scope, tables in scopes.items()
        if not all(row.is_baseline for row in tables[0].rows)
    )


def identities_of(profile: Profile, model_id: str) -> list[str]:
    """Return the identities of a model id that a profile has values of, the best placed one first."""
    rows = {identity: row for column in profile.columns for identity, row in column.rows.items()}
    known = dict.fromkeys(identity for identity in [*profile.rows, *rows] if identity in rows)
    return [identity for identity in known if rows[identity].model.id == model_id]


def ranked_row(profile: Profile, identity: str, model_id: str) -> Row | None:
    """Return the row whose rank is the model's in a benchmark; None if it has none."""
    row = profile.rows.get(identity)
    if (row is not None and row.indices) or not load_benchmark(profile.benchmark).indices:
        return row
    rows = (row for table in profile.tables for row in table.rows)
    return next((each for each in rows if each.indices and each.model.id == model_id), row)


def placing(board: Board, profile: Profile, model_id: str, row: Row | None) -> str:
    """Return the rank of a model in words, or why it has none."""
    if row is not None:
        if row.rank is not None:
            return rank_words(row.rank)
        return f"no rank: {'; '.join(row.reasons) or 'the index ranks'}"
    # Not compared by protocol: that of an index also names prompts that differ from the protocol's own.
    scope = profile.scope[:3]
    left_out = [each for place, of_place in board.indices.incomplete.items() if place[:3] == scope for each in of_place]
    reasons = [each.reason for each in left_out if each.model_id == model_id]
    return f"no rank: {reasons[0] if reasons else 'it has no result in the table that ranks'}"
