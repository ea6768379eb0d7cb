"""Measures the parts of each suite in each result, for a page with all parts and for files about each of them.

The page of a part loads its file, with its text, when it is asked for. What was measured is remembered by the hash of
the records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple
from urllib.parse import urlencode

from biasboard.ground.memory import Memory, machine_memory
from biasboard.ground.progress import Report, silent
from biasboard.ground.strict_json import JsonValue
from evaluators.benchmark import load_benchmark
from evaluators.metric import MetricInputs
from evaluators.runs.measure.measuring import Measurement, metric_definitions, read_inputs
from evaluators.task import PartReport, ReportsLabels, load_task
from leaderboard.benchmark_pages import Column
from leaderboard.pages.compare import result_id
from leaderboard.pages.dataset_views import BuiltDataset
from leaderboard.pages.markup import dataset_page, permalink, slug
from leaderboard.pages.tables import Definition, TableColumn, TableView, define
from leaderboard.ranking.frames import DownloadTable, Files, Kind, Scalar, json_text
from leaderboard.ranking.rows import Row
from leaderboard.verify.entries import Entry, why_withheld
from leaderboard.verify.intake import contents_of
from schemas.documents.dataset import SplitEntry
from schemas.documents.result import Counts
from schemas.files.record_columns import RecordColumns
from schemas.folders.dataset_folder import read_split
from schemas.folders.run_folder import verified_parts

_FOLDER = "files/parts"
_MOST_SOURCES = 3


class PartValue(NamedTuple):
    """The value of a metric on one part, with its interval."""

    value: float | None
    low: float | None
    high: float | None
    reason: str | None
    """Reason why there is no value, or no interval; None if there are both."""


class PartOfResult(NamedTuple):
    """One part of a suite in one result."""

    part: str
    values: Mapping[str, PartValue]
    """Value of each metric by its name."""
    report: PartReport | None
    """Labels and facts of the part; None if the task reports none."""


@dataclass(frozen=True, kw_only=True)
class SuiteView:
    """The parts of a suite under one prompt."""

    section: TableView
    """Table of the results whose parts these are."""
    metrics: tuple[str, ...]
    """Names of the metrics that are measured on each part."""
    results: tuple[tuple[Row, Mapping[str, PartOfResult] | str], ...]
    """Each result with its parts by name, or with the reason why they could not be measured."""
    local: BuiltDataset | None = None
    """The dataset; None if it is not on this machine."""
    others: tuple[TableView, ...] = ()
    """Other tables of results on the suite."""

    @property
    def suite_id(self) -> str:
        """The name of the folder with the files of the suite, whatever it was asked with."""
        return _suite_of(self.section)

    @property
    def context_id(self) -> str:
        """The name of the table in the addresses of parts."""
        return self.section.table.signature_sha256[:12]

    @property
    def page(self) -> str:
        """The path of the page, relative to the root of the site."""
        return f"suites/{self.section.anchor}.html"

    @property
    def title(self) -> str:
        """The title of the page."""
        return f"Parts of {self.section.title}"

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the parts."""
        return self.section.table.signature.parts

    def link(self, part: str) -> str:
        """Return the address of the page of a part, relative to the root of the site."""
        chosen = {"suite": self.suite_id, "part": slug(part), "context": self.context_id}
        return f"part.html#{urlencode(chosen)}"

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns of metrics."""
        named = {column.metric: column for column in reversed(self.section.all_columns) if not column.group}
        label = self.section.pages.label
        return tuple(named.get(name) or Column(name, label(name)) for name in _shown_metrics(self.section))

    @property
    def definitions(self) -> tuple[Definition, ...]:
        """What readers need to understand the columns."""
        found = [(one, one.example) for one in self.columns if isinstance(one, TableColumn)]
        return tuple(define(one.heading, example, one.text) for one, example in found if example is not None)

    @property
    def are_ranked(self) -> bool:
        """True if the models that count are the ranked ones; False if no model is ranked and all count."""
        return bool(self.section.table.ranked)

    @cached_property
    def counted(self) -> tuple[tuple[Row, Mapping[str, PartOfResult]], ...]:
        """The models that count, with their parts: those with a rank, or if there are none all but the baselines."""
        return tuple(
            (row, parts)
            for row, parts in self.results
            if not isinstance(parts, str) and (row.rank is not None if self.are_ranked else _is_of_model(row.entry))
        )

    @property
    def left_out(self) -> tuple[tuple[str, str], ...]:
        """Ids of the models whose parts could not be measured, each with the reason."""
        return tuple((row.model.id, parts) for row, parts in self.results if isinstance(parts, str))

    def of_part(self, part: str) -> list[tuple[Row, PartOfResult]]:
        """Return what was measured of a part, in each result that has it."""
        return [(row, parts[part]) for row, parts in self.results if not isinstance(parts, str) and part in parts]

    def report_on(self, part: str) -> PartReport | None:
        """Return the labels and facts of a part; None if nothing is known."""
        return next((one.report for _, one in self.of_part(part)), None)

    @property
    def has_labels(self) -> bool:
        """True if the labels of parts are known."""
        return any(self.report_on(part) is not None for part in self.parts)

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The names of the facts about parts."""
        reports = filter(None, map(self.report_on, self.parts))
        return tuple(sorted({name for report in reports for name in report.groups}))

    def group_name(self, group: str) -> str:
        """Return the name of a fact for readers."""
        name = self.section.pages.group_names.get(group, group).replace("_", " ")
        return name[:1].upper() + name[1:]

    @cached_property
    def table(self) -> DownloadTable:
        """The table of all parts, with the mean and the range of the models that count."""
        names = [column.metric for column in self.columns]
        columns: dict[str, Kind] = {"part": str, **dict.fromkeys(self.groups, str), "n_labels": int, "n_items": int}
        for name in names:
            columns |= {name: float, f"{name}_low": float, f"{name}_high": float, f"{name}_n_models": int}
        support = load_task(self.section.table.signature.task).support_splits
        rows = []
        for part in self.parts:
            report, counts = self.report_on(part), counts_of(self.section.table.rows[0].entry, part)
            line: dict[str, Scalar] = {"part": part}
            line |= {name: None if report is None else report.groups.get(name) for name in self.groups}
            line["n_labels"] = None if report is None else len(report.labels)
            line["n_items"] = sum(one.items for split, one in counts.items() if split not in support)
            for name in names:
                found = [parts[part].values[name].value for _, parts in self.counted if part in parts]
                known = [value for value in found if value is not None]
                line[name] = sum(known) / len(known) if known else None
                line[f"{name}_low"], line[f"{name}_high"] = min(known, default=None), max(known, default=None)
                line[f"{name}_n_models"] = len(known)
            rows.append(tuple(line.values()))
        return DownloadTable(
            Files(f"files/parts-{self.section.anchor}"), columns, rows, str(self.section.table.signature)
        )

    def why_unknown(self, part: str, metric: str) -> str:
        """Return why no model has a value on a part."""
        found = [parts[part].values[metric].reason for _, parts in self.counted if part in parts]
        return next(filter(None, found), "no model has a result here that counts")


