"""The manifest of a built dataset (``dataset.json``), and the candidates that it leaves out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

SCHEMA_VERSION = "1.0"

Parameter: TypeAlias = bool | int | float | str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where rows come from, exactly enough to fetch the same bytes again."""

    name: str
    address: str
    """URL, or the name of a generator inside this distribution."""
    revision: str | None
    """Commit, tag or version; null where the source has none."""
    sha256: str | None
    """Of the bytes that were read; null for a generator, whose version is the revision."""
    licence: str
    """SPDX identifier where there is one."""
    redistributable: bool
    """Whether the licence lets a converted copy be published."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitEntry:
    """One parquet file of one config and split."""

    config: str
    split: str
    item_shape: str
    """Names the row schema and the tasks that can ask it, such as ``coreference``; one per config."""
    path: str
    """Relative to the dataset folder."""
    n_items: int
    content_sha256: str
    """Of the canonical JSON lines of the items: equal under every pyarrow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleCount:
    """How many candidates a rule dropped, or how many kept items carry a flag."""

    rule: str
    n: int
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a dataset folder holds and how it came about."""

    schema_version: str
    name: str
    benchmark: str
    """The benchmark that its results are listed under: synthbias, gifi, superni."""
    version: str
    """Semantic version of the data: a change of any item raises it."""
    title: str
    builder: str
    builder_version: str
    parameters: dict[str, Parameter]
    seed: int | None
    sources: tuple[Source, ...]
    generator_model: str | None
    """The language model that wrote the candidates; null where none did."""
    licence: str
    redistributable: bool
    publish_refusal: str | None
    """Why the dataset must not be pushed; null where it may be."""
    human_validated: bool
    splits: tuple[SplitEntry, ...]
    content_sha256: str
    """Of the content hashes of all splits."""
    rejects: tuple[RuleCount, ...]
    """Candidates that are not in the data; each is a row of rejects.parquet."""
    flags: tuple[RuleCount, ...]
    """Peculiarities of items that are in the data, kept as the source has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reject:
    """A candidate that a builder dropped, with the rule that dropped it."""

    candidate: str
    """The candidate's text or key; empty where the licence forbids showing it."""
    source_row: str | None
    rule: str
    reason: str
