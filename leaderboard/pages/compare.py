"""Prepares the comparison of models: their metrics on all items and by group, with the resamples behind them.

All results of a table are resampled alike, so that a page can pair any two of them and give their difference an
interval, without a file for each pair.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence

import numpy as np

from biasboard.ground import strict_json
from biasboard.ground.columns import FloatArray
from biasboard.ground.memory import Memory, machine_memory
from biasboard.ground.progress import Report, silent
from biasboard.ground.strict_json import JsonValue
from evaluators.runs.measure.measuring import metric_definitions
from evaluators.runs.measure.stored_results import measurement_of
from leaderboard.pages.choice_keys import address, result_id, table_id
from leaderboard.pages.model_views import ModelView, Placement
from leaderboard.pages.sections import Section
from leaderboard.verify.entries import Entry
from schemas.folders.run_folder import read_parts

FOLDER = "files/compare"
N_RESAMPLES = 200
"""Number of resamples that pages get; the standard deviation of a difference is then known to about 5 %."""
_MOST_METRICS = 4
_MOST_SLICES = 300
_KIND = "compare"
_UNDEFINED = -32768
_LEVELS = 32767


def compare_files(models: Sequence[ModelView], report: Report = silent) -> dict[str, str]:
    """Return the files of the comparison, by path relative to the root of the site.

    ``tables.json`` lists the tables with at least two results, their metrics and their results. Each result has a file
    with its values on all items and on each slice, and the same values on 200 resamples, as integers of 16 bits over
    the range of the metric.

    Args:
        models: All models with their results.
        report: Callback for progress.
    """
    memory = machine_memory()
    found = [(placement, model) for model in models for placement in model.placements if _is_comparable(placement)]
    files: dict[str, str] = {}
    tables: dict[str, dict[str, JsonValue]] = {}
    results: dict[str, list[JsonValue]] = {}
    for number, (placement, model) in enumerate(found):
        report("writing comparisons", number, len(found))
        table, name = table_id(placement), result_id(placement)
        tables.setdefault(table, _about(placement.section))
        files[f"{FOLDER}/{table}/{name}.json"] = _compact(_values(placement.row.entry, placement.section, memory))
        page = f"{model.page}#{placement.anchor}"
        results.setdefault(table, []).append({"id": name, "model": model.id, "page": page})
    listed: list[JsonValue] = [{"id": table, "results": results[table], **about} for table, about in tables.items()]
    files[f"{FOLDER}/tables.json"] = _compact({"n_resamples": N_RESAMPLES, "tables": listed})
    return files


def compare_link(placement: Placement) -> str | None:
    """Return the address of the comparison with one result, relative to the root of the site; None if there is none."""
    return address("compare.html", placement) if _is_comparable(placement) else None


def _is_comparable(placement: Placement) -> bool:
    return len(placement.section.table.rows) > 1 and placement.row.entry.folder is not None


def _about(section: Section) -> dict[str, JsonValue]:
    described = {one.name: one for one in metric_definitions(section.table.signature.task)}
    return {
        "title": section.title,
        "benchmark": section.table.signature.benchmark,
        "page": f"{section.page}#{section.anchor}",
        "group_names": dict(section.pages.group_names),
        "metrics": [
            {
                "name": name,
                "label": section.pages.label(name),
                "text": described[name].description,
                "minimum": described[name].minimum,
                "maximum": described[name].maximum,
            }
            for name in _metrics(section)
        ],
    }


def _metrics(section: Section) -> list[str]:
    names = dict.fromkeys(column.metric for column in section.columns if not column.group)
    # Values are handed over as shares of their range, which some metrics do not have.
    bounded = {one.name for one in metric_definitions(section.table.signature.task) if one.maximum is not None}
    return [name for name in names if name in bounded][:_MOST_METRICS]


def _values(entry: Entry, section: Section, memory: Memory) -> JsonValue:
    """Return the values of a result on its slices and resamples; they follow from its records and scores."""
    result, names = entry.result, _metrics(section)
    parts: dict[str, JsonValue] = {
        "records": result.records.sha256,
        "scores": None if result.scores is None else result.scores.sha256,
        "sums": None if result.withheld is None else result.withheld.sums.sha256,
        "task": result.signature.task,
        "metrics": list(names),
    }
    known = memory.get(_KIND, parts)
    if known is not None:
        return known
    assert entry.folder is not None
    measurement = measurement_of(entry.folder, result, read_parts(entry.folder, result, recount=False))
    definitions = metric_definitions(result.signature.task)
    ranges = {one.name: (one.minimum, one.maximum) for one in definitions if one.maximum is not None}
    slices: list[JsonValue] = []
    coded: list[FloatArray] = []
    for one in measurement.sliced_resamples(names, N_RESAMPLES):
        if len(slices) == _MOST_SLICES:
            break
        ((key, value),) = one.group.items() or (("", ""),)
        slices.append([names.index(one.name), key, value, one.value])
        coded.append(_coded(one.resampled, *ranges[one.name]))
    numbers = np.array(coded, dtype="<i2").reshape(len(coded), N_RESAMPLES)
    made: JsonValue = {"slices": slices, "resamples": base64.b64encode(numbers.tobytes()).decode()}
    memory.put(_KIND, parts, made)
    return made


def _coded(values: FloatArray, minimum: float, maximum: float) -> FloatArray:
    """Return values as integers from -32,767 for the least value of a metric to 32,767; undefined ones are -32,768."""
    shares = (np.clip(values, minimum, maximum) - minimum) / (maximum - minimum)
    return np.where(np.isnan(values), _UNDEFINED, np.rint(shares * 2 * _LEVELS) - _LEVELS)


def _compact(value: JsonValue) -> str:
    return strict_json.canonical(value).decode()
