"""Verifies one result: everything in it is checked, and every metric, score and correction is computed again."""

from __future__ import annotations

import itertools
import math
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from biasboard.ground.errors import DataError
from biasboard.ground.memory import Memory
from biasboard.ground.plugins import HINT
from evaluators.adapter_set import trained_items
from evaluators.metric import MetricInputs
from evaluators.runs.measure.baseline_gate import applying_gate
from evaluators.runs.measure.measuring import retired_names
from evaluators.runs.measure.stored_results import measurement_of, stored_references, sums_of
from evaluators.scorer import TextScorer, TextScores, quick_scorers, read_scores
from evaluators.statistics.jackknife import METHODS
from evaluators.statistics.option_scores import FirstTokenShares
from evaluators.statistics.unread_samples import UnsettledShares, settled
from evaluators.task import MeasuresParts, ReadsScores, load_task
from leaderboard.verify.baselines import gate_references
from leaderboard.verify.checks import brings_options, check_claims, check_records, check_training
from leaderboard.verify.entries import Entry, ExampleChoice, Root, measured
from leaderboard.verify.intake import read_untrusted
from leaderboard.verify.keys import KeyBook, KeyCheck
from leaderboard.verify.sketches import SketchMaker
from schemas.documents.result import (
    TOLERANCE,
    Interval,
    Metric,
    Result,
    is_close,
    metric_key,
    name_with_group,
    same_interval,
)
from schemas.documents.run_files import text_sha256
from schemas.files.record_columns import RecordColumns, Tally, answers_sha256, items_sha256, joined_sha256
from schemas.folders.run_folder import ADAPTERS, CORRECTIONS, RESCORE_TEXTS, StoredParts, read_corrections, read_parts

_MOST_UNKNOWN = 5_000
"""Maximum number of records of an untrusted result on a dataset without an answer key."""
_MOST_UNKNOWN_CELLS = 500_000
"""Maximum number of records times groups of such a result, since each metric is computed for each group."""


