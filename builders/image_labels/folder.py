"""The source *folder*: a folder of PNG and JPEG files with one folder for each label."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from biasboard.ground.errors import DataError
from biasboard.ground.files import sha256_file
from builders.dataset.inputs import check_folder, read_file
from builders.dataset.licences import OPEN_LICENCES, UNKNOWN
from builders.image_labels.images import OTHER_FILE, Content, ImageFile, check_labels, label_words
from schemas.documents.dataset import Reject, Source

_SUFFIXES = (".png", ".jpg", ".jpeg")
_PARTS = ("train", "test")
_NOT_OF_NAMES = re.compile(r"[^A-Za-z0-9._-]+")


def read_folder(folder: Path, licence: str | None) -> Content:
    """Find the images of a folder; none is opened yet.

    Args:
        folder: Folder with one folder for each label, or train/ and test/ that each hold such folders.
        licence: Licence of the images as the user states it; None if it is not known.

    Raises:
        DataError: there is no such folder, a link leads out of it, its labels or names cannot be used, or train/ and
            test/ have different labels.
    """
    where = f"--input {folder}"
    check_folder(folder, "a folder with one folder of images for each label")
    _check_paths(folder)
    # Only if there is nothing but train/ and test/: a label may be called train too, as the vehicle is in CIFAR-100.
    is_parted = _folders(folder).keys() == set(_PARTS)
    roots = {part: folder / part for part in _PARTS} if is_parted else {"": folder}
    labels = {part: _folders(root) for part, root in roots.items()}
    words = check_labels(dict.fromkeys(name for names in labels.values() for name in names), where)
    if is_parted and labels["train"].keys() != labels["test"].keys():
        name = min(labels["train"].keys() ^ labels["test"].keys())
        has, lacks = _PARTS if name in labels["train"] else _PARTS[::-1]
        raise DataError(f"{where}: label {name!r} has a folder in {has}/ and none in {lacks}/; add or remove it")
    rejects: list[Reject] = []
    config = _NOT_OF_NAMES.sub("-", folder.resolve().name).strip("-._") or "images"
    images = {
        part: [image for _, path in sorted(of_part.items()) for image in _images(folder, path, rejects)]
        for part, of_part in labels.items()
    }
    if not any(images.values()):
        raise DataError(f"{where}: holds no PNG or JPEG file in the folders of its labels; add images")
    return Content(
        name=config,
        labels=words,
        train=images["train"] if is_parted else images[""],
        test=images["test"] if is_parted else None,
        rejects=tuple(rejects),
        sources=(_source(folder, config, licence),),
        where=where,
    )


def _check_paths(folder: Path) -> None:
    """Check that no link leads out of a folder, and that the names of its folders and images can be printed.

    Raises:
        DataError: a link leads out or nowhere, or a name is not UTF-8 or holds a control character.
    """
    inside = os.path.realpath(folder)
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        # A link that leads in a circle is its own real path, and does not exist.
        if path.is_symlink() and not (path.exists() and Path(os.path.realpath(path)).is_relative_to(inside)):
            raise DataError(
                f"--input {folder}: {name!a} is a link that leads out of the folder or nowhere; put the file itself "
                "there, or remove it"
            )
        if not name.isprintable() and (path.is_dir() or path.suffix.lower() in _SUFFIXES):
            raise DataError(f"--input {folder}: {name!a} is not UTF-8 or holds a control character; rename it")


def _folders(root: Path) -> dict[str, Path]:
    return {path.name: path for path in root.iterdir() if path.is_dir() and not path.name.startswith(".")}


def _images(folder: Path, path: Path, rejects: list[Reject]) -> Iterator[ImageFile]:
    """Yield the images of one label, and add every other file to the rejects."""
    label = label_words(path.name, f"--input {folder}")
    for file in sorted(path.iterdir()):
        path_in_source = file.relative_to(folder).as_posix()
        if file.name.startswith("."):
            continue
        if not file.is_file() or file.suffix.lower() not in _SUFFIXES:
            kind = f"a file that ends in '{file.suffix}'" if file.is_file() else "no regular file"
            kind = "a folder" if file.is_dir() else kind
            reason = f"is {kind}, and an image ends in {', '.join(_SUFFIXES)}"
            rejects.append(
                Reject(candidate=path_in_source, source_row=path_in_source, rule=OTHER_FILE.name, reason=reason)
            )
            continue
        yield ImageFile(path_in_source, label, None, partial(read_file, file))


def _source(folder: Path, name: str, licence: str | None) -> Source:
    files = sorted(
        (path for path in folder.rglob("*") if path.is_file() and path.suffix.lower() in _SUFFIXES),
        key=lambda path: path.relative_to(folder).as_posix(),
    )
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.relative_to(folder).as_posix()}:{sha256_file(path)}\n".encode())
    return Source(
        name=name,
        address=f"folder of {len(files)} images",
        revision=None,
        sha256=digest.hexdigest(),
        licence=licence or UNKNOWN,
        redistributable=licence in OPEN_LICENCES,
    )
