"""Prepares the comparison of models: their metrics on all items and by group, with draws of their deviations.

All results of a table are drawn alike, so that a page can pair any two of them and give their difference an interval,
without a file for each pair.
"""

from __future__ import annotations

import base64
import itertools
from collections.abc import Sequence

import numpy as np

from biasboard.ground import strict_json
from biasboard.ground.memory import Memory, machine_memory
from biasboard.ground.progress import Report, silent
from biasboard.ground.strict_json import JsonValue
from evaluators.runs.measure.measuring import metric_definitions
from evaluators.runs.measure.stored_results import measurement_of
from evaluators.statistics.jackknife import Deviations, draws, student
from leaderboard.pages.choice_keys import address, result_id, table_id
from leaderboard.pages.model_views import ModelView, Placement
from leaderboard.pages.sections import Section
from leaderboard.verify.entries import Entry
from schemas.folders.run_folder import verified_parts

FOLDER = "files/compare"
N_DRAWS = 200
"""Number of draws that pages get; the standard deviation of a difference is then known to about 5 %."""
_MOST_METRICS = 4
_MOST_SLICES = 300
_KIND = "compare"
_LEVELS = 32767
_NORMAL_95 = 1.959964


def compare_files(models: Sequence[ModelView], report: Report = silent) -> dict[str, str]:
    """Return the files of the comparison, by path relative to the root of the site.

    ``tables.json`` lists the tables with at least two results, their metrics and their results. Each result has a file
    with its values on all items and on each slice, and 200 draws of its deviation from the true value, as integers of
    16 bits: 32,767 is the range of the metric. 1.96 of their standard deviations are half an interval.

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
    files[f"{FOLDER}/tables.json"] = _compact({"n_draws": N_DRAWS, "tables": listed})
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
    """Return the values of a result on its slices with draws; they follow from its records and scores."""
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
    measurement = measurement_of(entry.folder, result, verified_parts(entry.folder, result))
    definitions = metric_definitions(result.signature.task)
    widths = {one.name: one.maximum - one.minimum for one in definitions if one.maximum is not None}
    slices: list[JsonValue] = []
    shares: list[Deviations] = []
    # Combinations of groups, such as who is called what, would drown the groups themselves.
    simple = (one for one in measurement.sliced(names) if len(one.group) <= 1)
    for one in itertools.islice(simple, _MOST_SLICES):
        ((key, value),) = one.group.items() or (("", ""),)
        slices.append([names.index(one.name), key, value, one.value])
        # Intervals are by Student's t, and pages multiply by the quantile of the normal distribution.
        shares.append(one.deviations * (student(one.deviations.n_clusters) / _NORMAL_95 / widths[one.name]))
    drawn = draws(shares, N_DRAWS) if shares else np.zeros((0, N_DRAWS))
    numbers = np.clip(np.rint(_LEVELS * drawn), -_LEVELS, _LEVELS).astype("<i2")
    made: JsonValue = {"slices": slices, "draws": base64.b64encode(numbers.tobytes()).decode()}
    memory.put(_KIND, parts, made)
    return made


def _compact(value: JsonValue) -> str:
    return strict_json.canonical(value).decode()
