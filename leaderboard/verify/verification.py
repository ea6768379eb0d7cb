"""Verifies one result: its schema, records and readings, and every metric, which is recomputed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from biasboard.ground.errors import DataError
from biasboard.ground.memory import Memory
from biasboard.ground.plugins import HINT
from evaluators.adapter_set import trained_items
from evaluators.benchmark import Benchmark, load_benchmark
from evaluators.metric import MetricInputs
from evaluators.runs.measure.baseline_gate import GateCheck, Standing
from evaluators.runs.measure.measuring import Measurement
from evaluators.runs.measure.stored_results import measurement_of, stored_references
from evaluators.scorer import quick_scorers
from evaluators.statistics.jackknife import METHODS
from evaluators.task import load_task
from evaluators.text_scores import TextScores, read_scores
from leaderboard.verify.checks import TrainingCheck, brings_options, check_claims, check_requests
from leaderboard.verify.entries import Entry, ExampleChoice, Root
from leaderboard.verify.intake import MOST_RESULT_BYTES, check_own_file, check_tables
from leaderboard.verify.keys import KeyBook, KeyCheck
from leaderboard.verify.sketches import SketchMaker
from schemas.documents.record import Record
from schemas.documents.result import (
    TOLERANCE,
    Interval,
    Metric,
    Result,
    Signature,
    is_close,
    key_of,
    metric_key,
    name_with_group,
    same_interval,
)
from schemas.documents.run_files import FittedCorrection, text_sha256
from schemas.files.record_columns import RecordColumns, Tally
from schemas.files.record_hashes import answers_sha256, items_sha256, joined_sha256
from schemas.folders.run_folder import (
    CORRECTIONS,
    RESCORE_TEXTS,
    StoredParts,
    read_corrections,
    read_parts,
    read_result,
    read_sums,
)

_MOST_UNKNOWN = 5_000
"""Maximum number of records of an untrusted result on a dataset without an answer key."""
_MOST_UNKNOWN_CELLS = 500_000
"""Maximum number of records times groups of such a result, since each metric is computed for each group."""
_MOST_LOCKED_GROUPS = 500
"""Maximum number of groups of a result on a dataset with a secret key, of which only the number of items is known."""


def verified_entry(path: Path, root: Root, memory: Memory, keys: KeyBook) -> Entry:
    """Read one result and verify it by recomputing its metrics.

    Args:
        path: Path of the ``result.json``.
        root: Folder in which it was found.
        memory: Memory that may know the values of the baselines.
        keys: The answer keys of the datasets that the board knows.

    Raises:
        DataError: the result or its records are invalid, its records are not about the items of the dataset, or its
            metrics do not follow from its records.
    """
    check_own_file(path, MOST_RESULT_BYTES)
    result = read_result(path.parent)
    check_tables(path, result)
    check_claims(path, result, is_foreign=root.origin == "accepted")
    task = result.signature.task
    scores = read_scores(path.parent, result.scores)
    key_check = KeyCheck(str(path.parent / result.records.path), result.signature, keys.find(result.signature, memory))
    checked = _checked_parts(path, result)
    if key_check.match.extent == "unknown" and root.origin == "accepted":
        if result.records.n_rows > max(_MOST_UNKNOWN, key_check.n_listed):
            raise _too_many(path, f"{result.records.n_rows:,} records")
        most_cells = max(_MOST_UNKNOWN_CELLS, key_check.n_listed * _MOST_LOCKED_GROUPS)
        checked = _bounded(path, checked, result.records.n_rows, most_cells)
    facts = _PartFacts(path, result.signature, scores, key_check)
    measurement = measurement_of(path.parent, result, facts.listening(checked), scores)
    computed = measurement.metrics()
    for difference in differences(result.metrics, computed):
        raise DataError(f"{path}: {difference}")
    for difference in differing_corrections(path.parent, result):
        raise DataError(f"{path.parent / CORRECTIONS}: {difference}; rescore the run")
    metrics = {metric_key(metric): metric for metric in computed}
    benchmark = load_benchmark(result.signature.benchmark)
    primary = metrics.get(key_of(benchmark.primary_metric or "", {}))
    versions = {(metric.name, metric.version) for metric in computed}
    index_names = benchmark.index_metrics(task)
    primary_names = [primary.name] if primary is not None and primary.value is not None else []
    return Entry(
        result=result,
        origin=root.origin,
        place=root.place(path),
        metrics=metrics,
        n_recomputed=sum((metric.name, metric.version) in versions for metric in result.metrics),
        deviations=measurement.deviations([*primary_names, *index_names]),
        by_part=measurement.by_cluster([*benchmark.compared_over_sets]) if result.signature.parts else {},
        match=key_check.match,
        items_sha256=joined_sha256(facts.items),
        answers_sha256=joined_sha256(facts.answers),
        sketch=facts.sketch.sketch,
        earlier=earlier_metrics(result.metrics, computed),
        coverage=facts.tally.coverage,
        standing=_standing(benchmark, result, facts, measurement, memory),
        rescored=facts.rescored,
        folder=path.parent,
        examples=facts.examples.chosen,
    )


class _PartFacts:
    """Everything derived from the records of a result besides its metrics, in the same pass over its parts."""

    def __init__(self, path: Path, signature: Signature, scores: TextScores, key_check: KeyCheck) -> None:
        self._path, self._signature, self._scores, self._key_check = path, signature, scores, key_check
        self.folder = path.parent
        self.only: list[RecordColumns] = []
        """The records, if they are a single part; empty if they are several, which are not kept."""
        self.items: list[str] = []
        """Hash of each part's items."""
        self.answers: list[str] = []
        """Hash of each part's answers."""
        self.sketch = SketchMaker()
        self.tally = Tally()
        self.examples = ExampleChoice(signature.task)
        self.rescored: tuple[str, ...] = ()
        """Labels of the scorers whose scores were computed again."""

    def listening(self, parts: Iterable[RecordColumns]) -> Iterator[RecordColumns]:
        """Yield the same parts, and collect the facts of each."""
        for records in parts:
            self.only = [] if self.items else [records]
            with_options = brings_options(self._signature)
            self.items.append(items_sha256(records, with_options=with_options))
            self._key_check.add(records, None if with_options else self.items[-1])
            self.answers.append(answers_sha256(records))
            self.sketch.add(records)
            self.tally.add(records)
            self.examples.add(records)
            if self._scores.scorers:
                self.rescored = _check_scores(self._path, self._signature.task, records, self._scores)
            yield records


