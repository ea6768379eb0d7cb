"""Chooses what may be published of a run, and keeps what submitters say and maintainers decide.

At the end stands what finds the changes of a pull request.
"""

from __future__ import annotations

import datetime
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from biasboard.ground import strict_json
from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.files import held, replacing_folder, sha256_file
from biasboard.ground.plain_text import printable
from evaluators.benchmark import load_benchmark
from evaluators.runs.measure.stored_results import write_without_prompts, write_without_texts
from evaluators.runs.plan.plan import run_folder
from evaluators.task import load_task, prompt_of
from leaderboard.verify.board_files import KEYS, RESULTS
from leaderboard.verify.intake import FILES_OF_RESULTS, Searched, check_own_file, files_of, results_in
from schemas.documents.base import SCHEMA_VERSION
from schemas.documents.board import Register, Submission
from schemas.documents.result import Result, Signature
from schemas.files import contract
from schemas.folders.run_folder import REGISTER, RESULT, SUBMISSION, find_runs, path_of, read_result

_LETTERS = str.maketrans("01i", "oll")
"""Digits and letters that look like other letters, with case ignored."""
_NO_RESULT = "0" * 64
_WANTED = {
    "contact": "an address or account of 3 to 200 characters on one line",
    "model_card": "the https address of a page, such as https://huggingface.co/ORG/MODEL, without ? and #",
    "train_data_disclosure": "1 to 2,000 characters",
}
"""What the words of a submitter must be."""


class PublicFiles(NamedTuple):
    """The files of a run that may be published."""

    run: Path
    """Folder of the run."""
    result: Result
    """The result to publish; without texts or prompts it is another than that of the run."""
    files: tuple[Path, ...]
    """Files to publish, ``result.json`` first; everything else in the folder of the run stays behind."""
    withheld: str | None
    """Why hashes are published instead of generated texts, or of the prompts of options; None if nothing is hashed."""

    @property
    def withheld_words(self) -> str | None:
        """What is published as hashes, and why; None if nothing is."""
        hashed = "texts" if has_texts(self.result.signature) else "prompts"
        return None if self.withheld is None else f"hashes in place of the {hashed}: {self.withheld}"

    @property
    def place(self) -> Path:
        """Folder of the result relative to that of all results, determined by dataset, model and signature."""
        return place_for(self.result)


def public_files(run: Path, scratch: Path, *, withhold: bool) -> PublicFiles:
    """Choose which files of a run to publish.

    Args:
        run: Folder of a finished run.
        scratch: Existing folder for files that are made anew; the caller removes it after they are used.
        withhold: True to publish hashes instead of the generated texts, even if the benchmark does not ask for that;
            where options are scored, instead of the prompts.

    Raises:
        DataError: the run is incomplete, or its texts are kept elsewhere already.
    """
    result = read_result(run)
    reason = load_benchmark(result.signature.benchmark).withheld.get(result.signature.dataset)
    source = run
    if reason is not None or withhold:
        reason = reason or "as --withhold-texts asks"
        source = Path(tempfile.mkdtemp(dir=scratch))
        if has_texts(result.signature):
            result = write_without_texts(run, source, with_prompts=not hides_prompts(result.signature))
        else:
            result = write_without_prompts(run, source)
    files = (source / RESULT, *(path_of(source, file) for file in files_of(result).values()))
    return PublicFiles(run, result, files, reason)


def has_texts(signature: Signature) -> bool:
    """Return True if the answers of a result are or begin with generated texts."""
    return prompt_of(load_task(signature.task), signature.prompt).has_texts


def hides_prompts(signature: Signature) -> bool:
    """Return True if the prompts of a dataset must be withheld like the texts that answer them."""
    return signature.dataset in load_benchmark(signature.benchmark).withheld


def place_for(result: Result) -> Path:
    """Return the folder of a result below that of all results."""
    return run_folder(Path(), result.signature, result.model)


def models_of(public: Sequence[PublicFiles]) -> str:
    """Return the ids of the models of some results, or of more than a few their number."""
    ids = sorted({one.result.model.id for one in public})
    return ", ".join(ids) if len(ids) <= 3 else f"{len(ids)} models"


