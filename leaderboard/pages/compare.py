"""Prepares the comparison of models, and names what readers choose in the addresses of pages.

Verdicts are those of the tables. The values of a table by group are drawn alike for all its results, so that the page
gives the difference of any two of them an interval, without a file for each pair.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import cast
from urllib.parse import urlencode

import numpy as np

from biasboard.ground.memory import Memory, machine_memory
from biasboard.ground.progress import Report, silent
from biasboard.ground.strict_json import JsonValue
from evaluators.runs.measure.measuring import metric_definitions
from evaluators.runs.measure.stored_results import measurement_of
from evaluators.statistics.jackknife import Deviations, draws, student
from leaderboard.model_facts import display_name
from leaderboard.pages.markup import anchor_of, plain, result_anchor, table_anchor
from leaderboard.pages.model_views import ModelView, Placement
from leaderboard.pages.tables import TableView
from leaderboard.ranking.boards import Board
from leaderboard.ranking.frames import json_text
from leaderboard.ranking.profiles import Profile, ProfileColumn, profiles_of, tables_of
from leaderboard.ranking.rows import Scope
from leaderboard.verify.entries import Entry, adapters_of, label_of
from leaderboard.verify.intake import contents_of
from schemas.folders.run_folder import verified_parts

FOLDER = "files/compare"
N_DRAWS = 200
"""Number of draws that pages get; the standard deviation of a difference is then known to about 5 %."""
_MOST_METRICS = 4
_MOST_SLICES = 75
_KIND = "slices to compare"
_LEVELS = 127
_DIGITS = 6
_NORMAL_95 = 1.959964


def compare_files(
    board: Board,
    models: Sequence[ModelView],
    sections: Sequence[TableView],
    indices: Sequence[TableView],
    report: Report = silent,
) -> dict[str, str]:
    """Return the files of the comparison, by path relative to the root of the site.

    ``models.json`` lists the models, the headline measures with everybody's values, and the tables with at least two
    models. ``pairs/MODEL.json`` has the comparisons of a model with each one that follows it by name. Each result has
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
    placements, names = placed_in_order(board, models, sections, least=2)
    shared = [placement for placement in placements if placement.row.entry.folder is not None]
    files: dict[str, str] = {}
    tables: dict[str, dict[str, JsonValue]] = {}
    results: dict[str, list[JsonValue]] = {}
    for number, placement in enumerate(shared):
        report("writing comparisons", number, len(shared))
        entry, table, name = placement.row.entry, table_id(placement.row.entry), result_id(placement.row.entry)
        tables.setdefault(table, _about(placement.section, names[placement.section.anchor]))
        files[f"{FOLDER}/{table}/{name}.json"] = json_text(_slices(entry, _metrics(placement.section), memory))
        results.setdefault(table, []).append({"id": name, "model": model_key(entry.result.model.identity_sha256)})

    profiles = [profile for benchmark in board.benchmarks for profile in profiles_of(board, benchmark)]
    measures = [(profile, column) for profile in profiles for column in profile.columns]
    addresses = {view.anchor: f"{view.page}#{view.anchor}" for view in (*sections, *indices)}
    benchmarks: dict[str, dict[str, None]] = {}
    for placement in (placement for model in models for placement in model.placements):
        key = model_key(placement.row.entry.result.model.identity_sha256)
        benchmarks.setdefault(key, {})[placement.section.pages.heading] = None
    choices = model_choices(models)
    listed: dict[str, JsonValue] = {
        "n_draws": N_DRAWS,
        "models": [{**one, "benchmarks": list(benchmarks[one["key"]])} for one in choices],
        "measures": [_about_measure(profile, one, addresses[anchor_of(one.table)]) for profile, one in measures],
        "tables": [{"id": table, "results": results[table], **about} for table, about in tables.items()],
    }
    files[f"{FOLDER}/models.json"] = json_text(listed)
    # A model that nothing is compared with has a file, too, since pages ask for it.
    of_nobody = {f"{FOLDER}/pairs/{one['key']}.json": json_text({}) for one in choices}
    return files | of_nobody | _pairs(measures)


