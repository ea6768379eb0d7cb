"""Calls CLIP models, which compare an image with texts, through the library transformers.

The log-probabilities of an image's options are the log-softmax of its similarities to them. A similarity is the cosine
of both embeddings times the scale that the model learned (Radford et al. 2021, arXiv:2103.00020). Embeddings are
normalised in float32, and similarities computed in float64, whatever the precision of the model.
"""

from __future__ import annotations

import importlib.metadata
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

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
    OUT_OF_MEMORY,
    computing,
    device_name,
    in_halves,
    load_network,
    precision_of,
)
from evaluators.models.model_files import find_model, load_pretrained, opening_arguments
from evaluators.models.tokenizer import encode
from schemas.documents.result import Model

if TYPE_CHECKING:
    from transformers import CLIPModel, PreTrainedTokenizerBase

SUMMARY = "CLIP models of the Hugging Face Hub or a local folder, asked which text describes an image"
EXTRA = "hf"
CAPABILITIES: frozenset[Capability] = frozenset({"image_option_logprobs"})
IDENTIFIED = Identified("local", frozenset({"model", "precision", "device", "processor"}), CAPABILITIES)
_OWN_CODE_REMEDY = "give a CLIP model that transformers knows itself; no other backend asks about images"
_MOST_ENLARGED = 4
"""Largest ratio of the pictures that a processor makes before it crops them to those that a model takes."""


def _fault_of_processor(processor: Any, side: int) -> str | None:
    """Return why an image processor cannot make the pictures of a network, of ``side`` pixels; None if it can."""
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


_TEXTS_PER_PASS = 128
"""Number of texts that are embedded together."""


def of_length_one(embeddings: Any) -> Any:
    """Return embeddings in float32, each divided by its length."""
    exact = embeddings.float()
    return exact / exact.norm(dim=-1, keepdim=True)


BATCH = {"cpu": 32, "mps": 64, "cuda": 256}
"""Number of images per batch, by type of device."""
_PACKAGES = ("torch", "transformers", "tokenizers", "pillow")
_OPTIONS = ("name", "revision", "dtype", "device", "batch_images")


