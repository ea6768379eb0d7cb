"""The contents of ``result.json``: the result of one model on one config, or one suite of configs, of a dataset."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Literal, TypeAlias

from annotated_types import Ge, Gt, Lt, MaxLen, MinLen
from pydantic import StringConstraints
from typing_extensions import override

from biasboard.ground import strict_json
from schemas.documents.base import (
    Count,
    Distinct,
    Document,
    Name,
    Positive,
    SemanticVersion,
    Sha256,
    Text,
    Version,
    repeated,
)
from schemas.documents.run_files import Scorer

CORRUPTED = "corrupted"
"""Key of an environment's setting with the reason why the answers cannot be the model's own."""
MODELS_THAT_ANSWERED = "models_that_answered"
"""Key of an environment's setting with the names that an endpoint gave of what answered, if not that asked for."""
NOTE = "note"
"""Key of an environment's setting that says where imported answers come from, in the words of who imported them."""

Endpoint: TypeAlias = Literal["local", "api", "baseline", "replay"]
ScoringMode: TypeAlias = Literal["option_logprob", "pseudo_log_likelihood", "generation"]
Normalisation: TypeAlias = Literal[
    "sum", "sum_with_end", "token_mean", "token_mean_with_end", "token_mean_if_unequal", "byte_mean"
]
# Submitters choose these texts; the limits stop one from flooding a page.
_ModelName: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=200)]
_ShortText: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=500)]
_Settings: TypeAlias = Annotated[
    dict[Annotated[str, StringConstraints(max_length=200)], Annotated[str, StringConstraints(max_length=20000)]],
    MaxLen(500),
]
_Table: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\.parquet$")]
_TableOrAddress: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]*\.parquet|https://[^\s]+)$")
]
_ONE_NUMBER = 1e-12
"""Length below which an interval holds one number, apart from rounding."""
MetricKey: TypeAlias = tuple[str, tuple[tuple[str, str], ...]]
"""Name and sorted group of a metric; unique within a result."""
TOLERANCE = 1e-9
"""Largest absolute difference between values that counts as the effect of another order of floating-point sums."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model(Document):
    """The model that answered. Its identity is part of every cache key, so that two models never share an answer."""

    id: _ModelName
    """Model id on the Hub (``org/name``), name of a local folder, or name of a baseline."""
    revision: _ModelName | None
    """Commit on the Hub, or ``sha256:...`` of the files in a local folder; None if unknown."""
    backend: Name
    precision: Name | None
    """Data type of the computation, such as ``float32``; None if it is unknown or has no meaning."""
    chat_template_sha256: Sha256 | None
    """SHA-256 of the chat template; None if prompts are sent as they are."""
    endpoint: Endpoint
    identity_sha256: Sha256
    """SHA-256 of everything about the model that can change an answer."""
    identity: Annotated[dict[str, Annotated[str, StringConstraints(max_length=1000)] | None], MaxLen(50)] | None = None
    """Parts that the hash is taken of, by name; None in older results, or if one is an address, which is not shown."""
    conditions: Annotated[dict[str, Annotated[str, StringConstraints(max_length=1000)]], MaxLen(50)] | None = None
    """What answers depend on beside the model and the prompt, by name, such as tokens to think with or a temperature
    that the provider sets; the identity is a hash of it too. None if there is nothing, and in older results."""

    @property
    def adapters_sha256(self) -> str | None:
        """The hash of the list of adapters that the model answered with, one per context; None if it used none."""
        return (self.identity or {}).get("adapters")

    @property
    def opened_as(self) -> dict[str, str | None]:
        """What is named beside the id to open the same model again, by name."""
        stated = self.identity or self.conditions or {}
        # The revision is that of an adapter if there is one, and each backend states a tokenizer in its own way.
        names = ("adapter", "gguf_file", "thinking_tokens", "chat_template_args", "system_prompt")
        return {
            "revision": self.revision,
            "chat_template_sha256": self.chat_template_sha256,
            "adapters_sha256": self.adapters_sha256,
            "tokenizer": stated.get("tokenizer") and "another",
            **{name: stated.get(name) for name in (*names, *(("model",) if stated.get("adapter") else ()))},
        }

    @property
    def base_sha256(self) -> str:
        """The identity of the same model without adapters for contexts; its own if it has none."""
        parts: dict[str, strict_json.JsonValue] = {**(self.identity or {})}
        return self.identity_sha256 if parts.pop("adapters", None) is None else strict_json.sha256(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature(Document):
    """Everything that must be equal for two results to be comparable, apart from the version of the metric."""

    benchmark: Name
    dataset: Name
    dataset_version: SemanticVersion
    config: Name
    splits: Annotated[tuple[Name, ...], MinLen(1), Distinct()]
    items_sha256: Sha256
    """SHA-256 of the items that were asked, in order; a part of the dataset has another hash than the whole."""
    n_items: Positive
    task: Name
    task_version: Version
    prompt: Name
    prompt_sha256: Sha256
    scoring: ScoringMode
    normalisation: Normalisation | None
    """Normalisation of the option log-probabilities; None for generations."""
    n_outcomes: Annotated[int, Ge(2)] | None
    """Number of outcomes k that certainty is measured on, which may be fewer than the prompt offers; None if each item
    brings its own options, or if no outcome is read from generated texts."""
    parts: Annotated[tuple[Name, ...], Distinct()] = ()
    """Configs that were asked, in order, if ``config`` is a suite; empty if it is a single config."""
    examples_sha256: Sha256 | None = None
    """SHA-256 of the solved examples that prompts show, of all parts in order; None if the task shows none."""

    @property
    def configs(self) -> tuple[str, ...]:
        """The configs whose items were asked: the parts of a suite, or the single config."""
        return self.parts or (self.config,)

    def sha256(self) -> str:
        """Return the SHA-256 of the signature; results with the same hash are grouped together."""
        values = {**asdict(self), "splits": list(self.splits), "parts": list(self.parts)}
        # Fields that were added later are left out while empty, so that older signatures keep their hashes.
        optional = {"parts": bool(self.parts), "examples_sha256": self.examples_sha256 is not None}
        return strict_json.sha256({name: value for name, value in values.items() if optional.get(name, True)})

    @override
    def problems(self) -> Iterator[str]:
        if (self.scoring == "generation") == (self.normalisation is not None):
            need = "null" if self.scoring == "generation" else "a text"
            yield f"normalisation: {self.normalisation or 'null'}, and scoring is '{self.scoring}'; make it {need}"

    def __str__(self) -> str:
        """Return the signature on one line, to print next to a score as sacrebleu does."""
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
class Counts(Document):
    """The number of items with each status.

    ``items = scored + refused + unparsed + failed``. Truncated items are counted under their status too.
    """

    items: Count
    scored: Count
    refused: Count
    unparsed: Count
    failed: Count
    truncated: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitCounts(Document):
    """The number of items with each status in one split of one part of a suite."""

    part: Name
    """Config that the items belong to."""
    split: Name
    counts: Counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval(Document):
    """A confidence interval of a metric."""

    low: float
    high: float
    level: Annotated[float, Gt(0), Lt(1)]
    method: Text
    n_clusters: Annotated[int, Ge(2)]
    """Number of clusters; of the factor that has fewer if two are crossed, of the group that has fewest if the value is
    that of the worst one."""
    n_resamples: Positive | None
    """Number of resamples of the clusters; None for methods that do not resample."""

    def shown(self, number: Callable[[float], str]) -> str:
        """Return both ends, each written by a function; where all clusters give one value, that they are alike.

        An interval such as [0.5, 0.5] would look certain, while other clusters may well differ.
        """
        if self.high - self.low < _ONE_NUMBER:
            return "(all alike)"
        return f"[{number(self.low)}, {number(self.high)}]"


def within(value: float, minimum: float, maximum: float | None) -> float:
    """Return a number clamped to a range, which has no upper end if the maximum is None."""
    return max(value, minimum) if maximum is None else min(max(value, minimum), maximum)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric(Document):
    """The value of a metric, or the reason why it has none; never a stand-in such as 0 or NaN."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
    version: Annotated[str, StringConstraints(pattern=r"^[0-9]+\.[0-9]+(\.[0-9]+)?(\+[A-Za-z0-9.-]+)?$")]
    """Version of the metric's definition and implementation; a plus sign and the versions of the detectors or scorers
    that it uses may follow. Values of different versions are never shown in one column."""
    value: float | None
    reason: Text | None
    """Reason why the value is None; None if it is a number."""
    interval: Interval | None
    interval_reason: Text | None
    n: Count
    """Number of units (see ``unit``) that the value is computed from."""
    n_excluded: Count
    """Number of units left out, such as items without a reading or pairs with one side missing."""
    unit: Text
    """Unit that ``n`` counts, such as items, pairs or occupations."""
    ideal: float | None
    """Value for equal behaviour or no error; None if the metric has no ideal value."""
    minimum: float
    maximum: float | None
    """Largest value that is possible; None if there is none."""
    group: dict[str, str]
    """Group that the value is computed for, such as ``{"occupation": "nurse"}``; empty for all items."""

    @override
    def problems(self) -> Iterator[str]:
        if (self.value is None) != (self.reason is not None):
            yield "value: a metric has either a value or a reason why it has none; rescore the run"
        if self.value is None and self.interval is not None:
            yield "interval: a metric without a value has none; rescore the run"
        if (self.interval is None) != (self.interval_reason is not None):
            yield "interval_reason: a metric has either an interval or a reason why it has none; rescore the run"
        if self.value is not None and self.value != within(self.value, self.minimum, self.maximum):
            yield f"value {self.value} lies outside [{self.minimum}, {self.maximum}]; rescore the run"
        if self.interval is not None and self.interval.low > self.interval.high:
            yield f"interval low {self.interval.low} is above high {self.interval.high}; rescore the run"

    @property
    def drawn_maximum(self) -> float:
        """The upper end of a chart's scale: the maximum if there is one, or the next whole number above all shown."""
        if self.maximum is not None:
            return self.maximum
        shown = [self.value or 0.0, self.ideal or 0.0, 0.0 if self.interval is None else self.interval.high]
        return float(math.floor(max(shown))) + 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage(Document):
    """The requests, tokens, time and money that a run used."""

    n_requests: Count
    """Number of distinct requests that the items need."""
    n_attempts: Count
    """Number of requests that were sent, including retries."""
    n_prompt_tokens: Count | None
    n_completion_tokens: Count | None
    seconds: Annotated[float, Ge(0)] | None
    """Time spent waiting for the backend; None if the answers were imported."""
    cost_usd: Annotated[float, Ge(0)] | None
    """Cost in US dollars; None if no price is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment(Document):
    """The software and hardware that produced the answers."""

    biasboard: _ShortText
    python: _ShortText
    platform: _ShortText
    device: _ShortText | None
    packages: _Settings
    settings: _Settings
    """Settings of the backend that may change the last digits, such as ``option_scoring`` and ``batch_invariant``."""

    @property
    def corruption(self) -> str | None:
        """Why the answers cannot be the model's own, as an import found out; None if they can."""
        return self.settings.get(CORRUPTED)

    @property
    def note(self) -> str | None:
        """Where imported answers come from, in the words of who imported them; None if nobody says."""
        return self.settings.get(NOTE)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsFile(Document):
    """A reference to the file of records that belongs to a result."""

    path: _TableOrAddress
    """Name of a file beside the result, or an https address."""
    sha256: Sha256
    n_rows: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoresFile(Document):
    """A reference to the file of text scores that belongs to a result, and its scorers: at most one of each kind."""

    path: _TableOrAddress
    """Name of a file beside the result, or an https address."""
    sha256: Sha256
    n_rows: Count
    scorers: Annotated[tuple[Scorer, ...], MinLen(1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SumsFile(Document):
    """A reference to the file of sums over clusters that belongs to a result."""

    path: _Table
    """Name of a file beside the result."""
    sha256: Sha256
    n_rows: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptersFile(Document):
    """A reference to the list of the adapters with which a model answered."""

    path: Literal["adapters.json"]
    """Name of a file beside the result."""
    sha256: Sha256


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectionsFile(Document):
    """A reference to the corrections of a model's distributions that were fitted for a result."""

    path: Literal["corrections.json"]
    """Name of a file beside the result."""
    sha256: Sha256


@dataclass(frozen=True, slots=True, kw_only=True)
class Withheld(Document):
    """The complete files of a result that is handed on without its texts, and the sums that replace them.

    The records beside such a result hold the hash of each generated text instead of the text.
    """

    records: RecordsFile
    """Complete records, which are not beside the result."""
    scores: ScoresFile | None
    """Scores of the texts, which are not beside the result; None if no text was scored."""
    sums: SumsFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(Document):
    """The result of one model on one config, or one suite of configs, of a dataset."""

    schema_file = "schemas/documents/result.schema.json"
    has_later_fields = True

    schema_version: Literal["1.0"]
    model: Model
    signature: Signature
    signature_sha256: Sha256
    command: Annotated[str, StringConstraints(min_length=1, max_length=20000)]
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

    @override
    def problems(self) -> Iterator[str]:
        yield from (f"signature.{problem}" for problem in self.signature.problems())
        counts = self.counts
        if counts.items != counts.scored + counts.refused + counts.unparsed + counts.failed:
            total = "the sum of scored, refused, unparsed and failed"
            yield f"counts: items {counts.items} is not {total}; rescore the run"
        if counts.items != self.signature.n_items or counts.items != self.records.n_rows:
            yield (
                f"counts.items {counts.items}, signature.n_items {self.signature.n_items} and records.n_rows "
                f"{self.records.n_rows} differ; rescore the run"
            )
        marks = {
            "endpoint": self.model.endpoint == "baseline",
            "backend": self.model.backend == "baseline",
            "id": self.model.id.startswith("baseline/"),
        }
        if len(set(marks.values())) > 1:
            marking = ", ".join(name for name, is_baseline in marks.items() if is_baseline)
            yield f"model: marked as a baseline only by {marking}; make endpoint, backend and id agree"
        if self.signature_sha256 != self.signature.sha256():
            yield "signature_sha256: is not the hash of the signature; rescore the run"
        yield from self._coverage_problems()
        if (None if self.adapters is None else self.adapters.sha256) != self.model.adapters_sha256:
            yield "adapters: are not those that the model's identity names; run the model again"
        for metric in self.metrics:
            name = f"{metric.name} {metric.group or ''}".rstrip()
            yield from (f"metrics: {name}: {problem}" for problem in metric.problems())
        if self.withheld is not None and self.scores is not None:
            yield "scores: belong to texts that are withheld; leave them out, or submit the complete run again"
        for kind, n in sorted(repeated(scorer.kind for scorer in self.scorers).items()):
            yield f"scores.scorers: names {n} scorers of kind {kind}; keep one"
        for key in repeated((metric.name, *sorted(metric.group.items())) for metric in self.metrics):
            yield f"metrics: {key} stands twice; keep one"

    def _coverage_problems(self) -> Iterator[str]:
        if self.signature.config in self.signature.parts:
            yield f"signature.parts: names '{self.signature.config}' itself, which is the suite; run the model again"
        if bool(self.coverage) != bool(self.signature.parts):
            yield "coverage: a suite has counts of each of its parts, and a single config has none; rescore the run"
            return
        if repeated((entry.part, entry.split) for entry in self.coverage):
            yield "coverage: two entries have the same part and split; rescore the run"
        for name in Counts.__dataclass_fields__ if self.coverage else ():
            total, counted = sum(getattr(entry.counts, name) for entry in self.coverage), getattr(self.counts, name)
            if total != counted:
                yield f"coverage: {name} add up to {total}, not to counts.{name} {counted}; rescore the run"

    @property
    def scorers(self) -> tuple[Scorer, ...]:
        """The scorers of the texts, wherever the scores are."""
        file = self.scores if self.withheld is None else self.withheld.scores
        return () if file is None else file.scorers


def metric_key(metric: Metric) -> MetricKey:
    """Return the key of a metric."""
    return key_of(metric.name, metric.group)


def key_of(name: str, group: Mapping[str, str]) -> MetricKey:
    """Return the key of a metric, given its name and group.

    >>> key_of("accuracy", {"stereotype": "pro"})
    ('accuracy', (('stereotype', 'pro'),))
    """
    return name, tuple(sorted(group.items()))


def name_with_group(name: str, group: Mapping[str, str]) -> str:
    """Return the name of a metric with its group, as shown in errors and tables.

    >>> name_with_group("accuracy", {"stereotype": "pro"})
    'accuracy (stereotype=pro)'
    """
    if not group:
        return name
    return f"{name} ({', '.join(f'{key}={value}' for key, value in sorted(group.items()))})"


def same_interval(stored: Interval | None, computed: Interval | None) -> bool:
    """Return True if two intervals are equal up to the order of floating-point sums."""
    if stored is None or computed is None:
        return stored is computed
    same_method = replace(stored, low=computed.low, high=computed.high) == computed
    return same_method and is_close(stored.low, computed.low) and is_close(stored.high, computed.high)


def is_close(stored: float | None, computed: float | None) -> bool:
    """Return True if two values are equal up to the order of floating-point sums; None equals only None."""
    if stored is None or computed is None:
        return stored is computed
    return abs(stored - computed) <= TOLERANCE
