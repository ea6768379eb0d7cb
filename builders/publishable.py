"""Reads a dataset folder to publish, and refuses what must not be published.

The manifest alone proves nothing, since somebody may have edited it: the builder's licence terms, the hashes of files
and every text are checked too.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from typing_extensions import override

from biasboard.ground import strict_json
from biasboard.ground.errors import DataError
from biasboard.ground.files import sha256_file
from biasboard.ground.hub_publishing import (
    MOST_NAMES,
    OF_THE_HUB,
    HubRepository,
    LocalFiles,
    Publication,
    local_files,
)
from biasboard.ground.plain_text import listed
from biasboard.ground.progress import Report, silent
from builders.dataset.card import BENCHMARK_FILE, CROISSANT_FILE, card_problems, croissant_problems
from builders.dataset.licences import ProtectedSource, digests_of, holds_protected, sentence_in_parts
from builders.dataset.output import VERSION_FORM, is_licence_file, version_key
from builders.description import BuilderSource, all_builders
from schemas.documents.dataset import Manifest
from schemas.folders.dataset_folder import CARD, MANIFEST, REJECTS, read_manifest
from schemas.validate import problems

if TYPE_CHECKING:
    from huggingface_hub import RepoFile

_OF_EVERY_DATASET = (MANIFEST, CARD, REJECTS, CROISSANT_FILE, BENCHMARK_FILE)
_HIGHER = "build the dataset with a higher --dataset-version"


@dataclass(frozen=True, kw_only=True)
class PublishableDataset(Publication):
    """A valid dataset that may be published: all its files, and a tag of its version such as v1.0.0."""

    manifest: Manifest

    @override
    def to_delete(self, repository: HubRepository, files: LocalFiles, present: Mapping[str, RepoFile]) -> Sequence[str]:
        """Return the other files of the version that is there, after checking that it is an earlier one.

        Files that its manifest does not list are somebody else's, and stay.
        """
        where, manifest = f"--repo {repository.repo}", self.manifest
        if MANIFEST not in present:
            foreign = sorted(set(present) - {*OF_THE_HUB, CARD})
            if foreign:
                raise DataError(
                    f"{where}: holds files but no {MANIFEST} ({listed(foreign, most=MOST_NAMES)}), so it is no dataset "
                    "of ours; give a new repository, or remove them there"
                )
            return ()
        text = repository.contents([MANIFEST])[MANIFEST].decode("utf-8", "replace")
        value = strict_json.loads(text, where=f"{where}: {MANIFEST}")
        published = value if isinstance(value, dict) else {}
        if published.get("name") != manifest.name:
            raise DataError(
                f"{where}: holds the dataset '{published.get('name')}', not '{manifest.name}'; give another one"
            )
        old, new = version_key(str(published.get("version"))), version_key(manifest.version)
        if old is not None and new is not None and old > new:
            raise DataError(f"{where}: holds version {published['version']}, later than {manifest.version}; {_HIGHER}")
        if old == new and published.get("content_sha256") != manifest.content_sha256:
            raise DataError(
                f"{where}: holds version {manifest.version} with other items; a version never changes: {_HIGHER}"
            )
        fields = (published.get(name) for name in ("splits", "files"))
        entries = [entry for field in fields if isinstance(field, list) for entry in field if isinstance(entry, dict)]
        # As texts, because the manifest there may hold anything.
        listed_there = {*_OF_EVERY_DATASET, *(str(entry.get("path")) for entry in entries)}
        return sorted(name for name in set(present) - set(files) if name in listed_there or is_licence_file(name))


def read_dataset(folder: Path, *, report: Report = silent) -> PublishableDataset:
    """Read a dataset folder and check that it may be published.

    Raises:
        DataError: the folder is not a valid dataset, its licence forbids publishing it, or it holds protected texts or
            files that do not belong to the dataset.
    """
    manifest = read_manifest(folder)
    check_manifest(manifest)
    report("checking", 0, None)
    if faults := list(problems(folder)):
        rest = "" if len(faults) == 1 else f" (and {len(faults) - 1} more; biasboard validate {folder} lists them)"
        raise DataError(f"{faults[0]}{rest}")
    files = local_files(folder)
    hashes = set(map(sha256_file, files.values()))
    # Those of every builder, since an edited manifest may name other sources.
    for protected in _protected():
        if hashes & set(protected.file_sha256s):
            raise DataError(f"{folder}: holds the published file of {protected.name}; remove it: {protected.refusal}")
    _check_listed(folder, manifest, list(files))
    report("comparing texts with those that must not be published", 0, None)
    _check_texts(folder, list(files))
    if version_key(manifest.version) is None:
        raise DataError(
            f"{folder / MANIFEST}: version '{manifest.version}' is not {VERSION_FORM}; build the dataset again with "
            "--dataset-version"
        )
    for problem in chain(croissant_problems(folder, manifest), card_problems(folder, manifest)):
        raise DataError(problem)
    return PublishableDataset(
        title=f"{manifest.name} {manifest.version}",
        files=files,
        tag=f"v{manifest.version}",
        another_tag=_HIGHER,
        manifest=manifest,
    )


def check_manifest(manifest: Manifest) -> None:
    """Check the licence of a dataset, by its manifest and by the builder that the manifest names.

    Reading the manifest has already checked that it is consistent with the licences of its sources.

    Raises:
        DataError: the licence of the dataset or of a source forbids publishing it.
    """
    where = f"dataset {manifest.name}@{manifest.version} must not be published"
    if not manifest.redistributable:
        raise DataError(f"{where}: {manifest.publish_refusal}")
    for protected in _protected():
        if any(source.sha256 in protected.file_sha256s for source in manifest.sources):
            raise DataError(f"{where}: its source is the published file of {protected.name}: {protected.refusal}")
    described = _described(manifest)
    if described is not None and not described.redistributable:
        raise DataError(
            f"{where}: the builder says that its source '{described.name}' ({described.licence}) allows no converted "
            "copies; publish scores and hashes in place of the texts"
        )


def _protected() -> list[ProtectedSource]:
    return [protected for builder in all_builders() for protected in builder.protected]


def _described(manifest: Manifest) -> BuilderSource | None:
    """Return the description of a dataset's source by the builder of its benchmark; None if no builder has it."""
    sources = [source for builder in all_builders() if builder.name == manifest.benchmark for source in builder.sources]
    given = manifest.parameters.get("source")
    return next(
        (source for source in sources if source.name == given),
        next((source for source in sources if source.dataset == manifest.name), None),
    )


