"""Writes a builder's draft as a dataset folder: parquet files, descriptions, manifest and rejects.

The same draft always gives the same bytes.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from biasboard.ground import strict_json
from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.files import replacing_folder
from biasboard.ground.progress import Report, silent
from builders.dataset.card import BENCHMARK_FILE, CROISSANT_FILE, Card, render_benchmark, render_card, render_croissant
from schemas.documents.base import SCHEMA_VERSION
from schemas.documents.dataset import (
    FileEntry,
    Item,
    Manifest,
    Parameter,
    Reject,
    RuleCount,
    Source,
    SplitEntry,
    Suite,
    shape_of,
)
from schemas.files import contract, row_files
from schemas.folders.dataset_folder import MANIFEST, REJECTS

if TYPE_CHECKING:
    import numpy as np

VERSION_FORM = "MAJOR.MINOR.PATCH, such as 1.2.0"
_VERSION = re.compile(r"(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})")
_LICENCE_FILE = re.compile(r"(LICEN[CS]E|COPYING|NOTICE)(_DATA)?(\.md|\.txt)?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule for dropping candidates or flagging items, named after the defect.

    For rejects the description is the requirement that a candidate fails; for flags it is the defect.
    """

    name: str
    description: str


ItemT = TypeVar("ItemT", bound=Item, covariant=True)
TakenT = TypeVar("TakenT", bound=Item)


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftSplit(Generic[ItemT]):
    """The items of one config and split."""

    config: str
    split: str
    item_shape: str
    items: Sequence[ItemT]
    """Items in order. They are read only once, when the split is written, so a sequence may make them lazily."""

    @property
    def path(self) -> str:
        """The path of the parquet file, relative to the dataset folder."""
        return f"data/{self.config}/{self.split}-00000-of-00001.parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraFile:
    """A further file of the dataset, such as the licence of its source, or an answer from which items were made."""

    name: str
    """Path of the file, relative to the dataset folder."""
    content: bytes
    description: str | None = None
    """Noun phrase that describes the file in the manifest, next to its hash; None to leave it out of the manifest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft(Generic[ItemT]):
    """Everything that is needed to write a dataset folder."""

    name: str
    benchmark: str
    version: str = "1.0.0"
    title: str
    builder: str = ""
    """Name of the builder; empty if it is that of the benchmark."""
    builder_version: str = "1.0"
    parameters: dict[str, Parameter] = field(default_factory=dict)
    seed: int | None = None
    sources: tuple[Source, ...] = ()
    """What the items are made from; empty if it is the builder alone."""
    generator_model: str | None = None
    licence: str
    publish_refusal: str | None = None
    """Reason why the dataset must not be published; None if it may be."""
    human_validated: bool = False
    prompt: str | None = None
    """Prompt by which the measure of the source is defined; None for the first of the task."""
    splits: tuple[DraftSplit[ItemT], ...]
    rejects: tuple[Reject, ...] = ()
    reject_rules: tuple[Rule, ...] = ()
    """All rules that were applied, including those that dropped nothing."""
    flag_rules: tuple[Rule, ...] = ()
    card: Card
    extra_files: tuple[ExtraFile, ...] = ()
    suites: tuple[Suite, ...] = ()
    """Suites of configs that are measured together."""


def by_hash(split: DraftSplit[Item]) -> Sequence[str]:
    """Return the units of a split in an order that is independent of their positions in the source."""
    return sorted({item.unit for item in split.items}, key=lambda unit: hashlib.sha256(unit.encode()).digest())


def take_units(
    splits: Sequence[DraftSplit[TakenT]],
    limit: int | None,
    *,
    unit_name: str = "template",
    order: Callable[[DraftSplit[TakenT]], Sequence[str]] = by_hash,
) -> tuple[DraftSplit[TakenT], ...]:
    """Keep at most ``limit`` items, in whole units such as all variants of a template, equally many units per split.

    Args:
        splits: Splits in which every unit is complete.
        limit: Maximum number of items. None keeps everything.
        unit_name: Word for a unit, for the error message.
        order: Function that returns the units of a split in the order in which they are taken. A larger limit keeps all
            that a smaller one keeps.

    Returns:
        The splits with the kept items in their original order.

    Raises:
        ConfigError: the limit is too small for one unit per split.
    """
    if limit is None:
        return tuple(splits)
    sizes = [Counter(item.unit for item in split.items) for split in splits]
    least = sum(min(of_split.values()) for of_split in sizes)
    if limit < least:
        names = ", ".join(f"{split.config}/{split.split}" for split in splits)
        raise ConfigError(
            f"--limit {limit}: one {unit_name} from each of {names} needs at least {least} items; raise it"
        )
    room = limit
    kept: set[str] = set()
    by_unit = {unit: n for of_split in sizes for unit, n in of_split.items()}
    for unit in round_robin([order(split) for split in splits]):
        if by_unit[unit] > room:
            break
        kept.add(unit)
        room -= by_unit[unit]
    return tuple(replace(split, items=[item for item in split.items if item.unit in kept]) for split in splits)


def rng_for(seed: int, name: str) -> np.random.Generator:
    """Return a random generator for a named thing, such as a task or a label, independent of all other names."""
    # The list of builders imports this file, and draws nothing.
    import numpy as np

    return np.random.default_rng(int.from_bytes(hashlib.sha256(f"{seed}:{name}".encode()).digest(), "big"))


def round_robin(queues: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the first entry of each queue, then the second of each, and so on."""
    for turn in zip_longest(*queues):
        yield from (entry for entry in turn if entry is not None)


