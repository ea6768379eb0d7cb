"""Calls CLIP models, which compare an image with texts, through the library transformers.

The log-probabilities of an image's options are the log-softmax of its similarities to them. A similarity is the cosine
of both embeddings times the scale that the model learned (Radford et al. 2021, arXiv:2103.00020). Embeddings are
normalised in float32, and similarities computed in float64, whatever the precision of the model.
"""

from __future__ import annotations

import importlib.metadata
import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from typing_extensions import override

from biasboard.ground.errors import ConfigError, DataError, import_extra
from biasboard.ground.plain_text import one_line
from evaluators.backend import (
    Backend,
    Capability,
    ChoiceRequest,
    Events,
    GenerateRequest,
    Identified,
    Request,
    Response,
    Runtime,
    ask_in_batches,
    check_model_id,
    identified_model,
)
from evaluators.backend_options import BackendOptions
from evaluators.backends.transformers.load import (
    device_name,
    import_torch,
    load_network,
    precision_of,
    set_threads,
    torch_dtype,
    usable_device,
)
from evaluators.models.encoding import encode
from evaluators.models.model_files import ModelFiles, find_model, opening_arguments
from evaluators.models.pretrained import load_pretrained
from schemas.documents.result import Model

if TYPE_CHECKING:
    from transformers import CLIPModel, PreTrainedTokenizerBase

logger = logging.getLogger(__name__)

SUMMARY = "CLIP models of the Hugging Face Hub or a local folder, asked which text describes an image"
EXTRA = "hf"
CAPABILITIES: frozenset[Capability] = frozenset({"image_option_logprobs"})
IDENTIFIED = Identified("local", frozenset({"model", "precision", "device", "processor"}), CAPABILITIES)
_TYPE = "clip"
"""Type of a model in its configuration."""
_OWN_CODE_REMEDY = "give a CLIP model that transformers knows itself; no other backend asks about images"
_EXAMPLE = "openai/clip-vit-base-patch32"
_MOST_ENLARGED = 4
"""Largest ratio of the pictures that a processor makes before it crops them to those that a model takes."""


class ClipParts(NamedTuple):
    """A model with its tokenizer and image processor."""

    network: CLIPModel
    tokenizer: PreTrainedTokenizerBase
    processor: Any
    """Image processor of transformers that computes with Pillow. The one that uses torchvision gives other pixels, and
    the choice must not depend on what is installed."""


def load_clip(model: str, files: ModelFiles, dtype: Any) -> ClipParts:
    """Load a model, its tokenizer and its image processor.

    Raises:
        ConfigError: a part cannot be found or loaded, the model lacks weights, or it is no CLIP model.
        MissingExtraError: transformers or Pillow is not installed.
    """
    # Imported only here: it loads numpy, which listing the backends does not need.
    from schemas.files.pictures import check_library

    check_library()
    _check_type(model, files.commit)
    remedy = "save both there with CLIPProcessor.from_pretrained(ID).save_pretrained(FOLDER)"
    what = f"model '{model}': its tokenizer or image processor"
    tokenizer = load_pretrained(
        "AutoTokenizer", model, files.commit, what=what, remedy=remedy, own_code=_OWN_CODE_REMEDY
    )
    processor = load_pretrained(
        "AutoImageProcessor", model, files.commit, what=what, remedy=remedy, own_code=_OWN_CODE_REMEDY, backend="pil"
    )
    network: Any = load_network(model, files.commit, dtype, loader="CLIPModel", kind="CLIP model")
    if (fault := _fault_of_processor(processor, network.config.vision_config.image_size)) is not None:
        raise ConfigError(f"model '{model}': its image processor {fault}; {remedy}")
    return ClipParts(network, tokenizer, processor)


def _fault_of_processor(processor: Any, side: int) -> str | None:
    """Return why an image processor cannot make the pictures that a network takes; None if it can.

    Args:
        processor: The image processor.
        side: Width and height of these pictures in pixels.
    """
    import numpy as np

    from schemas.files.pictures import decoded, png

    try:
        told = processor.to_dict()
        numbers = [n for name in ("size", "crop_size", "pad_size") for n in dict(told.get(name) or {}).values() if n]
        # Before anything is made, since every picture would be enlarged to that.
        if wrong := [n for n in numbers if not 0 < n <= _MOST_ENLARGED * side]:
            return f"makes pictures of {wrong[0]} pixels a side, and the model takes {side}"
        picture = decoded(png(np.zeros((side + 1, 2 * side, 3), np.uint8)))
        made = tuple(pixels_of(processor, [picture]).shape)
    # Whatever a processor raises, its settings are wrong.
    except Exception as error:
        return f"cannot read a picture ({one_line(error, most=200)})"
    return (
        None if made == (1, 3, side, side) else f"makes pictures of shape {made}, and the model takes {side} x {side}"
    )


