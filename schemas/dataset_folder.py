"""Reads a built dataset folder; every hash is checked on the way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from schemas import contract, strict_json, tables
from schemas.dataset import Manifest, SplitEntry
from schemas.errors import DataError
from schemas.items import Item

MANIFEST = "dataset.json"
REJECTS = "rejects.parquet"


def read_manifest(folder: Path) -> Manifest:
    """The checked manifest of a dataset folder.

    Raises:
        DataError: the folder or its manifest is missing or broken.
    """
    path = folder / MANIFEST
    if not path.is_file():
        builder = "gifi" if folder.name.startswith("gifi") else "synthbias"
        options = " --source gifi --input DIR --compat gifi-repo" if folder.name == "gifi-published-compat" else ""
        command = f"python -m builders.{builder}{options} --out {folder}"
        raise DataError(f"{folder}: no {MANIFEST} here; build one: {command}")
    return contract.load(strict_json.read(path), Manifest, where=str(path))


def read_split(folder: Path, entry: SplitEntry) -> list[Item]:
    """The checked items of one config and split.

    Raises:
        DataError: the file is missing or truncated, an item is unsound, or the content is not what the manifest says.
    """
    path = folder / entry.path
    items = tables.read_rows(path, row_type_of(folder, entry))
    for problem in content_problems(path, items, entry):
        raise DataError(problem)
    return items


def row_type_of(folder: Path, entry: SplitEntry) -> type[Item]:
    """The dataclass of the items of a split.

    Raises:
        DataError: the item shape is unknown.
    """
    row_type = contract.ITEM_SHAPES.get(entry.item_shape)
    if row_type is None:
        shapes = ", ".join(contract.ITEM_SHAPES)
        raise DataError(f"{folder / MANIFEST}: item_shape '{entry.item_shape}' is unknown; have: {shapes}")
    return row_type


def content_problems(path: Path, items: Sequence[Item], entry: SplitEntry) -> Iterator[str]:
    """Where sound items are not those that the manifest speaks of."""
    if len(items) != entry.n_items:
        yield f"{path}: {len(items)} rows, {MANIFEST} says {entry.n_items}; build the dataset again"
    found = tables.content_sha256(items)
    if found != entry.content_sha256:
        yield (
            f"{path}: content sha256 {found[:12]} is not the {entry.content_sha256[:12]} of {MANIFEST}; "
            "the items were changed after the build: build the dataset again"
        )
