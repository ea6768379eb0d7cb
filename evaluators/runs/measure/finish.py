"""Finishes a run from its records: scores the texts, computes the metrics and writes the files of the folder."""

from __future__ import annotations

import importlib.metadata
import platform
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout

from biasboard.ground.errors import DataError, RunError
from biasboard.ground.files import remove_unfinished, sha256_file
from biasboard.ground.memory import machine_memory
from biasboard.ground.progress import working
from biasboard.ground.strict_json import JsonValue
from evaluators.backend import Runtime
from evaluators.runs.measure.measuring import read_inputs, score_records
from evaluators.scorer import TextScorer
from evaluators.text_scores import NO_SCORES, TextScores, read_scores
from schemas.documents.base import SCHEMA_VERSION
from schemas.documents.record import Record
from schemas.documents.result import (
    AdaptersFile,
    CorrectionsFile,
    Environment,
    Model,
    RecordsFile,
    Result,
    ScoresFile,
    Signature,
    Usage,
)
from schemas.files.record_columns import RecordColumns, Tally
from schemas.files.record_files import read_parts_unchecked, writing_records
from schemas.folders.run_folder import RECORDS, read_result, write_result

_LOCK = ".lock"
_FOLLOWED = "readings that follow from their answers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where records come from: everything in a result that does not follow from its records."""

    model: Model
    signature: Signature
    command: str
    """The command line that reproduces the result."""
    usage: Usage
    environment: Environment
    adapters: AdaptersFile | None = None
    """List of the adapters with which the model answered, in the folder of the run."""
    corrections: CorrectionsFile | None = None
    """Earlier corrections in the folder of the run, to be kept; None to fit all anew."""


