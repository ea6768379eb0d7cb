"""Loads torch with as many threads as this process has cores, and with threads that sleep while they wait."""

from __future__ import annotations

import logging
import os
import sys
from typing import Any

from biasboard.ground.errors import import_extra
from evaluators.models.machine import chosen_threads

logger = logging.getLogger(__name__)

_WAITING = "OMP_WAIT_POLICY"


def import_torch() -> Any:
    """Import torch, so that its threads sleep instead of spinning while they wait for each other.

    A spinning thread holds a core that another one needs as soon as anything else runs on the machine. OpenMP reads the
    variable once, when torch is loaded; a choice of the user stays.

    Raises:
        MissingExtraError: torch is not installed.
    """
    if "torch" in sys.modules or _WAITING in os.environ:
        return import_extra("torch", "hf")
    os.environ[_WAITING] = "PASSIVE"
    try:
        return import_extra("torch", "hf")
    finally:
        # Programs that this one starts decide for themselves.
        del os.environ[_WAITING]


def set_threads(torch: Any) -> int:
    """Limit the number of torch's threads to the cores that this process may use, and return it.

    A number that the user chose stays: in the environment, or a smaller one by a call of ``torch.set_num_threads``.
    """
    chosen = chosen_threads()
    if chosen.variable is None and chosen.n < torch.get_num_threads():
        torch.set_num_threads(chosen.n)
    n = int(torch.get_num_threads())
    if chosen.variable is not None and n > chosen.n_cores:
        logger.warning(
            "%s makes %d threads, and this process may use %d cores; threads that outnumber cores can be ten times "
            "slower: unset it",
            chosen.variable,
            n,
            chosen.n_cores,
        )
    return n
