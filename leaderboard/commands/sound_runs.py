"""Verifies runs before they are handed to others."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from biasboard.ground.errors import DataError
from biasboard.ground.memory import machine_memory
from biasboard.ground.plain_text import printable
from biasboard.ground.progress import steps
from leaderboard.verify.keys import KeyBook
from leaderboard.verify.verdicts import judge


def ensure_sound(runs: Sequence[Path], keys: KeyBook, results: Path) -> None:
    """Verify runs, compare them with the accepted results, and say what a reader will be warned of.

    Args:
        runs: Folders of finished runs.
        keys: The answer keys of the datasets.
        results: Folder of accepted results.

    Raises:
        DataError: a run is rejected.
    """
    with steps("verifying results") as step:

        def advance(n_done: int, n: int) -> None:
            step("verifying results", n_done, n)

        verdicts = list(judge(runs, keys, machine_memory(), against=results, advance=advance))
    for verdict in verdicts:
        if verdict.reason is not None:
            raise DataError(f"{verdict.place}: would be rejected: {verdict.reason}")
        for warning in verdict.warnings:
            print(f"warning: {printable(verdict.place)}: {printable(warning, most=2_000)}", file=sys.stderr)
