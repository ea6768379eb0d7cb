"""A run on a cluster is the run without one, to the last bit; what cannot work is refused in one line."""

from __future__ import annotations

import socket
from functools import partial
from pathlib import Path

import pytest

from biasboard.ground.errors import ConfigError
from evaluators.backend import BlockLimits, ChoiceRequest, Request, open_backend, plan_blocks
from evaluators.backend_options import BackendOptions
from evaluators.backends.ray.cluster import Cluster, Needs, _check_listening
from schemas.folders.run_folder import read_run
from tests.commands import output_of, run
from tests.evaluators.asking import all_answers_of, answers_of
from tests.evaluators.made_data import save_tiny_llama
from tests.ray.engines import Scripted, opened
from tests.terminal import without_progress


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_what_is_missing_of_a_block_is_answered_as_in_the_whole(tmp_path: Path) -> None:
    requests = [ChoiceRequest(prompt=f"room {n}", options=(" a", " b"), outcomes=()) for n in range(60)]
    whole = all_answers_of(Scripted(tmp_path), requests)
    missing = frozenset(range(0, 60, 7))
    with opened(partial(Scripted, tmp_path), n_workers=1) as backend:
        part = answers_of(backend, requests, missing)
    assert part == [answer if place in missing else None for place, answer in enumerate(whole)]


run_on_one_thread = partial(output_of, "-m", "evaluators", "run", fresh=True, OMP_NUM_THREADS="1")


@pytest.mark.slow
def test_the_command_line_gives_the_records_of_a_local_run(dataset: Path, tmp_path: Path) -> None:
    llama = save_tiny_llama(tmp_path / "tiny-llama")
    common = ("--dataset", dataset, "--model", llama, "--limit", "30", "--device", "cpu")
    run_on_one_thread(*common, "--out", tmp_path / "alone", "--backend", "transformers")
    ray = ("--backend", "ray", "--engine", "transformers", "--workers", "1")
    said = run_on_one_thread(*common, "--out", tmp_path / "together", *ray)
    assert "ray" not in said.replace(str(tmp_path), "").lower()
    (alone,) = (tmp_path / "alone").rglob("result.json")
    (together,) = (tmp_path / "together").rglob("result.json")
    one, other = read_run(alone.parent).result, read_run(together.parent).result
    assert other.records == one.records
    # The command that gives the same without a cluster.
    assert other.command == one.command


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_a_worker_elsewhere_says_where_it_is() -> None:
    import ray

    # Of the cluster that this process has started, and another one joins.
    address = ray.get_runtime_context().gcs_address
    program = (
        "import sys\n"
        "from evaluators.backend import open_backend\n"
        "from evaluators.backend_options import BackendOptions\n"
        "from biasboard.ground.errors import ConfigError\n"
        f"options = BackendOptions(engine='transformers', address='{address}', device='cpu')\n"
        "try: open_backend('ray', './nowhere', options)\n"
        "except ConfigError as error: sys.exit(str(error))\n"
    )
    done = run("-c", program, fresh=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("worker on ")
    assert "model folder './nowhere' does not exist" in done.stderr
    assert without_progress(done.stderr).count("\n") == 1


def test_blocks_hold_every_request_once_and_are_planned_alike_alone() -> None:
    requests: list[Request] = [
        ChoiceRequest(prompt="x" * (n * 7 % 40), options=tuple(" abcd"[: n % 4 + 1]), outcomes=()) for n in range(200)
    ]
    limits = BlockLimits(n_texts=20, n_characters=500)
    blocks = plan_blocks(requests, limits)
    assert sorted(place for block in blocks for place in block) == list(range(200))
    for block in blocks:
        asked = [request for place in block if isinstance(request := requests[place], ChoiceRequest)]
        assert plan_blocks(asked, limits) == [list(range(len(block)))]
        assert sum(len(request.options) for request in asked) <= 20
        assert sum(len(request.options) * len(request.prompt) for request in asked) <= 500


@pytest.mark.slow
def test_the_cluster_counts_what_it_holds_and_refuses_more_or_an_address_without_one(cluster: Cluster) -> None:
    assert cluster.is_local
    assert cluster.n_gpus == 0
    assert [cluster.capacity(needs) for needs in (Needs(1, 0), Needs(2, 0), Needs(3, 0), Needs(1, 1))] == [2, 1, 0, 0]
    for options, message in (
        (BackendOptions(engine="transformers", workers=3), r"room for 2 workers of 1 CPUs and 0 GPUs; give fewer"),
        (BackendOptions(engine="transformers", max_model_len=9), r"'transformers' has no use for --max-model-len"),
    ):
        with pytest.raises(ConfigError, match=message):
            open_backend("ray", "./nowhere", options)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        # Bound and not listening: nobody answers, and nobody else can take the port.
        with pytest.raises(ConfigError, match=f"nobody answers at '{address}'"):
            _check_listening(address, *free.getsockname())


def test_options_that_no_cluster_has(tmp_path: Path) -> None:
    (tmp_path / "adapters.json").write_text("{}", encoding="utf-8")
    for options, message in (
        (BackendOptions(engine="baseline"), r"--engine baseline does not exist; have: transformers, vllm"),
        (BackendOptions(engine="vllm", data_parallel=2), r"--data-parallel .* give --workers"),
        (BackendOptions(engine="vllm", lora=str(tmp_path)), r"--lora .* take --backend transformers or vllm"),
    ):
        with pytest.raises(ConfigError, match=message):
            open_backend("ray", "org/model", options)
