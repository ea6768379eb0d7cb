"""Work in processes with limits: the outcome of a piece depends on that piece alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from leaderboard.verify.intake import ProcessLimits, StoppedWork, isolated
from tests.commands import REPOSITORY

pytestmark = pytest.mark.slow
_LIMITS = ProcessLimits(n_bytes=600 << 20, seconds=60)
_kept: list[np.ndarray] = []


def keep(n_megabytes: int) -> int:
    """Take memory that the process never gives back, and return how many pieces it did before."""
    _kept.append(np.ones(n_megabytes << 17))
    return len(_kept) - 1


def test_a_script_without_a_guard_is_not_run_again(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    work = "from leaderboard.verify.intake import isolated\nprint('begun')\nprint(list(isolated(abs, [-1, 2])))\n"
    script.write_text(f"{work}print(__file__)\n", encoding="utf-8")
    variables = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run([sys.executable, script], env=variables, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (f"begun\n[1, 2]\n{script}\n", "")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems keep no limit of memory")
def test_each_piece_has_the_memory_alone_and_one_that_is_too_large_by_itself_is_stopped() -> None:
    found = list(isolated(keep, [150] * 8, _LIMITS))
    assert all(isinstance(n_before, int) for n_before in found)
    assert max(n_before for n_before in found if isinstance(n_before, int)) > 0, "one process did several pieces"
    found = list(isolated(keep, [10, 700, 10], _LIMITS))
    assert found[1] == StoppedWork("checking it takes more than 600 MB of memory")
    assert [type(one) for one in found] == [int, StoppedWork, int]
