"""Reads the folder of a built dataset and checks every hash."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from biasboard.ground.errors import DataError
from biasboard.ground.files import sha256_file
from schemas.documents.dataset import Manifest, SplitEntry
from schemas.documents.item_shape import Item, shape_of
from schemas.files import contract, tables

MANIFEST = "dataset.json"
REJECTS = "rejects.parquet"


def read_manifest(folder: Path) -> Manifest:
    """Read and check the manifest of a dataset folder.

    Raises:
        DataError: the folder or its manifest is missing, or the manifest is invalid.
    """
    path = folder / MANIFEST
    if not path.is_file():
        raise DataError(
            f"{folder}: no {MANIFEST} here; name the folder of a built dataset, or build one: biasboard build "
            "lists the commands"
        )
    return contract.read(path, Manifest)


def read_split(folder: Path, entry: SplitEntry) -> list[Item]:
    """Read and check the items of one config and split.

    Args:
        folder: The dataset folder.
        entry: The manifest's entry for the split.

    Raises:
        DataError: the file is missing or truncated, an item is invalid, or the items differ from what the manifest
            says about them.
    """
    path = folder / entry.path
    for problem in _count_problems(path, tables.n_rows(path), entry):
        raise DataError(problem)
    items = tables.read_rows(path, shape_of(entry.item_shape, where=str(folder / MANIFEST)).row_type)
    for problem in content_problems(path, items, entry):
        raise DataError(problem)
    return items


def _count_problems(path: Path, n_rows: int, entry: SplitEntry) -> Iterator[str]:
    if n_rows != entry.n_items:
        yield f"{path}: {n_rows} rows, {MANIFEST} says {entry.n_items}; build the dataset again"


def file_problems(folder: Path, manifest: Manifest) -> Iterator[str]:
    """Yield a message for each further file of a dataset that is missing or was changed.

    Args:
        folder: The dataset folder.
        manifest: Its manifest.
    """
    for entry in manifest.files:
        path = folder / entry.path
        if not path.is_file():
            yield f"{path}: no such file, {MANIFEST} lists it; build the dataset again"
        elif (found := sha256_file(path)) != entry.sha256:
            yield (
                f"{path}: sha256 {found[:12]} is not the {entry.sha256[:12]} of {MANIFEST}; "
                "the file was changed after the build: build the dataset again"
            )


def content_problems(path: Path, items: Sequence[Item], entry: SplitEntry) -> Iterator[str]:
    """Yield a message if the number of items or their hash differs from the manifest.

    Args:
        path: The file that the items were read from, for the messages.
        items: All items of the file; each is valid by itself.
        entry: The manifest's entry for the split.
    """
    yield from _count_problems(path, len(items), entry)
    found = tables.content_sha256(items)
    if found != entry.content_sha256:
        yield (
            f"{path}: content sha256 {found[:12]} is not the {entry.content_sha256[:12]} of {MANIFEST}; "
            "the items were changed after the build: build the dataset again"
        )
