"""Prepares every table for its page: columns, rows, cells and the sentences around them.

A table compares models on the results with one signature, or by an index over several of them. Both are one
:class:`TableView`, so that one template draws them and one set of files exports them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import NamedTuple, TypeAlias

from biasboard.ground.plain_text import listed
from evaluators.benchmark import load_benchmark
from evaluators.runs.measure.measuring import metric_definitions
from evaluators.scorer import KINDS
from leaderboard.benchmark_pages import BenchmarkPages, Column, load_pages
from leaderboard.model_facts import display_name
from leaderboard.pages.figures import PageChart, index_pictures, results_pictures
from leaderboard.pages.markup import anchor_of, metric_number, result_anchor, slug, table_page
from leaderboard.ranking.boards import Board, table_title
from leaderboard.ranking.frames import Files
from leaderboard.ranking.profiles import scope_of, tables_of
from leaderboard.ranking.rank_ranges import Named, best_useless, detectable_note, solved_note, top_note
from leaderboard.ranking.rows import Row, Table
from leaderboard.verify.entries import Entry, adapters_of
from schemas.documents.result import Metric, Result

_MOST_HEADLINES = 8
"""Number of columns that fit on a screen 1,300 pixels wide, beside rank, model and answers."""
_FEWEST_HEADLINES = 5
_MOST_SUMMARISED = 4
_MOST_BEST = 2
_LONGEST_CONDITION = 40
"""Largest number of characters of a condition beside the name of a model; its result page shows all."""
_MOST_MISSING, _MOST_REASONS = 3, 3
"""Numbers of missing results, and of reasons, that the line about indices without a value names."""
_TOGETHER, _DEMO = "all parts together", ", texts judged by word lists"


Cell: TypeAlias = tuple[Metric | None, str, Entry | None]
"""A value of a row, few words that qualify it, and the result it was measured on; None for a value of several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn(Column):
    """A column with what readers need to understand it."""

    text: str
    """Description of its metric."""
    example: Metric | None
    """One metric of the column, for the version and the ideal value that all its cells share."""
    is_headline: bool
    """True if the page shows the column at once; False if it unfolds it."""
    is_on_page: bool = True
    """False if only the files hold the column."""


