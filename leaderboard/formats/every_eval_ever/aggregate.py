"""Describes a result and all its metrics as one JSON document of Every Eval Ever."""

from __future__ import annotations

import datetime
from dataclasses import asdict

from biasboard.ground.strict_json import JsonValue
from evaluators.runs.measure.measuring import metric_definitions
from evaluators.task import load_task, prompt_of
from leaderboard.benchmark_pages import load_pages
from leaderboard.formats.every_eval_ever.identity import (
    SCHEMA_VERSION,
    Identity,
    compact,
    evaluation_name,
    result_id,
)
from leaderboard.formats.every_eval_ever.samples import Samples
from leaderboard.result_format import Addresses, VerifiedResult
from schemas.documents.result import Environment, Metric, name_with_group

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
        "eval_library": _library(verified.result.environment),
        "model_info": _model_info(verified, identity),
        "evaluation_results": _evaluation_results(verified, addresses),
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
            "additional_details": _details(
                records_without_a_row=samples.left_out or None,
                texts="as they are" if verified.withheld is None else f"given as SHA-256 only: {verified.withheld}",
            ),
        }
    return log


def _epoch(date: str) -> str:
    """Return the beginning of a day in seconds since 1970."""
    day = datetime.datetime.fromisoformat(date).replace(tzinfo=datetime.UTC)
    return str(int(day.timestamp()))


def _details(**fields: object) -> dict[str, JsonValue]:
    """Return what is known, each as a text, which is all that details of the schema hold."""
    return {
        name: value if isinstance(value, str) else compact(value) for name, value in fields.items() if value is not None
    }


def _source_metadata(verified: VerifiedResult, addresses: Addresses, samples: Samples) -> dict[str, JsonValue]:
    result, entry, submission = verified.result, verified.entry, verified.submission
    source: dict[str, JsonValue] = {
        "source_name": _LIBRARY,
        "source_type": "evaluation_run",
        "source_organization_name": _UNKNOWN,
        "evaluator_relationship": "other",
        "additional_details": _details(
            board_page=verified.permalink(addresses) or verified.page,
            evaluator_relationship="not stated: anybody may run a model and submit its result",
            origin=entry.origin,
            provenance=entry.provenance,
            claim=entry.claim,
            extent=entry.match.extent,
            extent_reason=entry.match.reason,
            result_sha256=verified.result_sha256,
            records_sha256=result.records.sha256,
            records_n_rows=result.records.n_rows,
            scores_sha256=None if result.scores is None else result.scores.sha256,
            signature=str(result.signature),
            signature_sha256=result.signature_sha256,
            signature_fields=asdict(result.signature),
            counts=asdict(result.counts),
            coverage=[asdict(split) for split in result.coverage] or None,
            usage=asdict(result.usage),
            model_card=None if submission is None else submission.model_card,
            train_data_disclosure=None if submission is None else submission.train_data_disclosure,
            metrics_without_value=[
                {
                    "evaluation_result_id": result_id(metric),
                    "evaluation_name": _name(verified, metric),
                    "metric_config": _metric_config(verified, metric),
                    "reason": metric.reason,
                    "n": metric.n,
                    "n_excluded": metric.n_excluded,
                }
                for metric in verified.metrics
                if metric.value is None
            ],
            metrics_of_other_versions=[result_id(metric) for metric in entry.earlier],
            instance_rows="in the samples file" if samples.n_rows else "none: no answer is right or wrong",
            instance_records_without_row=samples.left_out,
        ),
    }
    return source if addresses.site is None else source | {"source_organization_url": addresses.site}


def _library(environment: Environment) -> dict[str, JsonValue]:
    details = _details(
        python=environment.python,
        platform=environment.platform,
        device=environment.device,
        packages=environment.packages,
        settings=environment.settings,
    )
    return {"name": _LIBRARY, "version": environment.biasboard, "additional_details": details}


