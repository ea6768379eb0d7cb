"""Finds and verifies results, and judges those of strangers: accepted, with warnings, or rejected."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

from biasboard.ground.errors import BiasboardError, DataError
from biasboard.ground.files import sha256_file
from biasboard.ground.memory import Memory, machine_memory
from biasboard.ground.plain_text import listed, printable
from biasboard.ground.progress import steps
from biasboard.ground.strict_json import JsonValue
from evaluators.runs.measure.recording import is_unreadable
from evaluators.task import load_task
from leaderboard.verify.board_files import RESULTS
from leaderboard.verify.entries import (
    TEXTS_ELSEWHERE,
    Entry,
    LeftOut,
    Root,
    as_json,
    claimed_identity,
    entry_from,
    label_of,
    model_label,
)
from leaderboard.verify.intake import (
    FAULTS,
    MOST_RESULT_BYTES,
    Searched,
    StoppedWork,
    check_own_file,
    contents_of,
    isolated,
    read_untrusted,
    results_at,
    strange_files,
)
from leaderboard.verify.keys import KeyBook
from leaderboard.verify.sketches import Sketch, SketchMaker, asked
from leaderboard.verify.submissions import appearance, changes, place_for, read_register, read_submission
from leaderboard.verify.verification import verified_entry
from schemas.documents.board import Acceptance
from schemas.documents.result import Result, metric_key
from schemas.files import contract
from schemas.files.record_columns import answers_sha256, joined_sha256
from schemas.folders.run_folder import RESULT, find_runs, read_parts
from schemas.outputs.documents import Verdict

REPORTED = "its numbers rest on claims"
"""Beginning of a warning about a result that gets no rank, whatever its numbers are."""
UNCOMPARED = f"{REPORTED}: {TEXTS_ELSEWHERE}"
"""Warning about a result without texts, if it was not compared with the complete run that has them."""
_N_WORKERS = 2
"""Number of results to verify at a time: so hostile ones together take at most two gigabytes."""


def judge(
    paths: Sequence[Path], keys: KeyBook, memory: Memory, *, since: Path | None = None, against: Path | None = None
) -> Iterator[Verdict]:
    """Verify every result at some paths, each in a process whose failure harms no other, and show the progress.

    Args:
        paths: Folders of results, folders that contain such folders, or the ``result.json`` of a result.
        keys: The answer keys of the datasets that the board knows.
        memory: The memory of this machine.
        since: Earlier state of a single path, either of them a folder of results or a git checkout. Results that are
            the same in both are skipped; a missing result, one in a folder of another model or dataset, a changed
            register, and in a checkout every other change are rejected. None to judge every result.
        against: Folder of accepted results. A result with the identity of one of these, or of a valid one before it,
            under another name is rejected, and so is one whose name looks like another; one with exactly the answers
            of another model, or with other answers of the same model, has a warning. None to compare results with none.

    Yields:
        A verdict for each result, and for each path, link or folder without one, in the order of the paths. A result
        below several of the paths has one verdict.
    """
    results: dict[object, Searched] = {}
    for path in paths:
        for searched in results_at(path) if since is None else changes(path, since):
            results.setdefault(searched.path.absolute() if searched.problem is None else searched, searched)
    # Strangers write to folders of accepted results too, so nothing in them is trusted.
    pieces = [
        (searched.path, Root(searched.path.parent, "accepted"))
        for searched in results.values()
        if searched.problem is None
    ]
    for path, _ in pieces:
        # Processes with limits build no dataset. A result that cannot be read is named when it is verified.
        with suppress(*FAULTS):
            keys.find(read_untrusted(path).signature, memory)
    there = [] if against is None or not against.is_dir() else find_runs(against)
    valid: list[Path] = []
    outcomes = verified_apart(pieces, memory, keys, n_workers=_N_WORKERS)
    with steps("verifying results") as step:
        n_done = 0
        for searched in results.values():
            if searched.problem is not None:
                yield Verdict(place=str(searched.path), reason=searched.problem)
                continue
            folder, outcome, n_done = searched.path.parent, next(outcomes), n_done + 1
            step("verifying results", n_done, len(pieces))
            # Not with rejected ones: whoever hands those in would harm the others.
            verdict = _verdict(searched.path, outcome, () if against is None else dict.fromkeys([*there, *valid]))
            valid += [folder] if verdict.reason is None else []
            if since is not None and verdict.belongs is not None:
                # The register says by folder who owns a model: a result elsewhere would belong to somebody else.
                place = folder.relative_to(paths[0] / RESULTS if (since / ".git").exists() else paths[0]).as_posix()
                if verdict.belongs != place:
                    reason = f"{place}: belongs into {verdict.belongs}; put it there with: biasboard submit"
                    verdict = replace(verdict, reason=reason)
            yield verdict


def sound_runs(runs: Sequence[Path], keys: KeyBook, results: Path) -> list[tuple[Path, Verdict]]:
    """Verify runs before they are handed to others, and say what a reader will be warned of and what is left out.

    Args:
        runs: Folders of runs.
        keys: The answer keys of the datasets that the board knows.
        results: Folder of accepted results to compare with.

    Returns:
        The runs that would not be rejected, each with its verdict.

    Raises:
        DataError: every run would be rejected.
    """
    verdicts = list(judge(runs, keys, machine_memory(), against=results))
    sound = [(run, verdict) for run, verdict in zip(runs, verdicts, strict=True) if verdict.reason is None]
    for verdict in verdicts:
        if verdict.reason is not None:
            rejected = f"{verdict.place}: would be rejected: {verdict.reason}"
            if not sound:
                raise DataError(rejected)
            print(f"left out: {printable(rejected, most=2_000)}", file=sys.stderr)
        for warning in verdict.warnings:
            print(f"warning: {printable(verdict.place)}: {printable(warning, most=2_000)}", file=sys.stderr)
    return sound


def _verdict(path: Path, outcome: Loaded, others: Iterable[Path]) -> Verdict:
    folder = path.parent
    if isinstance(outcome, LeftOut):
        return Verdict(place=str(folder), reason=outcome.reason)
    try:
        read_submission(path)
        warnings, likenesses = _beside_others(outcome, folder, others)
    except (DataError, OSError) as error:
        return Verdict(place=str(folder), reason=str(error))
    warnings += warnings_of(outcome)
    if strange := strange_files(path):
        warnings.append(f"files that belong to no submission lie beside it: {', '.join(strange[:5])}; leave them out")
    return Verdict(
        place=str(folder),
        warnings=tuple(warnings),
        likenesses=tuple(likenesses),
        belongs=place_for(outcome.result).as_posix(),
        model=model_label(outcome),
        signature=str(outcome.result.signature),
        provenance=outcome.provenance,
        is_limited=outcome.match.extent == "slice",
        scorers_taken=tuple(outcome.scorers_taken) if outcome.result.withheld is None else (),
        records_sha256=outcome.result.records.sha256,
        result_sha256=sha256_file(path),
    )


def _beside_others(entry: Entry, folder: Path, others: Iterable[Path]) -> tuple[list[str], list[str]]:
    """Return what a verified result has in common with others that were there before: warnings and likenesses.

    Raises:
        DataError: its model has another name there, or is easily taken for one that is there.
    """
    own_sha256, ours = sha256_file(folder / RESULT), entry.result
    warnings: list[str] = []
    likenesses: list[str] = []
    for other in others:
        theirs = _result_in(other)
        if theirs is None or other.absolute() == folder.absolute() or sha256_file(other / RESULT) == own_sha256:
            continue
        name = label_of(theirs.model)
        is_same_model = ours.model.identity_sha256 == theirs.model.identity_sha256
        if is_same_model and (ours.model.id, ours.model.revision) != (theirs.model.id, theirs.model.revision):
            raise DataError(claimed_identity(theirs.model, other))
        if ours.model.id != theirs.model.id and appearance(ours.model.id) == appearance(theirs.model.id):
            raise DataError(
                f"its id {ours.model.id} looks like that of {name} in {other}; give the same id, or a clearly other one"
            )
        is_repeated = is_same_model and ours.signature_sha256 == theirs.signature_sha256
        if not is_repeated and (ours.model.id == theirs.model.id or asked(ours) != asked(theirs)):
            continue
        sha256, sketch = _answers_in(other)
        is_equal = entry.answers_sha256 == sha256
        likeness = None if sketch is None else entry.sketch.likeness(sketch)
        if is_repeated and not is_equal and likeness is None:
            warnings.append(
                f"has other answers than {other}, of the same model; a maintainer has to settle which are right"
            )
        elif not is_repeated and is_equal:
            warnings.append(f"gives exactly the answers of {name} in {other}")
        elif not is_repeated and likeness is not None:
            likenesses.append(f"a maintainer may look at it beside {name} in {other}: {likeness}")
    return warnings, likenesses


@lru_cache(maxsize=4_096)
def _result_in(folder: Path) -> Result | None:
    """Return a result; None if it cannot be read, which is said where it is verified itself."""
    try:
        return read_untrusted(folder / RESULT)
    except FAULTS:
        return None


@lru_cache(maxsize=4_096)
def _answers_in(folder: Path) -> tuple[str | None, Sketch | None]:
    """Return hash and sketch of the answers of a result; None if they cannot be read, which is said elsewhere too."""
    result, maker = _result_in(folder), SketchMaker()
    hashes: list[str] = []
    try:
        for records in () if result is None else read_parts(folder, result, recount=False):
            maker.add(records)
            hashes.append(answers_sha256(records))
    except FAULTS:
        return None, None
    return joined_sha256(hashes), maker.sketch


def warnings_of(entry: Entry) -> Iterator[str]:
    """Yield everything about a valid result that readers of its numbers should know."""
    if entry.match.reason is not None:
        yield entry.match.reason
    if is_unreadable(entry.result):
        yield "none of its answers could be read, so that it has no value"
    if entry.result.model.identity is None:
        yield "which model answered is the word of who ran it: an endpoint shows no weights, or no hashes are named"
    if entry.claim not in (None, TEXTS_ELSEWHERE):
        yield f"{REPORTED}: {entry.claim}"
    if entry.result.withheld is not None:
        yield UNCOMPARED
    stored = {metric_key(metric) for metric in entry.result.metrics}
    lacking = sorted({name for name, _ in entry.metrics.keys() - stored})
    if lacking:
        yield f"metrics that it leaves out were computed from its records: {listed(lacking, most=5)}"
    if entry.earlier:
        names = sorted({f"{metric.name} {metric.version}" for metric in entry.earlier})
        yield f"metrics of other versions were computed again: {', '.join(names)}"


_VERIFIED = "verified result"
# For fewer bytes of parquet files, starting processes takes longer than the work itself.
_MUCH_TO_READ = 2_000_000
_MOST_WITHOUT_METRICS = 32_768
"""Largest number of bytes of a result without metrics; a larger one need not be read to know that it has some."""


Located: TypeAlias = tuple[Path, Root]
"""Path of a ``result.json``, and the folder in which it was searched."""
Loaded: TypeAlias = Entry | LeftOut


class LoadedResults(NamedTuple):
    """The results that were found: the valid ones, and those that were left out."""

    entries: tuple[Entry, ...]
    left_out: tuple[LeftOut, ...]


def load(
    roots: Sequence[Root],
    keys: KeyBook,
    memory: Memory | None = None,
    *,
    progress: Callable[[int, int], None] | None = None,
    keep: Callable[[Root, str], bool] | None = None,
) -> LoadedResults:
    """Load and verify every result below some folders, on all cores if there is much to read.

    Args:
        roots: Folders to search; one that does not exist is treated as empty.
        keys: The answer keys of the datasets that the board knows.
        memory: Memory of the results that this machine has verified before; None for that of the user.
        progress: Function called after each result with the number of results done and the number of all results.
        keep: Function that is True for the folders, relative to a root, that are loaded; None for all.

    Returns:
        The valid results, and the invalid ones with the reason for each.
    """
    results = [
        (path, root)
        for root in roots
        for path in (folder / RESULT for folder in find_runs(root.folder))
        if (keep is None or keep(root, root.place(path))) and not _measures_nothing(path)
    ]
    outcomes = verified_outcomes(results, keys, memory, progress=progress)
    return LoadedResults(
        entries=tuple(outcome for outcome in outcomes if isinstance(outcome, Entry)),
        left_out=tuple(outcome for outcome in outcomes if isinstance(outcome, LeftOut)),
    )


def _measures_nothing(path: Path) -> bool:
    """Return True if a result is that of a task without metrics, whose answers are data to build from."""
    try:
        if path.stat().st_size > _MOST_WITHOUT_METRICS:
            return False
        task = load_task(contract.read(path, Result).signature.task)
    except (BiasboardError, OSError):
        return False  # Verification says why it cannot be read.
    return task.measures_nothing


def verified_outcomes(
    results: Sequence[Located],
    keys: KeyBook,
    memory: Memory | None = None,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> list[Loaded]:
    """Verify some results as :func:`load` does, from the same arguments.

    Returns:
        The entry of each result with the decision about it, or the reason why it is left out, in the same order.
    """
    memory = memory or machine_memory()
    n_done = itertools.count(1)

    def done(outcome: Loaded) -> Loaded:
        if progress is not None:
            progress(next(n_done), len(results))
        return outcome

    remembered = [entry and done(entry) for entry in (_remembered(*file, memory, keys) for file in results)]
    unknown = [file for file, entry in zip(results, remembered, strict=True) if entry is None]
    files = (file for path, _ in unknown for file in os.scandir(path.parent))
    is_foreign = any(root.origin == "accepted" for _, root in unknown)
    verified = verified_apart(unknown, memory, keys, n_workers=os.cpu_count() or 1)
    if not is_foreign and (
        len(unknown) < 2 or sum(file.stat(follow_symlinks=False).st_size for file in files) < _MUCH_TO_READ
    ):
        verified = (verified_outcome(file, memory, keys) for file in unknown)
    verified = map(done, verified)
    outcomes = [entry or next(verified) for entry in remembered]
    accepted = {root for _, root in results if root.origin == "accepted"}
    decisions = {root: read_register(root.folder).by_place for root in accepted}
    return [
        _decided(outcome, path, decisions.get(root, {})) if isinstance(outcome, Entry) else outcome
        for (path, root), outcome in zip(results, outcomes, strict=True)
    ]


def _decided(entry: Entry, path: Path, decisions: Mapping[str, Acceptance]) -> Entry:
    """Return a result with the decision about it, if it was not changed since then."""
    decision = decisions.get(entry.place)
    if decision is not None and decision.result_sha256 == sha256_file(path):
        entry = replace(entry, acceptance=decision)
    if entry.result.withheld is not None and not entry.has_compared_texts:
        # Nothing in its files shows that its numbers follow from answers, so it is in no table with others.
        entry = replace(entry, match=entry.match._replace(extent="unknown", reason=TEXTS_ELSEWHERE))
    return entry


def verified_apart(results: Sequence[Located], memory: Memory, keys: KeyBook, *, n_workers: int) -> Iterator[Loaded]:
    """Yield the outcome of each result, verified in a process with limits, whose failure harms no other."""
    work = partial(verified_outcome, memory=memory, keys=keys)
    outcomes = isolated(work, results, n_workers=max(1, min(n_workers, len(results))))
    for result, outcome in zip(results, outcomes, strict=True):
        yield _left_out(result, f"{result[0]}: {outcome.reason}") if isinstance(outcome, StoppedWork) else outcome


def verified_outcome(result: Located, memory: Memory, keys: KeyBook) -> Loaded:
    """Verify one result, and return why it is left out if anything is wrong with it."""
    path, root = result
    try:
        check_own_file(path, MOST_RESULT_BYTES)
        before = sha256_file(path)
        entry = verified_entry(path, root, memory, keys)
        now = _hashes(path, root, entry.result, keys, memory)
        # The files may have changed while they were read.
        if now == now | {"result": before} | contents_of(entry.result):
            memory.put(_VERIFIED, now, as_json(entry))
        return entry
    except UnicodeEncodeError:
        reason = f"{str(path)!a}: is not UTF-8; rename the folder"
    except LookupError as error:
        reason = f"{path}: its records lack what their task needs: {error}; run the model again"
    except FAULTS as error:
        reason = str(error)
    return _left_out(result, reason)


def _remembered(path: Path, root: Root, memory: Memory, keys: KeyBook) -> Entry | None:
    """Return a result that was verified before, if its files, its key and the code are byte for byte the same."""
    try:
        result = read_untrusted(path)
        stored = memory.get(_VERIFIED, _hashes(path, root, result, keys, memory))
    except FAULTS:
        return None
    return None if stored is None else entry_from(stored, result, root.origin, root.place(path), path.parent)


def _hashes(path: Path, root: Root, result: Result, keys: KeyBook, memory: Memory) -> dict[str, JsonValue]:
    """Return what the entry of a result follows from: its files, the key of its dataset, and whether it is foreign."""
    key = keys.find(result.signature, memory)
    known = {"result": sha256_file(path), "key": None if key is None else key.sha256, "origin": root.origin}
    return contents_of(result, path.parent) | known


def _left_out(result: Located, reason: str) -> LeftOut:
    path, root = result
    # Pages must not depend on the location of the folders.
    return LeftOut(root.place(path), root.origin, reason.replace(f"{root.folder}{os.sep}", ""))
