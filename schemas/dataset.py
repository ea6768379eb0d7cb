"""The manifest of a built dataset (``dataset.json``), and the candidates that a builder rejected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

SCHEMA_VERSION = "1.0"

Parameter: TypeAlias = bool | int | float | str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A source of rows, described precisely enough to fetch the same bytes again."""

    name: str
    address: str
    """URL, or the name of a generator inside this distribution."""
    revision: str | None
    """Commit, tag or version of the source; None if it has none."""
    sha256: str | None
    """SHA-256 of the bytes that were read; None for a generator, whose version is given as the revision."""
    licence: str
    """Licence of the source: its SPDX identifier if there is one."""
    redistributable: bool
    """True if the licence allows publishing a converted copy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitEntry:
    """One parquet file of one config and split."""

    config: str
    split: str
    item_shape: str
    """Name of the row schema, such as ``coreference``, which decides which tasks can use the items; one per config."""
    path: str
    """Path of the file, relative to the dataset folder."""
    n_items: int
    content_sha256: str
    """SHA-256 of the items as canonical JSON lines, the same for every version of pyarrow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Configs of one item shape that are measured together: a model's answers to all of them are one result."""

    name: str
    """Name by which the suite is asked; no config has the same."""
    configs: tuple[str, ...]
    """Configs of the suite, which are its parts, in the order in which they are asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """A further file of the dataset that a program may read, such as the votes by which its items were accepted."""

    path: str
    """Path of the file, relative to the dataset folder."""
    sha256: str
    """SHA-256 of the file's bytes."""
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleCount:
    """The number of candidates that a rule dropped, or of kept items that carry a flag."""

    rule: str
    n: int
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The contents of a dataset folder and how it was built."""

    schema_version: str
    name: str
    benchmark: str
    """Benchmark under which results on the dataset are listed, such as synthbias or gifi."""
    version: str
    """Semantic version of the data, raised whenever an item changes."""
    title: str
    builder: str
    builder_version: str
    parameters: dict[str, Parameter]
    seed: int | None
    sources: tuple[Source, ...]
    generator_model: str | None
    """Language model that wrote the candidates; None if no model did."""
    licence: str
    redistributable: bool
    publish_refusal: str | None
    """Reason why the dataset must not be published; None if it may be."""
    human_validated: bool
    splits: tuple[SplitEntry, ...]
    content_sha256: str
    """SHA-256 of the content hashes of all splits."""
    rejects: tuple[RuleCount, ...]
    """Number of candidates that each rule kept out of the data; each candidate is a row of rejects.parquet."""
    flags: tuple[RuleCount, ...]
    """Number of items that carry each flag. Flagged items are in the data, as the source has them."""
    suites: tuple[Suite, ...] = ()
    """Suites of configs; left out of the file if there are none."""
    files: tuple[FileEntry, ...] = ()
    """Further files with their hashes; left out of the file if there are none."""

    @property
    def configs(self) -> tuple[str, ...]:
        """The names of the configs, in the order of the splits."""
        return tuple(dict.fromkeys(entry.config for entry in self.splits))

    @property
    def whole_names(self) -> tuple[str, ...]:
        """The names under which all items can be asked: the suites, and the configs that belong to no suite."""
        in_suites = {config for suite in self.suites for config in suite.configs}
        return (*(suite.name for suite in self.suites), *(name for name in self.configs if name not in in_suites))

    def parts(self, name: str) -> tuple[str, ...]:
        """Return the configs of a suite; none if no suite has that name."""
        return next((suite.configs for suite in self.suites if suite.name == name), ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Reject:
    """A candidate that a builder dropped, and the rule that dropped it."""

    candidate: str
    """Text or key of the candidate; empty if the licence forbids showing it."""
    source_row: str | None
    rule: str
    reason: str
