"""Prepares a dataset for its page: what its manifest, its card and the answer keys say, and what models miss in it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from markupsafe import Markup

from biasboard.ground import strict_json
from biasboard.ground.files import check_readable
from biasboard.ground.memory import machine_memory
from biasboard.ground.progress import Report, silent
from leaderboard.pages.addresses import dataset_page
from leaderboard.pages.exports import Columns, Files, Line, Table
from leaderboard.pages.item_errors import MISSED_COLUMNS, Missed, missed_items
from leaderboard.pages.model_views import ModelView, Placement
from leaderboard.pages.rendered_cards import card_sections, safe_html
from leaderboard.pages.table_files import data_lines
from leaderboard.pages.tables import Section
from schemas.documents.board import AnswerKey
from schemas.documents.dataset import Manifest
from schemas.files import contract
from schemas.folders.dataset_folder import MANIFEST, read_manifest

DATASET_COLUMNS: Columns = {
    "dataset": str,
    "version": str,
    "title": str,
    "licence": str,
    "redistributable": bool,
    "human_validated": bool,
    "n_items": int,
    "content_sha256": str,
    "n_results": int,
    "n_answer_keys": int,
    "page": str,
}
_SPLIT_COLUMNS: Columns = {
    "config": str,
    "split": str,
    "item_shape": str,
    "n_items": int,
    "content_sha256": str,
    "path": str,
}
_SOURCE_COLUMNS: Columns = {
    "name": str,
    "address": str,
    "revision": str,
    "sha256": str,
    "licence": str,
    "redistributable": bool,
}
_RULE_COLUMNS: Columns = {"kind": str, "rule": str, "n": int, "description": str}
_KEY_COLUMNS: Columns = {
    "config": str,
    "task": str,
    "prompt": str,
    "n_items": int,
    "n_parts": int,
    "items_sha256": str,
    "key_sha256": str,
}
_CARD = "README.md"
_MOST_CARD_CHARACTERS = 1_000_000
_LIMITS, _STATEMENT = "Known limits", "Data statement"
_PLAIN_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9.,_-]*")
_OPTIONS = ("limit", "bias_per_label", "pool_per_label", "licence", "compat", "dataset_version")
"""Parameters that a builder's command line takes besides the source and the seed."""