def statement(*, contact: str, model_card: str, train_data_disclosure: str | None = None) -> Submission:
    """Return what a submitter says, of no result yet.

    Args:
        contact: Address or account of the submitter.
        model_card: Address of a description of the model.
        train_data_disclosure: Whether the model was trained on items of the benchmark, in the submitter's words.

    Raises:
        ConfigError: the words are invalid.
    """
    today = datetime.date.today().isoformat()
    words = {"contact": contact, "model_card": model_card, "train_data_disclosure": train_data_disclosure}
    stated = Submission(
        schema_version=SCHEMA_VERSION,
        contact=contact,
        model_card=model_card,
        train_data_disclosure=train_data_disclosure,
        run_date=today,
        submitted=today,
        biasboard=metadata.version("biasboard"),
        result_sha256=_NO_RESULT,
    )
    try:
        contract.check(stated, where=SUBMISSION)
    except DataError as error:
        for name, wanted in _WANTED.items():
            if str(error).startswith(f"{SUBMISSION}: {name}: "):
                flag = f"--{name.replace('_', '-')}"
                raise ConfigError(f"{flag} {printable(str(words[name]), most=80)}: give {wanted}") from None
        raise
    return stated


def prepare(public: PublicFiles, stated: Submission) -> Submission:
    """Return what a submitter says of the files of a run that may be published.

    Raises:
        DataError: the run is incomplete.
    """
    answered = path_of(public.run, read_result(public.run).records).stat().st_mtime
    run_date = datetime.date.fromtimestamp(answered).isoformat()
    submission = replace(stated, run_date=run_date, result_sha256=sha256_file(public.files[0]))
    contract.check(submission, where=SUBMISSION)
    return submission


def write_submission(public: PublicFiles, submission: Submission, results: Path) -> Path:
    """Copy a result and what its submitter says of it atomically into the folder of all accepted results.

    Returns:
        The folder of the result.

    Raises:
        DataError: another result is there.
    """
    target = results / public.place
    target.parent.mkdir(parents=True, exist_ok=True)
    with held(results), replacing_folder(target) as temporary:
        if target.exists() and sha256_file(target / RESULT) != submission.result_sha256:
            raise DataError(
                f"{target}: another result of this model lies here; a maintainer has to settle which counts"
            )
        for file in public.files:
            shutil.copyfile(file, temporary / file.name)
        strict_json.write(temporary / SUBMISSION, contract.dump(submission))
    return target


def read_submission(path: Path) -> Submission | None:
    """Read and check the statement beside a ``result.json``; None if there is none.

    Raises:
        DataError: the statement is invalid, or is about another result.
    """
    file = path.with_name(SUBMISSION)
    if not file.is_symlink() and not file.exists():
        return None
    check_own_file(file, most_bytes=1 << 16)
    submission = contract.read(file, Submission)
    if submission.result_sha256 != sha256_file(path):
        raise DataError(f"{file}: is about another {RESULT} than the one beside it; submit the run again")
    # A day begins earlier elsewhere.
    tomorrow = datetime.date.today() + datetime.timedelta(days=1)
    if (last := max(submission.run_date, submission.submitted)) > tomorrow.isoformat():
        raise DataError(f"{file}: names the day {last}, which is still to come; submit the run again")
    return submission


def read_register(results: Path) -> Register:
    """Read the register in a folder of accepted results; without a file it is empty.

    Raises:
        DataError: the file is invalid, or names a folder twice.
    """
    path = results / REGISTER
    if not path.is_file():
        return Register(schema_version=SCHEMA_VERSION, results=())
    return contract.read(path, Register)


def write_register(results: Path, register: Register) -> None:
    """Check a register and write it into a folder of accepted results, sorted by the results' folders.

    Raises:
        DataError: the register is invalid; nothing is written.
    """
    ordered = replace(register, results=tuple(sorted(register.results, key=lambda acceptance: acceptance.place)))
    contract.check(ordered, where=str(results / REGISTER))
    strict_json.write(results / REGISTER, contract.dump(ordered))


def why_not_owner(register: Register, place: str, author: str) -> str | None:
    """Return why an author may not submit a result of a model: others did before. None if nobody has, or the author.

    The second part of a place, the folder of a result relative to that of all results, is named after the model.
    """
    model = _model_folder(place)
    owners = {one.owner for one in register.results if appearance(_model_folder(one.place)) == appearance(model)}
    if not owners or author in owners:
        return None
    return (
        f"{place}: results of {model.replace('__', '/')} belong to {', '.join(sorted(owners))}, and the author is "
        f"{author}; ask the owner, or a maintainer to settle it"
    )


