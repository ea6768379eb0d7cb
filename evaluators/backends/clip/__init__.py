"""Calls CLIP models, which compare an image with texts, through the library transformers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluators.backend import Capability
from evaluators.backend_options import BackendOptions

if TYPE_CHECKING:
    from evaluators.backends.clip.clip_backend import ClipBackend

SUMMARY = "CLIP models of the Hugging Face Hub or a local folder, asked which text describes an image"
EXTRA = "hf"
CAPABILITIES: frozenset[Capability] = frozenset({"image_option_logprobs"})


def open_backend(model: str, options: BackendOptions) -> ClipBackend:
    """Open a model; see :func:`evaluators.backends.clip.clip_backend.open_backend`."""
    # What lists backends imports none of them.
    from evaluators.backends.clip import clip_backend

    return clip_backend.open_backend(model, options)
