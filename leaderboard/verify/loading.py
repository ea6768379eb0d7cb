"""Finds results and verifies each of them, on all cores if there is much to read."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from biasboard.ground.errors import BiasboardError
from biasboard.ground.files import sha256_file
from biasboard.ground.memory import Memory, machine_memory
from evaluators.task import load_task
from leaderboard.verify.entries import TEXTS_ELSEWHERE, Entry, LeftOut, Root
from leaderboard.verify.isolation import Stopped, end_for_lack_of_memory, isolated
from leaderboard.verify.keys import KeyBook
from leaderboard.verify.submissions import acceptances, read_register
from leaderboard.verify.verification_memory import remembered_entry, verify_and_remember
from schemas.documents.result import Result
from schemas.files import contract
from schemas.folders.run_folder import RESULT, find_runs

# For fewer bytes of parquet files, starting processes takes longer than the work itself.
_MUCH_TO_READ = 2_000_000
_MOST_WITHOUT_METRICS = 32_768
"""Largest number of bytes of a result without metrics; a larger one need not be read to know that it has some."""


class Loaded(NamedTuple):
    """The results that were found: the valid ones, and those that were left out."""

    entries: tuple[Entry, ...]
    left_out: tuple[LeftOut, ...]


def load(
    roots: Sequence[Root],
    keys: KeyBook,
    memory: Memory | None = None,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> Loaded:
    """Load and verify every result below some folders, on all cores if there is much to read.

    Args:
        roots: Folders to search; one that does not exist is treated as empty.
        keys: The answer keys of the datasets that the board knows.
        memory: Memory of the results that this machine has verified before; None for that of the user.
        progress: Function called after each result with the number of results done and the number of all results.

    Returns:
        The valid results, and the invalid ones with the reason for each.
    """
    found = [
        (path, root)
        for root in roots
        for path in (folder / RESULT for folder in find_runs(root.folder))
        if not _measures_nothing(path)
    ]
    outcomes = verified_outcomes(found, keys, memory, progress=progress)
    return Loaded(
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
    found: Sequence[tuple[Path, Root]],
    keys: KeyBook,
    memory: Memory | None = None,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> list[Entry | LeftOut]:
    """Verify some results, on all cores if there is much to read.

    Args:
        found: Path of each ``result.json``, and the root that it was found in.
        keys: The answer keys of the datasets that the board knows.
        memory: Memory of the results that this machine has verified before; None for that of the user.
        progress: Function called after each result with the number of results done and the number of all results.

    Returns:
        The verified entry of each result with the decision about it, or the reason why it is left out, in the same
        order.
    """
    done = itertools.count(1)

    def advance() -> None:
        if progress is not None:
            progress(next(done), len(found))

    accepted = {root for _, root in found if root.origin == "accepted"}
    decisions = {root: acceptances(read_register(root.folder)) for root in accepted}
    decided: list[Entry | LeftOut] = []
    outcomes = _remembered_or_verified(found, memory or machine_memory(), keys, advance)
    for (path, root), outcome in zip(found, outcomes, strict=True):
        if isinstance(outcome, Entry):
            decision = decisions.get(root, {}).get(outcome.place)
            is_same = decision is not None and decision.result_sha256 == sha256_file(path)
            outcome = replace(outcome, acceptance=decision) if is_same else outcome
            if outcome.result.withheld is not None and not outcome.has_compared_texts:
                # Nothing in its files shows that its numbers follow from answers, so it is in no table with others.
                outcome = replace(outcome, match=outcome.match._replace(extent="unknown", reason=TEXTS_ELSEWHERE))
        decided.append(outcome)
    return decided


def _remembered_or_verified(
    found: Sequence[tuple[Path, Root]], memory: Memory, keys: KeyBook, advance: Callable[[], None]
) -> Iterator[Entry | LeftOut]:
    """Yield the verified entry of each result, or the reason why it is left out, in the order of ``found``.

    Args:
        found: Path and root of each result.
        memory: Memory of the results that were verified before; these are looked up first.
        keys: The answer keys of the datasets that the board knows.
        advance: Function called after the outcome of each result.
    """
    remembered: list[Entry | None] = []
    for path, root in found:
        remembered.append(remembered_entry(path, root, memory, keys))
        if remembered[-1] is not None:
            advance()
    computed = _verified_now(
        [file for file, entry in zip(found, remembered, strict=True) if entry is None], memory, keys
    )
    for entry in remembered:
        if entry is not None:
            yield entry
        else:
            yield next(computed)
            advance()


def _verified_now(found: Sequence[tuple[Path, Root]], memory: Memory, keys: KeyBook) -> Iterator[Entry | LeftOut]:
    outcome = partial(verified_outcome, memory=memory, keys=keys)
    is_foreign = any(root.origin == "accepted" for _, root in found)
    if not is_foreign and (len(found) < 2 or sum(map(_n_bytes, found)) < _MUCH_TO_READ):
        yield from map(outcome, found)
        return
    n_workers = min(os.cpu_count() or 1, len(found))
    for (path, root), ended in zip(found, isolated(outcome, found, n_workers=n_workers), strict=True):
        if isinstance(ended, Stopped):
            yield LeftOut(place=root.place(path), origin=root.origin, reason=f"{root.place(path)}: {ended.reason}")
        else:
            yield ended


def _n_bytes(found: tuple[Path, Root]) -> int:
    return sum(entry.stat(follow_symlinks=False).st_size for entry in os.scandir(found[0].parent))


def verified_outcome(found: tuple[Path, Root], memory: Memory, keys: KeyBook) -> Entry | LeftOut:
    """Verify one result, and return why it is left out if anything is wrong with it.

    Args:
        found: Path of the ``result.json``, and the root that it was found in.
        memory: The memory of this machine.
        keys: The answer keys of the datasets that the board knows.
    """
    path, root = found
    try:
        return verify_and_remember(path, root, memory, keys)
    # The path in a result from outside can be too long for the system or contain a null character.
    except (BiasboardError, OSError, ValueError, ArithmeticError, LookupError) as error:
        # Pages must not depend on the location of the folders.
        reason = _worded(path, error).replace(f"{root.folder}{os.sep}", "")
        return LeftOut(place=root.place(path), origin=root.origin, reason=reason)
    # A result from outside must not end the board for all others.
    except MemoryError:
        end_for_lack_of_memory()
        reason = f"{root.place(path)}/{RESULT}: checking it takes more memory than there is; run the model again"
        return LeftOut(place=root.place(path), origin=root.origin, reason=reason)


def _worded(path: Path, error: Exception) -> str:
    """Return a fault of a result in words."""
    if isinstance(error, LookupError):
        return f"{path}: its records lack what their task needs: {error}; run the model again"
    if isinstance(error, UnicodeEncodeError):
        return f"{str(path)!a}: is not UTF-8; rename the folder"
    return str(error)