def pixels_of(processor: Any, pictures: Sequence[Any]) -> Any:
    """Return pictures as a network takes them, shape (n, 3, side, side)."""
    # Stated, because the layout of pictures one or three pixels wide is ambiguous.
    return processor(list(pictures), return_tensors="pt", input_data_format="channels_last").pixel_values


def _check_type(model: str, revision: str | None) -> None:
    remedy = "check the id, or give a local folder"
    kind = load_pretrained(
        "AutoConfig", model, revision, what=f"model '{model}'", remedy=remedy, own_code=_OWN_CODE_REMEDY
    ).model_type
    if kind != _TYPE:
        raise ConfigError(
            f"model '{model}' is of the type '{kind}', and no CLIP model, which compares images with texts; give one "
            f"such as {_EXAMPLE}, or ask a language model about texts with another --backend"
        )


_TEXTS_PER_PASS = 128
"""Number of texts that are embedded together."""


def features(output: Any) -> Any:
    """Return the embeddings in a model's output, which some versions of transformers wrap in an object."""
    return getattr(output, "pooler_output", output)


def of_length_one(embeddings: Any) -> Any:
    """Return embeddings in float32, each divided by its length."""
    exact = embeddings.float()
    return exact / exact.norm(dim=-1, keepdim=True)


@dataclass
class OptionEmbeddings:
    """The embeddings of options, computed once for each set of k options, shape (k, d)."""

    network: CLIPModel
    tokenizer: PreTrainedTokenizerBase
    device: str
    context_tokens: int
    """Largest number of tokens of a text, including its start and end tokens."""
    _embeddings: dict[tuple[str, ...], Any] = field(default_factory=dict, repr=False)
    _lengths: dict[tuple[str, ...], int] = field(default_factory=dict, repr=False)

    def longest(self, request: Request) -> int:
        """Return the number of tokens in the longest text that a request compares with its image."""
        texts = request.options if isinstance(request, ChoiceRequest) else (request.prompt,)
        if texts not in self._lengths:
            lines = [line for text in texts for line in text.split("\n")]
            self._lengths[texts] = max(map(len, encode(self.tokenizer, lines)["input_ids"]))
        return self._lengths[texts]

    def of(self, options: tuple[str, ...]) -> Any:
        """Return the embeddings of options, each of length one.

        An option of several lines has the normalised mean of their embeddings, as the authors of CLIP combine several
        templates.
        """
        if options not in self._embeddings:
            lines = [option.split("\n") for option in options]
            embedded = self._embedded([line for of_option in lines for line in of_option])
            means, start = [], 0
            for of_option in lines:
                means.append(embedded[start : start + len(of_option)].mean(dim=0))
                start += len(of_option)
            self._embeddings[options] = of_length_one(import_extra("torch", "hf").stack(means))
        return self._embeddings[options]

    def _embedded(self, texts: Sequence[str]) -> Any:
        """Return the embeddings of texts, each of length one, shape (n, d)."""
        torch = import_extra("torch", "hf")
        parts = []
        for start in range(0, len(texts), _TEXTS_PER_PASS):
            inputs = self.tokenizer(list(texts[start : start + _TEXTS_PER_PASS]), padding=True, return_tensors="pt")
            with torch.inference_mode():
                output = self.network.get_text_features(
                    input_ids=inputs.input_ids.to(self.device), attention_mask=inputs.attention_mask.to(self.device)
                )
            parts.append(of_length_one(features(output)))
        return torch.cat(parts)


BATCH = {"cpu": 32, "mps": 64, "cuda": 256}
"""Number of images per batch, by type of device."""
_PACKAGES = ("torch", "transformers", "tokenizers", "pillow")
_OPTIONS = ("name", "revision", "dtype", "device", "batch_images")


