"""Prepares the comparison of two models: a verdict over all headline measures, and each metric by group.

Verdicts are computed here for each pair. The values of a table by group are drawn alike for all its results, so that
the page gives the difference of any two of them an interval, without a file for each pair.
"""

from __future__ import annotations

import base64
import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from biasboard.ground.memory import Memory, machine_memory
from biasboard.ground.progress import Report, silent
from biasboard.ground.strict_json import JsonValue
from evaluators.runs.measure.measuring import metric_definitions
from evaluators.runs.measure.stored_results import measurement_of
from evaluators.statistics.jackknife import Deviations, draws, student
from leaderboard.benchmark_pages import load_pages
from leaderboard.pages.choice_keys import in_order, model_choices, model_key, result_id, table_id, table_names
from leaderboard.pages.exports import json_text
from leaderboard.pages.model_views import ModelView
from leaderboard.pages.tables import IndexView, Section
from leaderboard.ranking.boards import Board
from leaderboard.ranking.verdicts import Measure, Verdicts, verdicts
from leaderboard.verify.entries import Entry
from leaderboard.verify.stored_entries import packed_deviations, unpacked_deviations
from schemas.folders.run_folder import verified_parts

FOLDER = "files/compare"
N_DRAWS = 200
"""Number of draws that pages get; the standard deviation of a difference is then known to about 5 %."""
_MOST_METRICS = 4
_MOST_SLICES = 75
_KIND = "compare"
_LEVELS = 127
_DIGITS = 6
_NORMAL_95 = 1.959964


def compare_files(
    board: Board,
    models: Sequence[ModelView],
    sections: Sequence[Section],
    indices: Sequence[IndexView],
    report: Report = silent,
) -> dict[str, str]:
    """Return the files of the comparison, by path relative to the root of the site.

    ``models.json`` lists the models, the headline measures with everybody's values, and the tables with at least two
    models. ``pairs/MODEL.json`` has the verdicts on a model and each one that follows it in that list. Each result has
    a file with its values on all items and on each slice, and 200 draws of its deviation from the true value, as
    integers of 8 bits: 127 is the slice's ``scale``. 1.96 of their standard deviations are half an interval.

    Args:
        board: All tables.
        models: All models with their results.
        sections: The tables with their addresses.
        indices: The tables of the indices with their addresses.
        report: Callback for progress.
    """
    memory = machine_memory()
    placements = [one for model in models for one in model.placements if not one.row.entry.is_baseline]
    n_models = Counter(id(placement.section) for placement in placements)
    ordered = in_order(board, [section for section in sections if n_models[id(section)] > 1])
    order = {id(section): number for number, section in enumerate(ordered)}
    shared = [one for one in placements if id(one.section) in order and one.row.entry.folder is not None]
    shared.sort(key=lambda placement: order[id(placement.section)])
    names = table_names(ordered)
    files: dict[str, str] = {}
    tables: dict[str, dict[str, JsonValue]] = {}
    results: dict[str, list[JsonValue]] = {}
    deviations: dict[int, Mapping[str, Deviations]] = {}
    for number, placement in enumerate(shared):
        report("writing comparisons", number, len(shared))
        entry, table, name = placement.row.entry, table_id(placement.row.entry), result_id(placement.row.entry)
        measured = measured_of(entry, _metrics(placement.section), memory)
        deviations[id(entry)] = measured.deviations
        tables.setdefault(table, _about(placement.section, names[placement.section.anchor]))
        files[f"{FOLDER}/{table}/{name}.json"] = json_text(measured.slices)
        results.setdefault(table, []).append({"id": name, "model": model_key(entry.result.model.identity_sha256)})

    def deviations_of(entry: Entry, metric: str) -> Deviations | None:
        return deviations.get(id(entry), {}).get(metric) or entry.deviations.get(metric)

    found = verdicts(board, deviations_of)
    addresses = {id(section.table): f"{section.page}#{section.anchor}" for section in sections}
    addresses |= {id(index.table): f"{index.page}#{index.anchor}" for index in indices}
    listed: dict[str, JsonValue] = {
        "n_draws": N_DRAWS,
        "models": _listed(models),
        "measures": [_measure(measure, addresses[id(measure.column.table)]) for measure in found.measures],
        "tables": [{"id": table, "results": results[table], **about} for table, about in tables.items()],
    }
    files[f"{FOLDER}/models.json"] = json_text(listed)
    return files | _pairs(found)


def _listed(models: Sequence[ModelView]) -> JsonValue:
    """Return the models to choose from, each with the benchmarks that it has results in."""
    benchmarks: dict[str, dict[str, None]] = {}
    for placement in (placement for model in models for placement in model.placements):
        key = model_key(placement.row.entry.result.model.identity_sha256)
        benchmarks.setdefault(key, {})[placement.section.pages.heading] = None
    return [{**one._asdict(), "benchmarks": list(benchmarks[one.key])} for one in model_choices(models)]