def check_target(folder: Path, *, overwrite: bool) -> None:
    """Check that a dataset may be written to a folder; called before the items are built and before they are written.

    Args:
        folder: Folder that the dataset is to be written to.
        overwrite: True if a dataset that is already in the folder may be replaced.

    Raises:
        ConfigError: the folder is a link or a file, or it holds files and ``overwrite`` is False or none is a manifest.
    """
    if folder.is_symlink():
        raise ConfigError(f"--out {folder}: is a link; give the folder that it leads to, or another one")
    if not folder.exists():
        return
    if not folder.is_dir():
        raise ConfigError(f"--out {folder}: is a file; give a folder")
    if not any(folder.iterdir()):
        return
    if not overwrite:
        raise ConfigError(
            f"--out {folder}: is not empty; give another folder, or --overwrite to replace the dataset in it"
        )
    if not (folder / MANIFEST).is_file():
        raise ConfigError(
            f"--out {folder}: holds files but no {MANIFEST}, so it is no dataset and --overwrite leaves it alone; "
            "give another folder"
        )


def write_dataset(
    draft: Draft[Item], folder: Path, *, version: str | None = None, overwrite: bool = False, report: Report = silent
) -> Manifest:
    """Write a dataset folder atomically.

    Args:
        draft: Dataset to write.
        folder: Folder to write it to.
        version: Version to use instead of the draft's; it is recorded as a parameter. None to keep the draft's.
        overwrite: True to replace the same dataset if the folder already holds it.
        report: Called with the progress before each split is written.

    Returns:
        The manifest, as written to ``dataset.json``.

    Raises:
        ConfigError: the folder must not be replaced (see :func:`check_target`), or it holds another dataset.
        DataError: an item breaks its schema, or two items have the same id. Nothing is written.
    """
    if version not in (None, draft.version):
        # Rebuilding the dataset takes the same option, so it is recorded.
        draft = replace(draft, version=version, parameters={**draft.parameters, "dataset_version": version})
    check_target(folder, overwrite=overwrite)
    if (folder / MANIFEST).is_file():
        value = strict_json.read(folder / MANIFEST)
        name = value.get("name") if isinstance(value, dict) else None
        if name != draft.name:
            raise ConfigError(
                f"--out {folder}: holds the dataset '{name}', not '{draft.name}', so --overwrite leaves it alone; "
                "give another folder, or remove that one"
            )
    with replacing_folder(folder) as temporary:
        ids: Counter[str] = Counter()
        flags: Counter[str] = Counter()
        entries: list[SplitEntry] = []
        n_items = sum(len(split.items) for split in draft.splits)
        for split in draft.splits:
            report(f"writing {split.config}/{split.split}", sum(entry.n_items for entry in entries), n_items)
            # Not kept after their split is written: a suite has hundreds of tasks, made one at a time.
            items = list(split.items)
            ids.update(item.item_id for item in items)
            flags.update(flag for item in items for flag in item.flags)
            row_type = shape_of(split.item_shape, where=f"config {split.config}").row_type
            row_files.write_rows(temporary / split.path, items, row_type)
            entries.append(
                SplitEntry(
                    config=split.config,
                    split=split.split,
                    item_shape=split.item_shape,
                    path=split.path,
                    n_items=len(items),
                    content_sha256=row_files.content_sha256(items),
                )
            )
        for item_id, n in ids.items():
            if n > 1:
                raise DataError(
                    f"dataset {draft.name}: item_id '{item_id}' stands {n} times; give every item its own id"
                )
        row_files.write_rows(temporary / REJECTS, draft.rejects, Reject)
        manifest = _manifest(draft, tuple(entries), flags)
        for file in draft.extra_files:
            (temporary / file.name).parent.mkdir(parents=True, exist_ok=True)
            (temporary / file.name).write_bytes(file.content)
        (temporary / "README.md").write_text(render_card(draft.card, manifest), encoding="utf-8")
        if manifest.redistributable:
            # Both files are for the Hub, and only such a dataset may go there.
            (temporary / BENCHMARK_FILE).write_text(render_benchmark(manifest), encoding="utf-8")
            croissant = render_croissant(draft.card, manifest, temporary)
            (temporary / CROISSANT_FILE).write_text(croissant, encoding="utf-8")
        strict_json.write(temporary / MANIFEST, contract.dump(manifest))
    return manifest


