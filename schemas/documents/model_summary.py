"""The summary of a model: its headline measures on every benchmark that it was asked, and what they are compared with.

The command ``score`` prints it as JSON, and model cards are made from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from typing_extensions import override

from schemas.documents.base import Count, Document, Name, Positive, Sha256, Text, Version
from schemas.documents.model_facts import ModelId
from schemas.documents.result import Interval

ComparedAs: TypeAlias = Literal["better", "worse", "tied", "unknown"]
"""``better`` and ``worse`` are separable differences, ``tied`` one that the data do not separate, and ``unknown`` one
without an interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedValue(Document):
    """A value of another model or of a useless predictor."""

    name: Text
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDifference(Document):
    """The difference between the model and the one that it is compared with, on the same items."""

    value: float
    """Value of the other model."""
    lead: float
    """How much nearer to the ideal the model is by the given answers; negative if it is farther."""
    low: float | None
    """Lower end of the 95 % interval of the lead, of this pair alone; None if it is unknown."""
    high: float | None
    lead_at_worst: float
    """The lead with all missing answers of the model at their worst, and those of the other at their best."""
    lead_at_best: float
    missing_alike: float = 0.0
    """Share of the items without a score of either model that have none of both: the same outcome, so that a gate does
    not count them against the model."""
    outcome: ComparedAs
    """What the table says of the two: adjusted for all its pairs, and whatever the missing answers are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureValue(Document):
    """A headline measure of the model."""

    name: Name
    """Name of the metric or index."""
    label: Text
    sentence: Text
    """What the value says."""
    version: Text
    """Version of the metric or index; values of different versions are not comparable."""
    config: Name | None
    """Config on which it was measured; None for an index of several results."""
    splits: tuple[Name, ...]
    """Splits on which it was measured; empty for an index of several results."""
    value: float | None
    reason: Text | None
    """Why there is no value; None if there is one."""
    interval: Interval | None
    interval_reason: Text | None
    """Why there is no interval; None if there is one, or no value."""
    at_worst: float | None
    """The value with all missing answers at their worst; None without a value, or if there is no bound."""
    n: Count
    """Number of units behind the value: items, pairs or sets."""
    unit: Name
    ideal: float | None
    minimum: float
    maximum: float | None
    ranks: bool
    """True if the measure ranks the models."""
    useless: NamedValue | None
    """The useless predictor that comes nearest to the ideal; None if there is none."""
    difference: ModelDifference | None
    """None if nothing is compared, or not under the same conditions."""

    @override
    def problems(self) -> Iterator[str]:
        if self.value is None and self.difference is not None:
            yield "difference: a measure without a value has none; make the summary again"
        if (self.value is None) == (self.reason is None):
            yield "value: a measure has either a value or a reason why it has none; make the summary again"


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingOfGroup(Document):
    """How many items of a group in a config have no score, and why."""

    config: Text
    name: Text
    """What is grouped by, such as the pronoun."""
    value: Text
    n_items: Count
    n_refused: Count
    n_unparsed: Count
    n_failed: Count

    @property
    def n_missing(self) -> int:
        """Number of items without a score."""
        return self.n_refused + self.n_unparsed + self.n_failed


@dataclass(frozen=True, slots=True, kw_only=True)
class GateOutcome(Document):
    """What became of a gate: a limit that a release must keep."""

    gate: Text
    """As the user gave it."""
    benchmark: Name
    measure: Name | None
    """None for the share of missing answers, and for a comparison that could not be made."""
    limit: float
    passed: bool
    value: float | None
    """Value of the measure, share of missing answers, or by how much it is worse; None if it is unknown."""
    decided_by: float | None
    """The number that decided, which doubt and missing answers make worse than the value; None if nothing could be
    decided, so that more or other answers are needed."""
    reason: Text | None
    """Why it did not pass; None if it did."""
    compared_with: ModelId | None = None
    """The model than which it is worse by the value; None for a limit of its own."""
    warnings: tuple[Text, ...] = ()
    """What to know although it passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank(Document):
    """The range of ranks that the data allow."""

    best: Positive
    worst: Positive
    n_ranked: Positive


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkSummary(Document):
    """What one benchmark says of the model."""

    benchmark: Name
    heading: Text
    dataset: Name
    dataset_version: Version
    protocol: Text
    """Prompt, or protocol of several prompts, by which the model was asked."""
    rank: Rank | None
    why_unranked: Text | None
    """Why the model has no rank; None if it has one."""
    beats_useless: bool
    """False if the model is not shown to do better than a useless predictor."""
    is_below: bool
    """True if it has no rank for this reason alone."""
    is_other_below: bool
    """True if the model that it is compared with is not shown to do better than one."""
    n_missing_of_other: Count | None
    """Number of items without a score in the results that it is compared with; None if it is not compared."""
    why_not_compared: Text | None
    """Why it is not compared with the other model; None if it is, or if there is none."""
    measures: tuple[MeasureValue, ...]
    results: tuple[Sha256, ...]
    """Hashes of the signatures of the results behind the values."""
    is_whole: bool
    """False if only some items were asked, so that nothing has a rank."""
    claims: tuple[Text, ...]
    """What the values rest on and no computation has confirmed."""
    n_missing: Count
    """Number of items without a score in these results."""
    n_refused: Count
    n_unparsed: Count
    """Number of items whose answer could not be read."""
    n_failed: Count
    n_items: Count
    why_below: Text | None = None
    """Why it is not shown to do better than a useless predictor; None if it is."""
    not_measured: tuple[Name, ...] = ()
    """Headline measures of which the other model has a value, and this one has none."""
    missing_of_groups: tuple[MissingOfGroup, ...] = ()
    """The same by groups, if any item has no score: whom a model refuses is a bias too."""
    lacking_more: tuple[MissingOfGroup, ...] = ()
    """The groups among them that lack clearly more scores than the others of their kind, the clearest first.

    One that does over several configs together has the names of all as its config.
    """

    @override
    def problems(self) -> Iterator[str]:
        if (self.rank is None) == (self.why_unranked is None):
            yield "rank: a model has either a rank or a reason why it has none; make the summary again"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSummary(Document):
    """The headline measures of one model."""

    schema_file = "schemas/documents/model_summary.schema.json"

    schema_version: Version
    model: ModelId
    revision: Text | None
    backend: Name
    """What called the model."""
    precision: Name | None
    """Data type of the computation; None if it is unknown or has no meaning."""
    identity_sha256: Sha256
    against: ModelId | None
    """Model that it is compared with; None if there is none."""
    benchmarks: tuple[BenchmarkSummary, ...]
    notes: tuple[Text, ...] = ()
    """What else a reader must know, such as benchmarks that were not asked and why."""
    gates: tuple[GateOutcome, ...] = ()
    """The gates that the user set, each with its outcome."""
    passed: bool | None = None
    """True if the model passed all gates; None without any."""
    allowed: tuple[Name, ...] = ()
    """What the user let decide gates that otherwise does not, such as a limited run."""
    is_by_point: bool = False
    """True if the user let values decide gates, and not the far ends of their intervals."""

    @property
    def is_whole(self) -> bool:
        """True if all items of each benchmark were asked."""
        return all(benchmark.is_whole for benchmark in self.benchmarks)
