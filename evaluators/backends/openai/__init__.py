"""A backend for any endpoint that speaks OpenAI's protocol.

The way of a request, and of the test calls that ``probe`` sends before the first one::

    openai_backend ──▶ concurrency ──▶ methods ──▶ scoring    request to calls, replies to response
                   │            └─▶ pacing ──▶ client         each call, repeated at a rate the endpoint can bear
                   │                       └─▶ costs          what was sent and spent, and the limit on it
                   └─▶ batch_api ────────────▶ client         or all calls as a file, answered within a day
    protocol: routes, calls and the parsing of replies, for all of them

*client* makes one call and classifies its failure, including any wait that the endpoint asks for (``Retry-After``);
*pacing* decides how long to wait and when to give up; *probe* finds out what an endpoint supports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from biasboard.ground.errors import import_extra
from evaluators.backend_options import BackendOptions

if TYPE_CHECKING:
    from evaluators.backends.openai.openai_backend import OpenAIBackend

SUMMARY = "any OpenAI-compatible endpoint: vLLM's server, a router, OpenAI (OPENAI_API_KEY, --base-url)"
EXTRA = "openai"


def open_backend(model: str, options: BackendOptions) -> OpenAIBackend:
    """Open a model; see :func:`evaluators.backends.openai.openai_backend.open_backend`.

    Raises:
        MissingExtraError: the library ``openai`` is not installed.
    """
    import_extra("openai", "openai")
    # Imported only here, because backends are listed on machines without their libraries.
    from evaluators.backends.openai import openai_backend

    return openai_backend.open_backend(model, options)