def _checked_parts(path: Path, result: Result) -> Iterator[RecordColumns]:
    """Yield the records of each part of a result, and check that they follow from the answers."""
    check_training = TrainingCheck(path.parent, result)
    for records in read_parts(path.parent, result):
        check_training(records)
        check_requests(path.parent / result.records.path, result, records)
        yield records


def _bounded(path: Path, parts: Iterable[RecordColumns], n_rows: int, most_cells: int) -> Iterator[RecordColumns]:
    """Yield the same parts, as long as the number of groups times records is within the limit."""
    groups: set[tuple[str, str]] = set()
    for records in parts:
        _, keys, values = records.columns["groups"].entries
        codes = np.unique(np.stack([keys.coded.codes, values.coded.codes]), axis=1).T
        groups |= {(keys.coded.texts[key], values.coded.texts[value]) for key, value in codes.tolist()}
        if len(groups) * n_rows > most_cells:
            raise _too_many(path, f"{len(groups):,} groups in {n_rows:,} records")
        yield records


def _too_many(path: Path, what: str) -> DataError:
    return DataError(
        f"{path}: {what} without an answer key are too many to check; add the key with: biasboard keys DATASET, or "
        "give the secret of a secret key with --key-secret"
    )


def _check_scores(path: Path, task: str, records: Sequence[Record], scores: TextScores) -> tuple[str, ...]:
    """Check the stored scores of quick scorers by scoring the texts again; other scores are taken as stored.

    Returns:
        Labels of the scorers whose scores were computed again: those that are installed here in the same version.
    """
    loaded = load_task(task)
    if not loaded.reads_scores:
        return ()
    rescored = []
    texts = loaded.texts(records)
    for scorer in quick_scorers():
        kind, label = scorer.identity.kind, scorer.identity.label
        if scores.label(kind) != label:
            continue
        for index, values in scorer.score(texts):
            stored = scores.values[kind].get(text_sha256(texts[index]))
            if stored is None or any(abs(one - other) > TOLERANCE for one, other in zip(stored, values, strict=True)):
                raise DataError(
                    f"{path}: {label} gives a text {values}, the stored scores say {stored}; {RESCORE_TEXTS}"
                )
        rescored.append(label)
    return tuple(rescored)


def _standing(
    benchmark: Benchmark, result: Result, facts: _PartFacts, measurement: Measurement, memory: Memory
) -> Standing | None:
    """Return the standing of a model among the baselines; None without a gate or without right answers."""
    signature = result.signature
    gate = benchmark.gate(signature.task)
    if gate is None:
        return None
    # The gate's statistics are computed without scores of texts.
    knows_scores = load_task(signature.task).reads_scores and result.withheld is None
    parts = facts.only or StoredParts(facts.folder, result)
    items = None if brings_options(signature) else joined_sha256(facts.items)
    check = GateCheck(benchmark, gate, signature, parts, None if knows_scores else measurement.source, items)
    if not check.applies:
        return None
    if result.withheld is not None:
        rows = read_sums(facts.folder, result.withheld.sums)
        return check.standing(
            stored_references(gate, rows, measurement.source.crossing, is_suite=bool(signature.parts))
        )
    return check.standing(check.references(memory))