@dataclass(frozen=True, kw_only=True)
class TableView:
    """A table and its page, whose rows are those of the table."""

    table: Table
    words: str
    """What distinguishes the table from others of its benchmark, for readers, as in ``solving word problems``."""
    conditions: str
    """What must be equal for results to share the table, in short: dataset, version, config and prompt."""
    anchor: str
    page: str
    is_default: bool
    """True if the page of the benchmark shows the table; False if the table has a page of its own."""
    is_own: bool
    """True if only local runs are on its dataset, so that no accepted result can stand in it."""
    all_columns: tuple[TableColumn, ...]
    """The columns of the page, followed by those that only files hold."""
    files: Files
    comparisons: Files
    pictures: tuple[PageChart, ...]

    @property
    def benchmark(self) -> str:
        """The name of the benchmark."""
        return self.table.signature.benchmark

    @property
    def pages(self) -> BenchmarkPages:
        """The page description of the benchmark."""
        return load_pages(self.benchmark)

    @property
    def title(self) -> str:
        """The name of the table for readers."""
        return f"{self.pages.heading}: {self.words}"

    @property
    def name(self) -> str:
        """The title with the conditions, which no other table has."""
        return f"{self.title} ({self.conditions})"

    @property
    def columns(self) -> tuple[TableColumn, ...]:
        """The columns that the page shows."""
        return tuple(column for column in self.all_columns if column.is_on_page)

    @property
    def headlines(self) -> tuple[TableColumn, ...]:
        """The columns that the page shows at once."""
        return tuple(column for column in self.all_columns if column.is_headline)

    @property
    def choices(self) -> tuple[TableView, ...]:
        """This view, and the same one ranked by each other metric that readers can choose."""
        return (self, *(replace(self, table=other) for other in self.table.others))

    def cells(self, row: Row) -> dict[str, Cell]:
        """Return the values of a row by the keys of the columns."""
        if not row.indices:
            columns = self.all_columns
            return {column.key: (column.of(row.entry), column.note_on(row.entry), row.entry) for column in columns}
        cells: dict[str, Cell] = {index.metric.name: (index.metric, "", None) for index in row.indices}
        for part, metric in zip(row.indices[0].definition.parts, row.parts, strict=True):
            entry = row.entry_of(part)
            standing = None if entry is None or row.is_baseline else entry.standing
            cells[part.key] = metric, "" if standing is None or standing.passes else "no more than a baseline", entry
        return cells

    @cached_property
    def placings(self) -> dict[tuple[str, str], list[tuple[str | None, int, Row]]]:
        """Where each choice of ranking metric places a row, by origin and place of its result; the headline's first.

        Each is the name of the metric, None if none ranks, the number of the row, from 0, and the row as it then ranks.
        """
        found: dict[tuple[str, str], list[tuple[str | None, int, Row]]] = {}
        for table in (self.table, *self.table.others):
            for number, row in enumerate(table.rows):
                found.setdefault((row.entry.origin, row.entry.place), []).append((table.primary, number, row))
        return found

    @property
    def is_imported(self) -> bool:
        """True if the answers of all models were published elsewhere and imported."""
        return self.n_models > 0 and all(row.is_imported for row in self.table.rows if not row.is_baseline)

    @property
    def n_baselines(self) -> int:
        """The number of rows that are baselines."""
        return sum(row.is_baseline for row in self.table.rows)

    @property
    def n_models(self) -> int:
        """The number of rows that are language models."""
        return len(self.table.rows) - self.n_baselines

    @property
    def datasets(self) -> tuple[tuple[str, str], ...]:
        """The name and version of each dataset that was asked."""
        return tuple(dict.fromkeys((one.dataset, one.dataset_version) for one in self.table.signatures))

    @property
    def primary_label(self) -> str:
        """The heading of the metric that ranks the rows, or ``none``."""
        primary = self.table.primary
        labels = {column.key: column.heading for column in self.all_columns}
        return "none" if primary is None else labels.get(primary, self.pages.label(primary))

    @property
    def solved_note(self) -> str:
        """The sentences on the baselines that solve the items by themselves; empty if none does."""
        if not self.table.is_index:
            return solved_note(row.entry for row in self.table.rows)
        of_configs = zip(*(row.entries for row in self.table.rows), strict=True)
        noted = ((entries[0].result.signature.config, solved_note(entries)) for entries in of_configs)
        return " ".join(f"{config}: {note}" for config, note in noted if note)

    @property
    def facts(self) -> tuple[str, ...]:
        """The sentences above the table that hold for every choice of ranking metric."""
        models = "1 model" if self.n_models == 1 else f"{self.n_models} models"
        sentences = [f"{models} ({len(self.table.ranked)} ranked), {self._asked()}."]
        if self.table.primary is None:
            sentences.append(self._unranked_order())
        if self.is_imported:
            sentences.append("All answers were published elsewhere and imported.")
        sentences += [self._judges()] if self.table.is_index else []
        return tuple(sentence for sentence in (*sentences, self.solved_note, self.baseline_command) if sentence)

    @property
    def separability(self) -> str:
        """The sentences on the top and on how many pairs of models can be told apart; empty if no model is ranked."""
        n_pairs = len(self.table.comparisons)
        if len(self.table.ranked) == 1:
            return "Only one model is ranked, so its rank says nothing yet."
        if not self.table.ranked:
            return ""
        n_apart = sum(comparison.separable for comparison in self.table.comparisons)
        top = top_note([display_name(model_id) for model_id in self.table.tied_for_first])
        apart = f"{n_apart} of {n_pairs} pairs of ranked models can be told apart."
        detectable = detectable_note(self.table.detectable, self.primary_label)
        return f"By {self.primary_label}, {top}; {apart} {detectable}".strip()

    def _asked(self) -> str:
        """Return the words on what the models were asked."""
        entries = self.table.rows[0].entries
        n_items = sum(entry.result.signature.n_items for entry in entries)
        parts = sum(len(entry.result.signature.parts) for entry in entries[:1])
        if len(entries) > 1:
            configs = {entry.result.signature.config for entry in entries}
            each = "configs" if len(configs) == len(entries) else "prompts"
            return f"{n_items:,} items under {len(entries)} {each}"
        return f"{n_items:,} items{f' in {parts} parts' if parts else ''}"

    def _judges(self) -> str:
        """Return who judged the texts that the models wrote; empty if nobody had to."""
        judges = listed([f"{scorer.kind} by {scorer.label}" for scorer in self.table.scorers], most=len(KINDS))
        if self.table.is_demo:
            return (
                f"Texts are judged by lists of words, which do for a demonstration ({judges}). Results by "
                "trained scorers (--scorer reference) would form a table of their own."
            )
        return f"Texts are judged by trained scorers ({judges})." if judges else ""

    def _unranked_order(self) -> str:
        if self.table.sorted_by is not None:
            label = self.pages.label(self.table.sorted_by)
            return f"These items have no right answers, so no model is ranked; {label} sorts the rows, largest first."
        if load_benchmark(self.benchmark).indices:
            return "The index of all parts together ranks the models, not this table; the rows are sorted by name."
        return "No metric ranks the models here; the rows are sorted by name."

    @property
    def baseline_command(self) -> str:
        """The sentence with the command that adds baselines under the table's conditions; empty if they are there."""
        entries = self.table.rows[0].entries
        benchmark = load_benchmark(self.benchmark)
        if self.n_baselines or not benchmark.baselines or any(entry.is_imported for entry in entries):
            return ""
        # Of some items only, nothing is ranked.
        if any(entry.match.extent == "slice" for entry in entries):
            return ""
        dataset, version = self.datasets[0]
        if f"{dataset}@{version}" in benchmark.retired:
            return f"No useless predictor was scored on {dataset} {version}, which is retired."
        return (
            f"No useless predictor has a row under these conditions. With {dataset} {version} in out/datasets, this "
            f"does it: {_command(entries[0], '--backend baseline --model all')}"
        )

    @property
    def model_command(self) -> str:
        """The command that scores a language model here."""
        return self.pages.command or _command(self.table.rows[0].entry, "--model ORG/NAME")

    @property
    def best_baselines(self) -> str:
        """The sentence on the useless predictors, with the best value of any of them in the first columns."""
        baselines = [(display_name(row.model.id), self.cells(row)) for row in self.table.rows if row.is_baseline]
        best = []
        for column in self.headlines:
            if column.example is None or column.example.ideal is None:
                continue
            values = (Named(name, metric) for name, cells in baselines if (metric := cells[column.key][0]))
            if (useless := best_useless(load_benchmark(self.benchmark), values)) is not None:
                best.append(f"{column.heading} {metric_number(useless.metric)} ({useless.name})")
        shown = f". Their best: {'; '.join(best[:_MOST_BEST])}" if best else ""
        return f"Useless predictors ({self.n_baselines}){shown}"

    @property
    def summarised(self) -> tuple[TableColumn, ...]:
        """The columns that summaries speak about: those that the benchmark names, or else the first ones."""
        whole = [column for column in self.columns if not column.group]
        order = self.pages.summarised
        if not order:
            return tuple(whole[:_MOST_SUMMARISED])
        named = [column for column in whole if column.metric in order]
        return tuple(sorted(named, key=lambda each: order.index(each.metric)))

    @property
    def definitions(self) -> tuple[Definition, ...]:
        """What readers need to understand the columns of the page."""
        defined: dict[str, Definition] = {}
        sentences = {headline.name: headline.sentence for headline in self.pages.headlines}
        for column in self.columns:
            # The parts of an index have short headings, and several may be one metric under several prompts.
            label = self.pages.label(column.metric) if self.table.is_index else column.heading
            if column.example is not None:
                # The sentence of the front page first, then the exact words.
                text = f"{sentences.get(column.metric, '')} {column.text}".strip()
                defined.setdefault(label, define(label, column.example, text))
        return tuple(defined.values())

    def set_name(self, name: str) -> str:
        """Return the name of a way to choose sets of examples, with the metric in it as readers know it."""
        word, _, metric = name.partition(" ")
        is_metric = metric in load_benchmark(self.benchmark).compared_over_sets
        return f"{word.capitalize()} {self.pages.label(metric) if is_metric else metric}"

    def index_values(self, row: Row) -> list[tuple[Metric, dict[str, tuple[Metric, Entry | None]]]]:
        """Return each index of a row with a value, with the metrics that it averages and the result that each is from.

        The metrics are named as in :meth:`part_labels`.
        """
        return [
            (
                index.metric,
                {
                    part.label or part.key: (metric, row.entry_of(part))
                    for part, metric in zip(index.definition.parts, index.parts, strict=True)
                },
            )
            for index in row.indices
            if index.metric.value is not None
        ]

    def part_labels(self, row: Row) -> dict[str, str]:
        """Return the headings of the metrics that indices of a row average, by the names in :meth:`index_values`."""
        headings = {column.key: column.heading for column in self.columns}
        labels: dict[str, str] = {}
        for index in row.indices:
            for part in index.definition.parts if index.metric.value is not None else ():
                label = part.label or part.key
                labels.setdefault(label, headings.get(part.key, label))
        return labels

    def without_value(self, row: Row) -> str:
        """Return the sentence on how many indices of a row have no value, and why; empty if all have one."""
        others = [index for index in row.indices if index.metric.value is None]
        if not others:
            return ""
        missing = dict.fromkeys(str(source) for index in others for source in index.missing)
        lacking = f"there is no result of {listed(list(missing), most=_MOST_MISSING)}"
        # A reason begins with the name of the part without a value; the rest is often the same for several indices.
        reasons = Counter(
            lacking if index.missing else (index.metric.reason or "").partition(": ")[2] for index in others
        )
        why = [f"{reason} ({n})" if len(reasons) > 1 else reason for reason, n in reasons.most_common(_MOST_REASONS)]
        more = "1 more index has" if len(others) == 1 else f"{len(others)} more indices have"
        return f"{more} no value: {'; '.join(why)}."

    def detail(self, row: Row) -> str:
        """Return what distinguishes rows of one model id: backend, precision, short revision, adapters and conditions.

        It is empty for a baseline.
        """
        model = row.model
        if row.is_baseline:
            return ""
        revision = None if model.revision is None else model.revision.removeprefix("sha256:")[:10]
        conditions = (f"{name.replace('_', ' ')} {value}" for name, value in (model.conditions or {}).items())
        shown = (text if len(text) <= _LONGEST_CONDITION else f"{text[:_LONGEST_CONDITION]}…" for text in conditions)
        return ", ".join(
            part for part in (model.backend, model.precision, revision, adapters_of(model), *shown) if part
        )