_OF_DRAFT = (
    *("name", "benchmark", "version", "title", "builder_version", "parameters", "seed", "generator_model", "licence"),
    *("publish_refusal", "human_validated", "suites"),
)
"""Fields that a manifest has from its draft as they are."""


def _manifest(draft: Draft[Item], entries: tuple[SplitEntry, ...], flags: Counter[str]) -> Manifest:
    builder = draft.builder or draft.benchmark
    itself = Source(
        name="builder",
        address=f"builders/{builder}",
        revision=draft.builder_version,
        sha256=None,
        licence=draft.licence,
        redistributable=draft.publish_refusal is None,
    )
    manifest = Manifest(
        schema_version=SCHEMA_VERSION,
        **{name: getattr(draft, name) for name in _OF_DRAFT},
        builder=builder,
        sources=draft.sources or (itself,),
        redistributable=draft.publish_refusal is None,
        language=draft.card.language,
        prompt=draft.prompt,
        splits=entries,
        content_sha256=strict_json.sha256([entry.content_sha256 for entry in entries]),
        rejects=_counted(draft.reject_rules, Counter(reject.rule for reject in draft.rejects), "reject"),
        flags=_counted(draft.flag_rules, flags, "flag"),
        files=tuple(
            FileEntry(path=file.name, sha256=hashlib.sha256(file.content).hexdigest(), description=file.description)
            for file in draft.extra_files
            if file.description is not None
        ),
    )
    return contract.load(contract.dump(manifest), Manifest, where=f"manifest of {draft.name}")


def _counted(rules: tuple[Rule, ...], counts: Counter[str], kind: str) -> tuple[RuleCount, ...]:
    undescribed = set(counts) - {rule.name for rule in rules}
    if undescribed:
        raise ValueError(f"{kind} rules without a description: {', '.join(sorted(undescribed))}")
    return tuple(RuleCount(rule=rule.name, n=counts[rule.name], description=rule.description) for rule in rules)


def version_key(version: str) -> tuple[int, ...] | None:
    """Return the numbers of a version as a sort key; None if it does not have the form of a version.

    >>> version_key("1.10.0") > version_key("1.9.3")
    True
    >>> version_key("1.10") is None
    True
    """
    match = _VERSION.fullmatch(version)
    return None if match is None else tuple(map(int, match.groups()))


def is_licence_file(name: str) -> bool:
    """Return True if the path of a file in a dataset folder shows that it holds the licence of a source.

    >>> is_licence_file("LICENSE"), is_licence_file("notes.txt")
    (True, False)
    """
    return _LICENCE_FILE.fullmatch(name) is not None
