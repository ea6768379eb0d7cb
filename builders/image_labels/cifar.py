"""The source *hub*: CIFAR-100 as it is on the Hugging Face Hub, with fine labels and their superclasses.

Krizhevsky 2009, *Learning Multiple Layers of Features from Tiny Images*: 100 classes in 20 superclasses, each class
with 500 training and 100 test images of 32 x 32 pixels. Its authors state no licence.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from biasboard.ground.errors import DataError
from biasboard.ground.files import sha256_file
from builders.dataset.inputs import check_folder, check_no_revision, hub_files, is_on_hub
from builders.image_labels.images import Content, ImageFile, check_labels, label_words
from schemas.documents.dataset import Source
from schemas.files.user_tables import label_names

HUB_ID = "uoft-cs/cifar100"
REVISION = "aadb3af77e9048adbea6b47c21a81e47dd092ae5"
"""Default commit on the Hub."""
NAME = "cifar100"
FILES = {
    "train": "cifar100/train-00000-of-00001.parquet",
    "test": "cifar100/test-00000-of-00001.parquet",
}
PUBLISHED_SHA256 = {
    "train": "694865d6b990e234804f01268586c41e88bcbbb75e20858432c05ad4081aca23",
    "test": "98776c529bb146a9c791229df74a5cf076be9b43d82dbbd334b6a7788d73dc68",
}
"""SHA-256 of the files at this commit."""
_COLUMNS = ("img", "fine_label", "coarse_label")
_REMEDY = f"take the files of {HUB_ID} as they are"


def read_cifar(source: Path, revision: str | None) -> Content:
    """Read CIFAR-100 from the Hub or from a folder with its files.

    Args:
        source: Path of a folder, or the id on the Hub.
        revision: Commit on the Hub; None for ``REVISION``, and for a local folder.

    Raises:
        DataError: there are no such files, they cannot be downloaded, or they have another layout.
    """
    where = f"--input {source}"
    commit = None
    if is_on_hub(source, HUB_ID):
        files, commit = hub_files(HUB_ID, list(FILES.values()), revision or REVISION)
        paths = dict(zip(FILES, files, strict=True))
    else:
        check_folder(source, f"a folder with cifar100/*.parquet, or {HUB_ID} for the Hub")
        check_no_revision(revision, source, "folder")
        paths = {part: source / name for part, name in FILES.items()}
        if missing := [FILES[part] for part, path in paths.items() if not path.is_file()]:
            raise DataError(f"{where}: no {', '.join(missing)} here; {_REMEDY}")
    hashes = {part: sha256_file(path) for part, path in paths.items()}
    candidates = {part: _candidates(path, part) for part, path in paths.items()}
    names = dict.fromkeys(candidate.label for of_part in candidates.values() for candidate in of_part)
    return Content(
        name=NAME,
        labels=check_labels(names, where),
        train=candidates["train"],
        test=candidates["test"],
        rejects=(),
        sources=tuple(
            Source(
                name=f"CIFAR-100, {part}",
                address=f"https://huggingface.co/datasets/{HUB_ID}, {FILES[part]}",
                revision=commit,
                sha256=hashes[part],
                licence="unknown",
                redistributable=False,
            )
            for part in FILES
        ),
        where=where,
        is_published=hashes == PUBLISHED_SHA256,
    )


def _candidates(path: Path, part: str) -> list[ImageFile]:
    # Imported here because it is slow to load, and the other source does not need it.
    from schemas.files import arrow_files

    schema = arrow_files.foreign_schema(path)
    names = label_names(schema.metadata)
    if missing := {*_COLUMNS} - {*schema.names} or {*_COLUMNS[1:]} - {*names}:
        raise DataError(
            f"{path}: is no file of CIFAR-100 as the Hub has it: no column {min(missing)}, or no names of its labels; "
            f"{_REMEDY}"
        )
    candidates = []
    for number, (image, label, superclass) in enumerate(arrow_files.foreign_rows(path, _COLUMNS)):
        path_in_source = f"{part}/{number}"
        content = image.get("bytes") if isinstance(image, dict) else None
        candidates.append(
            ImageFile(
                path_in_source,
                label_words(_named(names["fine_label"], label, path), path_in_source),
                label_words(_named(names["coarse_label"], superclass, path), path_in_source),
                partial(bytes, content or b""),
            )
        )
    return candidates


def _named(names: Sequence[str], number: object, path: Path) -> str:
    if not isinstance(number, int) or not 0 <= number < len(names):
        raise DataError(f"{path}: label {number!r} is none of the {len(names)} that the file names; {_REMEDY}")
    return names[number]
