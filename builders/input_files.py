"""Published files that a builder reads as they are: there, and the right ones."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from schemas.errors import DataError


def read_files(folder: Path, names: Iterable[str], *, what: str, remedy: str) -> dict[str, bytes]:
    """Content of files by name.

    Args:
        folder: Holds them all.
        names: Of the files.
        what: What the folder should be, for the error.
        remedy: Where the files are to be had.

    Raises:
        DataError: the folder or a file is missing.
    """
    if not folder.is_dir():
        found = "is a file" if folder.exists() else "no such folder"
        raise DataError(f"--input {folder}: {found}; give {what}")
    names = list(names)
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise DataError(f"--input {folder}: no {', '.join(missing)} here; {remedy}")
    return {name: (folder / name).read_bytes() for name in names}


def check_hashes(files: Mapping[str, bytes], published: Mapping[str, str], *, remedy: str) -> None:
    """Refuse files that are not the published ones.

    Args:
        files: Content by name.
        published: The sha256 of each published file by name.
        remedy: Where the files are to be had.

    Raises:
        DataError: a sha256 differs.
    """
    for name, raw in files.items():
        found = hashlib.sha256(raw).hexdigest()
        if found != published[name]:
            raise DataError(f"{name}: sha256 {found} is not the published file's {published[name]}; {remedy}")
