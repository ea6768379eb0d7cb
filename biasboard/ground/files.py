"""Writes files and folders atomically, hashes files, and reads TOML files: those of users, and those of the code."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import resources
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from biasboard.ground.errors import ConfigError, DataError

DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of a file system that has no room, or none for this user."""
_OLD = "old"
_LOCK = ".lock"
_LOCK_SECONDS = 30.0
MOST_BYTES = 512 << 20
"""Maximum size of a text file that is read as a whole; published data and exported answers are far smaller."""


def disk_full(path: object, *, reason: str = "the disk is full", answers_kept: bool = False) -> str:
    """Return the message of a full disk or quota, for a path on it."""
    kept = ", and the answers so far are kept" if answers_kept else ""
    return f"{path}: {reason}{kept}; free space on the disk or of your quota, and repeat the same command"


@contextmanager
def _named(path: Path, temporary: Path) -> Iterator[None]:
    """Name a path in errors of its temporary stand-in, and in those without a name, as of writes on a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and str(error.filename or temporary).startswith(str(temporary)):
            error.filename = str(path)
        raise


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary file next to ``path`` and rename it to ``path`` at the end.

    If an error occurs, the temporary file is removed and ``path`` stays as it was. A reader sees either the old file or
    the complete new one, even after a crash.

    Yields:
        Path of the temporary file, for the caller to write.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        with _named(path, temporary):
            yield temporary
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
            # mkstemp creates files that only their owner can read, but results are for everyone.
            temporary.chmod(0o644)
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)  # After a success it was renamed.


def remove_unfinished(path: Path) -> None:
    """Remove temporary files that a killed process left next to ``path``, which no other process may be writing."""
    for temporary in path.parent.glob(f".{path.name}.*"):
        temporary.unlink(missing_ok=True)


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder next to ``path`` and replace ``path`` with it at the end.

    If an error occurs, the temporary folder is removed.

    Yields:
        Path of the temporary folder, for the caller to fill.
    """
    with unfinished(path) as holder:
        temporary = holder / "new"
        temporary.mkdir()
        temporary.chmod(0o755)
        with _named(path, temporary):
            yield temporary
        if path.exists():
            # Rename cannot replace a folder that is not empty, so the old one is moved aside first.
            path.replace(holder / _OLD)
        temporary.replace(path)


@contextmanager
def unfinished(path: Path) -> Iterator[Path]:
    """Yield a temporary folder next to ``path``, and remove those of earlier processes that were killed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".{path.name}.unfinished-"
    for left in [one for one in path.parent.iterdir() if one.name.startswith(prefix)]:
        # A process that still works there holds the lock, which its end releases, whatever ended it.
        with suppress(Timeout, OSError), FileLock(left / _LOCK, timeout=0):
            _end(left, path)
    holder = Path(tempfile.mkdtemp(prefix=prefix, dir=path.parent))
    try:
        with FileLock(holder / _LOCK, timeout=0):
            yield holder
    finally:
        _end(holder, path)


def _end(holder: Path, path: Path) -> None:
    """Remove a temporary folder; what it was to replace stands again if the end came between both renames."""
    if (holder / _OLD).exists() and not path.exists():
        (holder / _OLD).replace(path)
    shutil.rmtree(holder, ignore_errors=True)


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep other commands from changing a folder between a look at it and a change.

    Raises:
        DataError: there is no such folder, or another process holds it for too long.
    """
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder; name one that exists")
    try:
        with FileLock(folder / _LOCK, timeout=_LOCK_SECONDS):
            yield
    except Timeout as error:
        raise DataError(f"{folder}: another command is writing there; wait until it is done") from error


def check_readable(path: Path, *, most: int = MOST_BYTES, remedy: str | None = None) -> None:
    """Check that a path is a regular file of a size that fits into memory.

    Args:
        path: Path of the file, which exists.
        most: Maximum size in bytes.
        remedy: Remedy for the error message; None to ask for another file.

    Raises:
        DataError: the path is a folder, a pipe or a device, or the file is too large.
    """
    if not path.is_file():
        raise DataError(f"{path}: is not a regular file; {remedy or 'give a file'}")
    n_bytes = path.stat().st_size
    if n_bytes > most:
        way_out = remedy or "give a smaller file"
        raise DataError(f"{path}: has {n_bytes:,} bytes, more than the {most:,} that are read; {way_out}")


def sha256_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


_MOST_BYTES = 2**20


def read_toml(path: Path, *, option: str, what: str) -> dict[str, Any]:
    """Read a small TOML file.

    ``option`` names the file and ``what`` the expected content, such as "prices", in error messages.

    Raises:
        ConfigError: there is no such file.
        DataError: the path is no regular file, the file is too large, or it is not TOML.
    """
    try:
        if path.exists():
            check_readable(path, most=_MOST_BYTES)
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"{option} {path}: {error.strerror or error}; name a TOML file of {what}") from error
    except RecursionError as error:
        raise DataError(f"{path}: its values are nested too deeply; write a TOML file of {what}") from error
    except ValueError as error:  # Includes numbers with thousands of digits, and bytes that are not UTF-8.
        raise DataError(f"{path}: not a TOML file ({error}); correct it, or name a TOML file of {what}") from error


def packaged_toml(package: str, *path: str) -> dict[str, Any]:
    """Return the content of a TOML file of a package."""
    return tomllib.loads(resources.files(package).joinpath(*path).read_text(encoding="utf-8"))


def packaged_words(package: str, *path: str) -> dict[str, tuple[str, ...]]:
    """Return the words of each list in a TOML file of a package; each list is one text of words separated by spaces."""
    return {name: tuple(words.split()) for name, words in packaged_toml(package, *path).items()}
