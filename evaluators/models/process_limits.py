"""Finds how many processor cores and how much memory this process may actually use.

A container or a batch system often restricts a process to part of a machine, by processor affinity or by limits of
control groups (cgroups, version 1 or 2). The numbers of the whole machine are then misleading: threads that outnumber
the cores wait for each other, which can make a model ten times slower.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

_CGROUPS = Path("/sys/fs/cgroup")
_PROC = Path("/proc")
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


class Cores(NamedTuple):
    """The processor cores that this process may use."""

    n: int
    why: str


class Threads(NamedTuple):
    """The number of threads that compute a model on the CPU."""

    n: int
    why: str
    variable: str | None
    """Environment variable by which the user chose the number; None if none did."""
    n_cores: int

    @property
    def is_oversubscribed(self) -> bool:
        """True if there are more threads than cores to run them."""
        return self.n > self.n_cores


def usable_cores(cgroups: Path = _CGROUPS, proc: Path = _PROC) -> Cores:
    """Return the number of cores by affinity and by the quotas of the control groups, whichever is smaller."""
    n_all = os.cpu_count() or 1
    n = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else n_all
    why = "all cores of this machine" if n >= n_all else f"its affinity allows {n} of {n_all} cores"
    quotas = [math.ceil(quota) for folder in _groups("cpu", cgroups, proc) if (quota := _quota(folder)) is not None]
    quota = max(1, min(quotas, default=n))
    return Cores(quota, f"the quota of its control group allows {quota} of {n} cores") if quota < n else Cores(n, why)


def chosen_threads(environment: Mapping[str, str] | None = None, cores: Cores | None = None) -> Threads:
    """Return the number of threads to compute with: the user's choice, or one per usable core.

    Args:
        environment: Environment variables; None for those of this process.
        cores: Usable cores; None to determine them.
    """
    variables = os.environ if environment is None else environment
    usable = usable_cores() if cores is None else cores
    for variable in _THREAD_VARIABLES:
        # OpenMP allows a list, one number per level of nesting.
        text = variables.get(variable, "").partition(",")[0].strip()
        if text.isdecimal() and int(text) > 0:
            return Threads(int(text), f"{variable} says so", variable, usable.n)
    return Threads(usable.n, usable.why, None, usable.n)


def free_memory(cgroups: Path = _CGROUPS, proc: Path = _PROC) -> int | None:
    """Return the memory in bytes that this process can still allocate; None if the system does not say."""
    lines = (_read(proc / "meminfo") or "").splitlines()
    free = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    if not free and "SC_AVPHYS_PAGES" in os.sysconf_names:
        free = [os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    free += [n_bytes for folder in _groups("memory", cgroups, proc) if (n_bytes := _free_bytes_of(folder)) is not None]
    return min(free, default=None)


def _groups(controller: str, cgroups: Path, proc: Path) -> Iterator[Path]:
    """Yield the folders of this process's control groups and of the groups that contain them."""
    for line in (_read(proc / "self" / "cgroup") or "").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            mounts = [cgroups, cgroups / "unified"]
        elif controller in controllers.split(","):
            mounts = [cgroups / controllers, cgroups / controller]
        else:
            continue
        inner = Path(path.lstrip("/"))
        # In a container, the path may be the host's, and only the mounted folder itself exists.
        yield from (mount / part for mount in mounts for part in (inner, *inner.parents) if ".." not in part.parts)


def _quota(folder: Path) -> float | None:
    """Return how many cores a control group may use; None without a limit."""
    fields = (_read(folder / "cpu.max") or "").split()
    if not fields:
        fields = [_read(folder / f"cpu.cfs_{name}_us") or "" for name in ("quota", "period")]
    quota, period = (_number(text) for text in fields[:2]) if len(fields) >= 2 else (None, None)
    return quota / period if quota and period else None


def _free_bytes_of(folder: Path) -> int | None:
    """Return the memory in bytes that a control group can still allocate; None without a limit."""
    limit, used = _number(_read(folder / "memory.max")), _number(_read(folder / "memory.current"))
    if limit is None or used is None:
        limit = _number(_read(folder / "memory.limit_in_bytes"))
        used = _number(_read(folder / "memory.usage_in_bytes"))
    if limit is None or used is None:
        return None
    # Inactive file pages are reclaimed when memory is needed.
    counts = dict(line.split()[:2] for line in (_read(folder / "memory.stat") or "").splitlines() if " " in line)
    reclaimable = _number(counts.get("total_inactive_file", counts.get("inactive_file"))) or 0
    return max(0, limit - used + reclaimable)


def _number(text: str | None) -> int | None:
    """Return a non-negative number; None for "max", -1 or no text."""
    stripped = (text or "").strip()
    return int(stripped) if stripped.isdecimal() else None


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
