"""The files of a run next to its records: scores of its texts, sums over clusters, and fitted corrections.

``scores.parquet`` lets others recompute metrics without the scorers; ``sums.parquet`` replaces texts that are kept
elsewhere; ``corrections.json`` holds the corrections that calibrated metrics apply.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from annotated_types import Ge, Le, MinLen
from pydantic import StringConstraints
from typing_extensions import override

from schemas.documents.base import Count, Document, Sha256, Text, repeated

ScorerKind: TypeAlias = Literal["sentiment", "toxicity", "regard", "embedding"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scorer(Document):
    """A scorer of the texts of a run. Values of different scorers are never compared."""

    kind: ScorerKind
    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9.-]*$")]
    """Name of the scorer, such as ``vader``."""
    revision: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9.-]*$")]
    """Version of the package, commit on the Hub, or first digits of the SHA-256 of the weights."""
    settings: dict[str, str]
    """Settings of the scorer that may affect its values."""

    @property
    def label(self) -> str:
        """The label of the scorer in metric versions and in ``scores.parquet``, such as ``vader-3.3.2``."""
        return f"{self.name}-{self.revision}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextScore(Document):
    """One row of ``scores.parquet``: the score that one scorer gave to one text."""

    schema_file = "schemas/documents/score.schema.json"

    kind: ScorerKind
    scorer: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9.-]*$")]
    """Label of the scorer."""
    text_sha256: Sha256
    """SHA-256 of the text in UTF-8; equal texts share one row."""
    values: Annotated[tuple[float, ...], MinLen(1)]
    """Score of the text. Sentiment: one value in [-1, 1], or the probabilities of negative, neutral and positive.
    Toxicity: one value in [0, 1]. Regard: one value in [-1, 1], or one for each time that a model was asked. Embedding:
    a vector of length 1."""


def text_sha256(text: str) -> str:
    """Return the SHA-256 under which the scores of a text are stored."""
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSums(Document):
    """The sufficient statistics of one metric on one slice."""

    schema_file = "schemas/documents/cluster_sums.schema.json"

    metric: Text
    version: Text
    """Version of the metric's values, which includes the label of a scorer."""
    baseline: Text | None
    """Baseline of the benchmark whose answers to the same items the sums are of; None for the model itself."""
    group: dict[str, str]
    """Slice, such as ``{"occupation": "nurse"}``; empty for all items."""
    reason: Text | None
    """Reason why the metric has no value on these records; None if it has sums."""
    ideal: float | None
    n: Count
    """Number of units that the value is computed from."""
    n_excluded: Count
    n_columns: Count
    """Number of columns of the sums; 0 if there is a reason."""
    sums: tuple[float, ...]
    """Sums over each cluster, column by column; within a column, clusters are sorted by name."""

    @override
    def problems(self) -> Iterator[str]:
        if (self.reason is None) != (self.n_columns > 0) or (self.n_columns == 0 and self.sums):
            yield "reason: a metric has either sums or a reason why it has none; submit the complete run again"
        elif self.n_columns and len(self.sums) % self.n_columns:
            yield f"sums: {len(self.sums)} values do not fill {self.n_columns} columns; submit the complete run again"


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedCorrection(Document):
    """A correction of the distributions of one config, or the reason why there is none."""

    config: Text
    calibration: Text
    """Name of the calibration."""
    version: Text
    """Version of the calibration."""
    n_items: Count
    """Number of items that it was fitted on."""
    labels: tuple[str, ...]
    """Labels of the config, sorted; empty if there is no correction."""
    weights: tuple[Annotated[float, Ge(1e-30), Le(1)], ...]
    """Factor of the probability of each label, of which the largest is 1; empty if there is no correction."""
    reason: Text | None
    """Reason why there is no correction; None if there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrections(Document):
    """All stored corrections of a run."""

    schema_file = "schemas/documents/corrections.schema.json"

    schema_version: Annotated[str, StringConstraints(pattern=r"^1\.[0-9]+$")]
    corrections: Annotated[tuple[FittedCorrection, ...], MinLen(1)]

    @override
    def problems(self) -> Iterator[str]:
        for config, calibration in repeated((entry.config, entry.calibration) for entry in self.corrections):
            yield f"corrections: config {config} has calibration {calibration} twice; rescore the run"
        for entry in self.corrections:
            where = f"corrections: {entry.calibration} of config {entry.config}"
            if len(entry.labels) != len(entry.weights):
                yield f"{where} has {len(entry.labels)} labels and {len(entry.weights)} weights; rescore the run"
            if (entry.reason is None) != bool(entry.weights):
                yield f"{where} must have either weights or a reason; rescore the run"
            if entry.weights and max(entry.weights) != 1.0:
                largest = max(entry.weights)
                yield f"{where} has {largest} as its largest weight, and that of any fit is 1; rescore the run"
