"""Loads the parts of a CLIP model, and refuses other models before the first request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

from biasboard.ground.errors import ConfigError
from evaluators.backends.transformers.load import load_network
from evaluators.models.model_files import ModelFiles
from evaluators.models.pretrained import load_pretrained
from schemas.files.pictures import check_library

if TYPE_CHECKING:
    from transformers import CLIPModel, PreTrainedTokenizerBase

_TYPE = "clip"
"""Type of a model in its configuration."""
_PLAIN = "give a CLIP model that transformers knows itself; no other backend asks about images"
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
    check_library()
    _check_type(model, files.commit)
    remedy = "save both there with CLIPProcessor.from_pretrained(ID).save_pretrained(FOLDER)"
    what = f"model '{model}': its tokenizer or image processor"
    tokenizer = load_pretrained("AutoTokenizer", model, files.commit, what=what, remedy=remedy, own_code=_PLAIN)
    processor = load_pretrained(
        "AutoImageProcessor", model, files.commit, what=what, remedy=remedy, own_code=_PLAIN, backend="pil"
    )
    network = load_network(model, files.commit, dtype, loader="CLIPModel", kind="CLIP model")
    return ClipParts(cast("CLIPModel", network), tokenizer, processor)


def _check_type(model: str, revision: str | None) -> None:
    remedy = "check the id, or give a local folder"
    kind = load_pretrained(
        "AutoConfig", model, revision, what=f"model '{model}'", remedy=remedy, own_code=_PLAIN
    ).model_type
    if kind != _TYPE:
        raise ConfigError(
            f"model '{model}' is of the type '{kind}', and no CLIP model, which compares images with texts; give one "
            f"such as {_EXAMPLE}, or ask a language model about texts with another --backend"
        )