def appearance(model: str) -> str:
    """Return what a reader takes the id of a model, or its folder, for: two ids of one appearance are mistaken.

    The Hub ignores case too, and so do file systems.

    >>> appearance("Acme/Honest_1.") == appearance("acme__honest-l")
    True
    """
    letters = model.replace("__", "/").casefold().translate(_LETTERS)
    return "/".join(re.sub(r"[._-]+", "-", part).strip("-") for part in letters.split("/"))


def _model_folder(place: str) -> str:
    return place.split("/")[:2][-1]


DECIDING = (".github/", ".ci/", f"{KEYS}/")
"""Paths in a checkout that decide how results are verified. A pull request that changes one may have written its own
verdicts: a workflow that a pull request starts runs in the form that the pull request gives it."""
_MOST_NAMED = 20


def changes(folder: Path, since: Path) -> Iterator[Searched]:
    """Yield each ``result.json`` that was added or changed, and every change that no submission of results may make.

    Args:
        folder: A folder of results, or a git checkout that holds one.
        since: Its earlier state.

    Raises:
        ConfigError: git cannot list the files of a checkout.
    """
    if not (since / ".git").exists():
        yield from _results_changed(folder, since)
        return
    ours, theirs = _files_of(since), _files_of(folder)
    for parent in (RESULTS.parent, RESULTS):
        # git lists files and links. A link could lead to results that are here already, which would look unchanged.
        if str(parent) in theirs:
            yield Searched(folder / parent, f"{parent}: is a link or a file, and must be a folder of results")
            return
    files = {*ours, *theirs}
    changed = (path for path in files if ours.get(path) != theirs.get(path))

    def is_of_result(path: PurePosixPath) -> bool:
        """Return True for the register, which is compared below, and for a file of a result that is searched."""
        is_hidden = any(part.startswith(".") for part in path.parts)
        is_own = path.is_relative_to(RESULTS) and not is_hidden and str(path.parent / RESULT) in files
        return (is_own and path.name in FILES_OF_RESULTS) or path == PurePosixPath(RESULTS / REGISTER)

    others = sorted(path for path in changed if not is_of_result(PurePosixPath(path)))
    for path in others[:_MOST_NAMED]:
        what = "decides how results are verified" if path.startswith(DECIDING) else "belongs to no result"
        yield Searched(folder / path, f"{path}: {what}; change it in a pull request of its own")
    if len(others) > _MOST_NAMED:
        yield Searched(folder, f"{len(others) - _MOST_NAMED} more changed files belong to no result")
    yield from _results_changed(folder / RESULTS, since / RESULTS)


def _files_of(checkout: Path) -> Mapping[str, str]:
    """Return mode and hash of each file that git has of a checkout, by path."""
    command = ["git", "-C", str(checkout), "ls-files", "--stage", "-z"]
    try:
        listed = subprocess.run(command, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise ConfigError(
            f"{checkout}: git cannot list its files; give git checkouts as PATH and --since, or two folders of results"
        ) from error
    entries = (os.fsdecode(entry).partition("\t") for entry in listed.split(b"\0") if entry)
    return {path: entry for entry, _, path in entries}


def _results_changed(folder: Path, since: Path) -> Iterator[Searched]:
    kept = set()
    for searched in results_in(folder) if folder.exists() else ():
        below = searched.path.parent.relative_to(folder)
        kept.add(below)
        if searched.problem is not None or _hashes(folder / below) != _hashes(since / below):
            yield searched
    for below in (run.relative_to(since) for run in find_runs(since)):
        if below not in kept:
            gone = folder / below
            yield Searched(gone, f"{gone}: is gone; to withdraw a result, ask a maintainer, and it stays here")
    register = folder / REGISTER
    if _sha256_of(register) != _sha256_of(since / REGISTER):
        yield Searched(register, f"{register}: only maintainers change the register")


def _hashes(folder: Path) -> dict[str, str | None]:
    """Return the hash of everything in a folder, by name; none if there is no folder."""
    return {entry.name: _sha256_of(Path(entry.path)) for entry in os.scandir(folder)} if folder.is_dir() else {}


def _sha256_of(path: Path) -> str | None:
    """Return the hash of a file's bytes; None if there is no regular file."""
    return sha256_file(path) if path.is_file() and not path.is_symlink() else None
