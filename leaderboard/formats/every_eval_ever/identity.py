"""Names a result and its metrics in the terms of Every Eval Ever."""

from __future__ import annotations

import hashlib
import uuid
from typing import NamedTuple, cast

from biasboard.ground import strict_json
from biasboard.ground.strict_json import JsonValue
from evaluators.benchmark import load_benchmark
from leaderboard.result_format import VerifiedResult
from schemas.documents.result import Metric, Signature, name_with_group

SCHEMA_VERSION = "0.3.0"
_UNKNOWN = "unknown"


class Identity(NamedTuple):
    """The names under which a result is exported."""

    evaluation_id: str
    developer: str | None
    """Part of the model id before the slash; None if it has none."""
    stem: str
    """Path of its files without the ending, relative to the folder of all exports."""
    sample_metric: str | None
    """Id of the metric that is the mean of the verdicts about single answers; None if there is none with a value."""


def identity_of(verified: VerifiedResult) -> Identity:
    """Return the names of a result, which follow from its hash alone."""
    signature, model_id = verified.result.signature, verified.result.model.id
    developer, _, name = model_id.rpartition("/")
    digest = hashlib.sha256(f"every-eval-ever\0{verified.result_sha256}".encode()).digest()
    # The datastore takes only names of version 4, which are random elsewhere and a hash here.
    number = uuid.UUID(bytes=digest[:16], version=4)
    gate = load_benchmark(signature.benchmark).gate(signature.task)
    metric = None if gate is None or gate.only_reading else verified.metric(gate.metric)
    return Identity(
        evaluation_id=f"{evaluation_name(signature)}/{model_id}/{number}",
        developer=developer or None,
        stem=f"data/{signature.benchmark}/{developer or _UNKNOWN}/{name}/{number}",
        sample_metric=None if metric is None or metric.value is None else result_id(metric),
    )


def evaluation_name(signature: Signature) -> str:
    """Return the name of what a result evaluates."""
    return f"{signature.dataset}@{signature.dataset_version}/{signature.config}"


def result_id(metric: Metric) -> str:
    """Return the id of a metric within a result: its name, its version and its slice."""
    return name_with_group(f"{metric.name}@{metric.version}", metric.group)


def compact(value: object) -> str:
    """Return a value of strict JSON as a text, since details of the schema hold only texts."""
    return strict_json.canonical(cast(JsonValue, value)).decode()
