"""Results as their submitters write them."""

from __future__ import annotations

import datetime
import tempfile
from pathlib import Path

from leaderboard.verify.public_files import public_files
from leaderboard.verify.submissions import prepare, write_prepared


def hand_in(run: Path, results: Path, *, withhold: bool = False) -> Path:
    """Write a run into a folder of results as `submit` does, and return its folder there."""
    with tempfile.TemporaryDirectory() as scratch:
        public = public_files(run, Path(scratch), withhold=withhold)
        prepared = prepare(
            public,
            contact="bot@example.org",
            model_card="https://example.org/card",
            train_data_disclosure=None,
            today=datetime.date.today(),
            version="1",
        )
        return write_prepared(prepared, results)
