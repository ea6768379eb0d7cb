"""Tells from a model's configuration which library its quantised weights need, before torch is imported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any

from biasboard.ground.errors import ConfigError, MissingExtraError
from biasboard.ground.plain_text import printable

_EXTRA = "quantised"
_IN_EXTRA: Mapping[str, tuple[str, ...]] = {
    "bitsandbytes": ("accelerate", "bitsandbytes"),
    "compressed-tensors": ("accelerate", "compressed_tensors"),
    # Without the library kernels, which would run code of the Hub, these weights become plain numbers on loading.
    "fp8": ("accelerate",),
    "mxfp4": ("accelerate",),
}
"""Modules that transformers needs for each way of quantising, as far as the extra installs them."""
_OTHERS: Mapping[str, tuple[str, ...]] = {
    "awq": ("accelerate", "gptqmodel"),
    "fbgemm_fp8": ("accelerate", "fbgemm_gpu"),
    "gptq": ("optimum", "gptqmodel"),
    "hqq": ("hqq",),
    "quanto": ("accelerate", "optimum"),
    "torchao": ("torchao",),
}
"""The same for libraries that are built for one machine or one version of torch, which an extra cannot name."""
ENGINE_REMEDY = (
    "ask it with --backend vllm, or serve it with vllm serve MODEL, and score it with --backend openai --base-url URL"
)


def quantisation(config: Mapping[str, Any]) -> str | None:
    """Return how the weights of a model are quantised, such as ``gptq``, by its configuration; None if they are not.

    >>> quantisation({"quantization_config": {"quant_method": "gptq", "bits": 4}})
    'gptq'
    """
    return next(_methods(config), None)


def _methods(config: Mapping[str, Any]) -> Iterator[str]:
    # A model of texts and images names it for its part of texts.
    for part in (config, config.get("text_config")):
        settings = part.get("quantization_config") if isinstance(part, dict) else None
        if isinstance(settings, dict):
            # Configurations of older versions of bitsandbytes name no method.
            old = "bitsandbytes" if settings.get("load_in_4bit") or settings.get("load_in_8bit") else "unknown"
            method = settings.get("quant_method", old)
            yield printable(str(method), most=50)


def check_gguf() -> None:
    """Check that weights in GGUF can be read.

    Raises:
        MissingExtraError: a library is missing.
    """
    for module in ("accelerate", "gguf"):
        if find_spec(module) is None:
            raise MissingExtraError(
                f"weights in GGUF need '{module}', which is not installed; install the extra '{_EXTRA}': "
                f"pip install 'biasboard[{_EXTRA}]'"
            )


def check_quantisation(model: str, config: Mapping[str, Any]) -> None:
    """Check that the libraries are installed that quantised weights need.

    Raises:
        ConfigError: a library is missing that no extra installs.
        MissingExtraError: a library of an extra is missing.
    """
    method = quantisation(config)
    if method is None:
        return
    modules = _IN_EXTRA.get(method) or _OTHERS.get(method, ())
    absent = [name.replace("_", "-") for name in modules if find_spec(name) is None]
    if not absent:
        return
    fault = (
        f"the weights of model '{model}' are quantised by {method}, for which {' and '.join(absent)} must be installed"
    )
    if method in _IN_EXTRA:
        raise MissingExtraError(f"{fault}; install the extra '{_EXTRA}': pip install 'biasboard[{_EXTRA}]'")
    raise ConfigError(f"{fault}; install it in a version for this machine, {ENGINE_REMEDY}")
