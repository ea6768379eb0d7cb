"""Prepares results for submission, and checks the statement in the folder of a submitted result."""

from __future__ import annotations

import datetime
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

from biasboard.ground import strict_json
from biasboard.ground.errors import DataError
from biasboard.ground.files import replacing_folder, sha256_file
from evaluators.benchmark import load_benchmark
from evaluators.runs.measure.stored_results import write_without_texts
from evaluators.runs.plan.plan import run_folder
from leaderboard.verify.intake import check_own_file
from schemas.documents.base import SCHEMA_VERSION
from schemas.documents.board import Submission
from schemas.documents.result import Result, Signature
from schemas.files import contract
from schemas.folders.run_folder import RESULT, SUBMISSION, path_of, read_result

_MOST_BYTES = 1 << 16


class Statement(NamedTuple):
    """The words of a submitter."""

    contact: str
    model_card: str
    train_data_disclosure: str | None


class Prepared(NamedTuple):
    """A result that is ready to be submitted."""

    run: Path
    place: Path
    """Folder relative to that of all accepted results, determined by the dataset, the model and the signature."""
    files: tuple[Path, ...]
    """Files to publish; everything else in the folder of the run stays behind."""
    submission: Submission
    withheld: str | None
    """Why hashes are published instead of the texts; None if the texts are published."""


def prepare(
    run: Path, statement: Statement, scratch: Path, *, today: datetime.date, version: str, withhold: bool = False
) -> Prepared:
    """Choose which files of a run to publish, and where.

    Args:
        run: Folder of a finished run.
        statement: The words of the submitter.
        scratch: Existing folder for files that are made for the submission; the caller removes it after they are used.
        today: Date of the submission.
        version: Version of biasboard.
        withhold: True to publish hashes instead of the generated texts, even if the benchmark does not ask for that.

    Raises:
        DataError: the run is incomplete, the statement is invalid, or there are no texts to withhold.
    """
    result = read_result(run)
    run_date = datetime.date.fromtimestamp(path_of(run, result.records).stat().st_mtime)
    reason = load_benchmark(result.signature.benchmark).withheld.get(result.signature.dataset)
    source = run
    if reason is not None or withhold:
        reason = reason or "as --withhold-texts asks"
        source = Path(tempfile.mkdtemp(dir=scratch))
        result = write_without_texts(run, source, with_prompts=not hides_prompts(result.signature))
    files = [source / RESULT, path_of(source, result.records)]
    files += [] if result.scores is None else [path_of(source, result.scores)]
    files += [] if result.withheld is None else [path_of(source, result.withheld.sums)]
    files += [path_of(source, file) for file in (result.adapters, result.corrections) if file is not None]
    submission = Submission(
        schema_version=SCHEMA_VERSION,
        contact=statement.contact,
        model_card=statement.model_card,
        train_data_disclosure=statement.train_data_disclosure,
        run_date=run_date.isoformat(),
        submitted=today.isoformat(),
        biasboard=version,
        result_sha256=sha256_file(source / RESULT),
    )
    contract.check(submission, where=SUBMISSION)
    return Prepared(run, place_for(result), tuple(files), submission, reason)


def hides_prompts(signature: Signature) -> bool:
    """Return True if the prompts of a dataset must be withheld like the texts that answer them."""
    return signature.dataset in load_benchmark(signature.benchmark).withheld


def place_for(result: Result) -> Path:
    """Return the folder of a result below that of all accepted results."""
    return run_folder(Path(), result.signature, result.model)


def write_prepared(prepared: Prepared, results: Path) -> Path:
    """Copy a prepared result atomically into the folder of all accepted results.

    Returns:
        The folder of the result.

    Raises:
        DataError: another result is there.
    """
    target = results / prepared.place
    if target.exists() and sha256_file(target / RESULT) != prepared.submission.result_sha256:
        raise DataError(f"{target}: another result of this model lies here; a maintainer has to settle which counts")
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing_folder(target) as temporary:
        for file in prepared.files:
            shutil.copyfile(file, temporary / file.name)
        strict_json.write(temporary / SUBMISSION, contract.dump(prepared.submission))
    return target


def read_submission(path: Path) -> Submission | None:
    """Read and check the statement in the folder of a result; None if there is none.

    Args:
        path: Path of the ``result.json``.

    Raises:
        DataError: the statement is invalid, or is about another result.
    """
    file = path.with_name(SUBMISSION)
    if not file.is_symlink() and not file.exists():
        return None
    check_own_file(file, _MOST_BYTES)
    submission = contract.read(file, Submission)
    if submission.result_sha256 != sha256_file(path):
        raise DataError(f"{file}: is about another {RESULT} than the one beside it; submit the run again")
    return submission
