"""Writes a file about each part of a suite with its text, which the page of a part loads when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from biasboard.ground.memory import Memory
from biasboard.ground.strict_json import JsonValue
from evaluators.runs.measure.measuring import metric_definitions
from evaluators.task import Task, load_task
from leaderboard.pages.choice_keys import result_id
from leaderboard.pages.dataset_views import BuiltDataset
from leaderboard.pages.exports import json_text
from leaderboard.pages.markup import slug
from leaderboard.pages.model_views import Placement
from leaderboard.pages.part_values import Labels, PartOfResult, PartValue, floors
from leaderboard.pages.tables import TableView
from schemas.documents.dataset import SplitEntry
from schemas.folders.dataset_folder import read_split

_DIGITS = 5
_MOST_SOURCES = 3
_KIND = "text of a part"


class PartTexts(NamedTuple):
    """The texts of the parts of a suite, or the reason why they are not shown."""

    texts: Mapping[str, str]
    """Text by name of the part."""
    why_none: str | None
    """Reason why no text is shown; None if they are, or if the task knows of none."""


class Suite(NamedTuple):
    """A suite, whatever it was asked with."""

    id: str
    """Name of its folder of files."""
    title: str
    dataset: str
    """Name and version of the dataset."""
    dataset_page: str
    sources: tuple[tuple[str, str], ...]
    """Name and address of each source of the dataset."""
    texts: PartTexts


class Measured(NamedTuple):
    """A table of results on a suite, with the parts of each result."""

    section: TableView
    page: str
    """Path of the page with the table of parts."""
    metrics: tuple[str, ...]
    results: Sequence[tuple[Placement, Sequence[PartOfResult] | str]]
    """Parts of each result, or the reason why they could not be measured."""


def context_id(section: TableView) -> str:
    """Return the name of the table of a section in the addresses of parts."""
    return section.table.signature_sha256[:12]


def suite_files(suite: Suite, measured: Sequence[Measured]) -> dict[str, str]:
    """Return the files of a suite by path relative to its folder.

    ``index.json`` describes the metrics, the parts, and the results by context, which is a prompt with its examples.
    Each part has a file with its values in every result.

    Args:
        suite: The suite.
        measured: The parts of the results in each of its tables.
    """
    names = list(dict.fromkeys(part for one in measured for part in one.section.table.signature.parts))
    index: dict[str, JsonValue] = {
        "title": suite.title,
        "dataset": suite.dataset,
        "dataset_page": suite.dataset_page,
        "group_names": dict(measured[0].section.pages.group_names),
        "parts": [[name, slug(name)] for name in names],
        "metrics": {name: metric for one in measured for name, metric in _metrics(one).items()},
        "contexts": [_context(one, suite) for one in measured],
    }
    files = {"index.json": json_text(index)}
    # The parts of all results are written one by one, since all of them together are large.
    found: dict[str, dict[str, JsonValue]] = {name: {} for name in names}
    for one in measured:
        for name, context in _of_context(one):
            found[name][context_id(one.section)] = context
    for name in names:
        text: JsonValue = suite.texts.texts.get(name)
        about: dict[str, JsonValue] = {
            "part": name,
            "text": text,
            "why_no_text": suite.texts.why_none,
            "sources": [list(source) for source in _sources(suite, name)],
        }
        files[f"{slug(name)}.json"] = json_text(about | {"contexts": found.pop(name)})
    return files


def _sources(suite: Suite, part: str) -> Sequence[tuple[str, str]]:
    """Return the sources of a part: the one of its name, or all if they are few."""
    own = [source for source in suite.sources if source[0] == part]
    return own or (suite.sources if len(suite.sources) <= _MOST_SOURCES else ())


def _metrics(measured: Measured) -> dict[str, JsonValue]:
    section = measured.section
    described = {one.name: one for one in metric_definitions(section.table.signature.task)}
    by_chance = floors(section.table.signature.task)
    return {
        name: {
            "name": name,
            "heading": section.pages.label(name),
            "text": described[name].description,
            "minimum": described[name].minimum,
            "maximum": described[name].maximum,
            "has_floor": name in by_chance,
        }
        for name in measured.metrics
    }


def _context(measured: Measured, suite: Suite) -> JsonValue:
    section = measured.section
    return {
        "id": context_id(section),
        "title": section.conditions.removeprefix(f"{suite.title}, "),
        "page": measured.page,
        "table": f"{section.page}#{section.anchor}",
        "metrics": list(measured.metrics),
        "results": [
            {
                "id": result_id(placement.row.entry),
                "model": placement.row.entry.result.model.id,
                "detail": section.detail(placement.row),
                "page": placement.page,
                "is_baseline": placement.row.entry.is_baseline,
                "why_none": parts if isinstance(parts, str) else None,
            }
            for placement, parts in measured.results
        ],
    }


def _of_context(measured: Measured) -> Iterator[tuple[str, JsonValue]]:
    """Yield each part with its values in all results of a context."""
    section = measured.section
    by_chance = floors(section.table.signature.task)
    results = [
        (placement, {one.part: one for one in parts})
        for placement, parts in measured.results
        if not isinstance(parts, str)
    ]
    splits = _splits(section)
    for part in section.table.signature.parts:
        own = [(placement, parts[part]) for placement, parts in results if part in parts]
        first = own[0] if own else None
        labels = None if first is None else first[1].labels
        hidden = None if first is None or labels is None else _why_hidden(first[0], labels)
        yield (
            part,
            {
                "groups": {} if first is None else dict(first[1].groups),
                "n_items": splits.get(part, {}),
                "labels": None if labels is None or hidden else [list(labels.names), list(labels.n_right)],
                "why_no_labels": hidden,
                "are_same": labels is not None and labels.are_same,
                "results": {
                    result_id(placement.row.entry): _result(measured.metrics, by_chance, one, has_labels=not hidden)
                    | _missing(placement, part)
                    for placement, one in own
                },
            },
        )


def _splits(section: TableView) -> dict[str, dict[str, JsonValue]]:
    """Return the number of items of each split, by part."""
    found: dict[str, dict[str, JsonValue]] = {}
    for one in section.table.rows[0].entry.coverage:
        found.setdefault(one.part, {})[one.split] = one.counts.items
    return found


def _missing(placement: Placement, part: str) -> dict[str, JsonValue]:
    """Return the number of items without a reading, of each split of a part that has some."""
    coverage = placement.row.entry.coverage
    lacking = {one.split: one.counts.items - one.counts.scored for one in coverage if one.part == part}
    return {"n_missing": {split: n for split, n in lacking.items() if n}}


def _why_hidden(placement: Placement, labels: Labels) -> str | None:
    """Return why the labels of a part must not be shown; None if they may be."""
    withheld = placement.answers.withheld
    if withheld is not None and not labels.are_same:
        return f"each item brings its own labels, which are texts of the dataset: {withheld}"
    return None


def _result(
    metrics: Sequence[str], by_chance: Mapping[str, str], part: PartOfResult, *, has_labels: bool
) -> dict[str, JsonValue]:
    values: list[JsonValue] = []
    for name in metrics:
        floor = part.values[by_chance[name]].value if name in by_chance else None
        values.append([*_rounded(part.values[name]), _round(floor)])
    found: dict[str, JsonValue] = {"values": values}
    labels = part.labels
    if labels is not None and has_labels:
        found["shares"] = [_round(share) for share in labels.shares]
        found["priors"] = [_round(prior) for prior in labels.priors]
        found["why_none"] = [labels.why_no_share, labels.why_no_prior]
    return found


def _rounded(value: PartValue) -> list[JsonValue]:
    return [*(_round(number) for number in (value.value, value.low, value.high)), value.reason]


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)


def part_texts(section: TableView, local: BuiltDataset | None, memory: Memory) -> PartTexts:
    """Return the text of each part of a suite.

    Args:
        section: A table of results on the suite.
        local: Its dataset; None if it is not on this machine.
        memory: The memory of this machine.

    Raises:
        DataError: the dataset is damaged.
    """
    task = load_task(section.table.signature.task)
    if not task.reports_parts:
        return PartTexts({}, None)
    if local is None or local.folder is None:
        return PartTexts({}, "the dataset is not on the machine that built the site")
    manifest, folder = local.manifest, local.folder
    if not manifest.redistributable or manifest.publish_refusal is not None:
        # What follows a semicolon is advice for the owner of the dataset folder.
        refusal = (manifest.publish_refusal or "").partition(";")[0]
        return PartTexts({}, refusal or f"the licence of the dataset, {manifest.licence}, forbids showing its texts")
    # All items share the text, so that it is read where the fewest of them are.
    smallest: dict[str, SplitEntry] = {}
    for entry in sorted(manifest.splits, key=lambda one: one.n_items):
        if entry.config in section.table.signature.parts and entry.n_items:
            smallest.setdefault(entry.config, entry)
    return PartTexts({part: _text(folder, entry, task, memory) for part, entry in smallest.items()}, None)


def _text(folder: Path, entry: SplitEntry, task: Task, memory: Memory) -> str:
    parts: dict[str, JsonValue] = {"content": entry.content_sha256, "shape": entry.item_shape}
    stored = memory.get(_KIND, parts)
    if not isinstance(stored, str):
        stored = task.part_text(read_split(folder, entry)[0])
        memory.put(_KIND, parts, stored)
    return stored
