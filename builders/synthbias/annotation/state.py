"""The folder of an annotation: ``votes.csv``, ``annotators.csv``, the batches, the salt of the pseudonyms, the dataset.

``annotated.json`` says which dataset is annotated: commands refuse the folder with another one.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from filelock import FileLock, Timeout

from biasboard.ground import strict_json
from biasboard.ground.errors import BiasboardError, ConfigError, DataError
from biasboard.ground.files import replacing
from builders.synthbias.annotation.safe_csv import CORRECT_LINE, columns_of, read_records, render_records
from builders.synthbias.annotation.votes import Annotator, AnnotatorKind, Vote, VoteKey, reader_name, standing_votes
from schemas.documents.dataset import Manifest
from schemas.folders.dataset_folder import MANIFEST

VOTES = "votes.csv"
ANNOTATORS = "annotators.csv"
BATCHES = "batches"
SALT = "salt"
DATASET = "annotated.json"
"""Name, version and content of the dataset whose annotation it is."""
_LOCK = ".lock"
_LOCK_SECONDS = 30.0

R = TypeVar("R")
OfReader = TypeVar("OfReader", Vote, Annotator)


@dataclass(frozen=True)
class State:
    """The votes and annotators of an annotation."""

    rows: tuple[Vote, ...]
    """Rows of ``votes.csv``, in order."""
    annotators: dict[str, Annotator]
    """Annotators by id."""

    @cached_property
    def standing_votes(self) -> dict[VoteKey, Vote]:
        """The votes in force, see :func:`builders.synthbias.annotation.votes.standing_votes`."""
        return standing_votes(self.rows)

    def part(self, wanted: Callable[[Vote], bool]) -> State:
        """Return the state with only the wanted rows, which must include all rows on a question or none.

        In a state with many votes, a part of it answers questions about a few votes much faster.
        """
        return State(tuple(vote for vote in self.rows if wanted(vote)), self.annotators)


def check_outside_datasets(option: str, folder: Path, *, is_dataset: bool = False) -> None:
    """Check that a folder is not a dataset folder or inside one, since dataset folders are published whole.

    Args:
        option: Option that gave the folder, for the message.
        folder: The folder, which need not exist.
        is_dataset: True if the folder itself may be a dataset folder, because a dataset is written there.

    Raises:
        ConfigError: it is a dataset folder or inside one.
    """
    resolved = folder.resolve()
    for above in (*(() if is_dataset else (resolved,)), *resolved.parents):
        if (above / MANIFEST).is_file():
            raise ConfigError(f"{option} {folder}: lies in the dataset folder {above}; give a folder outside of it")


def read_state(folder: Path) -> State:
    """Read the state of an annotation; an empty or missing folder is an annotation without votes.

    Raises:
        DataError: a file is broken.
        ConfigError: the path is a file, or inside a dataset folder.
    """
    _check_folder(folder)
    rows = tuple(_of_reader(vote) for _, vote in _read_own(folder / VOTES, Vote))
    annotators: dict[str, Annotator] = {}
    for where, read in _read_own(folder / ANNOTATORS, Annotator):
        annotator = _of_reader(read)
        if annotator.annotator_id in annotators:
            raise DataError(f"{where}: annotator '{annotator.annotator_id}' stands twice; keep one line")
        annotators[annotator.annotator_id] = annotator
    for vote in rows:
        annotators.setdefault(vote.annotator_id, Annotator(annotator_id=vote.annotator_id, kind=AnnotatorKind.HUMAN))
    return State(rows, annotators)


def check_dataset(folder: Path, dataset: Path, manifest: Manifest) -> None:
    """Check that a state was begun on this dataset, if it says on which one it was.

    Raises:
        DataError: it was begun on another dataset or on another version, or the file that says so is broken.
    """
    path = folder / DATASET
    if not path.exists():
        return
    given = _identity(manifest)
    begun = strict_json.read(path, remedy="remove it, and the next command writes it again")
    if not isinstance(begun, dict) or begun.keys() != given.keys():
        raise DataError(f"{path}: does not name a dataset; remove it, and the next command writes it again")
    if begun != given:
        raise DataError(
            f"--state {folder}: was begun on {_words(begun)}, but {dataset} is {_words(given)}; give that dataset, or "
            f"another --state; to keep the votes that fit, remove {path}"
        )


def note_dataset(folder: Path, manifest: Manifest) -> None:
    """Write on which dataset a state was begun, unless it says so; the caller must hold the lock."""
    if not (folder / DATASET).exists():
        _write(folder / DATASET, strict_json.dumps({**_identity(manifest)}))


def _identity(manifest: Manifest) -> dict[str, str]:
    return {"name": manifest.name, "version": manifest.version, "content_sha256": manifest.content_sha256}


def _words(identity: Mapping[str, object]) -> str:
    return f"{identity['name']} {identity['version']} with content {str(identity['content_sha256'])[:12]}"


def _check_folder(folder: Path) -> None:
    check_outside_datasets("--state", folder)
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"--state {folder}: is a file; give a folder")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a state against changes by other processes.

    Raises:
        ConfigError: another process holds the lock for too long, or the state is inside a dataset folder.
    """
    _check_folder(folder)
    is_new, has_lock = not folder.exists(), (folder / _LOCK).exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / _LOCK, timeout=_LOCK_SECONDS):
            try:
                yield
            except BiasboardError:
                # A mistake leaves nothing behind, though the lock is taken before the votes are checked. It is still
                # held here: who waits for it notices that the file is gone, and makes it again.
                if not has_lock:
                    (folder / _LOCK).unlink(missing_ok=True)
                raise
    except Timeout as error:
        raise ConfigError(f"--state {folder}: another command is writing there; wait until it is done") from error
    finally:
        if is_new:
            with suppress(OSError):
                folder.rmdir()  # Only an empty folder can be removed.


