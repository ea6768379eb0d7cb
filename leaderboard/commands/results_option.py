"""The option ``--results``: accepted results in a folder, or in a dataset of the Hugging Face Hub."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from biasboard.ground.errors import ConfigError
from biasboard.ground.hub import downloaded, hub_dataset
from leaderboard.verify.board_files import results_folder
from leaderboard.verify.intake import FILES_OF_RESULTS
from schemas.folders.run_folder import REGISTER


@contextmanager
def accepted_results(given: str | None) -> Iterator[Path]:
    """Yield the folder of accepted results that a user names, or that of the board if none is named.

    Args:
        given: A folder, or a dataset of the Hub as ``hf://datasets/ORG/NAME`` with ``@REVISION`` for a branch, tag or
            commit.

    Raises:
        ConfigError: an address has another form.
        DataError: a dataset cannot be downloaded and is not in the cache.
    """
    if given is None or "://" not in given:
        yield results_folder() if given is None else Path(given)
        return
    if (dataset := hub_dataset(given)) is None:
        raise ConfigError(f"--results {given}: write hf://datasets/ORG/NAME, or hf://datasets/ORG/NAME@REVISION")
    patterns = [REGISTER, *(f"*/{name}" for name in FILES_OF_RESULTS)]
    cache = downloaded(dataset, patterns, named=f"--results {given}")
    # The cache of the Hub consists of links, which a board does not follow.
    with tempfile.TemporaryDirectory(prefix="biasboard-results-") as name:
        for source in cache.rglob("*"):
            if source.name in (REGISTER, *FILES_OF_RESULTS) and source.is_file():
                target = Path(name, source.relative_to(cache))
                target.parent.mkdir(parents=True, exist_ok=True)
                try:
                    os.link(source.resolve(), target)
                except OSError:  # On another file system.
                    shutil.copyfile(source, target)
        yield Path(name)
