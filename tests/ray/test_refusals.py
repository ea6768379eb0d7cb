"""What cannot work is refused in one line, before anything is asked."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from biasboard.ground.errors import ConfigError
from evaluators.backend import open_backend
from evaluators.backend_options import BackendOptions
from evaluators.backends.ray.cluster import _check_listening


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (BackendOptions(engine="baseline"), r"--engine baseline does not exist; have: transformers, vllm"),
        (BackendOptions(engine="vllm", data_parallel=2), r"--data-parallel .* give --workers"),
    ],
)
def test_options_that_no_cluster_has(options: BackendOptions, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        open_backend("ray", "org/model", options)


def test_adapters_of_contexts_are_for_one_machine(tmp_path: Path) -> None:
    (tmp_path / "adapters.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"--lora .* take --backend transformers or vllm"):
        open_backend("ray", "org/model", BackendOptions(engine="vllm", lora=str(tmp_path)))


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (BackendOptions(engine="transformers", workers=3), r"room for 2 workers of 1 CPUs and 0 GPUs; give fewer"),
        (BackendOptions(engine="transformers", max_model_len=9), r"'transformers' has no use for --max-model-len"),
    ],
)
def test_what_the_machine_or_the_engine_refuses(options: BackendOptions, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        open_backend("ray", "./nowhere", options)


@pytest.mark.slow
def test_no_cluster_at_the_address() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        # Bound and not listening: nobody answers, and nobody else can take the port.
        with pytest.raises(ConfigError, match=f"nobody answers at '{address}'"):
            _check_listening(address, *free.getsockname())
