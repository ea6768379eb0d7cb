"""Results that the tests make themselves: the same files as a run writes, from answers that a formula gives."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

from biasboard.ground import strict_json
from biasboard.ground.files import sha256_file
from biasboard.ground.strict_json import JsonValue
from evaluators.backend import model_identity
from evaluators.runs.measure.measuring import compute_metrics
from evaluators.task import load_task
from schemas.documents.record import Exchange, Reading, Record
from schemas.documents.result import Endpoint, Metric, RecordsFile, Result, Signature
from schemas.files import contract
from schemas.files.record_columns import RecordColumns
from schemas.lexicon import occupations
from tests.evaluators.logging_backend import identity_of
from tests.record_files import count, write_records
from tests.schemas import examples

T = TypeVar("T")
Gender: TypeAlias = Literal["masculine", "feminine"]
Probability: TypeAlias = Callable[[str, str, Gender, int], float | None]
"""From reference, other occupation, pronoun gender and number of the pair; none is a refusal."""

TASK = "coreference"
N_OCCUPATIONS = 5
PAIRS_PER_CLUSTER = 2


def is_pro(reference: str, gender: Gender) -> bool:
    """Whether the pronoun agrees with the stereotype of the reference."""
    return (occupations()[reference].stereotype == "male") == (gender == "masculine")


def uniform(reference: str, other: str, gender: Gender, pair: int) -> float:
    """A coin toss."""
    return 0.5


def leaning(certainty: float, bias: float) -> Probability:
    """Mostly right, more so on pro-stereotypical sides; differs a little from pair to pair."""

    def probability(reference: str, other: str, gender: Gender, pair: int) -> float:
        wobble = 0.2 * math.sin(7.0 * pair + 3.0 * len(reference) + len(other))
        logit = certainty + wobble + (bias if is_pro(reference, gender) else -bias)
        return 1 / (1 + math.exp(-logit))

    return probability


def stereotyped(weight: float) -> Probability:
    """Gives the stereotyped occupation a fixed probability."""

    def probability(reference: str, other: str, gender: Gender, pair: int) -> float:
        return weight if is_pro(reference, gender) else 1 - weight

    return probability


def make_records(probability: Probability, *, ambiguous: bool = False) -> list[Record]:
    """Records of a small balanced set of minimal pairs, read from their answers by the real task."""
    by_stereotype: dict[str, list[str]] = {"male": [], "female": []}
    for occupation in occupations().values():
        by_stereotype[occupation.stereotype].append(occupation.name)
    clusters = itertools.product(by_stereotype["male"][:N_OCCUPATIONS], by_stereotype["female"][:N_OCCUPATIONS])
    records = []
    for number, (male, female) in enumerate(clusters):
        for turn in range(PAIRS_PER_CLUSTER):
            reference, other = (male, female) if turn % 2 == 0 else (female, male)
            pair = number * PAIRS_PER_CLUSTER + turn
            for gender in ("masculine", "feminine"):
                side = probability(reference, other, gender, pair)
                records.append(_record(pair, f"{male}|{female}", reference, other, gender, side, ambiguous))
    return records


def _record(
    pair: int, cluster: str, reference: str, other: str, gender: Gender, probability: float | None, ambiguous: bool
) -> Record:
    exchange = choice_exchange([pair, gender], (reference, other), probability)
    read = load_task(TASK).read([exchange], "sum")
    male, female = cluster.split("|")
    groups = {
        "pronoun_gender": gender,
        "occupation": reference,
        "other_occupation": other,
        "stereotyped_occupation": male if gender == "masculine" else female,
        # The referent is mentioned first in half of the pairs, so that no place in the sentence tells the answer.
        "first_occupation": male,
    }
    if not ambiguous:
        groups["stereotype"] = "pro" if is_pro(reference, gender) else "anti"
    config, target = ("type1", None) if ambiguous else ("type2", reference)
    made = replace(examples.record(f"p{pair:04d}-{gender[0]}"), config=config, cluster=cluster, pair_id=f"p{pair:04d}")
    made = replace(made, target=target, reference=reference, groups=groups, exchanges=(exchange,))
    return replace(made, status=read.status, reason=read.reason, reading=read.reading)


def choice_exchange(request: JsonValue, outcomes: tuple[str, str], probability: float | None) -> Exchange:
    """The exchange in which the first of two outcomes has a probability; None for a refusal."""
    options = tuple(f" {outcome}." for outcome in outcomes)
    logprobs: tuple[float, ...] = ()
    if probability is not None:
        logprobs = tuple(-math.inf if p == 0 else math.log(p) for p in (probability, 1 - probability))
    none, n_bytes = (None,) * len(logprobs), tuple(len(option.encode()) for option in options)
    made = replace(examples.exchange(), request_sha256=strict_json.sha256(request), prompt=None, n_prompt_tokens=None)
    made = replace(made, outcomes=outcomes, options=options, option_byte_counts=n_bytes)
    made = replace(made, option_logprobs=logprobs, option_end_logprobs=none, option_token_counts=none)
    return replace(made, status="refused", error="the model declined") if probability is None else made


def make_result(
    records: Sequence[Record],
    model_id: str,
    *,
    endpoint: Endpoint = "local",
    revision: str | None = "0" * 40,
    prompt: str = "intrinsic-v1",
    dataset_version: str = "9.0.0",
    signature: Signature | None = None,
    metrics: tuple[Metric, ...] | None = None,
) -> Result:
    """The result of some records; its records file is only named, ``write_result`` writes it."""
    signature = signature or signature_of(records, prompt=prompt, dataset_version=dataset_version)
    backend = {"local": "transformers", "api": "openai"}.get(endpoint, endpoint)
    precision = None if endpoint == "baseline" else "float32"
    identity = identity_of(model_id, revision, precision) | {"backend": backend}
    if endpoint == "replay":
        identity = {"backend": backend, "id": model_id, "answers": "0" * 64}
    made = examples.result()
    # The address of an endpoint is part of its identity and is not shown.
    told = {"identity_sha256": model_identity(identity), "identity": None if endpoint == "api" else dict(identity)}
    told |= {"revision": None if endpoint == "baseline" else revision, "precision": precision}
    return replace(
        made,
        model=replace(made.model, id=model_id, backend=backend, endpoint=endpoint, **told),  # type: ignore[arg-type]
        signature=signature,
        signature_sha256=signature.sha256(),
        command=f"python -m evaluators run --backend {backend} --model {model_id} --prompt {prompt}",
        counts=count(RecordColumns.of(records)),
        metrics=compute_metrics(records, signature.task) if metrics is None else metrics,
        usage=replace(made.usage, n_requests=len(records), n_attempts=len(records)),
        environment=replace(made.environment, python="3.11.0", platform="Linux x86_64", device="cpu", packages={}),
        records=RecordsFile(path="records.parquet", sha256="0" * 64, n_rows=len(records)),
    )


def signature_of(
    records: Sequence[Record], *, task: str = TASK, prompt: str = "intrinsic-v1", **fields: Any
) -> Signature:
    """The signature of records of a task under a prompt, with other fields."""
    told = {"dataset": "synthbias", "dataset_version": "9.0.0", "config": records[0].config, **fields}
    return replace(
        examples.signature(len(records)),
        items_sha256=strict_json.sha256([record.item_id for record in records]),
        task=task,
        task_version=load_task(task).version,
        prompt=prompt,
        prompt_sha256=load_task(task).prompts[prompt].sha256(),
        **told,
    )


def write_result(folder: Path, result: Result, records: Sequence[Record]) -> Path:
    """Write a result and its records as a run would; gives the path of ``result.json``."""
    write_records(folder / "records.parquet", records)
    written = replace(result, records=replace(result.records, sha256=sha256_file(folder / "records.parquet")))
    strict_json.write(folder / "result.json", contract.dump(written))
    return folder / "result.json"


def write_model(
    root: Path, model_id: str, probability: Probability, *, ambiguous: bool = False, endpoint: Endpoint = "local"
) -> Path:
    """Records and result of a model in the usual place below ``root``."""
    records = make_records(probability, ambiguous=ambiguous)
    config = "type1" if ambiguous else "type2"
    folder = root / "synthbias@9.0.0" / model_id.replace("/", "__") / config
    return write_result(folder, make_result(records, model_id, endpoint=endpoint), records)


def replace_reading(record: Record, probabilities: tuple[float, ...]) -> Record:
    """The record with another reading than its answers give."""
    reading = record.reading
    if reading is None:
        raise ValueError(f"record {record.item_id} has no reading to replace")
    changed = Reading(outcomes=reading.outcomes, probabilities=probabilities, answers=reading.answers)
    return replace(record, reading=changed)


def present(value: T | None) -> T:
    """The value, which has to be there."""
    assert value is not None
    return value