def differences(stored: Iterable[Metric], computed: Iterable[Metric]) -> Iterator[str]:
    """Yield every difference between the stored metrics of a result and those computed from its records.

    Metrics of different versions cannot be compared and are skipped. Metrics that the result lacks completely are
    skipped too. But if the result has a metric without one of its slices, that is a difference. Intervals by a method
    of earlier code are not compared, since boards show those computed here.

    Args:
        stored: Metrics in ``result.json``.
        computed: Metrics computed from the records.

    Yields:
        One message for each difference.
    """
    ours = {metric_key(metric): metric for metric in computed}
    theirs = {metric_key(metric): metric for metric in stored}
    are_current = {metric.interval.method for metric in theirs.values() if metric.interval is not None} <= METHODS
    current = {metric.name: metric.version for metric in ours.values()}
    for key, metric in theirs.items():
        if key not in ours:
            # A newer version that the stored sums do not give is undefined, and has no slices. The label of a scorer
            # after the present version is no other version: its scores are missing.
            version = current.get(metric.name, metric.version)
            if metric.version != version and not metric.version.startswith(f"{version}."):
                continue
            name = name_with_group(metric.name, metric.group)
            yield f"metric {name} cannot be computed from the records; rescore the run; {HINT}"
        elif metric.version == ours[key].version:
            yield from _field_differences(metric, ours[key], with_intervals=are_current)
    versions = {metric.name: metric.version for metric in theirs.values()}
    for key, metric in ours.items():
        if key not in theirs and versions.get(metric.name) == metric.version:
            name = name_with_group(metric.name, metric.group)
            yield f"metric {name} follows from the records but is not in the result; rescore the run"


def _field_differences(stored: Metric, computed: Metric, *, with_intervals: bool) -> Iterator[str]:
    name = name_with_group(stored.name, stored.group)
    if not is_close(stored.value, computed.value):
        yield f"metric {name} is {stored.value}, the records give {computed.value}; rescore the run"
    for field in ("n", "n_excluded", "unit", "ideal", "minimum", "maximum"):
        theirs, ours = getattr(stored, field), getattr(computed, field)
        if theirs != ours:
            yield f"metric {name}: {field} is {theirs}, the records give {ours}; rescore the run"
    if with_intervals and not same_interval(stored.interval, computed.interval):
        theirs, ours = _spelt(stored.interval), _spelt(computed.interval)
        yield f"metric {name}: interval is {theirs}, the records give {ours}; rescore the run"


def _spelt(interval: Interval | None) -> str:
    if interval is None:
        return "null"
    return (
        f"[{interval.low}, {interval.high}] at level {interval.level} "
        f"({interval.method}, {interval.n_clusters} clusters)"
    )


def earlier_metrics(stored: Iterable[Metric], computed: Iterable[Metric]) -> tuple[Metric, ...]:
    """Return the stored metrics of other versions than the computed ones, which stay visible beside them.

    Args:
        stored: Metrics in ``result.json``, without ``differences`` from the computed ones.
        computed: Metrics computed from the records.
    """
    versions = {metric_key(metric): metric.version for metric in computed}
    return tuple(metric for metric in stored if versions.get(metric_key(metric)) != metric.version)


_SAME = 1e-3
"""Largest difference of the logarithms of two weights that count as equal: processors round differently, and this moves
a probability of .5 by .00025."""


def differing_corrections(folder: Path, result: Result) -> Iterator[str]:
    """Fit the corrections of a result again from its records, and yield each difference from the stored ones.

    Metrics are computed with the stored corrections, so that weights chosen by hand would give a model any correction
    that it likes, and agree with its metrics.

    Args:
        folder: Folder of the result, whose records are valid.
        result: The result in it.

    Raises:
        DataError: a file is missing or damaged.
    """
    stored = read_corrections(folder, result)
    if stored is None:
        return
    signature = result.signature
    inputs = MetricInputs(trained=trained_items(folder, result))
    parts = read_parts(folder, result, recount=False)
    corrections = Measurement.of(parts, signature.task, inputs, is_suite=bool(signature.parts)).corrections
    fitted = {(correction.config, correction.calibration): correction for correction in corrections}
    for correction in stored.corrections:
        difference = _difference(correction, fitted.pop((correction.config, correction.calibration), None))
        if difference is not None:
            yield difference
    for correction in fitted.values():
        yield f"{correction.calibration} of config {correction.config} can be fitted and is not stored"


def _difference(stored: FittedCorrection, fitted: FittedCorrection | None) -> str | None:
    """Return a sentence about the difference of a correction; None if there is none."""
    name = f"{stored.calibration} of config {stored.config}"
    if fitted is None:
        return f"{name} cannot be fitted"
    if stored.reason is not None or fitted.reason is not None:
        return None if stored.reason == fitted.reason else f"{name}: {fitted.reason or 'weights can be fitted'}"
    if stored.version != fitted.version:
        return f"{name} is of version {stored.version}, and the present one is {fitted.version}"
    if (stored.labels, stored.n_items) != (fitted.labels, fitted.n_items):
        return f"{name} is fitted on {fitted.n_items} items, and {stored.n_items} were told"
    pairs = zip(stored.weights, fitted.weights, strict=True)
    distance = max(abs(math.log(weight) - math.log(other)) for weight, other in pairs)
    return f"a weight of {name} differs by the factor {math.exp(distance):.4g}" if distance > _SAME else None
