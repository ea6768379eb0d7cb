"""The command line of evaluators: in the process of the tests, or in one of its own that is waited for."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from typer.testing import CliRunner, Result

from evaluators.__main__ import app
from tests.commands import Command


def evaluators(*arguments: object, env: Mapping[str, str | None] | None = None) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)], env=env)


def wait_for_answers(out: Path, command: Command, *, at_least: int) -> int:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        assert command.poll() is None, f"ended before it could be killed: {command.stderr}"
        for path in out.rglob("responses.sqlite"):
            try:
                with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
                    (n,) = connection.execute("SELECT COUNT(*) FROM responses").fetchone()
            except sqlite3.OperationalError:
                continue  # Its tables are not there yet.
            if n >= at_least:
                return int(n)
        time.sleep(0.002)
    raise AssertionError("no answers within two minutes")
