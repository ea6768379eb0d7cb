"""Asks a backend directly, as the pipeline would, and makes answers that can be replayed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from biasboard.ground import strict_json
from evaluators.backend import Answers, Backend, Request, Response
from evaluators.stores.store import STORE, ResponseStore, store_key
from schemas.files import contract
from schemas.folders.run_folder import RESULT
from tests.schemas import examples


def groups_of(backend: Backend, requests: Sequence[Request], missing: frozenset[int] | None = None) -> list[Answers]:
    """What a backend yields, in its order."""
    wanted = frozenset(range(len(requests))) if missing is None else missing
    return [event for event in backend.ask(requests, wanted) if isinstance(event, Answers)]


def answers_of(
    backend: Backend, requests: Sequence[Request], missing: frozenset[int] | None = None
) -> list[Response | None]:
    """The answer to each request, None for those that were not asked; each may be given once."""
    found: dict[int, Response] = {}
    for group in groups_of(backend, requests, missing):
        assert not found.keys() & group.responses.keys(), "answered twice"
        found.update(group.responses)
    return [found.get(place) for place in range(len(requests))]


def all_answers_of(backend: Backend, requests: Sequence[Request]) -> list[Response]:
    """The answer to each request."""
    answers = [answer for answer in answers_of(backend, requests) if answer is not None]
    assert len(answers) == len(requests), "some requests got no answer"
    return answers


def replayable(folder: Path, answers: Iterable[tuple[Request, Response]]) -> Path:
    """Make a folder that the backend replay takes for a run, in which a model answered so."""
    model = examples.result().model
    with ResponseStore(folder / STORE, model) as store:
        store.add({store_key(model, request, with_facts=False): (request, response) for request, response in answers})
    strict_json.write(folder / RESULT, contract.dump(examples.result()))
    return folder
