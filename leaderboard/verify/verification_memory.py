"""Reuses verified results from the memory of this machine if all their files are unchanged."""

from __future__ import annotations

from pathlib import Path

from biasboard.ground.files import sha256_file
from biasboard.ground.memory import Memory
from biasboard.ground.strict_json import JsonValue
from leaderboard.verify.entries import Entry, Root
from leaderboard.verify.intake import FAULTS, MOST_RESULT_BYTES, check_own_file, files_of, read_untrusted
from leaderboard.verify.keys import KeyBook
from leaderboard.verify.stored_entries import as_json, entry_from
from leaderboard.verify.verification import verified_entry
from schemas.documents.result import Result
from schemas.folders.run_folder import path_of

_VERIFIED = "verified result"


def remembered_entry(path: Path, root: Root, memory: Memory, keys: KeyBook) -> Entry | None:
    """Return a result that was verified before, if its files and the code are byte for byte the same as then.

    Args:
        path: Path of the ``result.json``.
        root: Folder in which it was found.
        memory: The memory of this machine.
        keys: The answer keys of the datasets that the board knows.

    Returns:
        The verified result; None if it is not remembered or cannot be read.
    """
    try:
        result = read_untrusted(path)
        stored = memory.get(_VERIFIED, _hashes(path, result) | _key_hash(result, keys, memory))
    except FAULTS:
        return None
    return None if stored is None else entry_from(stored, result, root.origin, root.place(path), path.parent)


def verify_and_remember(path: Path, root: Root, memory: Memory, keys: KeyBook) -> Entry:
    """Verify a result and keep the outcome in memory.

    Args:
        path: Path of the ``result.json``.
        root: Folder in which it was found.
        memory: The memory of this machine.
        keys: The answer keys of the datasets that the board knows.

    Raises:
        DataError: as from :func:`leaderboard.verify.verification.verified_entry`.
    """
    check_own_file(path, MOST_RESULT_BYTES)
    before = sha256_file(path)
    entry = verified_entry(path, root, memory, keys)
    files = _hashes(path, entry.result)
    read = {"result": before} | {name: file.sha256 for name, file in files_of(entry.result).items()}
    # The files may have changed while they were read.
    if files == read:
        memory.put(_VERIFIED, files | _key_hash(entry.result, keys, memory), as_json(entry))
    return entry


def _hashes(path: Path, result: Result) -> dict[str, JsonValue]:
    hashes = {name: sha256_file(path_of(path.parent, file)) for name, file in files_of(result).items()}
    return {"result": sha256_file(path), **hashes}


def _key_hash(result: Result, keys: KeyBook, memory: Memory) -> dict[str, JsonValue]:
    key = keys.find(result.signature, memory)
    return {"key": None if key is None else key.sha256}