def verified_entry(path: Path, root: Root, memory: Memory, keys: KeyBook) -> Entry:
    """Read one result and verify it by recomputing its metrics.

    Raises:
        DataError: the result or its records are invalid, its records are not about the items of the dataset, or its
            metrics do not follow from its records.
    """
    folder, is_foreign = path.parent, root.origin == "accepted"
    result = read_untrusted(path)
    check_claims(path, result, is_foreign=is_foreign)
    signature, task = result.signature, load_task(result.signature.task)
    scores = read_scores(folder, result.scores)
    key_check = KeyCheck(str(folder / result.records.path), signature, keys.find(signature, memory))
    is_unknown = is_foreign and key_check.match.extent == "unknown"
    n_rows, groups = result.records.n_rows, set[tuple[str | None, str | None]]()
    if is_unknown and n_rows > _MOST_UNKNOWN:
        raise _too_many(path, f"{n_rows:,} records")
    trained = trained_items(folder, result)
    items: list[str] = []
    answers: list[str] = []
    parts = StoredParts(folder, result)
    rescored: tuple[str, ...] = ()
    sketch, tally, examples = SketchMaker(), Tally(), ExampleChoice(signature.task)
    shares, unsettled = FirstTokenShares(), UnsettledShares(task.unread_answers)

    def checked() -> Iterator[RecordColumns]:
        """Yield each part once it is checked, and keep what an entry says of it."""
        nonlocal rescored
        for records in read_parts(folder, result):
            if trained and len(records):
                check_training(folder / ADAPTERS, records, task, trained[records[0].config])
            check_records(folder / result.records.path, result, records)
            if is_unknown:
                _, names, values = records.columns["groups"].entries
                groups.update(zip(names.texts, values.texts, strict=True))
                if len(groups) * n_rows > _MOST_UNKNOWN_CELLS:
                    raise _too_many(path, f"{len(groups):,} groups in {n_rows:,} records")
            parts.keep(records)
            with_options = brings_options(signature)
            items.append(items_sha256(records, with_options=with_options))
            key_check.add(records, None if with_options else items[-1])
            answers.append(answers_sha256(records))
            for kept in (sketch, tally, examples, shares, unsettled):
                kept.add(records)
            if scores.scorers and isinstance(task, ReadsScores):
                rescored = scored_again(path, quick_scorers(), task.texts(records), scores)
            yield records

    measurement = firm = measurement_of(folder, result, checked(), scores)
    computed, deviations, by_part = measured(measurement, signature)
    for difference in differences(result.metrics, computed, retired_names(signature.task)):
        raise DataError(f"{path}: {difference}")
    if unsettled.may_turn and result.withheld is None:
        firm = measurement_of(folder, result, (settled(records, task.unread_answers) for records in parts), scores)
    for difference in _differing_corrections(folder, result, parts):
        raise DataError(f"{folder / CORRECTIONS}: {difference}; rescore the run")
    versions = {(metric.name, metric.version) for metric in computed}
    entry = Entry(
        result=result,
        origin=root.origin,
        place=root.place(path),
        metrics={metric_key(metric): metric for metric in computed},
        n_recomputed=sum((metric.name, metric.version) in versions for metric in result.metrics),
        deviations=deviations,
        by_part=by_part,
        match=key_check.match,
        items_sha256=joined_sha256(items),
        answers_sha256=joined_sha256(answers),
        sketch=sketch.sketch,
        first_token_share=shares.median,
        earlier=earlier_metrics(result.metrics, computed),
        coverage=tally.coverage,
        rescored=rescored,
        settled=firm.metrics() if firm is not measurement else (),
        unread_share=unsettled.mean(with_turned=firm is measurement),
        folder=folder,
        examples=examples.chosen,
    )
    check = applying_gate(signature, parts, firm.source, None if brings_options(signature) else entry.items_sha256)
    if check is None or result.withheld is None:
        references = gate_references(entry, parts, check, memory)
    else:
        crossing, rows = firm.source.crossing, sums_of(folder, result)
        references = stored_references(check.gate, rows, crossing, is_suite=bool(signature.parts))
    # Without a gate or without right answers, a model has no standing among the baselines.
    return entry if check is None else replace(entry, standing=check.standing(references))


def _too_many(path: Path, what: str) -> DataError:
    return DataError(f"{path}: {what} without an answer key are too many to check; add it: biasboard keys DATASET")


def scored_again(
    where: Path, scorers: Iterable[TextScorer], texts: Sequence[str], scores: TextScores, tolerance: float = TOLERANCE
) -> tuple[str, ...]:
    """Score texts again with those scorers that gave the stored scores, and return their labels.

    Raises:
        DataError: a stored score is missing, or differs by more than the tolerance.
    """
    used = [scorer for scorer in scorers if scores.label(scorer.identity.kind) == scorer.identity.label]
    for scorer in used:
        for index, values in scorer.score(texts):
            stored = scores.values[scorer.identity.kind].get(text_sha256(texts[index]), ())
            pairs = itertools.zip_longest(values, stored, fillvalue=math.inf)
            if any(abs(ours - theirs) > tolerance for ours, theirs in pairs):
                ours, theirs = (", ".join(f"{value:g}" for value in vector[:3]) for vector in (values, stored))
                raise DataError(
                    f"{where}: {scorer.identity.label} gives a text other scores than the stored ones: {ours}, not "
                    f"{theirs or 'none'}; {RESCORE_TEXTS}"
                )
    return tuple(scorer.identity.label for scorer in used)


