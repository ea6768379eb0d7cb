"""Commands as whole processes, in this checkout and in turns with it in another one, ``BEFORE=DIR``.

``git worktree add DIR COMMIT`` makes one. CPU seconds count, since machines are shared.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
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


_MEASURED = """
import json, resource, subprocess, sys, time
start = time.perf_counter()
status = subprocess.call(sys.argv[2:])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
taken = [status, used.ru_utime + used.ru_stime, time.perf_counter() - start, used.ru_maxrss / 1000]
with open(sys.argv[1], "w") as file:
    json.dump(taken, file)
"""
"""A small program that runs a command and writes its exit status and what it took into a file.

A process inherits the largest size of the one that started it, which here has all libraries of the tests.
"""


def taken(checkout: Path, *words: object, **variables: str | Path) -> Taken:
    """Run Python in a checkout, with nothing remembered from before unless a variable says otherwise."""
    given = {"BIASBOARD_MEMORY": "off", **variables, "PYTHONPATH": checkout}
    environment = {**os.environ, **{name: str(value) for name, value in given.items()}}
    command = [sys.executable, *map(str, words)]
    with tempfile.NamedTemporaryFile("r+") as told, tempfile.TemporaryFile() as said:
        measured = [sys.executable, "-S", "-c", _MEASURED, told.name, *command]
        subprocess.run(measured, cwd=checkout, env=environment, stdout=said, stderr=said, check=True)
        status, *numbers = json.load(told)
        said.seek(0)
        assert status == 0, said.read().decode()
    return Taken(*numbers)


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
