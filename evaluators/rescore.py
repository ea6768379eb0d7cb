"""Scores stored answers again, under the metrics of today or another normalisation; needs no model and no dataset."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from evaluators.pipeline import count, write_result
from evaluators.run_folder import RECORDS, read_run, run_folder
from evaluators.scoring import compute_metrics
from evaluators.task import load_task
from schemas import tables
from schemas.errors import ConfigError
from schemas.files import sha256_file
from schemas.record import Record
from schemas.result import Metric, Normalisation, RecordsFile


class Rescored(NamedTuple):
    """What a rescoring did."""

    folder: Path
    changes: tuple[str, ...]
    """One line per metric whose version, value or interval moved."""
    n_metrics: int


def reread(records: list[Record], task_name: str, normalisation: Normalisation | None) -> list[Record]:
    """Read the stored answers of records again.

    Args:
        records: Of one run.
        task_name: The task that wrote them.
        normalisation: How option log-probabilities become probabilities.

    Returns:
        Records with the reading that the exchanges give today; what was asked and answered is as it was.
    """
    if normalisation is None:
        raise ConfigError("these records hold generations, which have no normalisation; score them with their own task")
    task = load_task(task_name)
    changed = []
    for record in records:
        read = task.read(record.exchanges, normalisation)
        changed.append(replace(record, status=read.status, reason=read.reason, reading=read.reading))
    return changed


def rescore(folder: Path, *, normalisation: Normalisation | None = None, root: Path | None = None) -> Rescored:
    """Score a finished run again.

    Args:
        folder: The run.
        normalisation: Another one gives another signature, and so a new run beside the old one; None keeps the run's
            own and replaces its result.
        root: Folder of all runs, for a new run; the one that ``folder`` lies in if None.

    Raises:
        DataError: the run is unsound.
    """
    result, records = read_run(folder)
    signature = replace(result.signature, normalisation=normalisation or result.signature.normalisation)
    command = result.command
    if signature == result.signature:
        target = folder
    else:
        target = run_folder(root or folder.parents[2], signature, result.model)
        command = command.replace(
            f"--normalisation {result.signature.normalisation}", f"--normalisation {normalisation}"
        )
    records = reread(records, signature.task, signature.normalisation)
    metrics = compute_metrics(records, signature.task)
    tables.write_rows(target / RECORDS, records, Record)
    write_result(
        target,
        replace(
            result,
            signature=signature,
            signature_sha256=signature.sha256(),
            command=command,
            counts=count(records),
            metrics=metrics,
            records=RecordsFile(path=RECORDS, sha256=sha256_file(target / RECORDS), n_rows=len(records)),
        ),
    )
    return Rescored(target, tuple(_changes(result.metrics, metrics)), len(metrics))


def _changes(before: tuple[Metric, ...], after: tuple[Metric, ...]) -> list[str]:
    old = {(metric.name, *sorted(metric.group.items())): metric for metric in before}
    lines = []
    for metric in after:
        known = old.get((metric.name, *sorted(metric.group.items())))
        label = " ".join([metric.name, *metric.group.values()])
        if known is None:
            lines.append(f"{label}: new, {metric.value}")
        elif known != metric:
            lines.append(
                f"{label}: {known.value} (version {known.version}) to {metric.value} (version {metric.version})"
            )
    return lines