def counts_of(entry: Entry, part: str) -> dict[str, Counts]:
    """Return the counts of items of each split of a part, by the name of the split."""
    return {one.split: one.counts for one in entry.coverage if one.part == part}


def suite_page(section: TableView) -> str | None:
    """Return the path of the page with the parts of a table; None if its results have no parts."""
    return f"suites/{section.anchor}.html" if section.table.signature.parts else None


def make_suites(
    sections: Sequence[TableView], built: Sequence[BuiltDataset], report: Report = silent
) -> tuple[SuiteView, ...]:
    """Measure the parts of all suites.

    Args:
        sections: All tables.
        built: The datasets on this machine.
        report: Callback for progress.
    """
    memory = machine_memory()
    local_builds = {dataset.name: dataset for dataset in built}
    suites = [section for section in sections if section.table.signature.parts]
    metrics = {section.anchor: _measured_metrics(section) for section in suites}
    # The board has no records of what it computed itself.
    asked = [(section, row) for section in suites for row in section.table.rows if not row.entry.is_computed]
    results: dict[str, list[tuple[Row, Mapping[str, PartOfResult] | str]]] = {section.anchor: [] for section in suites}
    for number, (section, row) in enumerate(asked):
        report("measuring parts", number, len(asked))
        parts = why_unmeasured(row.entry) or parts_of(row.entry, metrics[section.anchor], memory)
        results[section.anchor].append((row, parts))
    return tuple(
        SuiteView(
            section=section,
            metrics=metrics[section.anchor],
            results=tuple(results[section.anchor]),
            local=local_builds.get(section.datasets[0]),
            others=tuple(one for one in suites if one is not section and _suite_of(one) == _suite_of(section)),
        )
        for section in suites
    )


