"""Writes the answers of a result as rows of Every Eval Ever, one for each record with a verdict."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from biasboard.ground.files import sha256_file
from biasboard.ground.strict_json import JsonValue
from evaluators.task import load_task
from leaderboard.formats.every_eval_ever.identity import SCHEMA_VERSION, Identity, compact, evaluation_name
from leaderboard.result_format import VerifiedResult
from schemas.documents.record import Exchange, Reading, Record, exchange_sha256
from schemas.files.record_hashes import as_hash, hashed
from schemas.folders.run_folder import read_parts


class Samples(NamedTuple):
    """The rows that were written."""

    n_rows: int
    sha256: str
    left_out: Mapping[str, int]
    """Number of records without a row, by the reason."""


def write_samples(verified: VerifiedResult, identity: Identity, path: Path) -> Samples:
    """Write a row for each record whose answer is right or wrong, unless the right answers are secret.

    Args:
        verified: The result, whose records are read part by part.
        identity: Its names.
        path: File to write.

    Raises:
        DataError: the records changed since they were verified.
    """
    n_rows = 0
    left_out: Counter[str] = Counter()
    task = load_task(verified.result.signature.task)
    judged = (
        pair
        for records in read_parts(verified.folder, verified.result)
        for pair in zip(records, task.are_right(records), strict=True)
    )
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for record, is_right in judged:
            if is_right is None or record.reading is None or record.target is None:
                unjudged = "no right answer" if record.target is None else "neither right nor wrong"
                left_out[unjudged if record.status == "scored" else record.status] += 1
            else:
                row = _row(record, record.reading, record.target, is_right, verified, identity)
                # Some readers end a line at any separator of Unicode; escapes keep a text that holds one in its row.
                file.write(json.dumps(row, sort_keys=True, allow_nan=False) + "\n")
                n_rows += 1
    return Samples(n_rows, sha256_file(path), dict(sorted(left_out.items())))


def _row(
    record: Record, reading: Reading, target: str, is_right: bool, verified: VerifiedResult, identity: Identity
) -> dict[str, JsonValue]:
    hides = verified.withheld is not None
    prompts = list(dict.fromkeys(exchange.prompt or "" for exchange in record.exchanges))
    first = record.exchanges[0]
    raw = f"sha256:{exchange_sha256(first)}" if hides else prompts[0]
    reference = hashed(target) if hides else target
    row: dict[str, JsonValue] = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": identity.evaluation_id,
        "model_id": verified.result.model.id,
        "evaluation_name": evaluation_name(verified.result.signature),
        "sample_id": record.item_id,
        "sample_hash": hashlib.sha256((raw + reference).encode()).hexdigest(),
        "interaction_type": "single_turn",
        "input": {
            "raw": raw,
            "reference": [reference],
            "choices": list(first.options) if first.options and not hides else None,
        },
        "output": {"raw": [_raw_output(exchange, hides=hides) for exchange in record.exchanges]},
        "answer_attribution": _attribution(reading, verified, hides=hides),
        "evaluation": {"score": float(is_right), "is_correct": is_right},
        "token_usage": _tokens(record.exchanges),
        "metadata": _metadata(record, reading, target, prompts, hides=hides),
    }
    if identity.sample_metric is not None:
        row["evaluation_result_id"] = identity.sample_metric
    return row


def _raw_output(exchange: Exchange, *, hides: bool) -> str:
    """Return the answer to one request: its text, or the log-probability of each option in their order."""
    if exchange.kind == "choice":
        # JSON has no number for the logarithm of a probability of zero.
        logprobs = ["-inf" if value == -math.inf else value for value in exchange.option_logprobs]
        return compact({"option_logprobs": logprobs})
    text = exchange.text or ""
    return as_hash(text) if hides else text


def _attribution(reading: Reading, verified: VerifiedResult, *, hides: bool) -> list[JsonValue]:
    """Return what was read as the answer: the most probable outcome, or the answer in each text."""
    signature = verified.result.signature
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
        "truncated": compact(record.truncated),
        "request_sha256": compact([*map(exchange_sha256, record.exchanges)]),
    }
    if record.pair_id is not None:
        fields["pair_id"] = record.pair_id
    if target in reading.outcomes:
        fields["target_probability"] = repr(reading.probabilities[reading.outcomes.index(target)])
    if hides:
        return fields
    if reading.outcomes:
        fields["probabilities"] = compact(dict(zip(reading.outcomes, reading.probabilities, strict=True)))
    if len(prompts) > 1:
        fields["further_prompts"] = compact(prompts[1:])
    return fields | {f"group.{name}": value for name, value in sorted(record.groups.items())}
