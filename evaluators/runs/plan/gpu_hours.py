"""Estimates for how long GPUs compute tokens, where no run has measured a pace.

A model takes two floating-point operations per parameter and token. Prompts are assumed to reach 40 % of the throughput
of the GPU's matrix units, as large batches do. Generated tokens are assumed to reach a fifth of that, because each step
reads all weights for few tokens.
"""

from __future__ import annotations

import math

_OPERATIONS = 2
"""Floating-point operations per parameter and token."""
_UTILISATION = 0.4
_GENERATED = 5
"""Prompt tokens that take as long as one generated token."""
_BYTES = 2
"""Bytes of a parameter in bfloat16."""
_WEIGHTS_SHARE = 0.8
"""Largest share of the memory that weights may take; the rest holds keys and values."""


FLOPS = 790e12
"""Throughput of the matrix units of an H100 in bfloat16, in floating-point operations per second."""
_MEMORY = 80e9
"""Bytes of its memory."""
GPU_HOUR_USD = 3.0
"""Assumed price of an hour of one GPU. Prices differ threefold between providers, so that pages call it assumed."""


def gpu_hours(n_parameters: int, n_prompt_tokens: int, n_completion_tokens: int) -> float:
    """Return the hours of one H100, summed over the GPUs that a model needs, without loading the weights.

    >>> round(gpu_hours(7_000_000_000, 81_360_000, 0), 2)
    1.0
    """
    n_tokens = n_prompt_tokens + _GENERATED * n_completion_tokens
    return _OPERATIONS * n_parameters * n_tokens / (_UTILISATION * FLOPS) / 3600


def n_gpus(n_parameters: int) -> int:
    """Return the number of H100 that hold the weights, a power of two, as engines split layers.

    >>> n_gpus(7_000_000_000), n_gpus(70_000_000_000)
    (1, 4)
    """
    return 1 << max(0, math.ceil(math.log2(_BYTES * n_parameters / (_WEIGHTS_SHARE * _MEMORY))))
