"""Usable cores and free memory, from files such as the kernel shows to processes in containers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evaluators.models import model_files
from evaluators.models.model_files import chosen_threads, free_memory, usable_cores

GIB = 2**30


def write(folder: Path, files: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the folders of control groups and of the process file system read from here."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(model_files, "_CGROUPS", folder / "cgroup")
    monkeypatch.setattr(model_files, "_PROC", folder / "proc")


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


def test_the_limits_of_control_groups_count_and_else_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "limited", LIMITS, monkeypatch)
    n, why = usable_cores()
    assert n == 1
    assert len(os.sched_getaffinity(0)) == 1 or "quota of its control group allows 1" in why
    assert free_memory() == GIB + GIB // 2
    files = {"proc/self/cgroup": "0::/\n", "proc/meminfo": MEMINFO, "cgroup/cpu.max": "max 100000\n"}
    write(tmp_path / "free", files, monkeypatch)
    assert usable_cores()[0] == len(os.sched_getaffinity(0))
    assert free_memory() == 16 * GIB


def test_a_number_of_threads_is_chosen_by_the_user_or_by_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_files, "usable_cores", lambda: (2, "all cores of this machine"))
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    assert chosen_threads()[:3] == (2, "all cores of this machine", None)
    monkeypatch.setenv("OMP_NUM_THREADS", "1,4")
    monkeypatch.setenv("MKL_NUM_THREADS", "8")
    one = chosen_threads()
    assert (one.n, one.variable, one.is_oversubscribed) == (1, "OMP_NUM_THREADS", False)
    monkeypatch.setenv("OMP_NUM_THREADS", "none")
    many = chosen_threads()
    assert (many.n, many.variable, many.is_oversubscribed) == (8, "MKL_NUM_THREADS", True)
