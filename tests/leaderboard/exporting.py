"""Calls ``export`` as a user does, and reads what it wrote."""

from __future__ import annotations

import json
import subprocess
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.commands import REPOSITORY, run


def export(*arguments: str | Path, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Call the command in a folder, by default one without a board."""
    return run("-W", "error", "-m", "leaderboard", "export", *arguments, cwd=folder or REPOSITORY / "site")


class Made:
    """What one call wrote about a single result as Every Eval Ever."""

    def __init__(self, out: Path, done: subprocess.CompletedProcess[str]) -> None:
        self.out, self.done = out, done
        self.paths = sorted(path for path in out.rglob("*") if path.is_file())

    @property
    def contents(self) -> dict[str, bytes]:
        return {path.relative_to(self.out).as_posix(): path.read_bytes() for path in self.paths}

    @cached_property
    def log(self) -> Any:
        (path,) = (path for path in self.paths if path.suffix == ".json")
        return json.loads(path.read_text())

    @property
    def samples(self) -> Path | None:
        found = [path for path in self.paths if path.suffix == ".jsonl"]
        return found[0] if found else None

    @cached_property
    def rows(self) -> list[Any]:
        assert self.samples is not None
        return [json.loads(line) for line in self.samples.read_text().split("\n")[:-1]]