@dataclass
class ClipBackend(Backend):
    """A CLIP model loaded with transformers."""

    parts: ClipParts
    texts: OptionEmbeddings
    device: str
    batch_images: int
    """Number of images per batch."""
    model: Model
    arguments: tuple[str, ...] = ()
    capabilities: frozenset[Capability] = CAPABILITIES
    settings: dict[str, str] = field(default_factory=dict)

    @property
    @override
    def runtime(self) -> Runtime:
        packages = {name: importlib.metadata.version(name) for name in _PACKAGES}
        return Runtime(device=device_name(self.device), packages=packages, settings=dict(self.settings))

    @override
    def ask(self, requests: Sequence[Request], missing: frozenset[int]) -> Events:
        size = self.batch_images
        batches = [range(start, min(start + size, len(requests))) for start in range(0, len(requests), size)]
        return ask_in_batches(batches, self._answer, requests, missing)

    @property
    def context_tokens(self) -> int | None:
        """The largest number of tokens that the model takes in the text of an option."""
        return self.texts.context_tokens

    def needed_tokens(self, requests: Sequence[Request]) -> Sequence[int]:
        """Return the number of tokens in the longest option text of each request."""
        return [self.texts.longest(request) + isinstance(request, GenerateRequest) for request in requests]

    def _answer(self, requests: Sequence[Request]) -> Sequence[Response]:
        """Return the responses to one batch. A request that cannot be answered fails alone."""
        responses: dict[int, Response] = {}
        pictures: dict[int, Any] = {}
        for index, request in enumerate(requests):
            try:
                pictures[index] = self._picture(request)
            except DataError as error:
                responses[index] = Response(status="failed", error=f"the image {error}")
        if pictures:
            embeddings = self._embedded(list(pictures.values()))
            for index, embedding in zip(pictures, embeddings, strict=True):
                responses[index] = self._response(requests[index], embedding)
        return [responses[index] for index in range(len(requests))]

    def _picture(self, request: Request) -> Any:
        """Return the picture of a request.

        Raises:
            DataError: the request has no image, the image cannot be decoded, or an option is too long.
        """
        from schemas.files.pictures import decoded

        if not isinstance(request, ChoiceRequest) or request.image is None:
            raise DataError("is missing, and a CLIP model answers about images only; take a prompt about images")
        n_tokens = self.texts.longest(request)
        if n_tokens > self.texts.context_tokens:
            raise DataError(f"has an option of {n_tokens} tokens, and the model takes {self.texts.context_tokens}")
        return decoded(request.image)

    def _embedded(self, pictures: Sequence[Any]) -> Any:
        """Return the embeddings of pictures, each of length one, shape (n, d). If memory runs out, halve the batch."""
        torch = import_extra("torch", "hf")
        try:
            pixels = pixels_of(self.parts.processor, pictures).to(self.device, self.parts.network.dtype)
            with torch.inference_mode():
                return of_length_one(features(self.parts.network.get_image_features(pixel_values=pixels)))
        except torch.OutOfMemoryError:
            if len(pictures) == 1:
                raise
            logger.warning("out of memory with %d images in a batch; halving it", len(pictures))
        # Retry outside the except block, where the failed pass no longer holds its memory.
        middle = len(pictures) // 2
        return torch.cat([self._embedded(pictures[:middle]), self._embedded(pictures[middle:])])

    def _response(self, request: Request, embedding: Any) -> Response:
        assert isinstance(request, ChoiceRequest)
        torch = import_extra("torch", "hf")
        with torch.inference_mode():
            # The scale can be 100 and would multiply the rounding of the cosines, so compute in double precision.
            scale = self.parts.network.logit_scale.double().exp().cpu()
            similarities = scale * (self.texts.of(request.options).double().cpu() @ embedding.double().cpu())
            logprobs = torch.log_softmax(similarities, dim=-1).tolist()
        if any(map(math.isnan, logprobs)):
            reason = f"a similarity is NaN in {self.model.precision}; use --dtype float32 or bfloat16"
            return Response(status="failed", error=reason)
        n = len(request.options)
        return Response(
            status="answered",
            option_logprobs=tuple(min(0.0, value) for value in logprobs),
            option_end_logprobs=(None,) * n,
            option_token_counts=(None,) * n,
            n_completion_tokens=0,
        )


def open_backend(model: str, options: BackendOptions) -> ClipBackend:
    """Load a model with its tokenizer and image processor.

    Raises:
        ConfigError: the model cannot be found or loaded, is no CLIP model, or an option is unknown.
        MissingExtraError: torch, transformers or Pillow is not installed.
    """
    options.refuse_others("clip", but=_OPTIONS)
    options.check_dtype()
    torch = import_torch()
    n_threads = set_threads(torch)
    files = find_model(model, options.revision)
    model_id = check_model_id(options.name or files.default_id)
    device = usable_device(torch, options.device)
    parts = load_clip(model, files, torch_dtype(torch, options.dtype, device))
    parts.network.to(torch.device(device)).eval()
    precision = precision_of(parts.network)
    identity = {
        "backend": "clip",
        "model": files.identity,
        "precision": precision,
        "device": device.partition(":")[0],
        "processor": type(parts.processor).__name__,
    }
    context_tokens = parts.network.text_model.embeddings.position_embedding.num_embeddings
    return ClipBackend(
        parts=parts,
        texts=OptionEmbeddings(parts.network, parts.tokenizer, device, context_tokens),
        device=device,
        batch_images=options.batch_images or BATCH.get(device.partition(":")[0], BATCH["cpu"]),
        arguments=opening_arguments(
            files, options, precision, {"device": options.device, "batch-images": options.batch_images}
        ),
        settings={"threads": str(n_threads)} if device == "cpu" else {},
        model=identified_model(model_id, identity, revision=files.revision, precision=precision),
    )