def _about_measure(profile: Profile, column: ProfileColumn, address: str) -> JsonValue:
    headline, scope = column.headline, profile.scope
    values = {model_key(identity): metric for identity, metric in column.metrics.items() if metric.value is not None}
    first = next(iter(values.values()), None)
    return {
        "benchmark": profile.title,
        "label": headline.label,
        "sentence": headline.sentence,
        "page": address,
        "conditions": f"{scope.dataset} {scope.dataset_version}, {scope.protocol}",
        "is_signed": first is not None and first.minimum < 0,
        "ideal": None if first is None else first.ideal,
        "useless": [model_key(identity) for identity in sorted(profile.below)],
        "values": {key: _rounded(metric.value or 0.0) for key, metric in values.items()},
    }


def _pairs(measures: Sequence[tuple[Profile, ProfileColumn]]) -> dict[str, str]:
    """Return the comparisons of each model.

    Of several conditions of a benchmark, those count that its page shows first among those that both models share.
    """
    pairs: dict[str, dict[str, list[JsonValue]]] = {}
    scopes: dict[tuple[str, str, str], Scope] = {}
    for place, (profile, column) in enumerate(measures):
        scope = profile.scope
        for pair in column.pairs:
            if scopes.setdefault((scope.benchmark, pair.first, pair.second), scope) != scope:
                continue
            others = (pair.low, pair.high, pair.lead_at_worst, pair.lead_at_best, pair.p_adjusted)
            pairs.setdefault(model_key(pair.first), {}).setdefault(model_key(pair.second), []).append(
                [place, _rounded(pair.lead), *(None if one is None else _rounded(one) for one in others), pair.outcome]
            )
    return {f"{FOLDER}/pairs/{key}.json": json_text(cast(JsonValue, of_model)) for key, of_model in pairs.items()}


def _about(section: TableView, name: str) -> dict[str, JsonValue]:
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


def _metrics(section: TableView) -> list[str]:
    """Return the metrics that are compared by group: the headline measures first, then the table's first columns."""
    columns = [column.metric for column in section.columns if not column.group]
    headlines = [one.name for one in section.pages.headlines if one.name in columns]
    return list(dict.fromkeys([*headlines, *columns]))[:_MOST_METRICS]


def _slices(entry: Entry, names: Sequence[str], memory: Memory) -> JsonValue:
    """Return the values of a result by slice with draws, measured unless this machine has done so before."""
    result = entry.result
    parts = contents_of(result) | {"metrics": list(names)}
    stored = memory.get(_KIND, parts)
    if stored is None:
        assert entry.folder is not None
        measurement = measurement_of(entry.folder, result, verified_parts(entry.folder, result))
        # Combinations of groups, such as who is called what, would drown the groups themselves.
        simple = ((one for one in measurement.sliced([name]) if len(one.group) <= 1) for name in names)
        slices = [one for of_metric in simple for one in itertools.islice(of_metric, _MOST_SLICES)]
        stored = _drawn([(names.index(one.name), one.group, one.value, one.deviations) for one in slices])
        memory.put(_KIND, parts, stored)
    return stored


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


_N_KEY = 12
_N_SHOWN = 8
"""Number of characters of a revision by which readers tell two of them apart."""


def table_id(entry: Entry) -> str:
    """Return the name of the table of a result, which is the same for all results on the same items."""
    result = entry.result
    # Results of one table are about the same items; should they not be, they are kept apart here.
    anchor = table_anchor(result.signature, result.signature_sha256)
    return f"{plain(result.signature.benchmark)}-{anchor}-{entry.items_sha256[:6]}"


def result_id(entry: Entry) -> str:
    """Return the name of a result."""
    return hashlib.sha256(f"{result_anchor(entry.result)}-{entry.answers_sha256}".encode()).hexdigest()[:_N_KEY]


