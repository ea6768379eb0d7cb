"""Computes again what a result says: its metrics, its stored corrections, and some of the scores of its texts."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from biasboard.ground.errors import DataError
from biasboard.ground.plugins import HINT
from evaluators.adapter_set import trained_items
from evaluators.metric import MetricInputs
from evaluators.runs.measure.measuring import Measurement
from evaluators.scorer import TextScorer
from evaluators.statistics.jackknife import METHODS
from evaluators.task import load_task
from evaluators.text_scores import read_scores
from schemas.documents.result import Interval, Metric, Result, is_close, metric_key, name_with_group, same_interval
from schemas.documents.run_files import FittedCorrection, text_sha256
from schemas.folders.run_folder import RESCORE_TEXTS, read_corrections, read_parts, read_result


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


N_TEXTS = 100
"""Number of texts to score again: they find a share of 3 % of invented scores with a probability of 95 %."""
_TOLERANCE = 1e-3
"""Largest difference of two values: trained scorers differ in the fourth digit between processors."""


def compare_scores(folder: Path, scorers: Sequence[TextScorer], *, seed: int) -> tuple[str, ...]:
    """Score some texts of a verified result again, and compare the scores with the stored ones.

    Args:
        folder: Folder of the result, which holds its texts.
        scorers: The scorers that are installed here.
        seed: Seed of the draw of the texts, which must not be known before the result is submitted.

    Returns:
        Labels of the scorers of the result that scored again; those that are not installed here are left out.

    Raises:
        DataError: a stored score is missing or differs.
    """
    result = read_result(folder)
    stored = read_scores(folder, result.scores)
    used = [scorer for scorer in scorers if stored.label(scorer.identity.kind) == scorer.identity.label]
    if not used:
        return ()
    task = load_task(result.signature.task)
    texts = sorted({text for records in read_parts(folder, result, recount=False) for text in task.texts(records)})
    drawn = random.Random(seed).sample(texts, min(N_TEXTS, len(texts)))
    for scorer in used:
        kind, label = scorer.identity.kind, scorer.identity.label
        for index, values in scorer.score(drawn):
            known = stored.values[kind].get(text_sha256(drawn[index]))
            if known is None or any(abs(one - other) > _TOLERANCE for one, other in zip(known, values, strict=True)):
                raise DataError(f"{folder}: {label} gives a text other scores than the stored ones; {RESCORE_TEXTS}")
    return tuple(scorer.identity.label for scorer in used)
