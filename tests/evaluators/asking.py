"""Asks a backend directly, as the pipeline would."""

from __future__ import annotations

from collections.abc import Sequence

from evaluators.backend import Answers, Backend, Request, Response


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
