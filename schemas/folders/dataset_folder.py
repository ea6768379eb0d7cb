"""Finds the folder of a built dataset, here or on the Hub, reads it and checks every hash."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from biasboard.ground import strict_json
from biasboard.ground.errors import DataError
from biasboard.ground.files import sha256_file
from schemas.documents.dataset import Item, Manifest, Reject, SplitEntry, shape_of
from schemas.files import contract, row_files
from schemas.files.contract import Check, sound

MANIFEST = "dataset.json"
REJECTS = "rejects.parquet"
CARD = "README.md"


def dataset_at(named: Path) -> Path:
    """Return the folder of a dataset that a user names.

    Whatever exists here is taken. A dataset of the Hub, as ``ORG/NAME`` with or without ``@REVISION`` and
    ``hf://datasets/``, is downloaded into the Hub's cache, where it is found without a network too. Only its own files
    are taken; what reads them compares their hashes with the manifest.

    Raises:
        DataError: the dataset cannot be downloaded, or biasboard did not build it.
    """
    if named.exists():
        return named
    # Imported here because few datasets are on the Hub, and commands that read a folder begin sooner without it.
    from biasboard.ground.hub import downloaded, hub_dataset

    text = str(named).replace("hf:/", "hf://")  # A Path has only one of the slashes.
    dataset = hub_dataset(text)
    if dataset is None:
        return named
    # The manifest alone first: it names the other files, and a dataset of somebody else may be large.
    folder = downloaded(dataset, [MANIFEST], named=text)
    if not (folder / MANIFEST).is_file():
        raise DataError(
            f"{text}: is a dataset of the Hub without {MANIFEST}, so biasboard did not build it; name another, or "
            "build one: biasboard build lists the commands"
        )
    manifest = read_manifest(folder)
    files = [MANIFEST, CARD, REJECTS]
    files += [*(entry.path for entry in manifest.splits), *(file.path for file in manifest.files)]
    return downloaded(dataset._replace(revision=folder.name), files, named=text)


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

    Raises:
        DataError: the file is missing or truncated, an item is invalid, or the items are not those of the manifest.
    """
    return sound(_checked_split(folder, entry))


def read_some(folder: Path, entry: SplitEntry, step: int) -> list[Item]:
    """Read every so manieth item of one config and split, for estimates: the others are neither read nor checked.

    Raises:
        DataError: the file is missing or truncated, or one of these items is invalid.
    """
    row_type: type[Item] = shape_of(entry.item_shape, where=str(folder / MANIFEST)).row_type
    return sound(row_files.checked_rows(folder / entry.path, row_type, step=step))


def dataset_problems(folder: Path) -> Iterator[str]:
    """Yield everything that is wrong with the folder of a dataset."""
    if not (folder / CARD).is_file():
        yield f"{folder / CARD}: no such file; a dataset has a card: build the dataset again"
    manifest = yield from contract.checked(folder / MANIFEST, Manifest)
    if manifest is None:
        return
    for entry in manifest.splits:
        items = yield from _checked_split(folder, entry)
        yield from _item_problems(folder / entry.path, manifest, items or ())
    rejects = yield from row_files.checked_rows(folder / REJECTS, Reject)
    if rejects is not None:
        counted = Counter(reject.rule for reject in rejects)
        told = Counter({entry.rule: entry.n for entry in manifest.rejects})
        for rule in sorted({*counted, *told}):
            if counted[rule] != told[rule]:
                says = f"{MANIFEST} says {told[rule]}; build the dataset again"
                yield f"{folder / REJECTS}: {counted[rule]} rows of rule '{rule}', {says}"
    for file in manifest.files:
        path = folder / file.path
        if not path.is_file():
            yield f"{path}: no such file, {MANIFEST} lists it; build the dataset again"
        elif (sha256 := sha256_file(path)) != file.sha256:
            yield (
                f"{path}: sha256 {sha256[:12]} is not the {file.sha256[:12]} of {MANIFEST}; "
                "the file was changed after the build: build the dataset again"
            )
    if manifest.content_sha256 != strict_json.sha256([entry.content_sha256 for entry in manifest.splits]):
        yield f"{folder / MANIFEST}: content_sha256: is not the hash of the splits' hashes; build the dataset again"
    listed = {entry.path for entry in manifest.splits}
    for path in sorted(folder.glob("data/*/*.parquet")):
        if path.relative_to(folder).as_posix() not in listed:
            yield f"{path}: not in the splits of {MANIFEST}; remove it or build the dataset again"


def _checked_split(folder: Path, entry: SplitEntry) -> Check[list[Item] | None]:
    path = folder / entry.path
    try:
        row_type: type[Item] = shape_of(entry.item_shape, where=str(folder / MANIFEST)).row_type
        n_rows = row_files.n_rows(path)
    except DataError as error:
        yield str(error)
        return None
    if n_rows != entry.n_items:
        yield f"{path}: {n_rows} rows, {MANIFEST} says {entry.n_items}; build the dataset again"
    items = yield from row_files.checked_rows(path, row_type)
    if items is not None and (sha256 := row_files.content_sha256(items)) != entry.content_sha256:
        yield (
            f"{path}: content sha256 {sha256[:12]} is not the {entry.content_sha256[:12]} of {MANIFEST}; "
            "the items were changed after the build: build the dataset again"
        )
    return items


def _item_problems(path: Path, manifest: Manifest, items: Sequence[Item]) -> Iterator[str]:
    """Yield the problems of the items of a split together."""
    yield from row_files.repeated_items(path, [item.item_id for item in items])
    listed = {flag.rule for flag in manifest.flags}
    for number, item in enumerate(items, start=1):
        for flag in item.flags:
            if flag not in listed:
                have = ", ".join(sorted(listed)) or "none"
                yield f"{path}: row {number}: flags: '{flag}' is not in the flags of {MANIFEST}; have: {have}"