def _suite_of(section: TableView) -> str:
    """Return the name of the folder with the files of a suite, whatever it was asked with."""
    signature = section.table.signature
    return slug(f"{signature.dataset}-{signature.dataset_version}-{signature.config}")


def _is_of_model(entry: Entry) -> bool:
    """Return True if a result counts where models are counted: no baseline, no withdrawn result and no repeated one."""
    is_withdrawn = entry.acceptance is not None and entry.acceptance.decision == "withdrawn"
    is_own = entry.double is None and (entry.is_imported or not entry.is_replayed)
    return not entry.is_baseline and is_own and not is_withdrawn and entry.folder is not None


def _shown_metrics(section: TableView) -> list[str]:
    """Return the metrics that the table of parts shows: the ranking one, and those of summaries."""
    known = {one.name for one in metric_definitions(section.table.signature.task)}
    primary = load_benchmark(section.benchmark).primary_metric
    names = dict.fromkeys([primary, *(column.metric for column in section.summarised)])
    return [name for name in names if name in known]


def _measured_metrics(section: TableView) -> tuple[str, ...]:
    """Return the metrics that are measured on each part: those of the table, and those that the terminal prints."""
    shown, printed = _shown_metrics(section), load_benchmark(section.benchmark).printed_metrics
    known = [one.name for one in metric_definitions(section.table.signature.task)]
    return tuple(dict.fromkeys([*shown, *(name for name in printed or known if name in known)]))


def floors(task: str) -> dict[str, str]:
    """Return the name of the metric with the value by chance, by the name of each metric that has one."""
    return {one.name: one.floor for one in metric_definitions(task) if one.floor is not None}


def why_unmeasured(entry: Entry) -> str | None:
    """Return why the parts of a result cannot be measured one by one; None if they can be."""
    if entry.result.withheld is not None:
        return "its texts are kept elsewhere, and the sums that stand in for them are those of the whole suite"
    return None if entry.folder is not None else "its records are not on the machine that built the site"


def parts_of(entry: Entry, names: Sequence[str], memory: Memory) -> dict[str, PartOfResult]:
    """Return every part of a result by its name, in the order of its records.

    Args:
        entry: A result on a suite whose parts can be measured.
        names: Names of the metrics; those by chance that belong to them are added.
        memory: The memory of this machine.
    """
    result, folder, task = entry.result, entry.folder, entry.result.signature.task
    assert folder is not None
    by_chance = floors(task)
    chance = [by_chance[name] for name in names if name in by_chance and by_chance[name] not in names]

    def measured() -> list[PartOfResult]:
        inputs = read_inputs(folder, result)
        return [_measured(records, task, inputs, names, chance) for records in verified_parts(folder, result)]

    parts = contents_of(result) | {"metrics": list(names), "by_chance": list(chance)}
    return {one.part: one for one in memory.remembered("parts of a suite", parts, list[PartOfResult], measured)}


