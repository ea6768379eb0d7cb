"""Runs a command on a terminal, as people do, and reads what a command says without one."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]


def on_terminal(command: Sequence[str], *, until: str | None = None, cwd: Path = REPOSITORY) -> str:
    """What a command shows on standard error until some text appears, or until it ends."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "TERM": "xterm", "COLUMNS": "120"}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs, env=environment, cwd=cwd) as run:
        os.close(theirs)
        shown = ""
        try:
            while (until is None or until not in shown) and (read := os.read(ours, 65536)):
                shown += read.decode()
        except OSError:
            pass  # The command has ended and closed the terminal.
        finally:
            if until is not None:
                run.kill()
            os.close(ours)
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)


def without_progress(said: str) -> str:
    """Standard error without the lines of progress, which a command prints only if the machine is slow."""
    return re.sub(r"^.*( so far| left| in all| \.\.\.)\n", "", said, flags=re.MULTILINE)