def model_key(identity_sha256: str) -> str:
    """Return the name of a model in one revision and precision, by its identity."""
    return identity_sha256[:_N_KEY]


def model_choices(models: Sequence[ModelView]) -> list[dict[str, str]]:
    """Return key, id and name of all language models, by name.

    A model in one revision and precision is one; where an id has several, names say what tells them apart.
    """
    asked = {
        placement.row.entry.result.model.identity_sha256: placement.row.entry.result.model
        for model in models
        for placement in model.placements
        if not placement.row.entry.is_baseline
    }
    names = {}
    for identity, model in asked.items():
        name, revision = display_name(model.id), (model.revision or "no revision").removeprefix("sha256:")[:_N_SHOWN]
        detail = ", ".join(filter(None, (revision, model.precision, adapters_of(model))))
        names[identity] = (name, f"{name} ({detail})", f"{name} ({label_of(model)})")
    chosen = _distinct(names)
    choices = [
        {"key": model_key(identity), "id": model.id, "name": chosen[identity]} for identity, model in asked.items()
    ]
    return sorted(choices, key=lambda choice: (choice["name"].casefold(), choice["key"]))


def _distinct(names: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the first name of each key that no other key needs too, or else its last name; all have as many names."""
    chosen: dict[str, str] = {}
    for level in zip(*names.values(), strict=True):
        left = {key: name for key, name in zip(names, level, strict=True) if key not in chosen}
        taken = Counter(left.values())
        chosen |= {key: name for key, name in left.items() if taken[name] == 1}
    return {key: chosen.get(key, of_key[-1]) for key, of_key in names.items()}


def in_order(board: Board, sections: Sequence[TableView]) -> list[TableView]:
    """Return tables in the order in which the pages of their benchmarks show them."""
    shown = itertools.chain.from_iterable(tables_of(board, benchmark) for benchmark in board.benchmarks)
    order = {anchor_of(table): number for number, table in enumerate(shown)}
    return sorted(sections, key=lambda section: order[section.anchor])


def table_names(sections: Sequence[TableView]) -> dict[str, str]:
    """Return a name of each table for readers who choose among them, by its anchor.

    It is the title, and says more only where two tables would have the same name.
    """
    names = {}
    for section in sections:
        signature = section.table.signature
        version = f"{section.title}, {signature.dataset} {signature.dataset_version}"
        names[section.anchor] = (section.title, version, f"{version}, {signature.prompt}", section.name)
    return _distinct(names)


def placed_in_order(
    board: Board, models: Sequence[ModelView], sections: Sequence[TableView], least: int = 1
) -> tuple[list[Placement], dict[str, str]]:
    """Return the results of language models in the order of their tables, and names of these for readers, by anchor.

    Args:
        board: All tables.
        models: All models with their results.
        sections: The tables with their addresses.
        least: Number of language models from which a table counts.
    """
    placements = [one for model in models for one in model.placements if not one.row.entry.is_baseline]
    n_models = Counter(placement.section.anchor for placement in placements)
    shown = in_order(board, [section for section in sections if n_models[section.anchor] >= least])
    order = {section.anchor: number for number, section in enumerate(shown)}
    kept = [placement for placement in placements if placement.section.anchor in order]
    return sorted(kept, key=lambda placement: order[placement.section.anchor]), table_names(shown)


def answers_link(entry: Entry, group: Mapping[str, str] | None = None) -> str:
    """Return the address of the answers behind a value, relative to the root of the site.

    Args:
        entry: Result of the value.
        group: Slice of the items; None for all items, of which the page shows the worst group first.
    """
    chosen = {f"group.{key}": value for key, value in (group or {}).items()}
    model = model_key(entry.result.model.identity_sha256)
    return f"answers.html#{urlencode({'table': table_id(entry), 'model': model} | chosen)}"