def differences(
    stored: Iterable[Metric], computed: Iterable[Metric], retired: Container[str] = frozenset()
) -> Iterator[str]:
    """Yield a sentence for every difference between the stored metrics of a result and those computed from its records.

    Metrics of different versions cannot be compared and are skipped, and so are those of retired names. Metrics that
    the result lacks completely are skipped too. But if the result has a metric without one of its slices, that is a
    difference. Intervals by a method of earlier code are not compared, since boards show those computed here.

    Args:
        stored: The metrics of the result, under their present names.
        computed: Those that the records give.
        retired: Names that no metric has any more.
    """
    ours = {metric_key(metric): metric for metric in computed}
    theirs = {metric_key(metric): metric for metric in stored}
    are_current = {metric.interval.method for metric in theirs.values() if metric.interval is not None} <= METHODS
    current = {metric.name: metric.version for metric in ours.values()}
    for key, metric in theirs.items():
        name, same = name_with_group(metric.name, metric.group), ours.get(key)
        if same is None:
            # A newer version that the stored sums do not give is undefined, and has no slices. The label of a scorer
            # after the present version is no other version: its scores are missing.
            version = current.get(metric.name, metric.version)
            if metric.name not in retired and f"{metric.version}.".startswith(f"{version}."):
                yield f"metric {name} cannot be computed from the records; rescore the run; {HINT}"
            continue
        if metric.version != same.version:
            continue
        if not is_close(metric.value, same.value):
            yield f"metric {name} is {metric.value}, the records give {same.value}; rescore the run"
        for field in ("n", "n_excluded", "unit", "ideal", "minimum", "maximum"):
            if getattr(metric, field) != getattr(same, field):
                yield (
                    f"metric {name}: {field} is {getattr(metric, field)}, the records give {getattr(same, field)}; "
                    "rescore the run"
                )
        if are_current and not same_interval(metric.interval, same.interval):
            yield (
                f"metric {name}: interval is {_spelt(metric.interval)}, the records give {_spelt(same.interval)}; "
                "rescore the run"
            )
    versions = {metric.name: metric.version for metric in theirs.values()}
    for key, metric in ours.items():
        if key not in theirs and versions.get(metric.name) == metric.version:
            name = name_with_group(metric.name, metric.group)
            yield f"metric {name} follows from the records but is not in the result; rescore the run"


def _spelt(interval: Interval | None) -> str:
    if interval is None:
        return "null"
    ends = f"[{interval.low}, {interval.high}]"
    return f"{ends} at level {interval.level} ({interval.method}, {interval.n_clusters} clusters)"


def earlier_metrics(stored: Iterable[Metric], computed: Iterable[Metric]) -> tuple[Metric, ...]:
    """Return the stored metrics of other versions than the computed ones, which stay visible beside them."""
    versions = {metric_key(metric): metric.version for metric in computed}
    return tuple(metric for metric in stored if versions.get(metric_key(metric)) != metric.version)


_SAME = 1e-3
"""Largest difference of the logarithms of two weights that count as equal: processors round differently, and this moves
a probability of .5 by .00025."""


def _differing_corrections(folder: Path, result: Result, parts: Iterable[RecordColumns]) -> Iterator[str]:
    """Fit the corrections of a result again from its records, and yield each difference from the stored ones.

    Metrics are computed with the stored corrections, so that weights chosen by hand would give a model any correction
    that it likes, and agree with its metrics.
    """
    document = read_corrections(folder, result)
    if document is None:
        return
    signature = result.signature
    inputs = MetricInputs(trained=trained_items(folder, result))
    task = load_task(signature.task)
    computed = task.fitted_corrections(parts, inputs) if isinstance(task, MeasuresParts) else ()
    stored, fitted = (
        {(correction.config, correction.calibration): correction for correction in corrections}
        for corrections in (document.corrections, computed)
    )
    for key in {**stored, **fitted}:
        name, theirs, ours = f"{key[1]} of config {key[0]}", stored.get(key), fitted.get(key)
        if theirs is None or ours is None:
            yield f"{name} cannot be fitted" if ours is None else f"{name} can be fitted and is not stored"
            continue
        for field in ("reason", "version", "labels", "n_items") if theirs.reason is None else ("reason",):
            if getattr(theirs, field) != getattr(ours, field):
                yield f"{name}: {field} is {getattr(theirs, field)}, the records give {getattr(ours, field)}"
        pairs = zip(theirs.weights, ours.weights, strict=False)
        distance = max((abs(math.log(weight) - math.log(other)) for weight, other in pairs), default=0.0)
        if distance > _SAME:
            yield f"a weight of {name} differs by the factor {math.exp(distance):.4g}"
