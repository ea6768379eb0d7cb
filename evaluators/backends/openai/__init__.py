"""A backend for any endpoint that speaks OpenAI's protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biasboard.ground.errors import import_extra
from evaluators.backend_options import BackendOptions

if TYPE_CHECKING:
    from evaluators.backends.openai.backend import OpenAIBackend

SUMMARY = "any OpenAI-compatible endpoint: vLLM's server, a router, OpenAI (OPENAI_API_KEY, --base-url)"
EXTRA = "openai"


def open_backend(model: str, options: BackendOptions) -> OpenAIBackend:
    """Open a model; see :func:`evaluators.backends.openai.backend.open_backend`.

    Raises:
        MissingExtraError: the library ``openai`` is not installed.
    """
    import_extra("openai", "openai")
    # What lists backends imports none of them, and this one needs the library.
    from evaluators.backends.openai import backend

    return backend.open_backend(model, options)