def result_files(result: Result) -> Files:
    """Return the paths of the values of a result."""
    return Files(f"files/{slug(result.model.id)}-{result_anchor(result)}")


class Definition(NamedTuple):
    """An entry in the list of definitions below a table."""

    label: str
    name: str
    """Name of the metric in files."""
    version: str
    text: str
    facts: str
    """Sentence about range, ideal value and unit."""


def define(label: str, metric: Metric, text: str) -> Definition:
    """Return the definition of a metric.

    Args:
        label: Name of the metric for readers.
        metric: Any value of the metric.
        text: Description of the metric.
    """
    ideal = "no value is ideal" if metric.ideal is None else f"ideal {metric.ideal:g}"
    limits = f"From {metric.minimum:g}" + (" up" if metric.maximum is None else f" to {metric.maximum:g}")
    facts = f"{limits}, {ideal}; computed from {metric.unit}."
    return Definition(label, metric.name, metric.version, text, facts.replace("-", "\N{MINUS SIGN}"))


def table_views(board: Board, tables: Sequence[Table]) -> tuple[TableView, ...]:
    """Return a view of each of the tables of results, or of the tables of indices, of a board, in their order."""
    defaults = {tables_of(board, benchmark)[0].sha256 for benchmark in board.benchmarks}
    views = []
    for table in tables:
        signature, anchor = table.signature, anchor_of(table)
        is_default, is_own = table.sha256 in defaults, scope_of(table).data in board.own_datasets
        if table.is_index:
            words = f"{_TOGETHER}{_DEMO if table.is_demo else ''}"
        else:
            words = load_pages(signature.benchmark).config_words(signature.config, signature.prompt)
        stem = f"files/{slug(signature.benchmark)}-{anchor}"
        views.append(
            TableView(
                table=table,
                # The config of own data is called as that of others.
                words=f"{' '.join(scope_of(table).data)}, {words}" if is_own else words,
                conditions=_index_conditions(table, tables) if table.is_index else table_title(table, tables),
                anchor=anchor,
                page=table_page(table, is_default=is_default),
                is_default=is_default,
                is_own=is_own,
                all_columns=tuple(_index_columns(table) if table.is_index else _result_columns(table)),
                files=Files(stem),
                comparisons=Files(f"{stem}-comparisons"),
                pictures=(index_pictures if table.is_index else results_pictures)(table, f"charts/{anchor}"),
            )
        )
    return tuple(views)


