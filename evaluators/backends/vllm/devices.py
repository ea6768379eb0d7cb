"""Gives each process of an engine its devices."""

from __future__ import annotations

import os

from biasboard.ground.errors import ConfigError
from evaluators.backend_options import BackendOptions
from evaluators.backends.vllm.engine import Looked


def environments_of(looked: Looked, options: BackendOptions) -> list[dict[str, str]]:
    """Return the environment variables that give each worker process its devices.

    Returns:
        One entry per process; empty if a single engine in this process does all the work.

    Raises:
        ConfigError: there are not enough devices.
    """
    n_copies, n_each = options.data_parallel or 1, options.tensor_parallel or 1
    if looked.device_type == "cpu":
        if n_each > 1:
            raise ConfigError("--tensor-parallel needs a GPU for every part; leave it out on a CPU")
        return _cores(n_copies) if n_copies > 1 else []
    if n_copies * n_each > looked.n_devices:
        raise ConfigError(
            f"--data-parallel {n_copies} times --tensor-parallel {n_each} needs {n_copies * n_each} GPUs, "
            f"{looked.n_devices} are available; give smaller numbers"
        )
    if n_copies == 1:
        return []
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    devices = visible if visible != [""] else [str(number) for number in range(looked.n_devices)]
    return [
        {"CUDA_VISIBLE_DEVICES": ",".join(devices[start : start + n_each])}
        for start in range(0, n_copies * n_each, n_each)
    ]


def _cores(n_copies: int) -> list[dict[str, str]]:
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))
    if n_copies > len(cores):
        raise ConfigError(
            f"--data-parallel {n_copies} needs as many cores, {len(cores)} are available; give a smaller number"
        )
    return [{"VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, cores[copy::n_copies]))} for copy in range(n_copies)]
