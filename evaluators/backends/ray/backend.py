"""Runs another backend on the machines of a Ray cluster.

Each worker opens the ordinary backend and answers blocks of requests. Planning, store, records and result stay in the
process that was started, and are those of a run without a cluster. The model has the identity that the other backend,
the engine, gives it. The answers are the same too, because requests are put together as the engine alone would do it. A
run can therefore begin on one machine and continue on many. The settings of the result say that it was on a cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from biasboard.ground.errors import ConfigError
from evaluators.adapters import is_adapter_set
from evaluators.backend import Backend, Capability, Events, Request, Runtime, TokenCount
from evaluators.backend_options import BackendOptions
from evaluators.backends.ray.cluster import Cluster, Needs, join
from evaluators.backends.ray.fleet import Fleet
from evaluators.backends.ray.worker import EngineOpener
from schemas.documents.result import Model

ENGINES = {"transformers": "transformers", "vllm": "vllm", "http": "openai"}


@dataclass(frozen=True)
class RayBackend(Backend):
    """The model that the workers of a cluster have opened."""

    fleet: Fleet

    @property
    def model(self) -> Model:
        """The engine's own model, because requests are asked as the engine alone would ask them."""
        return self.fleet.opened.model

    @property
    def runtime(self) -> Runtime:
        """The device, versions and settings of the worker that answered last."""
        return self.fleet.runtime

    @property
    def arguments(self) -> Sequence[str]:
        """The options that open the same model again without a cluster."""
        return self.fleet.opened.arguments

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The capabilities of the engine."""
        return self.fleet.opened.capabilities

    @property
    def reads_facts(self) -> bool:
        """True if the engine reads the facts of requests."""
        return self.fleet.opened.reads_facts

    def ask(self, requests: Sequence[Request], missing: frozenset[int]) -> Events:
        """Answer the missing requests; see ``Backend.ask``."""
        return self.fleet.ask(requests, missing)

    def count_tokens(self, requests: Sequence[Request]) -> TokenCount | None:
        """Count the tokens that all requests would take; return None if the engine cannot tell."""
        return self.fleet.count_tokens(requests)

    def close(self) -> None:
        """Stop the workers."""
        self.fleet.close()


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
    return RayBackend(Fleet(cluster, opener, needs, n_workers))


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


def _opener(engine: str, model: str, options: BackendOptions) -> EngineOpener:
    """Return what opens the engine on a worker, which may be on another machine.

    Local folders get their absolute path, and the content of the price file travels along.
    """
    prices = options.prices.read_text(encoding="utf-8") if options.prices and options.prices.is_file() else None
    return EngineOpener(
        backend=ENGINES[engine],
        model=_absolute(model) if engine != "http" else model,
        options=replace(
            options,
            tokenizer=None if options.tokenizer is None else _absolute(options.tokenizer),
            lora=None if options.lora is None else _absolute(options.lora),
            engine=None,
            address=None,
            workers=None,
            worker_cpus=None,
            worker_gpus=None,
        ),
        prices=prices,
    )


def _absolute(name: str) -> str:
    folder = Path(name)
    return str(folder.resolve()) if folder.is_dir() else name


def _needs(engine: str, options: BackendOptions, cluster: Cluster) -> Needs:
    gpus = options.worker_gpus
    if gpus is None:
        on_cpu = engine == "http" or options.device == "cpu" or (cluster.is_local and not cluster.n_gpus)
        gpus = 0 if on_cpu else options.tensor_parallel or 1
    return Needs(options.worker_cpus or 1, gpus)
