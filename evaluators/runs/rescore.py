"""Scores stored answers again, under the metrics of today or another normalisation; needs no model and no dataset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout

from evaluators.metric import VALUE_TOLERANCE
from evaluators.runs.measuring import score_records
from evaluators.runs.pipeline import MAX_FAILURE_RATE, write_result
from evaluators.runs.records import check_failures, count
from evaluators.runs.run_folder import LOCK, RECORDS, read_run, run_folder
from evaluators.scorer import TextScorer, with_scorers
from evaluators.task import ReadsScores, load_task
from evaluators.text_scores import NO_SCORES, TextScores, read_scores
from schemas import tables
from schemas.errors import ConfigError, DataError, RunError
from schemas.files import sha256_file
from schemas.record import Record
from schemas.result import Metric, Normalisation, Result


class Rescored(NamedTuple):
    """What a rescoring did."""

    folder: Path
    result: Result
    changes: tuple[str, ...]
    """One line per metric whose version, value or interval moved."""
    n_metrics: int


def reread(records: list[Record], task_name: str, normalisation: Normalisation | None) -> list[Record]:
    """Read the stored answers of records again.

    Args:
        records: Of one run.
        task_name: The task that wrote them.
        normalisation: How option log-probabilities become probabilities; None for generated texts.

    Returns:
        Records with the reading that the exchanges give today; what was asked and answered is as it was.
    """
    task = load_task(task_name)
    changed = []
    for record in records:
        read = task.read(record.exchanges, normalisation)
        changed.append(replace(record, status=read.status, reason=read.reason, reading=read.reading))
    return changed


def rescore(
    folder: Path,
    *,
    normalisation: Normalisation | None = None,
    root: Path | None = None,
    max_failure_rate: float = MAX_FAILURE_RATE,
    scorers: Sequence[TextScorer] | None = None,
    named: Sequence[str] = (),
) -> Rescored:
    """Score a finished run again.

    Args:
        folder: The run.
        normalisation: Another one gives another signature, and so a new run beside the old one; None keeps the run's
            own and replaces its result.
        root: Folder of all runs, for a new run; the one that ``folder`` lies in if None.
        max_failure_rate: Share of records that may fail to be read before nothing is written.
        scorers: Who scores the texts anew; scores of other kinds stay. None keeps the stored scores, an empty list
            drops them.
        named: The same as the command line named them, for the command that the result keeps.

    Raises:
        ConfigError: a normalisation for generated texts.
        DataError: the run is unsound.
        RunError: the answers cannot be read in this way, or another process holds the run.
    """
    folder = folder.resolve()
    result, records = read_run(folder)
    if normalisation is not None and result.signature.normalisation is None:
        raise ConfigError(f"{folder} holds generated texts, which have no normalisation; leave out --normalisation")
    task = load_task(result.signature.task)
    signature = replace(
        result.signature,
        normalisation=normalisation or result.signature.normalisation,
        task_version=task.version,
    )
    reread_records = reread(records, signature.task, signature.normalisation)
    check_failures(reread_records, max_failure_rate)
    known = _known_scores(folder, result, scorers)
    target = folder if signature == result.signature else run_folder(root or folder.parents[2], signature, result.model)
    target.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(target / LOCK, timeout=0):
            if target != folder:
                tables.write_rows(target / RECORDS, reread_records, Record)
            elif reread_records != records:
                raise DataError(
                    f"{folder}: the answers are read otherwise than when they were scored, under the same task version "
                    f"{task.version}; the stored readings were changed, or the task was without raising its version"
                )
            stored = result.scores if target == folder and scorers is None else None
            metrics, scores = score_records(
                target, reread_records, signature.task, scorers or (), known=known, stored=stored
            )
            new = replace(
                result,
                signature=signature,
                signature_sha256=signature.sha256(),
                command=with_scorers(
                    _command(result.command, result.signature.normalisation, signature.normalisation),
                    named if isinstance(task, ReadsScores) else (),
                ),
                counts=count(reread_records),
                metrics=metrics,
                records=replace(result.records, sha256=sha256_file(target / RECORDS)),
                scores=scores,
            )
            write_result(target, new)
    except Timeout as error:
        raise RunError(f"{target}: another process holds this run; wait for it or stop it") from error
    return Rescored(target, new, tuple(_changes(result.metrics, metrics)), len(metrics))


def _known_scores(folder: Path, result: Result, scorers: Sequence[TextScorer] | None) -> TextScores:
    """Stored scores that stay: of the kinds that nobody is asked for anew."""
    if scorers is None:
        return read_scores(folder, result.scores)
    if not scorers or result.scores is None:
        return NO_SCORES
    anew = {scorer.identity.kind for scorer in scorers}
    if anew >= {scorer.kind for scorer in result.scores.scorers}:
        return NO_SCORES  # Unsound ones are no obstacle where all are replaced.
    known = read_scores(folder, result.scores)
    return TextScores(
        {kind: scorer for kind, scorer in known.scorers.items() if kind not in anew},
        {kind: vectors for kind, vectors in known.values.items() if kind not in anew},
    )


def _command(command: str, before: Normalisation | None, after: Normalisation | None) -> str:
    return command.replace(f"--normalisation {before}", f"--normalisation {after}")


def _changes(before: tuple[Metric, ...], after: tuple[Metric, ...]) -> list[str]:
    old = {(metric.name, *sorted(metric.group.items())): metric for metric in before}
    lines = []
    for metric in after:
        known = old.get((metric.name, *sorted(metric.group.items())))
        label = " ".join([metric.name, *metric.group.values()])
        if known is None:
            lines.append(f"{label}: new, {_shown(metric)}")
        elif _differ(known, metric):
            lines.append(f"{label}: {_shown(known)} to {_shown(metric)}")
    now = {(metric.name, *sorted(metric.group.items())) for metric in after}
    gone = [metric for key, metric in old.items() if key not in now]
    return lines + [f"{' '.join([metric.name, *metric.group.values()])}: gone" for metric in gone]


def _differ(before: Metric, after: Metric) -> bool:
    """Whether anything but the last bits of a number changed."""
    if replace(before, value=None, interval=None) != replace(after, value=None, interval=None):
        return True
    bounds = [(metric.interval.low, metric.interval.high) if metric.interval else () for metric in (before, after)]
    numbers = [
        [number for number in (metric.value, *some) if number is not None]
        for metric, some in zip((before, after), bounds, strict=True)
    ]
    same_length = len(numbers[0]) == len(numbers[1])
    return not same_length or any(abs(one - other) > VALUE_TOLERANCE for one, other in zip(*numbers, strict=True))


def _shown(metric: Metric) -> str:
    value = "none" if metric.value is None else f"{metric.value:.4f}"
    return f"{value} (version {metric.version})"
