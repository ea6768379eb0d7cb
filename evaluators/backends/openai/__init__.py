"""A backend for any endpoint that speaks OpenAI's protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluators.backend_options import BackendOptions

if TYPE_CHECKING:
    from evaluators.backends.openai.backend import OpenAIBackend

SUMMARY = "any OpenAI-compatible endpoint: vLLM's server, a router, OpenAI (OPENAI_API_KEY, --base-url)"
EXTRA = "openai"


def open_backend(model: str, options: BackendOptions) -> OpenAIBackend:
    """Open a model; see :func:`evaluators.backends.openai.backend.open_backend`."""
    # What lists backends imports none of them.
    from evaluators.backends.openai import backend

    return backend.open_backend(model, options)
