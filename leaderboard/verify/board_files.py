"""Where a board is read from: the working folder if it holds one, or else what is installed of biasboard.

Accepted results may lie in another folder, or in a dataset of the Hugging Face Hub.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from biasboard.ground.errors import ConfigError
from biasboard.ground.hub import downloaded, hub_dataset

CONFIG = "mkdocs.yml"
"""Settings of the site, beside its hand-written pages."""
SITE = Path("site")
KEYS = Path("leaderboard/keys")
RESULTS = Path("leaderboard/results")

_INSTALLED = Path(__file__).parents[1]


def holds_results() -> bool:
    """Return True if the working folder has results or keys of its own; the two belong together."""
    return RESULTS.is_dir() or KEYS.is_dir()


def keys_folder() -> Path:
    """Return the folder of answer keys: that of the working folder, or the installed one."""
    return KEYS if holds_results() else _INSTALLED / KEYS.name


def results_folder() -> Path:
    """Return the folder of accepted results: that of the working folder, or the installed one."""
    return RESULTS if holds_results() else _INSTALLED / RESULTS.name


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
    # Imported here, because commands name these folders long before they read results.
    from leaderboard.verify.intake import FILES_OF_RESULTS
    from schemas.folders.run_folder import REGISTER

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


def site_folder() -> Path:
    """Return the folder of the settings and the hand-written pages: that of the working folder, or the installed one.

    A board that is built elsewhere lies in ``site/_build`` too, so that a folder ``site`` alone says nothing.
    """
    if (SITE / CONFIG).is_file():
        return SITE
    # The name in a wheel, from pyproject.toml: a package "site" would hide a module of the standard library.
    installed = _INSTALLED / "handwritten"
    # Code that runs from the repository has the folder beside it.
    return installed if installed.is_dir() else _INSTALLED.with_name(SITE.name)
