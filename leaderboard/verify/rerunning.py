"""Asks a model some of its items again, and compares the answers with those that a result stores."""

from __future__ import annotations

import datetime
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from biasboard.ground.errors import ConfigError, DataError
from evaluators.backend import Backend, ChoiceRequest, Request, Response
from evaluators.models.parity import answers, compare, tolerance_for
from evaluators.runs.plan.plan import Plan
from evaluators.runs.plan.selection import select
from evaluators.task import load_task, prompt_of
from schemas.documents.board import Rerun
from schemas.documents.record import Exchange, Record
from schemas.documents.result import Model, Result
from schemas.files.record_hashes import as_hash
from schemas.folders.dataset_folder import MANIFEST, read_manifest
from schemas.folders.run_folder import StoredParts, read_result


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerunning:
    """The outcome of asking a model again."""

    rerun: Rerun
    differing: tuple[str, ...]
    """Ids of the items whose answers differ."""


def rerun(path: Path, backend: Backend, datasets: Path, n: int, *, seed: int) -> Rerunning:
    """Ask a model some items of a result again.

    Log-probabilities agree if they differ by no more than the tolerance of the less exact of the two precisions, in
    nats per square root of an option's number of tokens. Generated texts agree if they are equal.

    Args:
        path: Path of the ``result.json``.
        backend: The model, opened by the caller.
        datasets: Folder of built datasets, which holds that of the result.
        n: Number of items to draw at random; all of them if there are fewer.
        seed: Seed of the draw, which must not be known before the result is submitted.

    Raises:
        ConfigError: the opened model is not that of the result, or the dataset is not built.
        DataError: the result or the dataset is damaged, or the items are not those of the dataset.
        RunError: the model cannot be asked.
    """
    result = read_result(path.parent)
    _check_same_model(result.model, backend.model)
    requests = _requests(result, datasets, backend)
    records = [record for part in StoredParts(path.parent, result) for record in part]
    answered = [record for record in records if record.status != "failed"]
    if not answered:
        raise DataError(f"{path}: holds no answer that could be compared; reject it, or ask for another run")
    drawn = random.Random(seed).sample(answered, min(n, len(answered)))
    asked = [requests_of(record, requests) for record in drawn]
    flat: list[Request] = [request for of_item in asked for request in of_item]
    responses = iter(answers(backend, flat))  # type: ignore[arg-type]
    tolerance = max(tolerance_for(result.model.precision), tolerance_for(backend.model.precision))
    differing = []
    for record, of_item in zip(drawn, asked, strict=True):
        ours = [next(responses) for _ in of_item]
        if not _agree(record.exchanges, of_item, ours, tolerance):
            differing.append(record.item_id)
    made = Rerun(
        date=datetime.date.today().isoformat(),
        n_items=len(drawn),
        n_agreeing=len(drawn) - len(differing),
        tolerance=tolerance,
    )
    return Rerunning(rerun=made, differing=tuple(differing))


def _check_same_model(claimed: Model, opened: Model) -> None:
    """Check that an opened model is the one that a result names, by revision, chat template and adapters."""
    for name in ("revision", "chat_template_sha256", "adapters_sha256"):
        theirs, ours = getattr(claimed, name), getattr(opened, name)
        if theirs != ours:
            raise ConfigError(
                f"the result is of {claimed.id} with {name} {theirs}, the opened model has {ours}; open the same one "
                "with --model, --revision, --chat and --lora"
            )


def _requests(result: Result, datasets: Path, backend: Backend) -> dict[tuple[str, str], Sequence[Request]]:
    """Return the requests for every item, in the form that the backend is asked, by config and id of the item."""
    signature = result.signature
    for folder in sorted(path.parent for path in datasets.glob(f"*/{MANIFEST}")):
        manifest = read_manifest(folder)
        if (manifest.name, manifest.version) == (signature.dataset, signature.dataset_version):
            task = load_task(signature.task)
            plan = Plan(select(folder, manifest, signature.config), task, prompt_of(task, signature.prompt))
            plan = plan.for_backend(backend)
            return {
                (part.config, item.item_id): requests
                for part in plan.parts
                for (_, item), requests in zip(part.items, part.requests, strict=True)
            }
    raise ConfigError(
        f"{datasets}: holds no dataset {signature.dataset} {signature.dataset_version}, whose texts are asked again; "
        "build it, or name its folder with --datasets"
    )


def requests_of(record: Record, requests: dict[tuple[str, str], Sequence[Request]]) -> Sequence[Request]:
    """Return the requests for the item of a record.

    Raises:
        DataError: the dataset has no such item, or the record has other requests.
    """
    asked = requests.get((record.config, record.item_id))
    if asked is None or [request.sha256 for request in asked] != [
        exchange.request_sha256 for exchange in record.exchanges
    ]:
        raise DataError(f"item '{record.item_id[:60]}' is not asked as in the dataset; verify the result first")
    return asked


def _agree(stored: Sequence[Exchange], requests: Sequence[Request], ours: Sequence[Response], tolerance: float) -> bool:
    choices = [request for request in requests if isinstance(request, ChoiceRequest)]
    if len(choices) == len(requests):
        reference = [_as_response(exchange) for exchange in stored]
        comparison = compare(choices, ours, reference, tolerance)
        return comparison.holds and not comparison.unanswered
    given = [(exchange.status, _hash_of(exchange.text)) for exchange in stored]
    return given == [(response.status, _hash_of(response.text)) for response in ours]


def _hash_of(text: str | None) -> str | None:
    return None if text is None else as_hash(text)


def _as_response(exchange: Exchange) -> Response:
    return Response(
        status=exchange.status,
        option_logprobs=exchange.option_logprobs,
        option_is_bound=exchange.option_is_bound,
        option_end_logprobs=exchange.option_end_logprobs,
        option_token_counts=exchange.option_token_counts,
    )
