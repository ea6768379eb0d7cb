"""Describes a result and all its metrics as one JSON document of Every Eval Ever."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from biasboard.ground.strict_json import JsonValue
from evaluators.runs.measure.measuring import metric_definitions
from evaluators.task import load_task, prompt_of
from leaderboard.benchmark_pages import load_pages
from leaderboard.formats.every_eval_ever.identity import SCHEMA_VERSION, Identity, compact, result_id
from leaderboard.formats.every_eval_ever.samples import Samples
from leaderboard.result_format import Addresses, VerifiedResult
from schemas.documents.result import Metric, name_with_group

_LIBRARY = "biasboard"
_UNKNOWN = "unknown"


def evaluation_log(
    verified: VerifiedResult, addresses: Addresses, identity: Identity, samples: Samples
) -> dict[str, JsonValue]:
    """Return the document of a result.

    Args:
        verified: The result.
        addresses: The addresses that the document refers to.
        identity: The names of the result.
        samples: The rows of its answers, which are named only if there are any.
    """
    submission = verified.submission
    log: dict[str, JsonValue] = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": identity.evaluation_id,
        # The time of an export would make each of them another file.
        "retrieved_timestamp": _UNKNOWN if submission is None else _epoch(submission.submitted),
        "source_metadata": _source_metadata(verified, addresses, samples),
        "eval_library": _library(verified),
        "model_info": _model_info(verified, identity),
        "evaluation_results": _evaluation_results(verified, addresses, identity),
    }
    if submission is not None:
        log["evaluation_timestamp"] = _epoch(submission.run_date)
    if samples.n_rows:
        log["detailed_evaluation_results"] = {
            "format": "jsonl",
            "file_path": f"{identity.stem}_samples.jsonl",
            "hash_algorithm": "sha256",
            "checksum": samples.sha256,
            "total_rows": samples.n_rows,
            "additional_details": _about_samples(verified, samples),
        }
    return log


def _epoch(date: str) -> str:
    """Return the beginning of a day in seconds since 1970."""
    day = datetime.datetime.fromisoformat(date).replace(tzinfo=datetime.UTC)
    return str(int(day.timestamp()))


def _about_samples(verified: VerifiedResult, samples: Samples) -> dict[str, JsonValue]:
    fields: dict[str, str | None] = {
        "records_without_a_row": compact(dict[str, JsonValue](samples.left_out)) if samples.left_out else None,
        "texts": "as they are" if verified.withheld is None else f"given as SHA-256 only: {verified.withheld}",
    }
    return _details(fields)


def _details(fields: Mapping[str, str | None]) -> dict[str, JsonValue]:
    """Return the known details, since each must be a string."""
    return {name: value for name, value in fields.items() if value is not None}


def _source_metadata(verified: VerifiedResult, addresses: Addresses, samples: Samples) -> dict[str, JsonValue]:
    result, entry, submission = verified.result, verified.entry, verified.submission
    fields = {
        "board_page": verified.permalink(addresses) or verified.page,
        "evaluator_relationship": "not stated: anybody may run a model and submit its result",
        "origin": entry.origin,
        "provenance": entry.provenance,
        "claim": entry.claim,
        "extent": entry.match.extent,
        "extent_reason": entry.match.reason,
        "result_sha256": verified.result_sha256,
        "records_sha256": result.records.sha256,
        "records_n_rows": str(result.records.n_rows),
        "scores_sha256": None if result.scores is None else result.scores.sha256,
        "signature": str(result.signature),
        "signature_sha256": result.signature_sha256,
        "signature_fields": compact(_plain(asdict(result.signature))),
        "counts": compact(_plain(asdict(result.counts))),
        "coverage": compact([_plain(asdict(split)) for split in result.coverage]) if result.coverage else None,
        "usage": compact(_plain(asdict(result.usage))),
        "model_card": None if submission is None else submission.model_card,
        "train_data_disclosure": None if submission is None else submission.train_data_disclosure,
        "metrics_without_value": compact([_without_value(verified, metric) for metric in _unknown(verified)]),
        "metrics_of_other_versions": compact([result_id(metric) for metric in entry.earlier]),
        "instance_rows": "in the samples file" if samples.n_rows else "none: no answer is right or wrong",
        "instance_records_without_row": compact(dict[str, JsonValue](samples.left_out)),
    }
    source: dict[str, JsonValue] = {
        "source_name": _LIBRARY,
        "source_type": "evaluation_run",
        "source_organization_name": _UNKNOWN,
        "evaluator_relationship": "other",
        "additional_details": _details(fields),
    }
    return source if addresses.site is None else source | {"source_organization_url": addresses.site}


def _plain(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {name: list(item) if isinstance(item, tuple) else item for name, item in value.items()}


def _unknown(verified: VerifiedResult) -> list[Metric]:
    return [metric for metric in verified.metrics if metric.value is None]


def _without_value(verified: VerifiedResult, metric: Metric) -> dict[str, JsonValue]:
    return {
        "evaluation_result_id": result_id(metric),
        "evaluation_name": _evaluation_name(verified, metric),
        "metric_config": _metric_config(verified, metric),
        "reason": metric.reason,
        "n": metric.n,
        "n_excluded": metric.n_excluded,
    }


def _library(verified: VerifiedResult) -> dict[str, JsonValue]:
    environment = verified.result.environment
    fields = {
        "python": environment.python,
        "platform": environment.platform,
        "device": environment.device,
        "packages": compact(dict[str, JsonValue](environment.packages)),
        "settings": compact(dict[str, JsonValue](environment.settings)),
    }
    return {"name": _LIBRARY, "version": environment.biasboard, "additional_details": _details(fields)}


@dataclass(frozen=True, slots=True, kw_only=True)
class _ModelInfo:
    """The schema's description of a model."""

    name: str
    id: str
    developer: str | None
    """Organisation in the model id; None if the id names none."""
    inference_engine: dict[str, JsonValue]
    additional_details: dict[str, JsonValue]