def write_state(folder: Path, old: State, new: State) -> None:
    """Write the changes of a state, each file atomically; the caller must hold the lock.

    Raises:
        ValueError: rows of the votes were removed or changed, though rows may only be added.
    """
    if new.rows[: len(old.rows)] != old.rows:
        raise ValueError("votes.csv only grows")
    if new.annotators != old.annotators:
        _write(folder / ANNOTATORS, render_records(Annotator, new.annotators.values()))
    added = new.rows[len(old.rows) :]
    if added:
        path = folder / VOTES
        before = path.read_bytes().decode("utf-8") if path.exists() else render_records(Vote, ())
        # An editor may have dropped the final line break.
        before += "" if before.endswith("\n") else "\r\n"
        _write(path, before + render_records(Vote, added, heading=False))


def pseudonyms(folder: Path, annotators: Iterable[str]) -> dict[str, str]:
    """Return a name for each annotator that does not reveal the id, but is the same in every release of a state.

    The names are keyed hashes, whose salt stays in the state: without it, trying ids does not reveal their pseudonyms.
    """
    path = folder / SALT
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(secrets.token_hex(32) + "\n")
    salt = path.read_text(encoding="utf-8").strip().encode()
    return {name: hmac.new(salt, name.encode(), hashlib.sha256).hexdigest()[:16] for name in annotators}


def _write(path: Path, text: str) -> None:
    with replacing(path) as temporary:
        temporary.write_bytes(text.encode("utf-8"))


def _of_reader(record: OfReader) -> OfReader:
    name = reader_name(record.annotator_id)
    return record if name == record.annotator_id else replace(record, annotator_id=name)


def _read_own(path: Path, kind: type[R]) -> list[tuple[str, R]]:
    if not path.exists():
        return []
    columns = ",".join(columns_of(kind))
    # New rows are appended in the order of the heading, so that it must match.
    return read_records(path, kind, remedy=CORRECT_LINE, other_columns=f"; restore {columns}")
