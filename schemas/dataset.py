"""The manifest of a built dataset (``dataset.json``) and the rows that every builder writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

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
    item_shape: str
    """Names the row schema and the tasks that can ask it, such as ``coreference``."""
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


PronounCase: TypeAlias = Literal[
    "nominative", "accusative", "possessive_dependent", "possessive_independent", "reflexive"
]
PronounGender: TypeAlias = Literal["masculine", "feminine"]
Stereotype: TypeAlias = Literal["pro", "anti"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreferenceItem:
    """A sentence with two occupations and one pronoun; one side of a minimal pair."""

    item_id: str
    pair_id: str
    """Shared by the two items that differ in the pronoun alone."""
    cluster: str
    """The occupation pair, ``<male-stereotyped>|<female-stereotyped>``: the unit of resampling."""
    sentence: str
    pronoun: str
    """As it stands in the sentence, case kept."""
    pronoun_start: int
    """Offset of the pronoun in the sentence, in characters."""
    pronoun_case: PronounCase | None
    """Null where neither the text nor the counterpart decides it."""
    pronoun_gender: PronounGender
    occupations: tuple[str, ...]
    """The two occupations in the order in which the sentence mentions them."""
    referent: str | None
    """The occupation that the pronoun means; null where the sentence is ambiguous."""
    reference: str
    """The occupation that desirability is measured from: the referent, or a fixed one of the two."""
    stereotype: Stereotype | None
    """Whether pronoun and referent agree with the occupation's majority gender; null where there is no referent."""
    template_id: str | None
    source_row: str | None
    """File and line of the source."""
    flags: tuple[str, ...]
    """Rules of the manifest's flags that hold for this item."""
