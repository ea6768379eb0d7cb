"""Calls any causal language model through vLLM.

*vllm_backend* turns requests into what *engine*, the only user of the library, computes; *pool* runs several engines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluators.backend import OF_LANGUAGE_MODELS, Identified
from evaluators.backend_options import BackendOptions

if TYPE_CHECKING:
    from evaluators.backends.vllm.vllm_backend import VllmBackend
    from evaluators.models.outline import Outline

SUMMARY = "any causal model of the Hugging Face Hub or a local folder, through vLLM on one or more GPUs"
EXTRA = "vllm"
CAPABILITIES = OF_LANGUAGE_MODELS
IDENTIFIED = Identified(
    "local",
    frozenset({"model", "adapter", "tokenizer", "chat_template_sha256", "precision", "device", "end_logprobs"}),
    CAPABILITIES,
)


def open_backend(model: str, options: BackendOptions) -> VllmBackend:
    """Open a model; see :func:`evaluators.backends.vllm.vllm_backend.open_backend`."""
    # Imported only here, because backends are listed on machines without their libraries.
    from evaluators.backends.vllm import vllm_backend

    return vllm_backend.open_backend(model, options)


def open_outline(model: str, options: BackendOptions) -> Outline:
    """Read what planning needs of a model; see :func:`evaluators.backend.open_outline`."""
    from evaluators.backends.vllm.vllm_backend import OPTIONS
    from evaluators.models.outline import outline_of

    options.refuse_others("vllm", but=OPTIONS)
    return outline_of("vllm", model, options)
