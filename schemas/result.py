"""``result.json``: one model on one config of one dataset."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal, TypeAlias

from schemas import strict_json
from schemas.score import Scorer

SCHEMA_VERSION = "1.0"
CORRUPTED = "corrupted"
"""Setting of an environment that says why answers cannot be the model's own."""

Endpoint: TypeAlias = Literal["local", "api", "baseline", "replay"]
ScoringMode: TypeAlias = Literal["option_logprob", "generation"]
Normalisation: TypeAlias = Literal["sum", "sum_with_end", "token_mean", "byte_mean"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """Who answered. The identity is part of every store key, so that two models never share an answer."""

    id: str
    """``org/name`` of the Hub, the name of a local folder, or the name of a baseline."""
    revision: str | None
    """Commit of the Hub, or ``sha256:...`` of a local folder's files; null where neither is known."""
    backend: str
    precision: str | None
    """Such as ``float32``; null where it is unknown or has no meaning."""
    chat_template_sha256: str | None
    """Null where prompts are sent as they are."""
    endpoint: Endpoint
    identity_sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """What must be equal for two results to be comparable, apart from a metric's own version."""

    benchmark: str
    dataset: str
    dataset_version: str
    config: str
    splits: tuple[str, ...]
    items_sha256: str
    """Of the items that were asked, in order: a slice of the data has another hash."""
    n_items: int
    task: str
    task_version: str
    prompt: str
    prompt_sha256: str
    scoring: ScoringMode
    normalisation: Normalisation | None
    """Null for generations."""
    n_outcomes: int | None
    """k of the outcome distribution; null where texts are generated and none is read from them."""

    def sha256(self) -> str:
        """Hash under which results are grouped."""
        return strict_json.sha256({**asdict(self), "splits": list(self.splits)})

    def __str__(self) -> str:
        """One line to print beside every score, in the manner of sacrebleu."""
        parts = [
            f"{self.dataset}@{self.dataset_version}",
            f"{self.config}:{'+'.join(self.splits)}",
            f"items:{self.n_items}:{self.items_sha256[:8]}",
            f"task:{self.task}@{self.task_version}",
            f"prompt:{self.prompt}:{self.prompt_sha256[:8]}",
            f"mode:{self.scoring}",
        ]
        if self.normalisation is not None:
            parts.append(f"norm:{self.normalisation}")
        if self.n_outcomes is not None:
            parts.append(f"k:{self.n_outcomes}")
        return "|".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How many items ended how. ``items = scored + refused + unparsed + failed``; truncated ones are among them."""

    items: int
    scored: int
    refused: int
    unparsed: int
    failed: int
    truncated: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A confidence interval of a metric."""

    low: float
    high: float
    level: float
    method: str
    n_clusters: int
    n_resamples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A number, or the reason why there is none; never a stand-in such as 0 or NaN."""

    name: str
    version: str
    """Version of the definition and its implementation; after a plus sign those of detectors or scorers that it reads
    with. Values of two versions never share a column."""
    value: float | None
    reason: str | None
    """Why the value is null; null if it is a number."""
    interval: Interval | None
    interval_reason: str | None
    n: int
    """What was counted (``unit``) for the value."""
    n_excluded: int
    """What was left out: items without a reading, pairs with one side missing."""
    unit: str
    """What ``n`` counts: items, pairs, occupations."""
    ideal: float | None
    """The value of equal behaviour or of no error; null where none is."""
    minimum: float
    maximum: float
    group: dict[str, str]
    """The slice that the value is of, such as ``{"occupation": "nurse"}``; empty for all items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What the run took."""

    n_requests: int
    """Distinct requests that the items need."""
    n_attempts: int
    """Requests that were sent, repeated ones counted."""
    n_prompt_tokens: int | None
    n_completion_tokens: int | None
    seconds: float | None
    """Time spent waiting for the backend; null for scores that were computed again."""
    cost_usd: float | None
    """Null where no price is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Where the answers came from."""

    biasboard: str
    python: str
    platform: str
    device: str | None
    packages: dict[str, str]
    settings: dict[str, str]
    """How the backend computed, where that may matter to the last digits: ``option_scoring``, ``batch_invariant``."""

    @property
    def corruption(self) -> str | None:
        """Why the answers cannot be the model's own, as an import found out; None if nothing speaks against them."""
        return self.settings.get(CORRUPTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsFile:
    """The records that belong to a result."""

    path: str
    """Name of a file beside the result, or an https address."""
    sha256: str
    n_rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoresFile:
    """What scorers said of the texts of the records, and which scorers: at most one of each kind."""

    path: str
    """Name of a file beside the result, or an https address."""
    sha256: str
    n_rows: int
    scorers: tuple[Scorer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One model on one config of one dataset."""

    schema_version: str
    model: Model
    signature: Signature
    signature_sha256: str
    command: str
    """The command that reproduces the result."""
    counts: Counts
    metrics: tuple[Metric, ...]
    usage: Usage
    environment: Environment
    records: RecordsFile
    scores: ScoresFile | None
    """Null where the metrics need no scorer, or no text was scored."""
