"""Scores stored answers again, with the current metrics or another normalisation, without the model or the dataset."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.progress import steps
from evaluators.runs.measure.measuring import (
    Origin,
    TextScoring,
    WrittenRecords,
    are_known_to_follow,
    finish_run,
    locked_folder,
    under_present_names,
    write_parts,
)
from evaluators.runs.measure.recording import FailureCount
from evaluators.runs.plan.plan import MAX_FAILURE_RATE, run_folder
from evaluators.scorer import TextScorer, with_scorers
from evaluators.task import ReadsScores, Task, load_task
from evaluators.text_scores import NO_SCORES, TextScores, read_scores
from schemas.documents.record import Record
from schemas.documents.result import Metric, Normalisation, Result, Signature, is_close, metric_key, same_interval
from schemas.files.record_columns import RecordColumns, Tally
from schemas.folders.run_folder import read_complete_result, read_parts


class Rescored(NamedTuple):
    """A rescored run."""

    folder: Path
    result: Result
    changes: tuple[str, ...]
    """One line per metric that changed, is new or is gone."""
    n_metrics: int


def reread(records: Sequence[Record], signature: Signature) -> Sequence[Record]:
    """Read the stored answers in records again.

    The signature has the normalisation to read them with.

    Returns:
        The records with new readings and unchanged exchanges.
    """
    task = load_task(signature.task)
    changed = []
    for record in records:
        read = task.reading(record.exchanges, signature.normalisation, signature.prompt)
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
        folder: The folder of the run.
        normalisation: A new normalisation, which changes the signature and so makes a new run beside the old one. None
            keeps the run's normalisation and replaces its result.
        root: Folder of all runs, for a new run; None for the one that contains ``folder``.
        max_failure_rate: Share of records that may fail to be read; with more, nothing is written.
        scorers: Scorers that score the texts again; scores of other kinds are kept. None keeps all stored scores; an
            empty sequence drops them.
        named: Names of the scorers on the command line, for the command that the result records.

    Raises:
        ConfigError: a normalisation was given for generated texts.
        DataError: the run's files are damaged or do not match, its texts are kept elsewhere, or the readings changed
            without a new task version.
        RunError: too many answers cannot be read, or another process holds the run.
    """
    folder = folder.resolve()
    result = read_complete_result(folder)
    before = result.signature
    if normalisation is not None and before.normalisation is None:
        raise ConfigError(f"{folder} holds generated texts, which have no normalisation; leave out --normalisation")
    task = load_task(before.task)
    # Facts come from the dataset, which is not read again, so that records of an earlier version stay what they are.
    version = before.task_version if before.task_version in task.earlier_versions else task.version
    signature = replace(before, normalisation=normalisation or before.normalisation, task_version=version)
    stays = signature == before
    written = _checked(folder, result, task, max_failure_rate) if stays else None
    known = _known_scores(folder, result, scorers)
    command = result.command.replace(
        f"--normalisation {before.normalisation}", f"--normalisation {signature.normalisation}"
    )
    origin = Origin(
        model=result.model,
        signature=signature,
        command=with_scorers(command, named if isinstance(task, ReadsScores) else ()),
        usage=result.usage,
        environment=result.environment,
        adapters=result.adapters,
        corrections=result.corrections if stays else None,
    )
    target = folder if stays else run_folder(root or folder.parents[2], signature, result.model)
    scoring = TextScoring(scorers or (), known, result.scores if stays and scorers is None else None)
    # Records before the result, which names their hash: a stopped rescoring never leaves a result with other records.
    with locked_folder(target):
        if result.adapters is not None and not stays:
            shutil.copyfile(folder / result.adapters.path, target / result.adapters.path)
        if written is None:
            written = write_parts(target, _reread_parts(folder, result, signature, max_failure_rate))
        new = finish_run(target, written, origin, scoring)
    return Rescored(target, new, tuple(_changes(under_present_names(result).metrics, new.metrics)), len(new.metrics))


def _checked(folder: Path, result: Result, task: Task, max_failure_rate: float) -> WrittenRecords:
    """Check that all readings of a run follow from its answers, and return its stored records."""
    normalisation = result.signature.normalisation
    are_known = are_known_to_follow(result.records, result.signature)
    tally, failures = Tally(), FailureCount()
    parts = _shown_parts(folder, result)
    only: RecordColumns | None = None
    for number, records in enumerate(parts):
        # Answers are read one by one only if this machine has not yet read the same bytes with the same code and the
        # quick check on arrays does not settle it.
        are_sound = are_known or task.certain_readings(records, normalisation).all()
        if not are_sound and reread(records, result.signature) != list(records):
            raise DataError(
                f"{folder}: the answers are read differently now than when they were scored, under the same task "
                f"version {task.version}; the stored readings were changed, or the task was changed without raising "
                "its version"
            )
        tally.add(records)
        failures.add(records)
        only = records if number == 0 else None
    failures.check(max_failure_rate)
    return WrittenRecords(result.records, tally, only)


def _reread_parts(
    folder: Path, result: Result, signature: Signature, max_failure_rate: float
) -> Iterator[RecordColumns]:
    """Yield the records of each part of a run, with readings under another signature."""
    failures, task = FailureCount(), load_task(signature.task)
    is_read_alike = result.signature.normalisation == signature.normalisation
    for records in _shown_parts(folder, result):
        # Of most readings, arrays show that they follow from their answers.
        stays = is_read_alike and task.certain_readings(records, signature.normalisation).all()
        changed = records if stays else RecordColumns.of(reread(records, signature))
        failures.add(changed)
        yield changed
    failures.check(max_failure_rate)


def _shown_parts(folder: Path, result: Result) -> Iterator[RecordColumns]:
    """Yield the records of each part of a run, with a progress bar for a suite."""
    parts = read_parts(folder, result, recount=False)
    if not result.signature.parts:
        yield from parts
        return
    with steps() as step:
        for number, records in enumerate(parts):
            step("reading answers", number, len(result.signature.parts))
            yield records


def _known_scores(folder: Path, result: Result, scorers: Sequence[TextScorer] | None) -> TextScores:
    """Return the stored scores to keep: those of kinds that are not scored again."""
    if scorers is None:
        return read_scores(folder, result.scores)
    if not scorers or result.scores is None:
        return NO_SCORES
    anew = {scorer.identity.kind for scorer in scorers}
    if anew >= {scorer.kind for scorer in result.scores.scorers}:
        return NO_SCORES  # Not even read: damaged scores do no harm if all are replaced.
    known = read_scores(folder, result.scores)
    return known.of_kinds(known.scorers.keys() - anew)


def _changes(before: tuple[Metric, ...], after: tuple[Metric, ...]) -> Iterator[str]:
    """Yield a line for each metric that is new, differs by more than rounding, or is gone."""
    old = {metric_key(metric): metric for metric in before}
    for metric in after:
        name, earlier = " ".join([metric.name, *metric.group.values()]), old.pop(metric_key(metric), None)
        if earlier is None:
            yield f"{name}: new, {_shown(metric)}"
        elif (
            replace(earlier, value=None, interval=None) != replace(metric, value=None, interval=None)
            or not is_close(earlier.value, metric.value)
            or not same_interval(earlier.interval, metric.interval)
        ):
            yield f"{name}: {_shown(earlier)} to {_shown(metric)}"
    for metric in old.values():
        yield f"{' '.join([metric.name, *metric.group.values()])}: gone"


def _shown(metric: Metric) -> str:
    value = "none" if metric.value is None else f"{metric.value:.4f}"
    return f"{value} (version {metric.version})"
