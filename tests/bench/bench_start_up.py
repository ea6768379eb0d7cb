"""How long commands take to start, and which libraries they load: ``make bench ARGS='-k start_up -s'``.

With ``BEFORE=DIR``, another checkout of the repository, each command is timed there too, in turns with this one.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
COMMANDS = (
    ("biasboard", "--help"),
    ("evaluators", "--help"),
    ("evaluators", "list"),
    ("evaluators", "run", "--help"),
    ("leaderboard", "--help"),
    ("leaderboard", "build", "--help"),
    ("schemas.validate", "--help"),
    ("builders",),
)
LIBRARIES = ("numpy", "scipy", "pyarrow", "pandas", "pydantic", "jsonschema", "jinja2", "torch", "openai")
ROUNDS = 7


def seconds(folder: Path, command: tuple[str, ...]) -> float:
    """Time one whole process."""
    start = time.perf_counter()
    environment = os.environ | {"PYTHONPATH": str(folder)}
    subprocess.run([sys.executable, "-m", *command], cwd=folder, env=environment, capture_output=True, check=True)
    return time.perf_counter() - start


def loaded(command: tuple[str, ...]) -> list[str]:
    """Return the libraries that a command imports."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", *command], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    modules = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    return [library for library in LIBRARIES if library in modules]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def bench_start_up(command: tuple[str, ...]) -> None:
    before = os.environ.get("BEFORE")
    folders = [*([Path(before)] if before else []), REPOSITORY]
    taken: dict[Path, list[float]] = {folder: [] for folder in folders}
    for number in range(ROUNDS + 1):
        for folder in folders:
            measured = seconds(folder, command)
            # The first round compiles.
            taken[folder] += [measured] if number else []
    medians = [statistics.median(taken[folder]) for folder in folders]
    ratio = f", {medians[-1] / medians[0]:.2f} of it" if before else ""
    print(f"\n{' '.join(command)}: {' before, '.join(f'{median:.3f} s' for median in medians)}{ratio}; loads", end=" ")
    print(", ".join(loaded(command)) or "none of the large libraries")
