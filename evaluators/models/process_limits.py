"""Finds how many processor cores and how much memory this process may actually use.

A container or a batch system often restricts a process to part of a machine, by processor affinity or by limits of
control groups (cgroups, version 2). The numbers of the whole machine are then misleading: threads that outnumber the
cores wait for each other, which can make a model ten times slower.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_CGROUPS = Path("/sys/fs/cgroup")
_PROC = Path("/proc")
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


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


def usable_cores() -> tuple[int, str]:
    """Return the number of cores by affinity and by the quotas of the control groups, whichever is smaller, and why."""
    n_all = os.cpu_count() or 1
    n = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else n_all
    why = "all cores of this machine" if n >= n_all else f"its affinity allows {n} of {n_all} cores"
    for folder in _groups():
        fields = (_read(folder / "cpu.max") or "").split()
        quota, period = (_number(text) for text in fields[:2]) if len(fields) >= 2 else (None, None)
        if quota and period and (allowed := max(1, math.ceil(quota / period))) < n:
            n, why = allowed, f"the quota of its control group allows {allowed} of {n} cores"
    return n, why


def chosen_threads() -> Threads:
    """Return the number of threads to compute with: the user's choice, or one per usable core."""
    n_cores, why = usable_cores()
    for variable in _THREAD_VARIABLES:
        # OpenMP allows a list, one number per level of nesting.
        text = os.environ.get(variable, "").partition(",")[0].strip()
        if text.isdecimal() and int(text) > 0:
            return Threads(int(text), f"{variable} says so", variable, n_cores)
    return Threads(n_cores, why, None, n_cores)


def free_memory() -> int | None:
    """Return the memory in bytes that this process can still allocate; None if the system does not say."""
    lines = (_read(_PROC / "meminfo") or "").splitlines()
    free = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    if not free and "SC_AVPHYS_PAGES" in os.sysconf_names:
        free = [os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for folder in _groups():
        limit, used = _number(_read(folder / "memory.max")), _number(_read(folder / "memory.current"))
        if limit is not None and used is not None:
            # Inactive file pages are reclaimed when memory is needed.
            lines = (_read(folder / "memory.stat") or "").splitlines()
            counts = dict(line.split()[:2] for line in lines if " " in line)
            free.append(max(0, limit - used + (_number(counts.get("inactive_file")) or 0)))
    return min(free, default=None)


def _groups() -> Iterator[Path]:
    """Yield the folders of this process's control groups and of the groups that contain them."""
    for line in (_read(_PROC / "self" / "cgroup") or "").splitlines():
        if line.startswith("0::"):
            inner = Path(line.removeprefix("0::").lstrip("/"))
            # In a container, the path may be the host's, and only the mounted folder itself exists.
            yield from (_CGROUPS / part for part in (inner, *inner.parents) if ".." not in part.parts)


def _number(text: str | None) -> int | None:
    """Return a non-negative number; None for "max", -1 or no text."""
    stripped = (text or "").strip()
    return int(stripped) if stripped.isdecimal() else None


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
