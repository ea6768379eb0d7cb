"""The contents of ``result.json``: the result of one model on one config, or one suite of configs, of a dataset."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Literal, TypeAlias

from schemas import strict_json
from schemas.score import Scorer

SCHEMA_VERSION = "1.0"
CORRUPTED = "corrupted"
"""Setting of an environment that says why answers cannot be the model's own."""

Endpoint: TypeAlias = Literal["local", "api", "baseline", "replay"]
ScoringMode: TypeAlias = Literal["option_logprob", "generation"]
Normalisation: TypeAlias = Literal[
    "sum", "sum_with_end", "token_mean", "token_mean_with_end", "token_mean_if_unequal", "byte_mean"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """The model that answered. Its identity is part of every cache key, so that two models never share an answer."""

    id: str
    """Model id on the Hub (``org/name``), name of a local folder, or name of a baseline."""
    revision: str | None
    """Commit on the Hub, or ``sha256:...`` of the files in a local folder; None if unknown."""
    backend: str
    precision: str | None
    """Data type of the computation, such as ``float32``; None if it is unknown or has no meaning."""
    chat_template_sha256: str | None
    """SHA-256 of the chat template; None if prompts are sent as they are."""
    endpoint: Endpoint
    identity_sha256: str
    """SHA-256 of everything about the model that can change an answer."""
    identity: dict[str, str | None] | None = None
    """Parts that the hash is taken of, by name; None in older results, or if one is an address, which is not shown."""

    @property
    def adapters_sha256(self) -> str | None:
        """The hash of the list of adapters that the model answered with, one for each context; None without such."""
        return (self.identity or {}).get("adapters")


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """Everything that must be equal for two results to be comparable, apart from the version of the metric."""

    benchmark: str
    dataset: str
    dataset_version: str
    config: str
    splits: tuple[str, ...]
    items_sha256: str
    """SHA-256 of the items that were asked, in order; a part of the dataset has another hash than the whole."""
    n_items: int
    task: str
    task_version: str
    prompt: str
    prompt_sha256: str
    scoring: ScoringMode
    normalisation: Normalisation | None
    """Normalisation of the option log-probabilities; None for generations."""
    n_outcomes: int | None
    """Number of outcomes k; None if each item brings its own options, or if no outcome is read from generated texts."""
    parts: tuple[str, ...] = ()
    """Configs that were asked, in order, if ``config`` is a suite; empty if it is a single config."""
    examples_sha256: str | None = None
    """SHA-256 of the solved examples that prompts show, of all parts in order; None if the task shows none."""

    @property
    def configs(self) -> tuple[str, ...]:
        """The configs whose items were asked: the parts of a suite, or the single config."""
        return self.parts or (self.config,)

    def sha256(self) -> str:
        """Return the SHA-256 of the signature; results with the same hash are grouped together."""
        told = {**asdict(self), "splits": list(self.splits), "parts": list(self.parts)}
        # Fields that came later are left out where they say nothing, so that older signatures keep their hashes.
        optional = {"parts": bool(self.parts), "examples_sha256": self.examples_sha256 is not None}
        return strict_json.sha256({name: value for name, value in told.items() if optional.get(name, True)})

    def __str__(self) -> str:
        """Return the signature as one line to print beside a score, as sacrebleu does."""
        parts = [
            f"{self.dataset}@{self.dataset_version}",
            f"{self.config}{f'({len(self.parts)})' if self.parts else ''}:{'+'.join(self.splits)}",
            f"items:{self.n_items}:{self.items_sha256[:8]}",
            f"task:{self.task}@{self.task_version}",
            f"prompt:{self.prompt}:{self.prompt_sha256[:8]}",
            f"mode:{self.scoring}",
        ]
        if self.normalisation is not None:
            parts.append(f"norm:{self.normalisation}")
        if self.n_outcomes is not None:
            parts.append(f"k:{self.n_outcomes}")
        if self.examples_sha256 is not None:
            parts.append(f"examples:{self.examples_sha256[:8]}")
        return "|".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The number of items with each status.

    ``items = scored + refused + unparsed + failed``. Truncated items are counted under their status too.
    """

    items: int
    scored: int
    refused: int
    unparsed: int
    failed: int
    truncated: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitCounts:
    """The number of items with each status in one split of one part of a suite."""

    part: str
    """Config that the items belong to."""
    split: str
    counts: Counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A confidence interval of a metric."""

    low: float
    high: float
    level: float
    method: str
    n_clusters: int
    n_resamples: int


def within(value: float, minimum: float, maximum: float | None) -> float:
    """Return the value of a range that is nearest to a number; a range without a maximum has no upper end."""
    return max(value, minimum) if maximum is None else min(max(value, minimum), maximum)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """The value of a metric, or the reason why it has none; never a stand-in such as 0 or NaN."""

    name: str
    version: str
    """Version of the metric's definition and implementation; a plus sign and the versions of the detectors or scorers
    that it uses may follow. Values of different versions are never shown in one column."""
    value: float | None
    reason: str | None
    """Reason why the value is None; None if it is a number."""
    interval: Interval | None
    interval_reason: str | None
    n: int
    """Number of units (see ``unit``) that the value is computed from."""
    n_excluded: int
    """Number of units left out, such as items without a reading or pairs with one side missing."""
    unit: str
    """Unit that ``n`` counts, such as items, pairs or occupations."""
    ideal: float | None
    """Value for equal behaviour or no error; None if the metric has no ideal value."""
    minimum: float
    maximum: float | None
    """Largest value that is possible; None if there is none."""
    group: dict[str, str]
    """Group that the value is computed for, such as ``{"occupation": "nurse"}``; empty for all items."""

    @property
    def drawn_maximum(self) -> float:
        """The upper end of a scale that shows the value and its interval: the maximum, or the first number above."""
        if self.maximum is not None:
            return self.maximum
        told = [self.value or 0.0, self.ideal or 0.0, 0.0 if self.interval is None else self.interval.high]
        return float(math.floor(max(told))) + 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The requests, tokens, time and money that a run used."""

    n_requests: int
    """Number of distinct requests that the items need."""
    n_attempts: int
    """Number of requests that were sent, including retries."""
    n_prompt_tokens: int | None
    n_completion_tokens: int | None
    seconds: float | None
    """Time spent waiting for the backend; None if the answers were imported."""
    cost_usd: float | None
    """Cost in US dollars; None if no price is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The software and hardware that produced the answers."""

    biasboard: str
    python: str
    platform: str
    device: str | None
    packages: dict[str, str]
    settings: dict[str, str]
    """Settings of the backend that may change the last digits, such as ``option_scoring`` and ``batch_invariant``."""

    @property
    def corruption(self) -> str | None:
        """The reason, found by an import, why the answers cannot be the model's own; None if there is none."""
        return self.settings.get(CORRUPTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsFile:
    """A reference to the file of records that belongs to a result."""

    path: str
    """Name of a file beside the result, or an https address."""
    sha256: str
    n_rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoresFile:
    """A reference to the file of text scores that belongs to a result, and its scorers: at most one of each kind."""

    path: str
    """Name of a file beside the result, or an https address."""
    sha256: str
    n_rows: int
    scorers: tuple[Scorer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SumsFile:
    """A reference to the file of sums over clusters that belongs to a result."""

    path: str
    """Name of a file beside the result."""
    sha256: str
    n_rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptersFile:
    """A reference to the list of the adapters with which a model answered."""

    path: str
    """Name of a file beside the result."""
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectionsFile:
    """A reference to the corrections of a model's distributions that were fitted for a result."""

    path: str
    """Name of a file beside the result."""
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Withheld:
    """The complete files of a result that is handed on without its texts, and the sums that replace them.

    The records beside such a result hold the hash of each generated text instead of the text.
    """

    records: RecordsFile
    """Complete records, which are not beside the result."""
    scores: ScoresFile | None
    """Scores of the texts, which are not beside the result; None if no text was scored."""
    sums: SumsFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of one model on one config, or one suite of configs, of a dataset."""

    schema_version: str
    model: Model
    signature: Signature
    signature_sha256: str
    command: str
    """Command line that reproduces the result."""
    counts: Counts
    metrics: tuple[Metric, ...]
    usage: Usage
    environment: Environment
    records: RecordsFile
    scores: ScoresFile | None
    """Scores of the texts; None if the metrics need no scorer or no text was scored."""
    coverage: tuple[SplitCounts, ...] = ()
    """Counts of each split of each part, in the order of the records; empty for a single config."""
    withheld: Withheld | None = None
    """Files that hold the texts and stay elsewhere; None if the texts are in the records."""
    adapters: AdaptersFile | None = None
    """List of the adapters, one for each config; None if the model answered without, or with one for everything."""
    corrections: CorrectionsFile | None = None
    """Corrections that calibrated metrics apply and that are not fitted anew; None if no metric needs one."""

    @property
    def scorers(self) -> tuple[Scorer, ...]:
        """The scorers of the texts, wherever the scores are."""
        file = self.scores if self.withheld is None else self.withheld.scores
        return () if file is None else file.scorers