def _measured(
    records: RecordColumns, task: str, inputs: MetricInputs, names: Sequence[str], chance: Sequence[str]
) -> PartOfResult:
    """Return the part that some records are all of, with intervals of the metrics that are not by chance."""
    definitions = {one.name: one for one in metric_definitions(task)}
    source = Measurement.of([records], task, inputs).source
    values = {}
    for name in names:
        metric = definitions[name].compute(source, {})
        low, high = (None, None) if metric.interval is None else (metric.interval.low, metric.interval.high)
        reason = metric.reason if metric.value is None else metric.interval_reason
        values[name] = PartValue(metric.value, low, high, reason)
    for name in chance:
        by_chance = definitions[name].value_of(source, {})
        values[name] = PartValue(by_chance.value, None, None, by_chance.reason or "no interval is computed")
    loaded = load_task(task)
    report = loaded.part_report(records) if isinstance(loaded, ReportsLabels) else None
    return PartOfResult(str(records.columns["config"].texts[0]), values, report)


def part_files(views: Sequence[SuiteView]) -> dict[str, str]:
    """Return the files of all suites, by path relative to the root of the site.

    ``suites.json`` lists the suites. Each has a folder, whose ``index.json`` describes the metrics, the parts, and the
    results by context, which is a prompt with its examples. Each part has a file with its values in every result.

    Raises:
        DataError: a dataset is damaged.
    """
    suites: dict[str, list[SuiteView]] = {}
    for view in views:
        suites.setdefault(view.suite_id, []).append(view)
    files: dict[str, str] = {}
    listed: list[JsonValue] = []
    for suite_id, own in suites.items():
        signature = own[0].section.table.signature
        dataset = f"{signature.dataset} {signature.dataset_version}"
        title = f"{dataset}, {signature.config}"
        names = list(dict.fromkeys(part for view in own for part in view.parts))
        index: dict[str, JsonValue] = {
            "title": title,
            "dataset": dataset,
            "dataset_page": dataset_page(signature.dataset, signature.dataset_version),
            "group_names": dict(own[0].section.pages.group_names),
            "parts": [[name, slug(name)] for name in names],
            "metrics": {name: metric for view in own for name, metric in _described_metrics(view).items()},
            "contexts": [_context(view, title) for view in own],
        }
        listed.append({"id": suite_id, "title": title})
        files[f"{_FOLDER}/{suite_id}/index.json"] = json_text(index)
        texts, why_none = _texts(own[0])
        sources = [] if (local := own[0].local) is None else [(one.name, one.address) for one in local.manifest.sources]
        for name in names:
            # The source of its name, or all of them if they are few.
            of_part = [one for one in sources if one[0] == name] or (sources if len(sources) <= _MOST_SOURCES else [])
            about: dict[str, JsonValue] = {
                "part": name,
                "text": texts.get(name),
                "why_no_text": why_none,
                "sources": [list(source) for source in of_part],
                "contexts": {view.context_id: _part(view, name) for view in own if name in view.parts},
            }
            files[f"{_FOLDER}/{suite_id}/{slug(name)}.json"] = json_text(about)
    if listed:
        files[f"{_FOLDER}/suites.json"] = json_text({"suites": listed})
    return files


def _described_metrics(view: SuiteView) -> dict[str, JsonValue]:
    task = view.section.table.signature.task
    described, by_chance = {one.name: one for one in metric_definitions(task)}, floors(task)
    return {
        name: {
            "name": name,
            "heading": view.section.pages.label(name),
            "text": described[name].description,
            "minimum": described[name].minimum,
            "maximum": described[name].maximum,
            "has_floor": name in by_chance,
        }
        for name in view.metrics
    }