def _measure(measure: Measure, address: str) -> JsonValue:
    headline, scope = measure.column.headline, measure.profile.scope
    values = {
        model_key(identity): cell.metric
        for identity, cell in measure.column.cells.items()
        if cell.metric is not None and cell.metric.value is not None
    }
    first = next(iter(values.values()), None)
    return {
        "benchmark": load_pages(measure.profile.benchmark).heading,
        "label": headline.label,
        "sentence": headline.sentence,
        "page": address,
        "conditions": f"{scope.dataset} {scope.dataset_version}, {scope.protocol}",
        "is_signed": first is not None and first.minimum < 0,
        "ideal": None if first is None else first.ideal,
        "useless": [model_key(identity) for identity in sorted(measure.profile.below)],
        "values": {key: _rounded(metric.value or 0.0) for key, metric in values.items()},
    }


def _pairs(found: Verdicts) -> dict[str, str]:
    pairs: dict[str, dict[str, JsonValue]] = {}
    for (first, second), of_pair in found.pairs.items():
        pairs.setdefault(model_key(first), {})[model_key(second)] = [
            [
                *(one.measure, _rounded(one.lead)),
                *((None, None) if one.interval is None else map(_rounded, one.interval)),
                one.outcome,
            ]
            for one in of_pair
        ]
    return {f"{FOLDER}/pairs/{key}.json": json_text(dict(of_model)) for key, of_model in pairs.items()}


def _about(section: Section, name: str) -> dict[str, JsonValue]:
    described = {one.name: one for one in metric_definitions(section.table.signature.task)}
    return {
        "name": name,
        "page": f"{section.page}#{section.anchor}",
        "group_names": dict(section.pages.group_names),
        "metrics": [
            {
                "label": section.pages.label(name),
                "text": described[name].description,
                "is_signed": described[name].minimum < 0,
            }
            for name in _metrics(section)
        ],
    }


def _metrics(section: Section) -> list[str]:
    """Return the metrics that are compared by group: the headline measures first, then the table's first columns."""
    columns = [column.metric for column in section.columns if not column.group]
    headlines = [one.name for one in section.pages.headlines if one.name in columns]
    return list(dict.fromkeys([*headlines, *columns]))[:_MOST_METRICS]


class Measured(NamedTuple):
    """A result's values by slice with draws, and the exact deviations of those on all items."""

    slices: JsonValue
    deviations: Mapping[str, Deviations]


def measured_of(entry: Entry, names: Sequence[str], memory: Memory) -> Measured:
    """Measure a result for comparisons, unless this machine has done so before.

    Args:
        entry: The result, whose records must be in its folder.
        names: Metrics to measure.
        memory: Memory of this machine.
    """
    result = entry.result
    parts: dict[str, JsonValue] = {
        "records": result.records.sha256,
        "scores": None if result.scores is None else result.scores.sha256,
        "sums": None if result.withheld is None else result.withheld.sums.sha256,
        "task": result.signature.task,
        "metrics": list(names),
    }
    stored = cast(Any, memory.get(_KIND, parts))
    if stored is None:
        assert entry.folder is not None
        measurement = measurement_of(entry.folder, result, verified_parts(entry.folder, result))
        # Combinations of groups, such as who is called what, would drown the groups themselves.
        simple = ((one for one in measurement.sliced([name]) if len(one.group) <= 1) for name in names)
        slices = [one for of_metric in simple for one in itertools.islice(of_metric, _MOST_SLICES)]
        whole = {one.name: one.deviations for one in slices if not one.group}
        stored = {
            "slices": _drawn([(names.index(one.name), one.group, one.value, one.deviations) for one in slices]),
            "deviations": {name: packed_deviations(of) for name, of in whole.items()},
        }
        memory.put(_KIND, parts, stored)
    deviations = stored["deviations"].items()
    return Measured(stored["slices"], {name: unpacked_deviations(of) for name, of in deviations})


def _drawn(slices: Sequence[tuple[int, Mapping[str, str], float, Deviations]]) -> JsonValue:
    # Intervals are by Student's t, and pages multiply by the quantile of the normal distribution.
    shares = [deviations * (student(deviations.n_effective) / _NORMAL_95) for *_, deviations in slices]
    drawn = draws(shares, N_DRAWS) if shares else np.zeros((0, N_DRAWS))
    scales = np.abs(drawn).max(axis=1, initial=0.0)
    numbers = np.rint(drawn / np.where(scales > 0, scales, 1.0)[:, None] * _LEVELS).astype(np.int8)
    rows: list[JsonValue] = []
    for (metric, group, value, _), scale in zip(slices, scales.tolist(), strict=True):
        ((key, of_group),) = group.items() or (("", ""),)
        rows.append([metric, key, of_group, _rounded(value), float(f"{scale:.4g}")])
    return {"slices": rows, "draws": base64.b64encode(numbers.tobytes()).decode()}


def _rounded(value: float) -> float:
    return round(value, _DIGITS)
