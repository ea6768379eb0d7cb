"""Writes a file about each part of a suite with its text, which the page of a part loads when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from biasboard.ground.memory import machine_memory
from biasboard.ground.strict_json import JsonValue
from evaluators.runs.measure.measuring import metric_definitions
from evaluators.task import load_task
from evaluators.task_abilities import ReportsLabels
from leaderboard.pages.addresses import dataset_page, permalink
from leaderboard.pages.choice_keys import result_id
from leaderboard.pages.exports import json_text
from leaderboard.pages.markup import slug
from leaderboard.pages.suites import PartOfResult, SuiteView, counts_of, floors
from leaderboard.verify.entries import Entry, why_withheld
from schemas.documents.dataset import SplitEntry
from schemas.folders.dataset_folder import read_split

FOLDER = "files/parts"
_DIGITS = 5
_MOST_SOURCES = 3
_KIND = "text of a part"


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
            "metrics": {name: metric for view in own for name, metric in _metrics(view).items()},
            "contexts": [_context(view, title) for view in own],
        }
        listed.append({"id": suite_id, "title": title})
        files[f"{FOLDER}/{suite_id}/index.json"] = json_text(index)
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
            files[f"{FOLDER}/{suite_id}/{slug(name)}.json"] = json_text(about)
    if listed:
        files[f"{FOLDER}/suites.json"] = json_text({"suites": listed})
    return files


def _metrics(view: SuiteView) -> dict[str, JsonValue]:
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
    return None if value is None else round(value, _DIGITS)


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
        return memory.remembered(_KIND, parts, str, lambda: task.part_text(read_split(folder, split)[0]))

    return {part: text(split) for part, split in smallest.items()}, None
