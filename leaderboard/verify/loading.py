"""Finds results and verifies each of them, on all cores if there is much to read."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

from biasboard.ground.errors import BiasboardError
from biasboard.ground.files import sha256_file
from biasboard.ground.memory import Memory, machine_memory
from biasboard.ground.strict_json import JsonValue
from evaluators.task import load_task
from leaderboard.verify.entries import TEXTS_ELSEWHERE, Entry, LeftOut, Root, as_json, entry_from
from leaderboard.verify.intake import FAULTS, MOST_RESULT_BYTES, check_own_file, contents_of, read_untrusted
from leaderboard.verify.isolation import StoppedWork, isolated
from leaderboard.verify.keys import KeyBook
from leaderboard.verify.submissions import read_register
from leaderboard.verify.verification import verified_entry
from schemas.documents.board import Acceptance
from schemas.documents.result import Result
from schemas.files import contract
from schemas.folders.run_folder import RESULT, find_runs

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
