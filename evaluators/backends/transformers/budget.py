"""Decides how many texts are generated side by side, by the memory that their keys and values take.

Each token that is decoded reads all weights of the model once, whatever the number of texts. More texts at a time are
therefore faster, until their keys and values fill the memory or the caches of the processor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from biasboard.ground.errors import import_extra
from evaluators.models.machine import free_memory

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_MOST_ROWS = {"cpu": 128, "mps": 128, "cuda": 512}
"""Maximum number of texts side by side, by type of device; a choice, and no measured optimum."""
_MEMORY_SHARE = {"cpu": 0.25, "mps": 0.25, "cuda": 0.5}
"""Share of the free memory that keys and values may take. Attention copies some of them, and a CPU has no error to
recover from when memory runs out: the system ends the process."""
_SPARE = 1.25
"""Size of the buffer of keys and values, per column that is in use."""


class Room(NamedTuple):
    """The limits on what is generated side by side."""

    n_tokens: int
    """Maximum number of tokens; each text counts as long as the longest of them may become."""
    n_rows: int | None
    """Maximum number of texts; None if only the tokens count."""
    n_prefilled: int
    """Maximum number of prompt tokens, with padding, that are computed in one pass; a single prompt may exceed it."""


def room_for_texts(network: PreTrainedModel, device: str, n_scored: int, wanted: int | None) -> Room:
    """Return the limits for a model, given the memory that is free now.

    Args:
        network: The model.
        device: Device that computes, such as ``cuda:1``.
        n_scored: Maximum number of tokens in a batch of options.
        wanted: Maximum number of tokens that the user chose; None to derive it from the free memory.
    """
    if wanted is not None:
        return Room(wanted, None, wanted)
    kind = device.partition(":")[0]
    each, free = bytes_per_token(network), _free(device)
    if each is None or free is None:
        return Room(n_scored, None, n_scored)
    n_tokens = int(free * _MEMORY_SHARE.get(kind, 0.25) / (each * _SPARE))
    return Room(max(n_scored, n_tokens), _MOST_ROWS.get(kind, 128), n_scored)


def bytes_per_token(network: PreTrainedModel) -> int | None:
    """Return how many bytes the keys and values of one token take in all layers; None if the config does not say."""
    config = network.config.get_text_config()

    def number(name: str) -> int | None:
        value = getattr(config, name, None)
        return value if isinstance(value, int) and value > 0 else None

    n_layers, n_heads, width = number("num_hidden_layers"), number("num_attention_heads"), number("hidden_size")
    if n_layers is None or n_heads is None or width is None:
        return None
    size = number("head_dim") or width // n_heads
    return 2 * n_layers * (number("num_key_value_heads") or n_heads) * size * int(network.dtype.itemsize)


def _free(device: str) -> int | None:
    """Return how many bytes a device has left; None if it does not say."""
    if not device.startswith("cuda"):
        return free_memory()
    cuda = import_extra("torch", "hf").cuda
    # What the allocator of this process holds and does not use is free as well.
    held = cuda.memory_reserved(device) - cuda.memory_allocated(device)
    return int(cuda.mem_get_info(device)[0] + held)
