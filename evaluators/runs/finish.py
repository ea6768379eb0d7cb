"""The end of a run, however its records came about: scores of the texts, metrics, and the files of the folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from evaluators.runs.measuring import score_records
from evaluators.scorer import TextScorer
from evaluators.text_scores import NO_SCORES, TextScores, read_scores
from schemas import tables
from schemas.errors import DataError, RunError
from schemas.files import sha256_file
from schemas.record import Record
from schemas.result import SCHEMA_VERSION, Environment, Model, RecordsFile, Result, ScoresFile, Signature, Usage
from schemas.run_folder import RECORDS, count, read_result, write_result

_LOCK = ".lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where records come from: everything that a result says beside what follows from its records."""

    model: Model
    signature: Signature
    command: str
    """The command line that reproduces the result."""
    usage: Usage
    environment: Environment


@dataclass(frozen=True, slots=True)
class TextScoring:
    """How the texts of a run are scored."""

    scorers: Sequence[TextScorer] = ()
    """At most one of each kind; none of them is asked if the task reads no scores."""
    known: TextScores = NO_SCORES
    """Earlier scores, which stay for each kind that no scorer is given of."""
    stored: ScoresFile | None = None
    """The file in the run's folder that holds exactly the known scores, if there is one; it stays as it is."""


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Make the folder of a run and keep other processes from writing into it.

    Raises:
        RunError: another process holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / _LOCK, timeout=0):
            yield
    except Timeout as error:
        raise RunError(f"{folder}: another process holds this run; wait for it or stop it") from error


def finish_run(
    folder: Path,
    records: Sequence[Record],
    origin: Origin,
    scoring: TextScoring,
    *,
    written: RecordsFile | None = None,
) -> Result:
    """Write records, score their texts, compute every metric and write the result. The caller holds the folder.

    The records are written first and the result names their hash, so that there is never a result without its records.

    Args:
        folder: The folder of the run.
        records: All records of the run.
        origin: Where they come from.
        scoring: How their texts are scored.
        written: The file in the folder that holds exactly these records already; None to write one.

    Raises:
        DataError: the records are not of the signature's task, or of several prompts or configs.
    """
    if written is None:
        tables.write_rows(folder / RECORDS, records, Record)
        written = RecordsFile(path=RECORDS, sha256=sha256_file(folder / RECORDS), n_rows=len(records))
    metrics, scores = score_records(
        folder, records, origin.signature.task, scoring.scorers, known=scoring.known, stored=scoring.stored
    )
    result = Result(
        schema_version=SCHEMA_VERSION,
        model=origin.model,
        signature=origin.signature,
        signature_sha256=origin.signature.sha256(),
        command=origin.command,
        counts=count(records),
        metrics=metrics,
        usage=origin.usage,
        environment=origin.environment,
        records=written,
        scores=scores,
    )
    write_result(folder, result)
    return result


def scoring_after(folder: Path, scorers: Sequence[TextScorer], *, keep: bool) -> TextScoring:
    """Return what is left to score in a folder that may hold an earlier result.

    Unsound scores of an earlier result are passed over: their texts are scored again.

    Args:
        folder: The folder of the run.
        scorers: The scorers that are asked for.
        keep: True to keep the scores that other scorers gave; texts are then not scored for their kinds.
    """
    known = NO_SCORES
    with suppress(DataError):
        known = read_scores(folder, read_result(folder).scores)
    same = {scorer.identity.kind for scorer in scorers if known.scorers.get(scorer.identity.kind) == scorer.identity}
    kept = set(known.scorers) if keep else same
    return TextScoring(
        tuple(scorer for scorer in scorers if scorer.identity.kind in same or scorer.identity.kind not in kept),
        known.of_kinds(kept),
    )