class BuiltDataset(NamedTuple):
    """A dataset on this machine."""

    manifest: Manifest
    card: str | None
    """Text of its card; None if the folder has none."""
    folder: Path | None = None
    """Folder of the dataset; None if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetView:
    """A dataset that is built here or has results on the board."""

    name: str
    version: str
    manifest: Manifest | None
    """Manifest of the dataset; None if it is not on this machine."""
    statement: Markup | None
    """Description of the data by its card; None if there is none."""
    limits: Markup | None
    """Known limits by its card; None if there are none."""
    keys: tuple[AnswerKey, ...]
    """Answer keys that the board keeps of it."""
    sections: tuple[Section, ...]
    """Tables with results on it."""
    missed: tuple[Missed, ...]
    """Counts of wrong answers to each item, for each table of whole configs."""

    @property
    def page(self) -> str:
        """The path of the page, relative to the root of the site."""
        return dataset_page(self.name, self.version)

    @property
    def n_results(self) -> int:
        """The number of results in tables."""
        return sum(len(section.table.rows) for section in self.sections)

    @property
    def n_items(self) -> int | None:
        """The number of items of the whole dataset; None if it is not on this machine."""
        return None if self.manifest is None else sum(split.n_items for split in self.manifest.splits)

    @property
    def is_other(self) -> bool:
        """True if an answer key was made from other contents than those on this machine."""
        manifest = self.manifest
        return manifest is not None and any(key.dataset_sha256 != manifest.content_sha256 for key in self.keys)

    @property
    def command(self) -> str | None:
        """The command that builds the dataset again; None if its builder is none of this project."""
        return None if self.manifest is None else _rebuilding(self.manifest)

    @property
    def asked(self) -> tuple[Line, ...]:
        """The sets of items that have results, as the results describe them."""
        return tuple(data_lines(self.sections, [] if self.manifest is None else [self.manifest]))

    @property
    def splits(self) -> Table:
        """The configs and splits, by the manifest."""
        lines: list[Line] = [
            {
                "config": one.config,
                "split": one.split,
                "item_shape": one.item_shape,
                "n_items": one.n_items,
                "content_sha256": one.content_sha256,
                "path": one.path,
            }
            for one in (() if self.manifest is None else self.manifest.splits)
        ]
        return self._table("splits", _SPLIT_COLUMNS, lines)

    @property
    def sources(self) -> Table:
        """The sources, by the manifest."""
        lines: list[Line] = [
            {
                "name": one.name,
                "address": one.address,
                "revision": one.revision,
                "sha256": one.sha256,
                "licence": one.licence,
                "redistributable": one.redistributable,
            }
            for one in (() if self.manifest is None else self.manifest.sources)
        ]
        return self._table("sources", _SOURCE_COLUMNS, lines)

    @property
    def rules(self) -> Table:
        """The rules by which candidates were rejected and items flagged, by the manifest."""
        manifest = self.manifest
        found = [] if manifest is None else [("reject", manifest.rejects), ("flag", manifest.flags)]
        lines: list[Line] = [
            {"kind": kind, "rule": one.rule, "n": one.n, "description": one.description}
            for kind, rules in found
            for one in rules
        ]
        return self._table("rules", _RULE_COLUMNS, lines)

    @property
    def answer_keys(self) -> Table:
        """The answer keys that the board keeps of the dataset."""
        lines: list[Line] = [
            {
                "config": key.signature.config,
                "task": key.signature.task,
                "prompt": key.signature.prompt,
                "n_items": key.signature.n_items,
                "n_parts": len(key.parts),
                "items_sha256": key.signature.items_sha256,
                "key_sha256": strict_json.sha256(contract.dump(key)),
            }
            for key in self.keys
        ]
        return self._table("keys", _KEY_COLUMNS, lines)

    @property
    def tables(self) -> Iterator[Table]:
        """The tables that the page offers for download."""
        yield from (one for one in (self.splits, self.sources, self.rules, self.answer_keys) if one.lines)
        for missed in self.missed:
            if missed.lines:
                yield Table(missed.files, MISSED_COLUMNS, missed.lines, is_of_many=True)

    def _table(self, what: str, columns: Columns, lines: Sequence[Line]) -> Table:
        stem = PurePosixPath(self.page).stem
        return Table(Files(f"files/dataset-{stem}-{what}"), columns, lines, about={"dataset": self.title})

    @property
    def title(self) -> str:
        """The name and the version."""
        return f"{self.name} {self.version}"


def built_datasets(folder: Path) -> tuple[BuiltDataset, ...]:
    """Return the datasets on this machine, sorted by name and version.

    Args:
        folder: Folder of built datasets, one folder each; one that does not exist is treated as empty.

    Raises:
        DataError: a manifest is damaged.
    """
    found: dict[tuple[str, str], BuiltDataset] = {}
    for path in sorted(folder.glob(f"*/{MANIFEST}")):
        manifest = read_manifest(path.parent)
        # Answer keys are made of the first one too.
        found.setdefault(
            (manifest.name, manifest.version), BuiltDataset(manifest, _card(path.with_name(_CARD)), path.parent)
        )
    return tuple(found[name] for name in sorted(found))


def cards_of(built: Sequence[BuiltDataset]) -> dict[tuple[str, str], str]:
    """Return the texts of the cards of some datasets, by name and version."""
    return {(one.manifest.name, one.manifest.version): one.card for one in built if one.card is not None}


def folders_of(built: Sequence[BuiltDataset]) -> dict[tuple[str, str], Path]:
    """Return the folders of some datasets, by name and version."""
    return {(one.manifest.name, one.manifest.version): one.folder for one in built if one.folder is not None}


def _card(path: Path) -> str | None:
    if not path.is_file():
        return None
    check_readable(path)
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(_MOST_CARD_CHARACTERS)


def kept_keys(folder: Path) -> tuple[AnswerKey, ...]:
    """Return the answer keys in a folder, sorted by dataset, config, task and prompt.

    Raises:
        DataError: a key is damaged.
    """
    keys = [contract.read(path, AnswerKey) for path in sorted(folder.glob("*/*.json"))]
    return tuple(sorted(keys, key=lambda key: (key.signature.dataset, key.signature.config, key.signature.prompt)))


def make_datasets(
    sections: Sequence[Section],
    models: Sequence[ModelView],
    built: Sequence[BuiltDataset],
    keys: Sequence[AnswerKey],
    report: Report = silent,
) -> tuple[DatasetView, ...]:
    """Return a view of each dataset that is built here or has results, sorted by name and version.

    Args:
        sections: All tables.
        models: All models with their results.
        built: The datasets on this machine.
        keys: The answer keys that the board keeps.
        report: Callback for progress.
    """
    memory = machine_memory()
    local_builds = {(one.manifest.name, one.manifest.version): one for one in built}
    signatures = [section.table.signature for section in sections]
    names = sorted({*local_builds, *((one.dataset, one.dataset_version) for one in signatures)})
    placements: dict[tuple[str, str], Placement] = {
        (placement.row.entry.origin, placement.row.entry.place): placement
        for model in models
        for placement in model.placements
    }
    views = []
    for number, (name, version) in enumerate(names):
        report("counting wrong answers", number, len(names))
        own = [one for one in sections if _named(one) == (name, version)]
        local = local_builds.get((name, version))
        described = card_sections(local.card) if local is not None and local.card is not None else {}
        views.append(
            DatasetView(
                name=name,
                version=version,
                manifest=None if local is None else local.manifest,
                statement=safe_html(described[_STATEMENT]) if _STATEMENT in described else None,
                limits=safe_html(described[_LIMITS]) if _LIMITS in described else None,
                keys=tuple(
                    key for key in keys if (key.signature.dataset, key.signature.dataset_version) == (name, version)
                ),
                sections=tuple(own),
                missed=tuple(missed_items(one, placements, memory) for one in own if one.table.is_whole),
            )
        )
    return tuple(views)


def _named(section: Section) -> tuple[str, str]:
    return section.table.signature.dataset, section.table.signature.dataset_version


def dataset_line(view: DatasetView) -> Line:
    """Return the export row of one dataset in the list of datasets."""
    manifest = view.manifest
    return {
        "dataset": view.name,
        "version": view.version,
        "title": None if manifest is None else manifest.title,
        "licence": None if manifest is None else manifest.licence,
        "redistributable": None if manifest is None else manifest.redistributable,
        "human_validated": None if manifest is None else manifest.human_validated,
        "n_items": view.n_items,
        "content_sha256": None if manifest is None else manifest.content_sha256,
        "n_results": view.n_results,
        "n_answer_keys": len(view.keys),
        "page": view.page,
    }


def _rebuilding(manifest: Manifest) -> str | None:
    """Return the command that builds a dataset again, as far as its manifest records it.

    A manifest may come from anybody and readers copy commands, so every word must be one that a shell leaves alone.
    """
    package, *inner = manifest.builder.partition(" ")[0].split(".")
    if package != "builders" or not inner:
        return None
    is_fetched = any(one.address.startswith(("http://", "https://", "folder of ")) for one in manifest.sources)
    options = {
        "source": manifest.parameters.get("source"),
        "input": "PATH" if is_fetched else None,
        **{name: manifest.parameters.get(name) for name in _OPTIONS},
        "seed": manifest.seed,
    }
    parts = {name: str(value) for name, value in options.items() if value is not None}
    if not all(map(_PLAIN_WORD.fullmatch, [inner[0], *parts.values()])):
        return None
    words = (word for name, value in parts.items() for word in (f"--{name.replace('_', '-')}", value))
    return shlex.join(["biasboard", "build", inner[0], *words])
