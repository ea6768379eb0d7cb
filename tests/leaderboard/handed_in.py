"""Results as their submitters write them."""

from __future__ import annotations

import datetime
import tempfile
from pathlib import Path

from leaderboard.verify.public_files import public_files
from leaderboard.verify.submissions import Statement, prepare, write_prepared

_STATEMENT = Statement("bot@example.org", "https://example.org/card", None)


def hand_in(run: Path, results: Path, *, withhold: bool = False) -> Path:
    """Write a run into a folder of results as `submit` does, and return its folder there."""
    with tempfile.TemporaryDirectory() as scratch:
        public = public_files(run, Path(scratch), withhold=withhold)
        return write_prepared(prepare(public, _STATEMENT, today=datetime.date(2026, 1, 2), version="1"), results)