def _model_info(verified: VerifiedResult, identity: Identity) -> dict[str, JsonValue]:
    model, packages = verified.result.model, verified.result.environment.packages
    # A backend that replays answers from elsewhere does not show who ran the model.
    is_own = model.endpoint in ("local", "baseline")
    info = dict[str, JsonValue](
        name=model.id,
        id=model.id,
        developer=identity.developer,
        inference_engine={"name": model.backend, "version": packages.get(model.backend, _UNKNOWN)},
        additional_details=_details(
            deployment_type="self_deployed" if is_own else _UNKNOWN,
            # A weight file that was read here may still be private.
            model_availability=_UNKNOWN,
            revision=model.revision,
            precision=model.precision,
            endpoint=model.endpoint,
            chat_template_sha256=model.chat_template_sha256,
            identity_sha256=model.identity_sha256,
            identity=model.identity,
        ),
    )
    return {name: value for name, value in info.items() if value is not None}


def _evaluation_results(verified: VerifiedResult, addresses: Addresses) -> list[JsonValue]:
    source, asked = _source_data(verified, addresses), _generation_config(verified)
    return [
        {
            "evaluation_result_id": result_id(metric),
            "evaluation_name": _name(verified, metric),
            "source_data": source,
            "metric_config": _metric_config(verified, metric),
            "score_details": _score_details(metric),
            "generation_config": asked,
        }
        for metric in verified.metrics
        if metric.value is not None
    ]


def _source_data(verified: VerifiedResult, addresses: Addresses) -> dict[str, JsonValue]:
    signature, manifest = verified.result.signature, verified.manifest
    source: dict[str, JsonValue] = {
        "dataset_name": signature.dataset,
        "additional_details": _details(
            version=signature.dataset_version,
            config=signature.config,
            parts=signature.parts or None,
            splits=signature.splits,
            dataset_sha256=verified.dataset_sha256,
            items_sha256=signature.items_sha256,
            revision=addresses.dataset_revision,
            licence=None if manifest is None else manifest.licence,
            redistributable=None if manifest is None else manifest.redistributable,
        ),
    }
    if addresses.dataset_repo is None:
        return source | {"source_type": "other"}
    return source | {
        "source_type": "hf_dataset",
        "hf_repo": addresses.dataset_repo,
        "hf_split": "+".join(signature.splits),
        "samples_number": signature.n_items,
    }


def _name(verified: VerifiedResult, metric: Metric) -> str:
    """Return the name of what was evaluated; a slice has another name, lest it be averaged with the whole."""
    return name_with_group(evaluation_name(verified.result.signature), metric.group)


def _metric_config(verified: VerifiedResult, metric: Metric) -> dict[str, JsonValue]:
    signature = verified.result.signature
    described = {known.name: known.description for known in metric_definitions(signature.task)}
    is_lower_better = metric.ideal is not None and metric.ideal == metric.minimum and metric.maximum != metric.minimum
    direction = "lower is better" if is_lower_better else "higher is better"
    if metric.ideal is None:
        direction = "none: the metric has no ideal value, and lower_is_better says nothing"
    elif metric.ideal not in (metric.minimum, metric.maximum):
        direction = "nearer to the ideal value is better, and lower_is_better says nothing"
    return {
        "evaluation_description": described.get(metric.name, metric.name),
        "metric_id": f"{signature.benchmark}.{metric.name}",
        "metric_name": load_pages(signature.benchmark).label(metric.name),
        "metric_parameters": dict[str, JsonValue](metric.group),
        "lower_is_better": is_lower_better,
        "score_type": "continuous",
        "min_score": metric.minimum,
        "max_score": metric.drawn_maximum,
        "additional_details": _details(
            version=metric.version,
            ideal=metric.ideal,
            direction=direction,
            unit_of_n=metric.unit,
            task=f"{signature.task}@{signature.task_version}",
        ),
    }


def _score_details(metric: Metric) -> dict[str, JsonValue]:
    interval = metric.interval
    details = _details(
        n=metric.n,
        n_excluded=metric.n_excluded,
        unit=metric.unit,
        n_clusters=None if interval is None else interval.n_clusters,
        interval_reason=metric.interval_reason,
    )
    score: dict[str, JsonValue] = {"score": metric.value, "details": details}
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
    details = _details(
        prompt=prompt.id,
        prompt_sha256=signature.prompt_sha256,
        prompt_options=prompt.options or None,
        scoring=signature.scoring,
        normalisation=signature.normalisation,
        stop=prompt.stop or None,
        follow_up=prompt.follow_up,
        n_samples=prompt.n_samples,
        examples_sha256=signature.examples_sha256,
    )
    return {
        "generation_args": {name: value for name, value in settings.items() if value is not None},
        "additional_details": details,
    }
