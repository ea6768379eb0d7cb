"""How long commands take to start, and which libraries they load: ``make bench ARGS='-k start_up'``."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.bench.checkouts import CHECKOUTS, compare, taken
from tests.commands import REPOSITORY

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


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def bench_start_up(command: tuple[str, ...]) -> None:
    for checkout in CHECKOUTS:
        # The first time compiles.
        taken(checkout, "-m", *command)
    compare(" ".join(command), lambda checkout: taken(checkout, "-m", *command).wall, rounds=7)
    words = [sys.executable, "-X", "importtime", "-m", *command]
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    modules = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    loaded = [library for library in LIBRARIES if library in modules]
    print(f"; loads {', '.join(loaded) or 'none of the large libraries'}", end="")