def _result_columns(table: Table) -> Iterator[TableColumn]:
    """Yield the columns of a table of results; variants of metrics, which only files hold, come last."""
    pages = load_pages(table.signature.benchmark)
    columns = sorted(table.columns, key=lambda column: column.metric in pages.variants)
    on_page = [column for column in columns if column.metric not in pages.variants]
    first = [] if table.primary is None else [table.primary]
    headlines = _first_named(on_page, [*first, *(one.name for one in pages.headlines), *pages.summarised])
    for column in columns:
        yield TableColumn(
            **{field.name: getattr(column, field.name) for field in fields(column)},
            text=column.description(table.signature.task),
            example=next((metric for row in table.rows if (metric := column.of(row.entry)) is not None), None),
            is_headline=column.key in headlines,
            is_on_page=column.metric not in pages.variants,
        )


def _first_named(columns: Sequence[Column], names: Sequence[str]) -> frozenset[str]:
    """Return the keys of the columns on all items with certain metrics; of the first columns if those are few."""
    named = [column.key for name in names for column in columns if column.metric == name and not column.group]
    keys = list(dict.fromkeys([*named, *(column.key for column in columns)]))
    return frozenset(keys[: min(max(len({*named}), _FEWEST_HEADLINES), _MOST_HEADLINES)])


