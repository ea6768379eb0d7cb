"""Reads published files and checks that none is missing or changed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from biasboard.ground.errors import DataError
from biasboard.ground.files import check_readable


def read_files(folder: Path, names: Iterable[str], *, what: str, remedy: str) -> dict[str, bytes]:
    """Return the content of files in a folder, by name.

    Args:
        folder: Folder that holds all files.
        names: Names of the files.
        what: Description of the right folder, used in the error message.
        remedy: Advice on which files to use, added to the error message.

    Raises:
        DataError: the folder or a file is missing.
    """
    check_folder(folder, what)
    names = list(names)
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise DataError(f"--input {folder}: no {', '.join(missing)} here; {remedy}")
    return {name: read_file(folder / name) for name in names}


def check_folder(folder: Path, what: str) -> None:
    """Check that ``--input`` names a folder.

    Args:
        folder: Its value.
        what: Description of the right folder, used in the error message.

    Raises:
        DataError: it is a file, or there is no such folder.
    """
    if not folder.is_dir():
        found = "is a file" if folder.exists() else "no such folder"
        raise DataError(f"--input {folder}: {found}; give {what}")


def read_file(path: Path) -> bytes:
    """Return the content of a file that exists.

    Raises:
        DataError: the file is too large to be the published one.
    """
    check_readable(path)
    return path.read_bytes()


def check_hashes(files: Mapping[str, bytes], published: Mapping[str, str], *, remedy: str) -> None:
    """Check that files are the published ones, byte for byte.

    Args:
        files: Content of each file by name.
        published: SHA-256 of each published file by name.
        remedy: Advice on which files to use, added to the error message.

    Raises:
        DataError: the SHA-256 of a file differs.
    """
    for name, raw in files.items():
        found = hashlib.sha256(raw).hexdigest()
        if found != published[name]:
            raise DataError(f"{name}: sha256 {found} is not the published file's {published[name]}; {remedy}")
