"""Joins a Ray cluster, starts and stops its workers, and receives their messages. All use of Ray is in this file."""

from __future__ import annotations

import logging
import os
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from biasboard.ground.errors import ConfigError, RunError, import_extra
from biasboard.ground.plain_text import one_line
from evaluators.backends.ray.worker import Message, Worker

# Defaults; variables that the user has set take precedence. The regular expression skips every line, because Ray prints
# a paragraph for each process that dies, which the driver reports in one line.
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_SCHEDULER_EVENTS": "0",
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",
}
_HOST_AND_PORT = re.compile(r"(?:ray://)?(?P<host>[^/:]+|\[[^]]+]):(?P<port>\d{1,5})")


class Needs(NamedTuple):
    """The CPUs and GPUs that one worker needs."""

    cpus: float
    gpus: float

    def __str__(self) -> str:
        return f"{self.cpus:g} CPUs and {self.gpus:g} GPUs"


class LostError(RunError):
    """The end of a call whose worker is gone."""


@dataclass(frozen=True)
class Cluster:
    """A cluster that this process has joined. Its workers and their calls are handles of Ray."""

    _ray: Any
    is_local: bool
    """True if the cluster was started on this machine for this process."""

    @property
    def n_gpus(self) -> int:
        """The number of GPUs on all machines of the cluster."""
        return int(self._ray.cluster_resources().get("GPU", 0))

    def capacity(self, needs: Needs) -> int:
        """Return the number of workers that the machines could hold if they were idle."""
        machines = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        amounts = [("CPU", needs.cpus), ("GPU", needs.gpus)]
        return sum(
            int(min(machine.get(kind, 0) // amount for kind, amount in amounts if amount > 0)) for machine in machines
        )

    def start(self, needs: Needs) -> Any:
        """Start a worker, which may have to wait for a machine."""
        # No restarts: a restarted actor would not have opened the model. The backend replaces lost workers, perhaps on
        # another machine.
        actor = self._ray.remote(Worker).options(num_cpus=needs.cpus, num_gpus=needs.gpus, max_restarts=0)
        return actor.remote()

    def stop(self, worker: Any) -> None:
        """End a worker's process, whatever it is doing."""
        self._ray.kill(worker)

    def call(self, worker: Any, method: str, *arguments: object) -> Any:
        """Call a method of :class:`Worker`, which runs after earlier calls have ended and answers with messages."""
        return getattr(worker, method).options(num_returns="streaming").remote(*arguments)

    def wait(self, calls: Sequence[Any], seconds: float) -> list[Any]:
        """Wait at most ``seconds``, and return the calls that have a message or have ended."""
        # fetch_local=False: messages stay on the worker's machine until they are read.
        ready, _ = self._ray.wait(list(calls), timeout=seconds, fetch_local=False)
        return [call for call in calls if call in ready]

    def next(self, call: Any) -> Message | None:
        """Wait for the next message of a call and return it, a ``LostError`` among them; None after the last one."""
        try:
            return cast(Message, self._ray.get(next(call)))
        except StopIteration:
            return None
        except self._ray.exceptions.RayError as error:
            return LostError(f"a worker was lost: {_reason(self._ray.exceptions, error)}")


def join(address: str | None, *, n_cpus: int | None = None) -> Cluster:
    """Join the cluster at an address or, without one, start a local cluster, which ends with the process.

    Args:
        address: ``HOST:PORT``, or ``auto`` on a machine of the cluster.
        n_cpus: Number of CPUs of a local cluster; None for all CPUs of this machine.

    Raises:
        ConfigError: no cluster can be joined, for example because it runs other versions.
        MissingExtraError: ray is not installed.
    """
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    ray = import_extra("ray", "ray")
    if ray.is_initialized():
        return Cluster(ray, is_local=address is None)
    if address is not None and (match := _HOST_AND_PORT.fullmatch(address)):
        _check_listening(address, match["host"].strip("[]"), int(match["port"]))
    where: Mapping[str, Any] = {"address": address}
    if address is None:
        where = {"address": "local", "include_dashboard": False, "num_cpus": n_cpus}
    try:
        ray.init(**where, log_to_driver=False, logging_level=logging.ERROR)
    # Ray raises ConnectionError, RuntimeError, ValueError and exceptions of its own.
    except Exception as error:
        raise ConfigError(
            f"no Ray cluster could be joined at '{address or 'local'}': {one_line(error)}; check "
            "the address, and that this machine and the cluster run the same versions of Ray and Python"
        ) from error
    return Cluster(ray, is_local=address is None)


def _check_listening(address: str, host: str, port: int) -> None:
    """Check that something listens at an address, because Ray itself would retry for minutes."""
    try:
        socket.create_connection((host, port), timeout=10).close()
    except OSError as error:
        raise ConfigError(
            f"nobody answers at '{address}' ({error}); give the address that 'ray start --head' printed, or leave out "
            "--address for a cluster of this machine alone"
        ) from error


def _reason(exceptions: Any, error: Exception) -> str:
    """Return why a worker was lost.

    Ray's own messages hold addresses and process ids, which would end up in records.
    """
    if isinstance(error, exceptions.OutOfMemoryError):
        return "its machine ran out of memory"
    if isinstance(error, exceptions.NodeDiedError | exceptions.ActorUnavailableError):
        return "its machine went away"
    if isinstance(error, exceptions.RayActorError | exceptions.WorkerCrashedError):
        return "its process died"
    return f"{type(error).__name__} of Ray"
