"""Results as their submitters write them."""

from __future__ import annotations

import tempfile
from pathlib import Path

from leaderboard.verify.submissions import prepare, public_files, statement, write_submission


def hand_in(run: Path, results: Path, *, withhold: bool = False) -> Path:
    """Write a run into a folder of results as `submit` does, and return its folder there."""
    with tempfile.TemporaryDirectory() as scratch:
        public = public_files(run, Path(scratch), withhold=withhold)
        stated = statement(contact="bot@example.org", model_card="https://example.org/card")
        return write_submission(public, prepare(public, stated), results)
