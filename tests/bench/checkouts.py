"""Commands as whole processes, in this checkout and in turns with it in another one, ``BEFORE=DIR``.

``git worktree add DIR COMMIT`` makes one. CPU seconds count, since machines are shared.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.commands import REPOSITORY

CHECKOUTS = [*(Path(before).resolve() for before in filter(None, [os.environ.get("BEFORE")])), REPOSITORY]
"""This one is the last."""
ROUNDS = int(os.environ.get("ROUNDS", "3"))


class Taken(NamedTuple):
    """What a command took."""

    cpu: float
    """Seconds of CPU, of processes too that it started and waited for."""
    wall: float
    peak: float
    """Largest size in memory, in MB."""


def taken(checkout: Path, *words: object, **variables: str | Path) -> Taken:
    """Run Python in a checkout, with nothing remembered from before unless a variable says otherwise."""
    given = {"BIASBOARD_MEMORY": "off", **variables, "PYTHONPATH": checkout}
    environment = {**os.environ, **{name: str(value) for name, value in given.items()}}
    command = [sys.executable, *map(str, words)]
    with tempfile.TemporaryFile() as said:
        start = time.perf_counter()
        process = subprocess.Popen(command, cwd=checkout, env=environment, stdout=said, stderr=said)
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        assert process.returncode == 0, said.read().decode()
    return Taken(used.ru_utime + used.ru_stime, wall, used.ru_maxrss / 1000)


def compare(label: str, call: Callable[[Path], float], rounds: int = ROUNDS) -> None:
    """Time a call with each checkout in turns and report it."""
    report(label, [[call(checkout) for checkout in CHECKOUTS] for _ in range(rounds)])


def report(label: str, rounds: Sequence[Sequence[float]]) -> None:
    """Print the median seconds of each checkout, and the median and the range of the ratio of this one to the other.

    Args:
        label: What was timed.
        rounds: Seconds of each checkout, of each round.
    """
    medians = [statistics.median(each) for each in zip(*rounds, strict=True)]
    print(f"\n{label}: {' before, '.join(f'{median:.2f} s' for median in medians)}", end="")
    if len(CHECKOUTS) > 1:
        ratios = sorted(of_round[-1] / of_round[0] for of_round in rounds)
        print(f"; ratio {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})", end="")