def _index_columns(table: Table) -> Iterator[TableColumn]:
    """Yield the index that ranks, the metrics that it averages, and other indices; then what only files hold."""
    pages, first = load_pages(table.signature.benchmark), table.rows[0]
    ranking, *others = first.indices
    beside = pages.index_columns or tuple(index.metric.name for index in others)
    headlines = {ranking.metric.name, *(one.name for one in pages.headlines)}
    columns: dict[str, TableColumn] = {}

    def add(key: str, label: str, metric: Metric, text: str, *, is_headline: bool, is_on_page: bool) -> None:
        made = TableColumn(
            key=key,
            label=label,
            metric=metric.name,
            text=text,
            example=metric,
            is_headline=is_headline,
            is_on_page=is_on_page,
        )
        columns.setdefault(key, made)

    by_name = {index.metric.name: index for index in first.indices}
    averaged = [part.metric for part in ranking.definition.parts]
    for name in (ranking.metric.name, *beside, *by_name):
        index, on_page = by_name[name], name == ranking.metric.name or name in beside
        text = index.definition.description
        is_headline = name in headlines and on_page
        add(name, pages.label(name), index.metric, text, is_headline=is_headline, is_on_page=on_page)
        if index is not ranking:
            # The parts of other indices are metrics of results, whose own tables hold them. Here too, they were three
            # quarters of 3,963 columns.
            continue
        for part, metric in zip(index.definition.parts, index.parts, strict=True):
            known = next(one.description for one in metric_definitions(part.task) if one.name == part.metric)
            # Parts that are one metric under several prompts need names of their own.
            is_alone = averaged.count(part.metric) == 1
            label = pages.label(part.metric) if is_alone else part.label or part.key.replace("_", " ")
            add(part.key, label, metric, known, is_headline=True, is_on_page=True)
    yield from sorted(columns.values(), key=lambda column: not column.is_on_page)


def _index_conditions(table: Table, tables: Sequence[Table]) -> str:
    """Return dataset and protocol of a table, and more if another table would have the same words."""

    def short(one: Table) -> str:
        return f"{one.signature.dataset} {one.signature.dataset_version}, index, {one.protocol}"

    def differing(one: Table) -> tuple[tuple[str, ...], ...]:
        return (
            (f"{' + '.join(f'{signature.n_items:,}' for signature in one.signatures)} items",),
            tuple(dict.fromkeys(signature.prompt for signature in one.signatures)),
            tuple(dict.fromkeys(signature.normalisation or "none" for signature in one.signatures)),
            (one.version or "",),
        )

    same = [differing(other) for other in tables if short(other) == short(table)]
    distinct = [len({other[number] for other in same}) > 1 for number in range(4)]
    words = [" + ".join(values) for values, differs in zip(differing(table), distinct, strict=True) if differs]
    return ", ".join([short(table), *words])


def _command(entry: Entry, options: str) -> str:
    signature = entry.result.signature
    # A task that was chosen by name is not the one that the config asks by itself.
    task = f" --task {signature.task}" if " --task " in (entry.command or "") else ""
    return (
        f"biasboard run --dataset out/datasets/{signature.dataset} --config {signature.config}{task} "
        f"--prompt {signature.prompt} {options}"
    )
