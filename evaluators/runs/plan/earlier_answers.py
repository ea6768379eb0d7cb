"""Finds answers in earlier runs of the same model, such as a run with another ``--limit``.

The folder of a run depends on its items, so the same question may be answered in several folders. Their stores are only
read. The key of an answer includes the model's identity, so another model's answer is never taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from biasboard.ground.errors import RunError
from evaluators.backend import Backend, GenerateRequest, Request, Response, Runtime
from evaluators.runs.plan.plan import AskedPart, Plan, PlannedPart, distinct_requests, run_folder, runs_of_prompt
from evaluators.stores.store import STORE, Pace, answered_keys, is_begun, pace, stored_responses
from schemas.documents.result import Model, Signature


class AnswerStores(NamedTuple):
    """The stores that may hold responses already: those of all runs, and a cache."""

    root: Path
    """Folder of all runs."""
    cache: Path | None
    """File of the cache that runs share; None if there is none."""


def earlier_answers(
    root: Path, signature: Signature, model: Model, keys: Iterable[bytes]
) -> tuple[dict[bytes, Response], list[Runtime], list[str]]:
    """Read answers from the stores of other runs with the same model, dataset and prompt.

    The keys are those of the requests without an answer.

    Returns:
        The answers by their keys, the runtimes that computed them, and a line for each store that could not be read.
    """
    wanted = dict.fromkeys(keys)
    responses: dict[bytes, Response] = {}
    runtimes: list[Runtime] = []
    left_out = []
    for path in _other_stores(root, signature, model) if wanted else ():
        try:
            found, found_runtimes = stored_responses(path, wanted, model)
        except RunError as error:
            left_out.append(_left_out(error))
            continue
        responses |= found
        runtimes += [runtime for runtime in found_runtimes if runtime not in runtimes]
        wanted = {key: None for key in wanted if key not in found}
        if not wanted:
            break
    return responses, runtimes, left_out


def unanswered(
    plan: Plan, parts: Sequence[PlannedPart], backend: Backend, stores: AnswerStores
) -> tuple[dict[bytes, Request], Sequence[GenerateRequest], int, list[str]]:
    """Find the distinct requests of some parts that a run would send, without changing a file.

    Returns:
        The requests without an answer by their store keys; those that will be followed by one more each, which depends
        on answers that are not there yet; how many have an answer; and a line for each store of another run that could
        not be read.

    Raises:
        RunError: the store of the run, or the cache, cannot be read.
    """
    own_stores = [run_folder(stores.root, plan.signature, backend.model) / STORE, stores.cache]
    asked = [AskedPart.of(part, backend) for part in parts]
    to_follow_up: dict[bytes, GenerateRequest] = {}
    if plan.prompt.follow_up is not None:
        first = distinct_requests(asked)
        answers: dict[bytes, Response] = {}
        for path in own_stores:
            if path is not None and is_begun(path):
                missing = [key for key in first if key not in answers]
                answers |= stored_responses(path, missing, backend.model)[0]
        missing = [key for key in first if key not in answers]
        answers |= earlier_answers(stores.root, plan.signature, backend.model, missing)[0]
        to_follow_up = {
            key: request
            for part in asked
            for pair in zip(part.keys, part.requests, strict=True)
            if any(key not in answers for key in pair[0])
            for key, request in zip(*pair, strict=True)
            if isinstance(request, GenerateRequest)
        }
        asked = [part.followed_up(answers, backend) for part in asked]
    requests = distinct_requests(asked)
    n_distinct = len(requests)
    left_out = []
    for path in own_stores:
        if path is not None:
            requests = _without(requests, answered_keys(path, requests))
    for path in _other_stores(stores.root, plan.signature, backend.model) if requests else ():
        try:
            requests = _without(requests, answered_keys(path, requests))
        except RunError as error:
            left_out.append(_left_out(error))
    return requests, list(to_follow_up.values()), n_distinct - len(requests), left_out


def pace_of(plan: Plan, model: Model | None, name: str, stores: AnswerStores) -> Pace | None:
    """Return how fast a model has answered such requests; None if unknown.

    Args:
        plan: The items, and how they are asked.
        model: Model that would answer; None if only its name is known.
        name: Name of the model.
        stores: Stores that may hold its answers.
    """
    identity = None if model is None else model.identity_sha256
    total = Pace(0, 0.0)
    tokens: list[tuple[int, tuple[float, float]]] = []
    in_cache = [stores.cache] if stores.cache is not None and model is not None else []
    of_config = runs_of_prompt(stores.root, plan.signature, name, plan.signature.config)
    for path in (*(folder / STORE for folder in of_config), *in_cache):
        if path in in_cache and total.n_answers:
            break  # The cache holds the same answers, which would count twice.
        try:
            of_store = pace(path, identity)
        except RunError:
            continue
        if of_store is not None:
            total = Pace(total.n_answers + of_store.n_answers, total.seconds + of_store.seconds)
            tokens += [] if of_store.tokens is None else [(of_store.n_answers, of_store.tokens)]
    if not total.n_answers:
        return None
    n = sum(count for count, _ in tokens)
    means = [sum(count * of_store[place] for count, of_store in tokens) / n for place in (0, 1)] if n else None
    return total if means is None else total._replace(tokens=(means[0], means[1]))


def _other_stores(root: Path, signature: Signature, model: Model) -> list[Path]:
    """Return the stores of other runs that may hold answers to the same requests, those of the same config first."""
    # A config may also have been asked as part of its suite, in a run with another name; and weights that are known by
    # their hashes, unlike those behind an endpoint, may have had another name.
    of_config = runs_of_prompt(root, signature, model.id, signature.config)
    others = runs_of_prompt(root, signature, None if model.endpoint == "local" else model.id)
    folders = dict.fromkeys([*of_config, *others])
    folders.pop(run_folder(root, signature, model), None)
    return [folder / STORE for folder in folders if is_begun(folder / STORE)]


def _without(requests: dict[bytes, Request], answered: set[bytes]) -> dict[bytes, Request]:
    return {key: request for key, request in requests.items() if key not in answered}


def _left_out(error: RunError) -> str:
    return f"answers of another run are left out: {error}"
