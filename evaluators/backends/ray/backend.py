"""Runs another backend on the machines of a Ray cluster.

Each worker opens the ordinary backend and answers blocks of requests. Planning, store, records and result stay in the
process that was started, and are those of a run without a cluster. The model has the identity that the other backend,
the engine, gives it. The answers are the same too, because requests are put together as the engine alone would do it. A
run can therefore begin on one machine and continue on many. The settings of the result say that it was on a cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from biasboard.ground.errors import ConfigError
from evaluators.adapters import is_adapter_set
from evaluators.backend import Backend
from evaluators.backend_options import BackendOptions
from evaluators.backends.ray.cluster import Cluster, Needs, join
from evaluators.backends.ray.fleet import RayBackend
from evaluators.backends.ray.worker import open_engine

ENGINES = {"transformers": "transformers", "vllm": "vllm", "http": "openai"}


def open_backend(model: str, options: BackendOptions) -> RayBackend:
    """Join a cluster, and open the model on a first worker.

    Args:
        model: Model as the engine takes it. A local folder must have the same path on every machine.
        options: Engine, address, number of workers, and the options of the engine.

    Raises:
        ConfigError: there is no such engine or cluster, no machine has room for a worker, or a worker refuses the model
            or an option.
        MissingExtraError: ray is not installed here, or a worker lacks the engine's library.
    """
    engine = _engine(options)
    opener = _opener(engine, model, options)
    cluster = join(options.address)
    needs = _needs(engine, options, cluster)
    room = cluster.room(needs)
    if cluster.is_local and room < (options.workers or 1):
        raise ConfigError(
            f"this machine has room for {room} workers of {needs}; give fewer --workers, smaller --worker-cpus or "
            "--worker-gpus, or the --address of a cluster"
        )
    n_workers = options.workers or (max(room, 1) if needs.gpus else 1)
    return RayBackend(cluster, opener, needs, n_workers)


def _engine(options: BackendOptions) -> str:
    if options.engine not in ENGINES:
        given = (
            "--backend ray needs --engine" if options.engine is None else f"--engine {options.engine} does not exist"
        )
        raise ConfigError(f"{given}; have: {', '.join(ENGINES)}")
    if options.batch:
        raise ConfigError("--batch leaves the work to the endpoint; take --backend openai, it needs no cluster")
    if options.lora is not None and is_adapter_set(options.lora):
        raise ConfigError(f"--lora {options.lora} is for one machine; take --backend transformers or vllm")
    if options.max_cost is not None:
        raise ConfigError("--max-cost holds within one process; take --backend openai, or leave it out")
    if options.data_parallel is not None:
        raise ConfigError("--data-parallel is for one machine; give --workers, each has a copy of the model")
    return options.engine


def _opener(engine: str, model: str, options: BackendOptions) -> Callable[[], Backend]:
    """Return what opens the engine on a worker, which may be on another machine.

    Local folders get their absolute path, and the content of the price file travels along.
    """
    on_worker = replace(
        options,
        tokenizer=None if options.tokenizer is None else _absolute(options.tokenizer),
        lora=None if options.lora is None else _absolute(options.lora),
        engine=None,
        address=None,
        workers=None,
        worker_cpus=None,
        worker_gpus=None,
    )
    prices = options.prices.read_text(encoding="utf-8") if options.prices and options.prices.is_file() else None
    return partial(open_engine, ENGINES[engine], _absolute(model) if engine != "http" else model, on_worker, prices)


def _absolute(name: str) -> str:
    folder = Path(name)
    return str(folder.resolve()) if folder.is_dir() else name


def _needs(engine: str, options: BackendOptions, cluster: Cluster) -> Needs:
    gpus = options.worker_gpus
    if gpus is None:
        on_cpu = engine == "http" or options.device == "cpu" or (cluster.is_local and not cluster.n_gpus)
        gpus = 0 if on_cpu else options.tensor_parallel or 1
    return Needs(options.worker_cpus or 1, gpus)
