"""Calls any causal language model of the Hub or of a local folder through the library transformers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluators.backend_options import BackendOptions

if TYPE_CHECKING:
    from evaluators.backends.transformers.backend import TransformersBackend
    from evaluators.backends.transformers.training import LoraTrainer
    from schemas.documents.adapters import Hyperparameters

SUMMARY = "any causal model of the Hugging Face Hub or a local folder, on CPU, CUDA or MPS"
EXTRA = "hf"


def open_backend(model: str, options: BackendOptions) -> TransformersBackend:
    """Open a model; see :func:`evaluators.backends.transformers.backend.open_backend`."""
    # What lists backends imports none of them.
    from evaluators.backends.transformers import backend

    return backend.open_backend(model, options)


def open_trainer(model: str, options: BackendOptions, hyperparameters: Hyperparameters) -> LoraTrainer:
    """Load a model to train adapters for; see :func:`evaluators.trainer.open_trainer`."""
    from evaluators.backends.transformers import training

    return training.open_trainer(model, options, hyperparameters)