def _check_listed(folder: Path, manifest: Manifest, names: Sequence[str]) -> None:
    """Check that a folder holds only the files of its dataset; hidden files count too."""
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


def _check_texts(folder: Path, names: Sequence[str]) -> None:
    """Check that no file of a folder holds a protected text."""
    for protected in _protected():
        known = digests_of(protected.digests)
        texts = (text for name in names for text in _texts_of(folder / name))
        places = list(dict.fromkeys(place for place, text in texts if holds_protected(text, known)))
        if places:
            raise DataError(
                f"{places[0]}: has a text of {protected.name}, and so have {len(places)} rows and lines in all; build "
                f"the dataset without them: {protected.refusal}"
            )


def _texts_of(path: Path) -> Iterator[tuple[str, str]]:
    """Yield location and content of every text of a file.

    Parquet: all strings of all rows. Text: lines, plus cells (CSV) or strings (JSON).
    """
    if path.suffix == ".parquet":
        # Imported here because it is slow to load, and much of publishing does without.
        from schemas.files import arrow_files

        names = arrow_files.foreign_schema(path).names
        for number, values in enumerate(arrow_files.foreign_rows(path, names), start=1):
            row = dict(zip(names, values, strict=True))
            yield from ((f"{path}: row {number}", text) for text in _strings(row))
        return
    content = path.read_bytes().decode("utf-8", "replace")
    for number, line in enumerate(content.splitlines(), start=1):
        yield f"{path}: line {number}", line
        yield from ((f"{path}: line {number}", text) for text in _strings(_json(line)))
    if path.suffix == ".json":
        yield from ((str(path), text) for text in _strings(_json(content)))
    elif path.suffix in (".csv", ".tsv"):
        rows = csv.reader(content.splitlines(keepends=True), delimiter="\t" if path.suffix == ".tsv" else ",")
        try:
            for cells in rows:
                yield from ((f"{path}: line {rows.line_num}", cell) for cell in cells)
        except csv.Error as error:
            raise DataError(f"{path}: line {rows.line_num}: not CSV ({error}); build the dataset again") from error


def _json(text: str) -> object:
    """Return the value of a text that is JSON, and None for any other."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _strings(value: object) -> Iterator[str]:
    """Yield the strings of a value, and the sentences that it stores in pieces."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        if (sentence := sentence_in_parts(value)) is not None:
            yield sentence
        for key, part in value.items():
            yield from _strings(key)
            yield from _strings(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _strings(part)
