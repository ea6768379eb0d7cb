"""A backend for any endpoint that speaks OpenAI's protocol.

The way of a request, and of the test calls that ``probe`` sends before the first one::

    openai_backend ──▶ concurrency ──▶ scoring ──▶ generation    request to calls, replies to response
                   │            └─▶ pacing ──▶ client            each call, repeated at a bearable rate
                   │                       └─▶ costs             what was sent and spent, and the limit on it
                   └─▶ batch_api ────────────▶ client            or all calls as a file, answered in a day

*address* holds the credentials; *client* makes one call; *protocol* knows the routes and the fields of replies, and
puts a reply together that comes in parts. Whatever brings no answer is a ``NoAnswerError``, and what it means stands in
one table, ``meanings.toml``, which *meanings* reads; what an endpoint refuses is learnt by *dialect*, in *probe* as in
a run; *pacing* decides how long to wait and when to give up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from biasboard.ground.errors import import_extra
from evaluators.backend import OF_LANGUAGE_MODELS, Identified
from evaluators.backend_options import BackendOptions

if TYPE_CHECKING:
    from evaluators.backends.openai.openai_backend import OpenAIBackend

SUMMARY = "any OpenAI-compatible endpoint: vLLM's server, a router, OpenAI (OPENAI_API_KEY, --base-url)"
EXTRA = "openai"
IDENTIFIED = Identified("api", frozenset({"endpoint", "id", "api"}), OF_LANGUAGE_MODELS)


def open_backend(model: str, options: BackendOptions) -> OpenAIBackend:
    """Open a model; see :func:`evaluators.backends.openai.openai_backend.open_backend`.

    Raises:
        MissingExtraError: the library ``openai`` is not installed.
    """
    import_extra("openai", "openai")
    # Imported only here, because backends are listed on machines without their libraries.
    from evaluators.backends.openai import openai_backend

    return openai_backend.open_backend(model, options)
