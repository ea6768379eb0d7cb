"""Refuses datasets that must not be published, also where somebody changed what their manifest says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from biasboard.ground.errors import DataError
from builders.dataset.card import BENCHMARK_FILE
from builders.dataset.croissant import CROISSANT_FILE
from builders.dataset.output import ensure_publishable, is_licence_file
from builders.dataset.protected import ProtectedSource, digests_of, holds_protected
from builders.description import Builder, BuilderSource, all_builders
from builders.publish.texts import texts_of
from schemas.documents.dataset import Manifest
from schemas.folders.dataset_folder import CARD, MANIFEST, REJECTS

_OF_EVERY_DATASET = (MANIFEST, CARD, REJECTS, CROISSANT_FILE, BENCHMARK_FILE)


def check_manifest(manifest: Manifest) -> None:
    """Check what a manifest, and the builder that it names, say about the licence of a dataset.

    That a manifest does not contradict itself, by a source that must not be published, was checked when it was read.

    Raises:
        DataError: the licence of the dataset or of a source forbids publishing it.
    """
    ensure_publishable(manifest)
    where = f"dataset {manifest.name}@{manifest.version} must not be published"
    for protected in _protected():
        if any(source.sha256 in protected.file_sha256s for source in manifest.sources):
            raise DataError(f"{where}: its source is the published file of {protected.name}: {protected.refusal}")
    described = _described(manifest)
    if described is not None and not described.redistributable:
        raise DataError(
            f"{where}: the builder says that its source '{described.name}' ({described.licence}) allows no converted "
            "copies; publish scores and hashes in place of the texts"
        )


def check_files(folder: Path, sha256s: Sequence[str]) -> None:
    """Check that no file of a folder is one that must not be published.

    Args:
        folder: The dataset folder.
        sha256s: SHA-256 of each of its files.

    Raises:
        DataError: a file is.
    """
    for protected in _protected():
        if set(protected.file_sha256s) & set(sha256s):
            raise DataError(f"{folder}: holds the published file of {protected.name}; remove it: {protected.refusal}")


def check_listed(folder: Path, manifest: Manifest, names: Sequence[str]) -> None:
    """Check that a folder holds nothing but the files of its dataset, hidden ones included.

    Args:
        folder: The dataset folder.
        manifest: Its manifest.
        names: Paths of its files in it.

    Raises:
        DataError: a file is none of the dataset; the message names the first.
    """
    known = {
        *_OF_EVERY_DATASET,
        *(entry.path for entry in manifest.splits),
        *(entry.path for entry in manifest.files),
    }
    strays = [name for name in names if name not in known and not is_licence_file(name)]
    if strays:
        rest = "" if len(strays) == 1 else f" (and {len(strays) - 1} more)"
        raise DataError(
            f"{folder / strays[0]}{rest}: is no file that {MANIFEST} lists, and would be published unchecked; move it "
            "out of the folder, or have the builder of the dataset list it"
        )


def check_texts(folder: Path, names: Sequence[str]) -> None:
    """Check that no file of a folder has a text that must not be published.

    Args:
        folder: The dataset folder.
        names: Paths of its files in it.

    Raises:
        DataError: a text is protected; the message names the first and the number of all.
    """
    for protected in _protected():
        known = digests_of(protected.digests)
        places = (place for name in names for place, text in texts_of(folder / name) if holds_protected(text, known))
        found = list(dict.fromkeys(places))
        if found:
            raise DataError(
                f"{found[0]}: has a text of {protected.name}, and so have {len(found)} rows and lines in all; build "
                f"the dataset without them: {protected.refusal}"
            )


def _protected() -> list[ProtectedSource]:
    return [protected for builder in all_builders() for protected in builder.protected]


def _described(manifest: Manifest) -> BuilderSource | None:
    """Return how the builder of a benchmark describes the source of a dataset; None if no builder knows it."""
    builders: list[Builder] = [builder for builder in all_builders() if builder.name == manifest.benchmark]
    given = manifest.parameters.get("source")
    return next(
        (source for builder in builders for source in builder.sources if given == source.name),
        next((source for builder in builders for source in builder.sources if manifest.name == source.dataset), None),
    )