def _model_info(verified: VerifiedResult, identity: Identity) -> dict[str, JsonValue]:
    model, packages = verified.result.model, verified.result.environment.packages
    # A backend that replays answers from elsewhere does not show who ran the model.
    is_own = model.endpoint in ("local", "baseline")
    fields = {
        "deployment_type": "self_deployed" if is_own else _UNKNOWN,
        # A weight file that was read here may still be private.
        "model_availability": _UNKNOWN,
        "revision": model.revision,
        "precision": model.precision,
        "endpoint": model.endpoint,
        "chat_template_sha256": model.chat_template_sha256,
        "identity_sha256": model.identity_sha256,
        "identity": None if model.identity is None else compact(dict[str, JsonValue](model.identity)),
    }
    info = _ModelInfo(
        name=model.id,
        id=model.id,
        developer=identity.developer,
        inference_engine={"name": model.backend, "version": packages.get(model.backend, _UNKNOWN)},
        additional_details=_details(fields),
    )
    return {name: value for name, value in asdict(info).items() if value is not None}


def _evaluation_results(verified: VerifiedResult, addresses: Addresses, identity: Identity) -> list[JsonValue]:
    source, asked = _source_data(verified, addresses), _generation_config(verified)
    return [
        {
            "evaluation_result_id": result_id(metric),
            "evaluation_name": _evaluation_name(verified, metric),
            "source_data": source,
            "metric_config": _metric_config(verified, metric),
            "score_details": _score_details(metric, metric.value),
            "generation_config": asked,
        }
        for metric in verified.metrics
        if metric.value is not None
    ]


def _evaluation_name(verified: VerifiedResult, metric: Metric) -> str:
    """Return the name of what was evaluated; a slice has another name, lest it be averaged with the whole."""
    signature = verified.result.signature
    return name_with_group(f"{signature.dataset}@{signature.dataset_version}/{signature.config}", metric.group)


