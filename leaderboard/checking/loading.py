"""Finds results and verifies each of them, on all cores if there is much to read."""

from __future__ import annotations

import itertools
import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

from leaderboard.checking.entries import Entry, LeftOut, Root
from leaderboard.checking.remembered import entry_to_remember, remembered_entry
from schemas.errors import BiasboardError
from schemas.memory import Memory, machine_memory
from schemas.run_folder import RESULT, find_runs

# For fewer bytes of parquet files, starting processes takes longer than the work itself.
_MUCH_TO_READ = 2_000_000


class Loaded(NamedTuple):
    """The results that were found: the valid ones, and those that were left out."""

    entries: tuple[Entry, ...]
    left_out: tuple[LeftOut, ...]


def load(
    roots: Sequence[Root], memory: Memory | None = None, *, progress: Callable[[int, int], None] | None = None
) -> Loaded:
    """Load and verify every result below some folders, on all cores if there is much to read.

    Args:
        roots: Folders to search; one that does not exist is treated as empty.
        memory: Memory of the results that this machine has verified before; None for that of the user.
        progress: Function called after each result with the number of results done and the number of all results.

    Returns:
        The valid results, and the invalid ones with the reason for each.
    """
    found = [(path, root) for root in roots for path in (folder / RESULT for folder in find_runs(root.folder))]
    entries: list[Entry] = []
    left_out: list[LeftOut] = []
    first_of_signature: dict[str, Entry] = {}
    done = itertools.count(1)

    def advance() -> None:
        if progress is not None:
            progress(next(done), len(found))

    for outcome in _outcomes(found, memory or machine_memory(), advance):
        checked = _with_same_items(outcome, first_of_signature) if isinstance(outcome, Entry) else outcome
        if isinstance(checked, Entry):
            entries.append(checked)
        else:
            left_out.append(checked)
    return Loaded(entries=tuple(entries), left_out=tuple(left_out))


def _outcomes(
    found: Sequence[tuple[Path, Root]], memory: Memory, advance: Callable[[], None]
) -> Iterator[Entry | LeftOut]:
    """Yield the verified entry of each result, or the reason why it is left out, in the order of ``found``.

    Args:
        found: Path and root of each result.
        memory: Memory of the results that were verified before; these are looked up first.
        advance: Function called when the outcome of one more result is known.
    """
    known: list[Entry | None] = []
    for path, root in found:
        known.append(remembered_entry(path, root, memory))
        if known[-1] is not None:
            advance()
    computed = _computed([one for one, entry in zip(found, known, strict=True) if entry is None], memory)
    for entry in known:
        if entry is not None:
            yield entry
        else:
            yield next(computed)
            advance()


def _computed(found: Sequence[tuple[Path, Root]], memory: Memory) -> Iterator[Entry | LeftOut]:
    outcome = partial(_outcome, memory=memory)
    n_bytes = sum(file.stat().st_size for path, _ in found for file in path.parent.glob("*.parquet"))
    n_workers = min(os.cpu_count() or 1, len(found))
    if n_bytes < _MUCH_TO_READ or n_workers < 2:
        yield from map(outcome, found)
        return
    # Spawn processes: a forked one would inherit the locks of the threads that pyarrow has started.
    with ProcessPoolExecutor(n_workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(outcome, found)


def _outcome(found: tuple[Path, Root], memory: Memory) -> Entry | LeftOut:
    path, root = found
    try:
        return entry_to_remember(path, root, memory)
    # The path in a result from outside can be too long for the system or contain a null character.
    except (BiasboardError, OSError, ValueError, ArithmeticError, LookupError) as error:
        # Pages must not depend on the location of the folders.
        reason = _told(path, error).replace(f"{root.folder}{os.sep}", "")
        return LeftOut(place=root.place(path), origin=root.origin, reason=reason)
    # A result from outside must not end the board for all others.
    except MemoryError:
        reason = f"{root.place(path)}/{RESULT}: checking it takes more memory than there is; run the model again"
        return LeftOut(place=root.place(path), origin=root.origin, reason=reason)


def _told(path: Path, error: Exception) -> str:
    """Return a fault of a result in words."""
    if isinstance(error, LookupError):
        return f"{path}: its records lack what their task needs: {error}; run the model again"
    if isinstance(error, UnicodeEncodeError):
        return f"{str(path)!a}: is not UTF-8; rename the folder"
    return str(error)


def _with_same_items(entry: Entry, first_of_signature: dict[str, Entry]) -> Entry | LeftOut:
    """Return the entry, or why it is left out if its items differ from those of the first entry with its signature.

    Each record carries the right answer of its item, so results of one signature must agree on the items.
    """
    first = first_of_signature.setdefault(entry.result.signature_sha256, entry)
    if first.items_fingerprint == entry.items_fingerprint:
        return entry
    reason = (
        f"{entry.place}/{RESULT}: its records describe other items (target, cluster or group) than those of "
        f"{first.place}, though the signature is the same; run one of them again"
    )
    return LeftOut(place=entry.place, origin=entry.origin, reason=reason)
