"""Calls any causal language model of the Hub or of a local folder through the library transformers.

Requests with options are scored packed where the model allows it, and otherwise plain::

    plain:   one row per option, in which all tokens are computed
        Who is meant? Ann: The nurse thanked the guard. "She" is the nurse
        Who is meant? Ann: The nurse thanked the guard. "She" is the guard
        Who is meant? Ann: The clerk saw the driver. "He" is the clerk
        Who is meant? Ann: The clerk saw the driver. "He" is the driver
    packed:  a prefix, computed once, and rows that are trees of tokens
        Who is meant? Ann: The ┬─ nurse thanked the guard. "She" is the ─┬─ nurse
                               │                                         └─ guard
                               └─ clerk saw the driver. "He" is the ─────┬─ clerk
                                                                         └─ driver

    transformers_backend ──▶ option_scoring
                         └─▶ generation ──▶ decoding, next_logits ──▶ option_scoring
                         └─▶ encoder_decoder ──▶ option_scoring, decoding: models such as T5, always plain
    load: the model, its device and threads; lora: adapters and their training
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluators.backend import OF_LANGUAGE_MODELS, Identified
from evaluators.backend_options import BackendOptions

if TYPE_CHECKING:
    from evaluators.backends.transformers.lora import LoraTrainer
    from evaluators.backends.transformers.transformers_backend import TransformersBackend
    from evaluators.models.outline import Outline
    from schemas.documents.adapters import Hyperparameters

SUMMARY = "any causal or encoder-decoder model of the Hugging Face Hub or a local folder, on CPU, CUDA or MPS"
EXTRA = "hf"
CAPABILITIES = OF_LANGUAGE_MODELS
IDENTIFIED = Identified(
    "local", frozenset({"model", "precision", "device", "chat_template", "tokenizer", "scoring"}), CAPABILITIES
)


def open_backend(model: str, options: BackendOptions) -> TransformersBackend:
    """Open a model; see :func:`evaluators.backends.transformers.transformers_backend.open_backend`."""
    # Imported only here, because backends are listed on machines without their libraries.
    from evaluators.backends.transformers import transformers_backend

    return transformers_backend.open_backend(model, options)


def open_trainer(model: str, options: BackendOptions, hyperparameters: Hyperparameters) -> LoraTrainer:
    """Load a model to train adapters for; see :func:`evaluators.backends.transformers.lora.open_trainer`."""
    from evaluators.backends.transformers import lora

    return lora.open_trainer(model, options, hyperparameters)


def open_outline(model: str, options: BackendOptions) -> Outline:
    """Read what planning needs of a model; see :func:`evaluators.backend.open_outline`."""
    from evaluators.backends.transformers.transformers_backend import OPTIONS
    from evaluators.models.outline import outline_of

    options.refuse_others("transformers", but=OPTIONS)
    return outline_of("transformers", model, options)
