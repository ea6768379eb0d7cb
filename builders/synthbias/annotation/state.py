"""The folder that an annotation keeps: ``votes.csv``, ``annotators.csv``, the batches, and the salt of pseudonyms."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from filelock import FileLock, Timeout

from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.files import replacing
from builders.synthbias.annotation.safe_csv import Row, read_rows, render_records
from builders.synthbias.annotation.votes import (
    Annotator,
    AnnotatorKind,
    Answer,
    Question,
    Status,
    Vote,
    VoteKey,
    standing_votes,
)
from schemas.folders.dataset_folder import MANIFEST

VOTES = "votes.csv"
ANNOTATORS = "annotators.csv"
BATCHES = "batches"
SALT = "salt"
_LOCK = ".lock"
_LOCK_SECONDS = 30.0
VOTE_COLUMNS = tuple(field.name for field in fields(Vote))
ANNOTATOR_COLUMNS = tuple(field.name for field in fields(Annotator))
REMEDY = "correct the line, or take the file from a backup"

E = TypeVar("E", Question, Answer, AnnotatorKind, Status)


@dataclass(frozen=True)
class State:
    """The votes and annotators of an annotation."""

    rows: tuple[Vote, ...]
    """Rows of ``votes.csv`` in their order."""
    annotators: dict[str, Annotator]
    """Annotators by id."""

    @cached_property
    def standing_votes(self) -> dict[VoteKey, Vote]:
        """The votes that stand, see :func:`builders.synthbias.annotation.votes.standing_votes`."""
        return standing_votes(self.rows)

    def part(self, wanted: Callable[[Vote], bool]) -> State:
        """Return the state with the wanted rows alone; they must hold all rows on a question or none.

        Where a state has many votes, questions about a few of them are answered much faster by a part of it.
        """
        return State(tuple(vote for vote in self.rows if wanted(vote)), self.annotators)


def check_outside_datasets(option: str, folder: Path, *, is_dataset: bool = False) -> None:
    """Check that a folder is none of a dataset and lies in none, since dataset folders are published whole.

    Args:
        option: Option that gave the folder, for the message.
        folder: The folder, which need not exist.
        is_dataset: True if the folder itself may hold the dataset that is written there.

    Raises:
        ConfigError: it is or does.
    """
    place = folder.resolve()
    for above in (*(() if is_dataset else (place,)), *place.parents):
        if (above / MANIFEST).is_file():
            raise ConfigError(f"{option} {folder}: lies in the dataset folder {above}; give a folder outside of it")


def read_state(folder: Path) -> State:
    """Read the state of an annotation; an empty or missing folder is the beginning of one.

    Raises:
        DataError: a file is broken.
        ConfigError: the path is a file, or lies in a dataset folder.
    """
    check_outside_datasets("--state", folder)
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"--state {folder}: is a file; give a folder")
    rows = tuple(_vote(row) for row in _own_rows(folder / VOTES, VOTE_COLUMNS))
    annotators: dict[str, Annotator] = {}
    for row in _own_rows(folder / ANNOTATORS, ANNOTATOR_COLUMNS):
        annotator = _annotator(row)
        if annotator.annotator_id in annotators:
            raise DataError(f"{row.where}: annotator '{annotator.annotator_id}' stands twice; keep one line")
        annotators[annotator.annotator_id] = annotator
    for vote in rows:
        annotators.setdefault(vote.annotator_id, Annotator(annotator_id=vote.annotator_id, kind=AnnotatorKind.HUMAN))
    return State(rows, annotators)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other processes from changing a state.

    Raises:
        ConfigError: another process is changing it for too long, or it lies in a dataset folder.
    """
    check_outside_datasets("--state", folder)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / _LOCK, timeout=_LOCK_SECONDS):
            yield
    except Timeout as error:
        raise ConfigError(f"--state {folder}: another command is writing there; wait until it is done") from error


def write_state(folder: Path, old: State, new: State) -> None:
    """Write what changed of a state, each file atomically; to be called under the lock.

    Raises:
        ValueError: rows were taken out of the votes, to which rows may only be added.
    """
    if new.rows[: len(old.rows)] != old.rows:
        raise ValueError("votes.csv only grows")
    if new.annotators != old.annotators:
        _write(folder / ANNOTATORS, render_records(ANNOTATOR_COLUMNS, new.annotators.values()))
    added = new.rows[len(old.rows) :]
    if added:
        path = folder / VOTES
        before = path.read_bytes().decode("utf-8") if path.exists() else render_votes(())
        # An editor may have left out the last line break.
        before += "" if before.endswith("\n") else "\r\n"
        _write(path, before + render_votes(added, heading=False))


def render_votes(votes: Iterable[Vote], *, heading: bool = True) -> str:
    """Return votes as the canonical CSV."""
    return render_records(VOTE_COLUMNS, votes, heading=heading)


def read_votes(path: Path) -> list[tuple[str, Vote]]:
    """Read votes in the canonical CSV, each with its file and line.

    Raises:
        DataError: the file is broken.
    """
    found, rows = read_rows(path, remedy=f"give a file with the columns {','.join(VOTE_COLUMNS)}")
    if set(found) != set(VOTE_COLUMNS):
        raise DataError(f"{path}:1: has the columns {','.join(found)}; needs exactly {','.join(VOTE_COLUMNS)}")
    return [(row.where, _vote(row)) for row in rows]


def pseudonyms(folder: Path, annotators: Iterable[str]) -> dict[str, str]:
    """Return a name for each annotator that does not tell the id, but is the same in every release of a state.

    The names are hashes under a salt, which stays in the state. Without it nobody can find out by trying which
    pseudonym an id has.
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


def _own_rows(path: Path, columns: Sequence[str]) -> list[Row]:
    if not path.exists():
        return []
    found, rows = read_rows(path, remedy=REMEDY)
    # Rows are added under the heading, so that its order matters.
    if found != tuple(columns):
        raise DataError(f"{path}:1: has the columns {','.join(found)}; restore {','.join(columns)}")
    return rows


def _vote(row: Row) -> Vote:
    cells = row.cells
    for name in ("item_id", "pair_id", "annotator_id"):
        if not cells[name]:
            raise DataError(f"{row.where}: {name} is empty; {REMEDY}")
    return Vote(
        item_id=cells["item_id"],
        pair_id=cells["pair_id"],
        annotator_id=cells["annotator_id"],
        question=_entry(row, "question", Question),
        answer=_entry(row, "answer", Answer),
        submitted_at=cells["submitted_at"],
        source=cells["source"],
    )


def _annotator(row: Row) -> Annotator:
    cells = row.cells
    if not cells["annotator_id"]:
        raise DataError(f"{row.where}: annotator_id is empty; {REMEDY}")
    return Annotator(
        annotator_id=cells["annotator_id"],
        kind=_entry(row, "kind", AnnotatorKind),
        entrance=cells["entrance"],
        status=_entry(row, "status", Status),
        reason=cells["reason"],
    )


def _entry(row: Row, column: str, kind: type[E]) -> E:
    try:
        return kind(row.cells[column])
    except ValueError as error:
        raise DataError(
            f"{row.where}: {column} is '{row.cells[column]}'; have: {', '.join(kind)}; correct the line"
        ) from error