@dataclass(frozen=True, slots=True)
class TextScoring:
    """The scorers and known scores for the texts of a run."""

    scorers: Sequence[TextScorer] = ()
    """Scorers, at most one of each kind; they are not used if the task reads no scores."""
    known: TextScores = NO_SCORES
    """Earlier scores, kept for each kind that has no scorer in ``scorers``."""
    stored: ScoresFile | None = None
    """File in the run's folder that holds exactly the known scores; None if there is none."""


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Create the folder of a run and keep other processes from writing into it.

    A new folder is removed again if nothing was written into it.

    Raises:
        RunError: another process holds the folder.
    """
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        # Do not wait: the other process may take hours.
        with FileLock(folder / _LOCK, timeout=0):
            try:
                yield
            finally:
                if is_new and {path.name for path in folder.iterdir()} <= {_LOCK}:
                    shutil.rmtree(folder, ignore_errors=True)
    except Timeout as error:
        raise RunError(f"{folder}: another process holds this run; wait for it or stop it") from error


class WrittenRecords(NamedTuple):
    """The file of records in the folder of a run, and their counts."""

    file: RecordsFile
    tally: Tally
    only: RecordColumns | None = None
    """The records of a single part; None if there are several, which are read from the file one by one."""

    def parts(self, folder: Path) -> Iterator[RecordColumns]:
        """Yield the records of each part."""
        if self.only is not None:
            return iter([self.only])
        return read_parts_unchecked(folder / self.file.path)


def write_parts(folder: Path, parts: Iterable[Sequence[Record]]) -> WrittenRecords:
    """Write the records of a run part by part; an earlier file stays until all parts are written.

    The caller holds the folder. A lazy iterable may ask a model for each part when it is needed.

    Raises:
        DataError: a record is invalid; nothing is written.
    """
    tally = Tally()
    only: RecordColumns | None = None
    n_parts = 0
    path = folder / RECORDS
    # Left by a run that was killed while writing.
    remove_unfinished(path)
    with writing_records(path) as add:
        for records in parts:
            n_parts += 1
            columns = add(records)
            only = columns if n_parts == 1 else None
            tally.add(columns)
    file = RecordsFile(path=RECORDS, sha256=sha256_file(path), n_rows=tally.counts.items)
    return WrittenRecords(file, tally, only)


def finish_run(folder: Path, written: WrittenRecords, origin: Origin, scoring: TextScoring) -> Result:
    """Score the texts of records, compute every metric and write the result.

    The caller must hold the folder. The records are already written and the result names their hash, so there is never
    a result without its records.

    Raises:
        DataError: the records do not come from the signature's task, or come from several prompts or configs.
    """
    signature = origin.signature
    draft = Result(
        schema_version=SCHEMA_VERSION,
        model=origin.model,
        signature=origin.signature,
        signature_sha256=origin.signature.sha256(),
        command=origin.command,
        counts=written.tally.counts,
        metrics=(),
        usage=origin.usage,
        environment=origin.environment,
        records=written.file,
        scores=None,
        coverage=written.tally.coverage if signature.parts else (),
        adapters=origin.adapters,
        corrections=origin.corrections,
    )
    with working(f"computing the metrics of {folder.name}"):
        computed = score_records(
            folder,
            written.parts(folder),
            signature.task,
            scoring.scorers,
            is_suite=bool(signature.parts),
            inputs=read_inputs(folder, draft, scoring.known, may_fit=True),
            stored=scoring.stored,
        )
    result = replace(draft, metrics=computed.metrics, scores=computed.scores, corrections=computed.corrections)
    write_result(folder, result)
    # The current code has just made these readings, so a rescoring need not repeat them.
    machine_memory().put(_FOLLOWED, _depends_on(written.file, signature), True)
    return result


def are_known_to_follow(file: RecordsFile, signature: Signature) -> bool:
    """Return True if this machine has noted that the current code reads these answers in this way.

    The hash of the file was checked before.
    """
    return machine_memory().get(_FOLLOWED, _depends_on(file, signature)) is True


def _depends_on(file: RecordsFile, signature: Signature) -> dict[str, JsonValue]:
    return {"records": file.sha256, "signature": signature.sha256()}


def scoring_after(folder: Path, scorers: Sequence[TextScorer], *, keep: bool) -> TextScoring:
    """Return how to score the texts of a run whose folder may hold an earlier result.

    Scores of an earlier result that cannot be read are ignored, so that their texts are scored again.

    Args:
        folder: The folder of the run.
        scorers: The scorers that the user chose.
        keep: True to keep all earlier scores, even those of other scorers, and score only missing kinds.
    """
    known = NO_SCORES
    with suppress(DataError):
        known = read_scores(folder, read_result(folder).scores)
    # Scores of another scorer or revision are dropped: the result would attribute them to this one.
    same = {scorer.identity.kind for scorer in scorers if known.scorers.get(scorer.identity.kind) == scorer.identity}
    kept = set(known.scorers) if keep else same
    return TextScoring(
        tuple(scorer for scorer in scorers if scorer.identity.kind in same or scorer.identity.kind not in kept),
        known.of_kinds(kept),
    )


def environment(runtimes: Sequence[Runtime]) -> Environment:
    """Describe where the answers were computed; where sessions differ, all their values are listed."""
    # Metrics and intervals are computed with numpy, whatever backend answered.
    numpy = {"numpy": importlib.metadata.version("numpy")}
    devices = [runtime.device for runtime in runtimes if runtime.device is not None]
    return Environment(
        biasboard=importlib.metadata.version("biasboard"),
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}",
        device=" / ".join(dict.fromkeys(devices)) or None,
        packages=_merged([numpy, *(runtime.packages for runtime in runtimes)]),
        settings=_merged([runtime.settings for runtime in runtimes]),
    )


def _merged(mappings: Sequence[Mapping[str, str]]) -> dict[str, str]:
    values: dict[str, dict[str, None]] = {}
    for mapping in mappings:
        for key, value in mapping.items():
            values.setdefault(key, {})[value] = None
    return {key: " / ".join(values[key]) for key in sorted(values)}