def _source_data(verified: VerifiedResult, addresses: Addresses) -> dict[str, JsonValue]:
    signature, manifest = verified.result.signature, verified.manifest
    fields = {
        "version": signature.dataset_version,
        "config": signature.config,
        "parts": compact(list(signature.parts)) if signature.parts else None,
        "splits": compact(list(signature.splits)),
        "dataset_sha256": verified.dataset_sha256,
        "items_sha256": signature.items_sha256,
        "revision": addresses.dataset_revision,
        "licence": None if manifest is None else manifest.licence,
        "redistributable": None if manifest is None else compact(manifest.redistributable),
    }
    source: dict[str, JsonValue] = {"dataset_name": signature.dataset, "additional_details": _details(fields)}
    if addresses.dataset_repo is None:
        return source | {"source_type": "other"}
    return source | {
        "source_type": "hf_dataset",
        "hf_repo": addresses.dataset_repo,
        "hf_split": "+".join(signature.splits),
        "samples_number": signature.n_items,
    }


def _metric_config(verified: VerifiedResult, metric: Metric) -> dict[str, JsonValue]:
    signature = verified.result.signature
    described = {known.name: known.description for known in metric_definitions(signature.task)}
    fields = {
        "version": metric.version,
        "ideal": None if metric.ideal is None else repr(metric.ideal),
        "direction": _direction(metric),
        "unit_of_n": metric.unit,
        "task": f"{signature.task}@{signature.task_version}",
    }
    return {
        "evaluation_description": described.get(metric.name, metric.name),
        "metric_id": f"{signature.benchmark}.{metric.name}",
        "metric_name": load_pages(signature.benchmark).label(metric.name),
        "metric_parameters": dict[str, JsonValue](metric.group),
        "lower_is_better": _is_lower_better(metric),
        "score_type": "continuous",
        "min_score": metric.minimum,
        "max_score": metric.drawn_maximum,
        "additional_details": _details(fields),
    }


def _is_lower_better(metric: Metric) -> bool:
    return metric.ideal is not None and metric.ideal == metric.minimum and metric.maximum != metric.minimum


def _direction(metric: Metric) -> str:
    if metric.ideal is None:
        return "none: the metric has no ideal value, and lower_is_better says nothing"
    if metric.ideal not in (metric.minimum, metric.maximum):
        return "nearer to the ideal value is better, and lower_is_better says nothing"
    return "lower is better" if _is_lower_better(metric) else "higher is better"


def _score_details(metric: Metric, value: float) -> dict[str, JsonValue]:
    interval = metric.interval
    fields = {
        "n": str(metric.n),
        "n_excluded": str(metric.n_excluded),
        "unit": metric.unit,
        "n_clusters": None if interval is None else str(interval.n_clusters),
        "interval_reason": metric.interval_reason,
    }
    score: dict[str, JsonValue] = {"score": value, "details": _details(fields)}
    if interval is not None:
        score["uncertainty"] = {
            "confidence_interval": {
                "lower": interval.low,
                "upper": interval.high,
                "confidence_level": interval.level,
                "method": interval.method,
            },
            "num_samples": metric.n,
        }
    return score


def _generation_config(verified: VerifiedResult) -> dict[str, JsonValue]:
    signature = verified.result.signature
    prompt = prompt_of(load_task(signature.task), signature.prompt)
    settings: dict[str, JsonValue] = {
        "temperature": prompt.temperature,
        "top_p": prompt.top_p,
        "max_tokens": prompt.max_tokens,
        "prompt_template": prompt.template,
        "execution_command": verified.entry.command,
    }
    fields = {
        "prompt": prompt.id,
        "prompt_sha256": signature.prompt_sha256,
        "prompt_options": compact(list(prompt.options)) if prompt.options else None,
        "scoring": signature.scoring,
        "normalisation": signature.normalisation,
        "stop": compact(list(prompt.stop)) if prompt.stop else None,
        "follow_up": prompt.follow_up,
        "n_samples": None if prompt.n_samples is None else str(prompt.n_samples),
        "examples_sha256": signature.examples_sha256,
    }
    arguments: dict[str, JsonValue] = {name: value for name, value in settings.items() if value is not None}
    return {"generation_args": arguments, "additional_details": _details(fields)}
