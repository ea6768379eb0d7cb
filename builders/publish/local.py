"""Reads the dataset folder that is to be published: its files with the hashes that the Hub knows files by."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from biasboard.ground.errors import DataError
from biasboard.ground.files import sha256_file
from biasboard.ground.progress import Report, silent
from builders.dataset.card import card_problems
from builders.dataset.croissant import croissant_problems
from builders.dataset.output import VERSION_FORM, version_key
from builders.publish.refusals import check_files, check_listed, check_manifest, check_texts
from schemas.documents.dataset import Manifest
from schemas.folders.dataset_folder import CARD, MANIFEST, read_manifest
from schemas.validate import problems


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalFile:
    """A file of the folder."""

    name: str
    """Path in the repository."""
    path: Path
    size: int
    sha256: str
    """Hash by which the Hub knows a large file."""
    git_sha1: str
    """Hash by which git, and so the Hub, knows a small file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalDataset:
    """A sound dataset that may be published, and all its files."""

    manifest: Manifest
    files: dict[str, LocalFile]

    @property
    def tag(self) -> str:
        """The tag of the version, such as v1.0.0."""
        return f"v{self.manifest.version}"

    @property
    def title(self) -> str:
        """The first line of the commit."""
        return f"{self.manifest.name} {self.manifest.version}"


def read_dataset(folder: Path, *, report: Report = silent) -> LocalDataset:
    """Read a dataset folder and check that it may be published.

    Args:
        folder: The dataset folder.
        report: Called with the progress.

    Raises:
        DataError: the folder is no sound dataset, its licence forbids publishing it, or it holds protected texts or
            files that are none of the dataset.
    """
    manifest = read_manifest(folder)
    check_manifest(manifest)
    report("checking", 0, None)
    _check_sound(folder)
    files = {file.name: file for file in _files(folder)}
    check_files(folder, [file.sha256 for file in files.values()])
    check_listed(folder, manifest, list(files))
    report("comparing texts with those that must not be published", 0, None)
    check_texts(folder, list(files))
    _check_version(folder, manifest)
    return LocalDataset(manifest=manifest, files=files)


def _check_sound(folder: Path) -> None:
    found = list(problems(folder))
    if found:
        rest = "" if len(found) == 1 else f" (and {len(found) - 1} more; biasboard validate {folder} lists them)"
        raise DataError(f"{found[0]}{rest}")


def _check_version(folder: Path, manifest: Manifest) -> None:
    """Check that all files say the same, as the version, which was given when the dataset was built."""
    if version_key(manifest.version) is None:
        raise DataError(
            f"{folder / MANIFEST}: version '{manifest.version}' is not {VERSION_FORM}; build the dataset again with "
            "--dataset-version"
        )
    for problem in croissant_problems(folder, manifest):
        raise DataError(problem)
    if f"`{manifest.name}`, version {manifest.version}," not in (folder / CARD).read_text(encoding="utf-8"):
        raise DataError(
            f"{folder / CARD}: does not name version {manifest.version} of {manifest.name}, as {MANIFEST} does; "
            "build the dataset again"
        )
    for problem in card_problems(folder, manifest):
        raise DataError(problem)


def _files(folder: Path) -> Iterator[LocalFile]:
    """Yield the files of a folder, sorted by name."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            raise DataError(f"{path}: is a link; put the file itself there, or remove it")
        if path.is_dir():
            continue
        if not path.is_file():
            raise DataError(f"{path}: is no regular file; remove it")
        size = path.stat().st_size
        yield LocalFile(name=name, path=path, size=size, sha256=sha256_file(path), git_sha1=_git_sha1(path, size))


def _git_sha1(path: Path, size: int) -> str:
    """Return the hash that git gives a file: that of its content after a header with its size."""
    digest = hashlib.sha1(f"blob {size}\0".encode(), usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
