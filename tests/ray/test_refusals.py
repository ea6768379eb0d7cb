"""What cannot work is refused in one line, before anything is asked."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

import pytest

from biasboard.ground.errors import ConfigError
from biasboard.ground.kinds import BACKENDS
from evaluators.backend import open_backend
from evaluators.backend_options import BackendOptions
from evaluators.backends.ray.ray_backend import ENGINES
from tests.commands import run
from tests.terminal import without_progress


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (BackendOptions(), r"needs --engine; have: transformers, vllm"),
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


def test_every_engine_is_a_backend() -> None:

    assert set(ENGINES) <= set(BACKENDS.names())


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (BackendOptions(engine="transformers", workers=3), r"room for 2 workers of 1 CPUs and 0 GPUs; give fewer"),
        (BackendOptions(engine="transformers", worker_gpus=1), r"room for 0 workers of 1 CPUs and 1 GPUs"),
        (BackendOptions(engine="transformers", max_model_len=9), r"'transformers' has no use for --max-model-len"),
        (BackendOptions(engine="transformers", device="cpu"), r"model folder './nowhere' does not exist"),
    ],
)
def test_what_the_machine_or_the_engine_refuses(options: BackendOptions, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        open_backend("ray", "./nowhere", options)


def open_in_own_process(before: str, options: str) -> subprocess.CompletedProcess[str]:
    program = (
        f"import os, sys\n{before}\n"
        "from evaluators.backend import BACKENDS, open_backend\n"
        "from evaluators.backend_options import BackendOptions\n"
        "from biasboard.ground.errors import BiasboardError\n"
        f"try: open_backend('ray', 'org/model', BackendOptions(engine='vllm', {options}))\n"
        "except BiasboardError as error: sys.exit(f'{type(error).__name__}: {error}')\n"
    )
    return run("-c", program, fresh=True)


@pytest.mark.slow
def test_no_cluster_at_the_address() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        # Bound and not listening: nobody answers, and nobody else can take the port.
        done = open_in_own_process("", f"address='{address}'")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"ConfigError: nobody answers at '{address}' (")
    assert without_progress(done.stderr).count("\n") == 1


def test_a_missing_library_names_its_extra() -> None:
    done = open_in_own_process("sys.modules['ray'] = None", "")
    assert (done.returncode, done.stdout) == (1, "")
    wanted = "MissingExtraError: 'ray' is not installed; install the extra 'ray': pip install 'biasboard[ray]'\n"
    assert without_progress(done.stderr) == wanted
