"""Work on the records of a finished run, timed in the checkout whose code is on the path; see ``bench_records.py``.

``python tests/bench/record_work.py RUN ROUNDS`` prints the CPU seconds of each kind of work on the records of a run,
the median of some rounds, as JSON.
"""

from __future__ import annotations

import importlib
import inspect
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any


def seconds(call: Callable[[], object], rounds: int) -> float:
    """Return the median CPU seconds of a call; the first one, which loads and compiles, does not count."""
    taken = []
    for number in range(rounds + 1):
        start = time.process_time()
        call()
        taken += [time.process_time() - start] if number else []
    return statistics.median(taken)


def verify(folder: Path) -> None:
    """Verify a result as a board does, with the values of baselines known from before, as for its other results."""
    from leaderboard.verify import verification
    from leaderboard.verify.entries import Root

    arguments: list[Any] = [folder / "result.json", Root(folder.parent, "local")]
    if "memory" in inspect.signature(verification.verified_entry).parameters:
        from biasboard.ground.memory import Memory

        arguments.append(Memory(None))
    if "keys" in inspect.signature(verification.verified_entry).parameters:
        arguments.append(_keys(folder))
    verification.verified_entry(*arguments)


@lru_cache
def _keys(folder: Path) -> Any:
    """Return a book that knows the items of a run."""
    from tests.leaderboard.made_keys import MadeKeys

    return MadeKeys(folder)


def main() -> None:
    """Time the work."""
    # As every command does first.
    importlib.import_module("biasboard.ground.command_line")
    from schemas.folders.run_folder import read_run
    from tests.record_files import read_records, write_records

    folder, rounds = Path(sys.argv[1]), int(sys.argv[2])
    rows = list(read_records(folder / "records.parquet"))
    with tempfile.TemporaryDirectory() as name:
        target = Path(name) / "records.parquet"
        work = {
            "written": lambda: write_records(target, rows),
            "read": lambda: read_run(folder),
            "verified": lambda: verify(folder),
        }
        found = {name: seconds(call, rounds) for name, call in work.items()}
    print(json.dumps({"n": len(rows), "seconds": found}))


if __name__ == "__main__":
    main()
