"""Answer keys for results that tests make themselves, without a dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import mock

from biasboard.ground.errors import BiasboardError
from biasboard.ground.memory import Memory
from evaluators.runs.measure.stored_results import MadeKey, key_of_parts
from leaderboard.verify import verification
from leaderboard.verify.entries import Entry, LeftOut, Root
from leaderboard.verify.keys import KeyBook, KnownKey, write_key
from leaderboard.verify.verdicts import LoadedResults, load, verified_outcome
from schemas.documents.result import Result, Signature
from schemas.files.record_files import read_parts_unchecked
from schemas.folders.run_folder import RESULT, find_runs, read_result


class MadeKeys(KeyBook):
    """Keys that believe the first result of each signature below some folders."""

    def __init__(self, *folders: Path) -> None:
        super().__init__(None)
        self._folders = folders
        self._believed: dict[str, KnownKey | None] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return MadeKeys, self._folders

    def find(self, signature: Signature, memory: Memory) -> KnownKey | None:
        name = signature.sha256()
        if name not in self._believed:
            self._believed[name] = next(self._keys_of(name), None)
        return self._believed[name]

    def _keys_of(self, signature_sha256: str) -> Iterator[KnownKey]:
        for folder in self._folders:
            for run in find_runs(folder):
                with suppress(BiasboardError):
                    if read_result(run).signature_sha256 == signature_sha256:
                        made = made_key(run)
                        yield KnownKey(made.key, "the tests", made.items)


def made_key(run: Path) -> MadeKey:
    """The key by which the records of a run are right."""
    result: Result = read_result(run)
    return key_of_parts(result.signature, "0" * 64, read_parts_unchecked(run / result.records.path))


def write_keys(keys: Path, *folders: Path) -> Path:
    """Write keys by which the largest result on each config under each prompt is right; gives their folder."""
    results = [(read_result(run).signature.n_items, run) for folder in folders for run in find_runs(folder)]
    for _, run in sorted(results):
        write_key(keys, made_key(run))
    return keys


def load_known(
    *roots: Root,
    memory: Memory | None = None,
    progress: Callable[[int, int], None] | None = None,
    any_name: bool = False,
) -> LoadedResults:
    """Load results whose items the board knows; pages must bear any name, though verification refuses most."""
    if any_name:
        # One after another in this process: others would refuse the names.
        keys = MadeKeys(*(root.folder for root in roots))
        found = [(run / RESULT, root) for root in roots for run in find_runs(root.folder)]
        with mock.patch.object(verification, "check_model_id"):
            outcomes = [verified_outcome(one, memory or Memory(None), keys) for one in found]
        return LoadedResults(
            tuple(one for one in outcomes if isinstance(one, Entry)),
            tuple(one for one in outcomes if isinstance(one, LeftOut)),
        )
    return load(roots, MadeKeys(*(root.folder for root in roots)), memory, progress=progress)
