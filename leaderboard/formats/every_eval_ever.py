"""Exports results as Every Eval Ever, the common schema of the EvalEval coalition (schema 0.3.0).

A result becomes ``data/<benchmark>/<developer>/<model>/<uuid>.json`` and, if its items have right answers,
``<uuid>_samples.jsonl`` next to it, as the package ``every-eval-ever`` on PyPI requires. Three things do not fit:

* A score must be a number. Metrics without a value are therefore listed with their reasons in the details of the
  source, and are no results.
* Every metric must say whether lower is better. Where the ideal value is neither end of the range, the field is false
  and ``direction`` in the details of the metric gives it.
* A row must say whether its answer is correct. Records without a verdict have no row, and are counted.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import math
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import cast

from biasboard.ground import strict_json
from biasboard.ground.files import replacing, sha256_file
from biasboard.ground.strict_json import JsonValue
from evaluators.benchmark import load_benchmark
from evaluators.runs.measure.measuring import metric_definitions
from evaluators.task import load_task, prompt_of
from leaderboard.benchmark_pages import load_pages
from leaderboard.result_format import Addresses, ResultFormat, VerifiedResult
from schemas.documents.record import Exchange, Reading, Record, exchange_sha256
from schemas.documents.result import Metric, Signature, name_with_group
from schemas.files.record_columns import as_hash, hashed
from schemas.folders.run_folder import read_parts

_SCHEMA = "0.3.0"
_LIBRARY = "biasboard"
_UNKNOWN = "unknown"


class _Exported:
    """A result, and the names under which it is exported, which follow from its hash alone."""

    def __init__(self, verified: VerifiedResult, addresses: Addresses) -> None:
        self.verified, self.addresses, self.result = verified, addresses, verified.result
        signature = self.signature = verified.result.signature
        developer, _, name = verified.result.model.id.rpartition("/")
        digest = hashlib.sha256(f"every-eval-ever\0{verified.result_sha256}".encode()).digest()
        # The datastore takes only names of version 4, which are random elsewhere and a hash here.
        number = uuid.UUID(bytes=digest[:16], version=4)
        self.evaluation = f"{signature.dataset}@{signature.dataset_version}/{signature.config}"
        """Name of what the result evaluates; a slice has another one, lest it be averaged with the whole."""
        self.evaluation_id = f"{self.evaluation}/{verified.result.model.id}/{number}"
        self.stem = f"data/{signature.benchmark}/{developer or _UNKNOWN}/{name}/{number}"
        """Path of its files without the ending, relative to the folder of all exports."""
        gate = load_benchmark(signature.benchmark).gate(signature.task)
        metric = None if gate is None or gate.only_reading else verified.metric(gate.metric)
        self.sample_metric = None if metric is None or metric.value is None else _result_id(metric)
        """Id of the metric that is the mean of the verdicts about single answers; None if none has a value."""


def _write(results: Sequence[VerifiedResult], addresses: Addresses, out: Path) -> Iterator[Path]:
    """Write two files for each result, the second one only if there are verdicts about answers."""
    for verified in results:
        one = _Exported(verified, addresses)
        path, samples_path = out / f"{one.stem}.json", out / f"{one.stem}_samples.jsonl"
        with replacing(samples_path) as temporary:
            n_rows, left_out = _write_samples(one, temporary)
        samples_sha256 = sha256_file(samples_path)
        if not n_rows:
            # The validator refuses rows that the other file does not name.
            samples_path.unlink()
        strict_json.write(path, _evaluation_log(one, n_rows, samples_sha256, left_out))
        yield path
        if n_rows:
            yield samples_path


def _result_id(metric: Metric) -> str:
    """Return the id of a metric within a result: its name, its version and its slice."""
    return name_with_group(f"{metric.name}@{metric.version}", metric.group)


def _compact(value: object) -> str:
    """Return a value of strict JSON as a text, since details of the schema hold only texts."""
    return strict_json.canonical(cast(JsonValue, value)).decode()


def _write_samples(one: _Exported, path: Path) -> tuple[int, dict[str, int]]:
    """Write a row for each record whose answer is right or wrong.

    Returns:
        The number of rows, and the number of records without one by the reason.

    Raises:
        DataError: the records changed since they were verified.
    """
    n_rows = 0
    left_out: Counter[str] = Counter()
    task = load_task(one.signature.task)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for records in read_parts(one.verified.folder, one.result):
            for record, is_right in zip(records, task.are_right(records), strict=True):
                if is_right is None or record.reading is None or record.target is None:
                    unjudged = "no right answer" if record.target is None else "neither right nor wrong"
                    left_out[unjudged if record.status == "scored" else record.status] += 1
                    continue
                row = _row(one, record, record.reading, record.target, is_right)
                # Some readers end a line at any separator of Unicode; escapes keep a text that holds one in its row.
                file.write(json.dumps(row, sort_keys=True, allow_nan=False) + "\n")
                n_rows += 1
    return n_rows, dict(sorted(left_out.items()))


def _row(one: _Exported, record: Record, reading: Reading, target: str, is_right: bool) -> dict[str, JsonValue]:
    hides = one.verified.withheld is not None
    prompts = list(dict.fromkeys(exchange.prompt or "" for exchange in record.exchanges))
    first = record.exchanges[0]
    raw = f"sha256:{exchange_sha256(first)}" if hides else prompts[0]
    reference = hashed(target) if hides else target
    row: dict[str, JsonValue] = {
        "schema_version": _SCHEMA,
        "evaluation_id": one.evaluation_id,
        "model_id": one.result.model.id,
        "evaluation_name": one.evaluation,
        "sample_id": record.item_id,
        "sample_hash": hashlib.sha256((raw + reference).encode()).hexdigest(),
        "interaction_type": "single_turn",
        "input": {
            "raw": raw,
            "reference": [reference],
            "choices": list(first.options) if first.options and not hides else None,
        },
        "output": {"raw": [_raw_output(exchange, hides=hides) for exchange in record.exchanges]},
        "answer_attribution": _attribution(reading, one.signature, hides=hides),
        "evaluation": {"score": float(is_right), "is_correct": is_right},
        "token_usage": _tokens(record.exchanges),
        "metadata": _metadata(record, reading, target, prompts, hides=hides),
    }
    if one.sample_metric is not None:
        row["evaluation_result_id"] = one.sample_metric
    return row


def _raw_output(exchange: Exchange, *, hides: bool) -> str:
    """Return the answer to one request: its text, or the log-probability of each option in their order."""
    if exchange.kind == "choice":
        # JSON has no number for the logarithm of a probability of zero.
        logprobs = ["-inf" if value == -math.inf else value for value in exchange.option_logprobs]
        return _compact({"option_logprobs": logprobs})
    text = exchange.text or ""
    return as_hash(text) if hides else text


def _attribution(reading: Reading, signature: Signature, *, hides: bool) -> list[JsonValue]:
    """Return what was read as the answer: the most probable outcome, or the answer in each text."""
    method = f"{signature.task}@{signature.task_version}"
    answers: Sequence[str] = reading.answers
    if reading.outcomes:
        answers = [reading.outcomes[reading.probabilities.index(max(reading.probabilities))]]
        method += ", the most probable outcome"
    return [
        {
            "turn_idx": 0,
            "source": "output.raw",
            "extracted_value": hashed(answer) if hides else answer,
            "extraction_method": method,
            "is_terminal": True,
        }
        for answer in answers
    ]


def _tokens(exchanges: Sequence[Exchange]) -> JsonValue:
    counts = [(one.n_prompt_tokens, one.n_completion_tokens) for one in exchanges]
    known = [(n_in, n_out) for n_in, n_out in counts if n_in is not None and n_out is not None]
    if len(known) < len(counts):
        return None
    n_prompt, n_completion = (sum(column) for column in zip(*known, strict=True))
    return {"input_tokens": n_prompt, "output_tokens": n_completion, "total_tokens": n_prompt + n_completion}


def _metadata(
    record: Record, reading: Reading, target: str, prompts: Sequence[str], *, hides: bool
) -> dict[str, JsonValue]:
    fields: dict[str, JsonValue] = {
        "config": record.config,
        "split": record.split,
        "cluster": hashed(record.cluster) if hides else record.cluster,
        "truncated": _compact(record.truncated),
        "request_sha256": _compact([*map(exchange_sha256, record.exchanges)]),
    }
    if record.pair_id is not None:
        fields["pair_id"] = record.pair_id
    if target in reading.outcomes:
        fields["target_probability"] = repr(reading.probabilities[reading.outcomes.index(target)])
    if hides:
        return fields
    if reading.outcomes:
        fields["probabilities"] = _compact(dict(zip(reading.outcomes, reading.probabilities, strict=True)))
    if len(prompts) > 1:
        fields["further_prompts"] = _compact(prompts[1:])
    return fields | {f"group.{name}": value for name, value in sorted(record.groups.items())}


def _evaluation_log(
    one: _Exported, n_rows: int, samples_sha256: str, left_out: Mapping[str, int]
) -> dict[str, JsonValue]:
    """Return the document of a result, which names the rows of its answers only if there are any."""
    verified, submission, environment = one.verified, one.verified.submission, one.result.environment
    source, asked = _source_data(one), _generation_config(one)
    log: dict[str, JsonValue] = {
        "schema_version": _SCHEMA,
        "evaluation_id": one.evaluation_id,
        # The time of an export would make each of them another file.
        "retrieved_timestamp": _UNKNOWN if submission is None else _epoch(submission.submitted),
        "source_metadata": _source_metadata(one),
        "eval_library": {
            "name": _LIBRARY,
            "version": environment.biasboard,
            "additional_details": _details(**asdict(environment)),
        },
        "model_info": _model_info(one),
        "evaluation_results": [
            {
                "evaluation_result_id": _result_id(metric),
                "evaluation_name": name_with_group(one.evaluation, metric.group),
                "source_data": source,
                "metric_config": _metric_config(one.signature, metric),
                "score_details": _score_details(metric),
                "generation_config": asked,
            }
            for metric in verified.metrics
            if metric.value is not None
        ],
    }
    if submission is not None:
        log["evaluation_timestamp"] = _epoch(submission.run_date)
    if n_rows:
        log["detailed_evaluation_results"] = {
            "format": "jsonl",
            "file_path": f"{one.stem}_samples.jsonl",
            "hash_algorithm": "sha256",
            "checksum": samples_sha256,
            "total_rows": n_rows,
            "additional_details": _details(
                records_without_a_row=left_out or None,
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
    known = {name: value for name, value in fields.items() if value is not None}
    return {name: value if isinstance(value, str) else _compact(value) for name, value in known.items()}


def _source_metadata(one: _Exported) -> dict[str, JsonValue]:
    verified, result, entry, site = one.verified, one.result, one.verified.entry, one.addresses.site
    submission = verified.submission
    source: dict[str, JsonValue] = {
        "source_name": _LIBRARY,
        "source_type": "evaluation_run",
        "source_organization_name": _UNKNOWN,
        # Anybody may run a model and submit its result.
        "evaluator_relationship": "other",
        "additional_details": _details(
            board_page=verified.permalink(one.addresses) or verified.page,
            origin=entry.origin,
            provenance=entry.provenance,
            claim=entry.claim,
            extent=entry.match.extent,
            extent_reason=entry.match.reason,
            result_sha256=verified.result_sha256,
            records_sha256=result.records.sha256,
            signature_fields=asdict(result.signature),
            counts=asdict(result.counts),
            coverage=[asdict(split) for split in result.coverage] or None,
            usage=asdict(result.usage),
            model_card=None if submission is None else submission.model_card,
            train_data_disclosure=None if submission is None else submission.train_data_disclosure,
            metrics_without_value=[
                {
                    "evaluation_result_id": _result_id(metric),
                    "reason": metric.reason,
                    "n": metric.n,
                    "n_excluded": metric.n_excluded,
                }
                for metric in verified.metrics
                if metric.value is None
            ],
            metrics_of_other_versions=[_result_id(metric) for metric in entry.earlier],
        ),
    }
    return source if site is None else source | {"source_organization_url": site}


def _model_info(one: _Exported) -> dict[str, JsonValue]:
    model, packages = one.result.model, one.result.environment.packages
    # A backend that replays answers from elsewhere does not show who ran the model.
    is_own = model.endpoint in ("local", "baseline")
    info: dict[str, JsonValue] = {
        "name": model.id,
        "id": model.id,
        "inference_engine": {"name": model.backend, "version": packages.get(model.backend, _UNKNOWN)},
        "additional_details": _details(
            deployment_type="self_deployed" if is_own else _UNKNOWN,
            # A weight file that was read here may still be private.
            model_availability=_UNKNOWN,
            **asdict(model),
        ),
    }
    developer = model.id.rpartition("/")[0]
    return info | dict[str, JsonValue](developer=developer) if developer else info


def _source_data(one: _Exported) -> dict[str, JsonValue]:
    signature, manifest, addresses = one.signature, one.verified.manifest, one.addresses
    source: dict[str, JsonValue] = {
        "dataset_name": signature.dataset,
        "additional_details": _details(
            version=signature.dataset_version,
            dataset_sha256=one.verified.dataset_sha256,
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


def _metric_config(signature: Signature, metric: Metric) -> dict[str, JsonValue]:
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
        "additional_details": _details(version=metric.version, ideal=metric.ideal, direction=direction),
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


def _generation_config(one: _Exported) -> dict[str, JsonValue]:
    prompt = prompt_of(load_task(one.signature.task), one.signature.prompt)
    settings: dict[str, JsonValue] = {
        "temperature": prompt.temperature,
        "top_p": prompt.top_p,
        "max_tokens": prompt.max_tokens,
        "prompt_template": prompt.template,
        "execution_command": one.verified.entry.command,
    }
    details = _details(
        prompt=prompt.id,
        prompt_options=prompt.options or None,
        stop=prompt.stop or None,
        follow_up=prompt.follow_up,
        n_samples=prompt.n_samples,
    )
    return {
        "generation_args": {name: value for name, value in settings.items() if value is not None},
        "additional_details": details,
    }


FORMAT = ResultFormat(write=_write)
