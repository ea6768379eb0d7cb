"""Usable cores and free memory, from files such as the kernel shows to processes in containers."""

from __future__ import annotations

import os
from pathlib import Path

from evaluators.models.process_limits import chosen_threads, free_memory, usable_cores

GIB = 2**30


def written(folder: Path, files: dict[str, str]) -> tuple[Path, Path]:
    """Folders of control groups and of the process file system."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "cgroup", folder / "proc"


MEMINFO = "MemTotal: 33554432 kB\nMemFree: 1000 kB\nMemAvailable: 16777216 kB\n"
LIMITS = {
    "proc/self/cgroup": "0::/batch/job\n",
    "proc/meminfo": MEMINFO,
    "cgroup/batch/cpu.max": "50000 100000\n",
    "cgroup/batch/job/cpu.max": "max 100000\n",
    "cgroup/batch/memory.max": f"{4 * GIB}\n",
    "cgroup/batch/memory.current": f"{3 * GIB}\n",
    "cgroup/batch/memory.stat": f"anon 5\ninactive_file {GIB // 2}\n",
    "cgroup/batch/job/memory.max": "max\n",
    "cgroup/batch/job/memory.current": "1000\n",
}


def test_the_limits_of_control_groups_count(tmp_path: Path) -> None:
    cgroups, proc = written(tmp_path, LIMITS)
    n, why = usable_cores(cgroups, proc)
    assert n == 1
    assert len(os.sched_getaffinity(0)) == 1 or "quota of its control group allows 1" in why
    assert free_memory(cgroups, proc) == GIB + GIB // 2


def test_without_limits_the_machine_counts(tmp_path: Path) -> None:
    files = {"proc/self/cgroup": "0::/\n", "proc/meminfo": MEMINFO, "cgroup/cpu.max": "max 100000\n"}
    cgroups, proc = written(tmp_path, files)
    assert usable_cores(cgroups, proc)[0] == len(os.sched_getaffinity(0))
    assert free_memory(cgroups, proc) == 16 * GIB


def test_a_number_of_threads_is_chosen_by_the_user_or_by_the_cores() -> None:
    two = (2, "all cores of this machine")
    assert chosen_threads({}, two)[:3] == (2, "all cores of this machine", None)
    one = chosen_threads({"OMP_NUM_THREADS": "1,4", "MKL_NUM_THREADS": "8"}, two)
    assert (one.n, one.variable, one.is_oversubscribed) == (1, "OMP_NUM_THREADS", False)
    many = chosen_threads({"OMP_NUM_THREADS": "none", "MKL_NUM_THREADS": "8"}, two)
    assert (many.n, many.variable, many.is_oversubscribed) == (8, "MKL_NUM_THREADS", True)