def _context(view: SuiteView, title: str) -> JsonValue:
    section = view.section
    return {
        "id": view.context_id,
        "title": section.conditions.removeprefix(f"{title}, "),
        "page": view.page,
        "table": f"{section.page}#{section.anchor}",
        "metrics": list(view.metrics),
        "results": [
            {
                "id": result_id(row.entry),
                "model": row.model.id,
                "detail": section.detail(row),
                "page": permalink(row.entry.result),
                "is_baseline": row.is_baseline,
                "why_none": parts if isinstance(parts, str) else None,
            }
            for row, parts in view.results
        ],
    }


def _part(view: SuiteView, part: str) -> JsonValue:
    """Return a part with its values in all results of a context."""
    own, report = view.of_part(part), view.report_on(part)
    manifest = None if view.local is None else view.local.manifest
    withheld = why_withheld(own[0][0].entry, manifest) if report is not None and not report.are_same else None
    hidden = withheld and f"each item brings its own labels, which are texts of the dataset: {withheld}"
    shown = None if hidden else report
    return {
        "groups": {} if report is None else dict(report.groups),
        "n_items": {split: one.items for split, one in counts_of(view.section.table.rows[0].entry, part).items()},
        "labels": shown and [[one.name for one in shown.labels], [one.n_right for one in shown.labels]],
        "why_no_labels": hidden,
        "are_same": report is not None and report.are_same,
        "results": {result_id(row.entry): _result(view, row.entry, one, has_labels=not hidden) for row, one in own},
    }


def _result(view: SuiteView, entry: Entry, part: PartOfResult, *, has_labels: bool) -> JsonValue:
    """Return the values of a result on a part, each with its interval, the reason for none, and the value by chance."""
    by_chance = floors(entry.result.signature.task)
    missing = {split: one.items - one.scored for split, one in counts_of(entry, part.part).items()}
    values: list[JsonValue] = []
    for name in view.metrics:
        value, low, high, reason = part.values[name]
        floor = part.values[by_chance[name]].value if name in by_chance else None
        values.append([_round(value), _round(low), _round(high), reason, _round(floor)])
    found: dict[str, JsonValue] = {"values": values, "n_missing": {split: n for split, n in missing.items() if n}}
    if (report := part.report) is not None and has_labels:
        found["shares"] = [_round(label.predicted_share) for label in report.labels]
        found["priors"] = [_round(label.prior) for label in report.labels]
        found["why_none"] = [report.why_no_share, report.why_no_prior]
    return found


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 5)


def _texts(view: SuiteView) -> tuple[Mapping[str, str], str | None]:
    """Return the text of each part of a suite by its name, and why none is shown; None if they are or if none exist."""
    signature, local = view.section.table.signature, view.local
    task = load_task(signature.task)
    if not isinstance(task, ReportsLabels):
        return {}, None
    if local is None or local.folder is None:
        return {}, "the dataset is not on the machine that built the site"
    manifest, folder, memory = local.manifest, local.folder, machine_memory()
    if not manifest.redistributable or manifest.publish_refusal is not None:
        # What follows a semicolon is advice for the owner of the dataset folder.
        refusal = (manifest.publish_refusal or "").partition(";")[0]
        return {}, refusal or f"the licence of the dataset, {manifest.licence}, forbids showing its texts"
    # All items share the text, so that it is read where the fewest of them are.
    smallest: dict[str, SplitEntry] = {}
    for split in sorted(manifest.splits, key=lambda one: one.n_items):
        if split.config in signature.parts and split.n_items:
            smallest.setdefault(split.config, split)

    def text(split: SplitEntry) -> str:
        parts: dict[str, JsonValue] = {"content": split.content_sha256, "shape": split.item_shape, "task": task.name}
        return memory.remembered("text of a part", parts, str, lambda: task.part_text(read_split(folder, split)[0]))

    return {part: text(split) for part, split in smallest.items()}, None