@dataclass(kw_only=True)
class ClipBackend(Backend):
    """A CLIP model loaded with transformers."""

    network: CLIPModel
    tokenizer: PreTrainedTokenizerBase
    processor: Any
    """Image processor of transformers that computes with Pillow. The one that uses torchvision gives other pixels, and
    the choice must not depend on what is installed."""
    device: str
    batch_images: int
    """Number of images per batch."""
    context_tokens: int
    """Largest number of tokens of an option's text, including its start and end tokens."""
    model: Model
    arguments: tuple[str, ...] = ()
    capabilities: frozenset[Capability] = CAPABILITIES
    settings: dict[str, str] = field(default_factory=dict)
    _embeddings: dict[tuple[str, ...], Any] = field(default_factory=dict, repr=False)
    """Embeddings of each set of k options that was asked about, each of length one, shape (k, d)."""
    _lengths: dict[tuple[str, ...], int] = field(default_factory=dict, repr=False)

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

    def needed_tokens(self, requests: Sequence[Request]) -> Sequence[int]:
        """Return the number of tokens in the longest option text of each request."""
        return [self._longest(request) + isinstance(request, GenerateRequest) for request in requests]

    def _longest(self, request: Request) -> int:
        """Return the number of tokens in the longest text that a request compares with its image."""
        texts = request.options if isinstance(request, ChoiceRequest) else (request.prompt,)
        if texts not in self._lengths:
            lines = [line for text in texts for line in text.split("\n")]
            self._lengths[texts] = max(map(len, encode(self.tokenizer, lines)["input_ids"]))
        return self._lengths[texts]

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
            embeddings = in_halves(self._embedded, list(pictures.values()))
            for index, embedding in zip(pictures, embeddings, strict=True):
                responses[index] = (
                    Response(status="failed", error=OUT_OF_MEMORY)
                    if embedding is None
                    else self._response(requests[index], embedding)
                )
        return [responses[index] for index in range(len(requests))]

    def _picture(self, request: Request) -> Any:
        """Return the picture of a request; a DataError says what is wrong with the image, or with an option."""
        from schemas.files.pictures import decoded

        if not isinstance(request, ChoiceRequest) or request.image is None:
            raise DataError("is missing, and a CLIP model answers about images only; take a prompt about images")
        n_tokens = self._longest(request)
        if n_tokens > self.context_tokens:
            raise DataError(f"has an option of {n_tokens} tokens, and the model takes {self.context_tokens}")
        return decoded(request.image)

    def _embedded(self, pictures: Sequence[Any]) -> Any:
        """Return the embeddings of pictures, each of length one, shape (n, d)."""
        pixels = pixels_of(self.processor, pictures).to(self.device, self.network.dtype)
        with import_extra("torch", "hf").inference_mode():
            return of_length_one(self.network.get_image_features(pixel_values=pixels).pooler_output)

    def _options_embedded(self, options: tuple[str, ...]) -> Any:
        """Return the embeddings of options, each of length one, which are computed once.

        An option of several lines has the normalised mean of their embeddings, as the authors of CLIP combine several
        templates.
        """
        if options not in self._embeddings:
            torch = import_extra("torch", "hf")
            n_lines = [option.count("\n") + 1 for option in options]
            texts, parts = [line for option in options for line in option.split("\n")], []
            for start in range(0, len(texts), _TEXTS_PER_PASS):
                inputs = self.tokenizer(texts[start : start + _TEXTS_PER_PASS], padding=True, return_tensors="pt")
                with torch.inference_mode():
                    output = self.network.get_text_features(
                        input_ids=inputs.input_ids.to(self.device), attention_mask=inputs.attention_mask.to(self.device)
                    )
                parts.append(of_length_one(output.pooler_output))
            means = [of_option.mean(dim=0) for of_option in torch.cat(parts).split(n_lines)]
            self._embeddings[options] = of_length_one(torch.stack(means))
        return self._embeddings[options]

    def _response(self, request: Request, embedding: Any) -> Response:
        assert isinstance(request, ChoiceRequest)
        torch = import_extra("torch", "hf")
        with torch.inference_mode():
            # The scale can be 100 and would multiply the rounding of the cosines, so compute in double precision.
            scale = self.network.logit_scale.double().exp().cpu()
            similarities = scale * (self._options_embedded(request.options).double().cpu() @ embedding.double().cpu())
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
    files = find_model(model, options.revision)
    model_id = check_model_id(options.name or files.default_id)
    device, dtype, settings = computing(options)
    # Imported only here: it loads numpy, which listing the backends does not need.
    from schemas.files.pictures import check_library

    check_library()
    what, remedy = f"model '{model}'", "check the id, or give a local folder"
    load = partial(load_pretrained, location=model, commit=files.commit, own_code=_OWN_CODE_REMEDY)
    kind = load("AutoConfig", what=what, remedy=remedy).model_type
    if kind != "clip":
        raise ConfigError(
            f"{what} is of the type '{kind}', and no CLIP model, which compares images with texts; give one such as "
            "openai/clip-vit-base-patch32, or ask a language model about texts with another --backend"
        )
    remedy = "save both there with CLIPProcessor.from_pretrained(ID).save_pretrained(FOLDER)"
    of_part = f"{what}: its tokenizer or image processor"
    tokenizer = load("AutoTokenizer", what=of_part, remedy=remedy)
    processor = load("AutoImageProcessor", what=of_part, remedy=remedy, backend="pil")
    network: Any = load_network(model, files.commit, dtype, device, loader="CLIPModel", kind="CLIP model")
    if (fault := _fault_of_processor(processor, network.config.vision_config.image_size)) is not None:
        raise ConfigError(f"{what}: its image processor {fault}; {remedy}")
    precision = precision_of(network)
    identity = {
        "backend": "clip",
        "model": files.identity,
        "precision": precision,
        "device": device.partition(":")[0],
        "processor": type(processor).__name__,
    }
    return ClipBackend(
        network=network,
        tokenizer=tokenizer,
        processor=processor,
        device=device,
        context_tokens=network.text_model.embeddings.position_embedding.num_embeddings,
        batch_images=options.batch_images or BATCH.get(device.partition(":")[0], BATCH["cpu"]),
        arguments=opening_arguments(
            files, options, precision, {"device": options.device, "batch-images": options.batch_images}
        ),
        settings=settings,
        model=identified_model(model_id, identity, revision=files.revision, precision=precision),
    )
