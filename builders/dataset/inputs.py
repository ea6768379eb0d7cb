"""Reads what ``--input`` and ``--revision`` name: published files, a folder of them, or a dataset on the Hub.

Files that come with the code are described as sources too.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path

from biasboard.ground.errors import DataError
from biasboard.ground.files import check_readable
from biasboard.ground.hub import HubDataset, downloaded
from schemas.documents.dataset import Source


def read_files(folder: Path, names: Iterable[str], *, what: str, remedy: str) -> dict[str, bytes]:
    """Return the content of files in a folder, by name.

    ``what`` describes the right folder, and ``remedy`` says which files to use, for error messages.

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

    Raises:
        DataError: it is a file, or there is no such folder.
    """
    if not folder.is_dir():
        problem = "is a file" if folder.exists() else "no such folder"
        raise DataError(f"--input {folder}: {problem}; give {what}")


def read_file(path: Path) -> bytes:
    """Return the content of a file that exists.

    Raises:
        DataError: the file is too large to be the published one.
    """
    check_readable(path)
    return path.read_bytes()


def csv_rows(raw: bytes, name: str, columns: Sequence[str], *, remedy: str) -> list[tuple[int, dict[str, str]]]:
    """Return the rows of a CSV file, each with the number of its last line.

    Columns beside the required ones are kept too.

    Raises:
        DataError: the file is not UTF-8, is not CSV, lacks a column, has no rows, or has a row of another length.
    """
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DataError(f"{name}:{line}: byte {raw[error.start]:#04x} is not UTF-8; {remedy}") from error
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        have = reader.fieldnames or ()
        if missing := [column for column in columns if column not in have]:
            raise DataError(f"{name}: column {', '.join(missing)} is missing; have: {', '.join(have)}; {remedy}")
        rows = []
        for row in reader:
            if None in row or None in row.values():
                raise DataError(f"{name}:{reader.line_num}: has another number of fields than the header; {remedy}")
            rows.append((reader.line_num, row))
    except csv.Error as error:
        raise DataError(f"{name}:{reader.line_num}: is not CSV ({error}); {remedy}") from error
    if not rows:
        raise DataError(f"{name}: has no rows; {remedy}")
    return rows


def check_hashes(files: Mapping[str, bytes], published: Mapping[str, str], *, remedy: str) -> None:
    """Check that files are the published ones, byte for byte.

    Raises:
        DataError: the SHA-256 of a file differs.
    """
    for name, raw in files.items():
        sha256 = hashlib.sha256(raw).hexdigest()
        if sha256 != published[name]:
            raise DataError(f"{name}: sha256 {sha256} is not the published file's {published[name]}; {remedy}")


def is_on_hub(path: Path, hub_id: str) -> bool:
    """Return True if ``--input`` names a dataset on the Hub; a local file or folder of that name takes precedence."""
    return path.as_posix() == hub_id and not path.exists()


def check_no_revision(revision: str | None, path: Path, kind: str) -> None:
    """Check that ``--revision`` is not given for a local copy.

    ``kind`` is ``file`` or ``folder``.

    Raises:
        DataError: it is given.
    """
    if revision is not None:
        raise DataError(f"--revision {revision}: applies to the Hub only, and {path} is a local {kind}; leave it out")


def hub_files(hub_id: str, names: Sequence[str], revision: str | None) -> tuple[list[Path], str]:
    """Return the paths of files of a dataset on the Hub, downloaded if necessary, and the commit that holds them.

    Raises:
        DataError: they cannot be downloaded, or the dataset does not hold them.
    """
    folder = downloaded(HubDataset(hub_id, revision), names, named=f"--input {hub_id}")
    if missing := [name for name in names if not (folder / name).is_file()]:
        raise DataError(f"--input {hub_id}: holds no {', '.join(missing)} at {folder.name}; give another --revision")
    return [folder / name for name in names], folder.name


def packaged_source(name: str, path: str, *, revision: str | None, licence: str = "Apache-2.0") -> Source:
    """Return a file of this project, given its path in the repository, as a source of a dataset."""
    package, _, rest = path.partition("/")
    return Source(
        name=name,
        address=path,
        revision=revision,
        sha256=hashlib.sha256(resources.files(package).joinpath(rest).read_bytes()).hexdigest(),
        licence=licence,
        redistributable=True,
    )
