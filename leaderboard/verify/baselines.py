"""Computes the rows of baselines on the items of verified results, so that nobody has to run a baseline.

A baseline is a rule: what it gets on some items follows from them and from the requests, whichever model's records hold
these. One pass over its answers gives both its row and the value with which the gate compares models.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from biasboard.ground import strict_json
from biasboard.ground.memory import Memory
from biasboard.ground.strict_json import JsonValue
from evaluators.backend import open_backend
from evaluators.backend_options import BackendOptions
from evaluators.baseline import Baseline
from evaluators.benchmark import load_benchmark
from evaluators.metric import NO_INPUTS, MetricInputs
from evaluators.runs.measure.baseline_gate import BaselineAnswers, GateCheck, Reference, applying_gate
from evaluators.runs.measure.measuring import Measurement, environment
from evaluators.runs.measure.stored_results import has_known_requests
from evaluators.runs.plan.plan import normalisation_of, run_command, run_folder
from evaluators.scorer import TextScorer, quick_scorers
from evaluators.task import ReadsScores, Task, load_task, prompt_of
from evaluators.text_scores import TextScores
from leaderboard.verify.entries import Entry, as_json, entry_from, measured
from leaderboard.verify.intake import FAULTS, isolated
from leaderboard.verify.sketches import SketchMaker
from schemas.documents.base import as_row, from_values
from schemas.documents.result import Counts, Usage, metric_key
from schemas.documents.run_files import text_sha256
from schemas.files import contract
from schemas.files.record_columns import RecordColumns, Tally, answers_sha256, joined_sha256
from schemas.folders.run_folder import StoredParts, verified_parts

_KIND = "rows of baselines"
_KNOWN: dict[str, JsonValue] = {}
"""Rows computed in this process, in the form of the memory, by the hash of what they depend on."""


def can_be_answered(entry: Entry) -> bool:
    """Return True if baselines would get the same requests in a run on the dataset as the records of a result hold."""
    result, signature = entry.result, entry.result.signature
    # The answer key of such a result has compared its items and requests with those of the dataset, be they few or all.
    is_as_asked = entry.match.extent != "unknown" and has_known_requests(signature)
    has_texts = result.withheld is None and not entry.examples.hides_prompts
    # Behind a chat template an option lacks the byte of its space.
    has_all_bytes = signature.normalisation != "byte_mean" or result.model.chat_template_sha256 is None
    return not entry.is_baseline and is_as_asked and has_texts and has_all_bytes


def gate_references(
    entry: Entry, parts: Iterable[RecordColumns], check: GateCheck | None, memory: Memory
) -> tuple[Reference, ...]:
    """Return the values of all baselines in the metric of a gate, and remember their rows.

    Args:
        entry: The result. No rows are computed for one on whose items a run of a baseline could differ.
        parts: Its records, which can be read several times.
        check: Its gate; None if none applies, so that there are only rows to remember.
        memory: The memory of this machine.
    """
    rows = _rows(entry, parts, check, memory) if can_be_answered(entry) else []
    if check is None:
        return ()
    if not rows or rows[0]["reference"] is None:
        return check.references(memory)
    return tuple(Reference.from_json(row["reference"]) for row in rows)


def with_baselines(entries: Sequence[Entry], memory: Memory) -> tuple[Entry, ...]:
    """Return the results, followed by the baselines that the board computes on the items of the models' results.

    A baseline of which there is a result on the same items is not computed: its records can be opened.

    Args:
        entries: All results.
        memory: The memory of this machine, which knows the rows on the items of results that were verified before.
    """
    # Verification has just stored its rows, also if everything was to be computed again.
    memory = Memory(memory.folder)
    sources: dict[str, Entry] = {}
    for entry in sorted(entries, key=lambda entry: (entry.origin != "accepted", entry.place)):
        is_withdrawn = entry.acceptance is not None and entry.acceptance.decision == "withdrawn"
        if can_be_answered(entry) and not is_withdrawn:
            sources.setdefault(entry.result.signature_sha256, entry)
    unknown = [entry for entry in sources.values() if _known(entry, memory) is None]
    n_workers = max(1, min(os.cpu_count() or 1, len(unknown)))
    made = isolated(partial(_made, memory=memory), unknown, n_workers=n_workers) if unknown else ()
    for entry, rows in zip(unknown, made, strict=True):
        _KNOWN[_key(entry)] = cast(JsonValue, rows if isinstance(rows, list) else [])
    have = {(entry.result.signature_sha256, entry.result.model.identity_sha256) for entry in entries}
    computed = (_entry(row, entry) for entry in sources.values() for row in _known(entry, memory) or ())
    return (
        *entries,
        *(one for one in computed if (one.result.signature_sha256, one.result.model.identity_sha256) not in have),
    )


def _depends_on(entry: Entry) -> dict[str, JsonValue]:
    """Return everything that the rows depend on besides the code: the requests follow from the items and the prompt."""
    task = load_task(entry.result.signature.task)
    return {
        "signature": entry.result.signature_sha256,
        "items": entry.items_sha256,
        "scorers": [scorer.identity.label for scorer in _scorers_of(task)],
    }


def _key(entry: Entry) -> str:
    return strict_json.sha256(_depends_on(entry))


def _known(entry: Entry, memory: Memory) -> list[dict[str, Any]] | None:
    key = _key(entry)
    if key not in _KNOWN and isinstance(stored := memory.get(_KIND, _depends_on(entry)), list):
        _KNOWN[key] = stored
    return cast("list[dict[str, Any]] | None", _KNOWN.get(key))


def _rows(
    entry: Entry, parts: Iterable[RecordColumns], check: GateCheck | None, memory: Memory
) -> list[dict[str, Any]]:
    """Return the rows on the items of a result, in the form of the memory."""
    if (known := _known(entry, memory)) is not None:
        return known
    signature = entry.result.signature
    task = load_task(signature.task)
    answers = BaselineAnswers(task, prompt_of(task, signature.prompt), signature.normalisation, parts)
    listed = answers.answering(load_benchmark(signature.benchmark).baselines)
    rows = [_row(baseline, answers, entry, check) for baseline in listed]
    _KNOWN[_key(entry)] = cast(JsonValue, rows)
    memory.put(_KIND, _depends_on(entry), cast(JsonValue, rows))
    return rows


def _made(entry: Entry, memory: Memory) -> list[dict[str, Any]]:
    """Return the same from the records in the folder of a result; nothing if they cannot be read any more."""
    assert entry.folder is not None, "a result that was verified has a folder"
    result = entry.result
    try:
        parts = StoredParts(entry.folder, result)
        for records in verified_parts(entry.folder, result):
            parts.keep(records)
        return _rows(entry, parts, applying_gate(result.signature, parts), memory)
    except FAULTS:
        return []


def _row(baseline: Baseline, answers: BaselineAnswers, entry: Entry, check: GateCheck | None) -> dict[str, Any]:
    """Return the row of a baseline, in the form of the memory."""
    signature, task = entry.result.signature, answers.task
    tally, hashes = Tally(), list[str]()

    def answered() -> Iterator[RecordColumns]:
        for records in answers.of(baseline):
            tally.add(records)
            hashes.append(answers_sha256(records))
            yield records

    parts, inputs = answered(), NO_INPUTS
    if isinstance(task, ReadsScores):
        records = RecordColumns.joined(parts)
        texts, scorers = task.texts(records), _scorers_of(task)
        identities = {scorer.identity.kind: scorer.identity for scorer in scorers}
        values = {
            scorer.identity.kind: {text_sha256(texts[index]): scores for index, scores in scorer.score(texts)}
            for scorer in scorers
        }
        parts, inputs = iter([records]), MetricInputs(TextScores(identities, values))
    measurement = Measurement.of(parts, signature.task, inputs, is_suite=bool(signature.parts))
    metrics, deviations, by_part = measured(measurement, signature)
    # Nothing else is taken from the model: other results on these items are given the same row.
    row = Entry(
        result=entry.result,
        origin=entry.origin,
        place=entry.place,
        metrics={metric_key(metric): metric for metric in metrics},
        n_recomputed=0,
        deviations=deviations,
        by_part=by_part,
        match=entry.match,
        items_sha256=entry.items_sha256,
        answers_sha256=joined_sha256(hashes),
        sketch=SketchMaker().sketch,  # Nobody asks whether a baseline copies a model.
        coverage=tally.coverage,
    )
    return {
        "baseline": baseline.name,
        "entry": as_json(row),
        "counts": contract.plain(as_row(tally.counts)),
        "reference": None if check is None else check.reference(baseline.name, measurement.source).as_json,
    }


def _scorers_of(task: Task) -> tuple[TextScorer, ...]:
    return quick_scorers(task.score_kinds) if isinstance(task, ReadsScores) else ()


def _entry(row: dict[str, Any], source: Entry) -> Entry:
    """Return a row as an entry, as a local run of the baseline would have it."""
    signature = source.result.signature
    backend = open_backend("baseline", row["baseline"], BackendOptions())
    by_default = normalisation_of(prompt_of(load_task(signature.task), signature.prompt), None)
    chosen = None if signature.normalisation == by_default else signature.normalisation
    result = replace(
        source.result,
        model=backend.model,
        command=run_command(signature, backend, task=signature.task, normalisation=chosen),
        counts=from_values(row["counts"], Counts),
        usage=Usage(
            n_requests=source.result.usage.n_requests,
            n_attempts=0,
            n_prompt_tokens=None,
            n_completion_tokens=None,
            seconds=None,
            cost_usd=None,
        ),
        environment=environment([]),
        scores=None,
        adapters=None,
        corrections=None,
    )
    place = run_folder(Path(), signature, backend.model).as_posix()
    entry = entry_from(row["entry"], result, "local", place, None)
    is_suite = bool(signature.parts)
    own = replace(result, metrics=tuple(entry.metrics.values()), coverage=entry.coverage if is_suite else ())
    return replace(entry, result=own, match=source.match)
