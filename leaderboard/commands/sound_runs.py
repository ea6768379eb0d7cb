"""Verifies runs before they are handed to others."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from biasboard.ground.errors import DataError
from biasboard.ground.memory import Memory, machine_memory
from biasboard.ground.plain_text import printable
from biasboard.ground.progress import steps
from leaderboard.verify.keys import KeyBook
from leaderboard.verify.verdicts import judge
from schemas.outputs.documents import Verdict


def judged(
    paths: Sequence[Path], keys: KeyBook, memory: Memory, results: Path, since: Path | None = None
) -> list[Verdict]:
    """Return the verdicts of :func:`leaderboard.verify.verdicts.judge`, whose progress is shown."""
    with steps("verifying results") as step:
        advance = partial(step, "verifying results")
        return list(judge(paths, keys, memory, since=since, against=results, advance=advance))


def ensure_sound(runs: Sequence[Path], keys: KeyBook, results: Path) -> list[Verdict]:
    """Verify runs, compare them with the accepted results, and say what a reader will be warned of.

    Returns:
        The verdict on each run.

    Raises:
        DataError: a run is rejected.
    """
    verdicts = judged(runs, keys, machine_memory(), results)
    for verdict in verdicts:
        if verdict.reason is not None:
            raise DataError(f"{verdict.place}: would be rejected: {verdict.reason}")
        for warning in verdict.warnings:
            print(f"warning: {printable(verdict.place)}: {printable(warning, most=2_000)}", file=sys.stderr)
    return verdicts
