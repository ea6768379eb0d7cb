"""Loads the parts of a CLIP model, and refuses other models before the first request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

from evaluators.backends.transformers.load import load_network
from evaluators.models.model_files import ModelFiles
from schemas.errors import ConfigError, import_extra
from schemas.pictures import check_library

if TYPE_CHECKING:
    from transformers import CLIPModel, PreTrainedTokenizerBase

_TYPE = "clip"
"""Type of a model in its configuration."""
_EXAMPLE = "openai/clip-vit-base-patch32"


class ClipParts(NamedTuple):
    """A model with what prepares its inputs."""

    network: CLIPModel
    tokenizer: PreTrainedTokenizerBase
    processor: Any
    """Image processor of transformers that computes with Pillow: one that uses torchvision gives other pixels, and
    which of both there is must not depend on the machine."""


def load_clip(model: str, files: ModelFiles, dtype: Any) -> ClipParts:
    """Load a model, its tokenizer and its image processor.

    Raises:
        ConfigError: a part cannot be found or loaded, the model lacks weights, or it is no CLIP model.
        MissingExtraError: transformers or Pillow is not installed.
    """
    transformers = import_extra("transformers", "hf")
    check_library()
    _check_type(transformers, model, files.commit)
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(model, revision=files.commit)
        processor = transformers.AutoImageProcessor.from_pretrained(model, revision=files.commit, backend="pil")
    # The libraries may raise any exception here, and each concerns the files of the model.
    except Exception as error:
        reason = " ".join(str(error).split())[:300]
        raise ConfigError(
            f"model '{model}': its tokenizer or image processor cannot be loaded: {reason}; save both there with "
            "CLIPProcessor.from_pretrained(ID).save_pretrained(FOLDER)"
        ) from error
    network = load_network(model, files.commit, dtype, loader="CLIPModel", kind="CLIP model")
    return ClipParts(cast("CLIPModel", network), tokenizer, processor)


def _check_type(transformers: Any, model: str, revision: str | None) -> None:
    try:
        found = transformers.AutoConfig.from_pretrained(model, revision=revision).model_type
    except Exception as error:
        reason = " ".join(str(error).split())[:300]
        message = f"model '{model}' cannot be loaded: {reason}; check the id, or give a local folder"
        raise ConfigError(message) from error
    if found != _TYPE:
        raise ConfigError(
            f"model '{model}' is of the type '{found}', and no CLIP model, which compares images with texts; give one "
            f"such as {_EXAMPLE}, or ask a language model about texts with another --backend"
        )
