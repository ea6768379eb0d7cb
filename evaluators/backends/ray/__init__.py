"""Runs another backend on the machines of a Ray cluster.

*ray_backend* deals out blocks of requests, a *worker* answers them, and *cluster* is the only user of the library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluators.backend_options import BackendOptions

if TYPE_CHECKING:
    from evaluators.backends.ray.ray_backend import RayBackend

SUMMARY = "another backend on every worker of a Ray cluster: --engine transformers or vllm"
EXTRA = "ray"


def open_backend(model: str, options: BackendOptions) -> RayBackend:
    """Open a model; see :func:`evaluators.backends.ray.ray_backend.open_backend`."""
    # Imported only here, because backends are listed on machines without their libraries.
    from evaluators.backends.ray import ray_backend

    return ray_backend.open_backend(model, options)
