"""Where a board is read from: the working folder if it holds one, or else what is installed of biasboard."""

from __future__ import annotations

from pathlib import Path

CONFIG = "mkdocs.yml"
"""Settings of the site, beside its hand-written pages."""
SITE = Path("site")
KEYS = Path("leaderboard/keys")
RESULTS = Path("leaderboard/results")

_INSTALLED = Path(__file__).parents[1]
# The name of site/ in a wheel, from pyproject.toml: a package "site" would hide a module of the standard library.
_INSTALLED_SITE = _INSTALLED / "handwritten"


def holds_results() -> bool:
    """Return True if the working folder has results or keys of its own; the two belong together."""
    return RESULTS.is_dir() or KEYS.is_dir()


def keys_folder() -> Path:
    """Return the folder of answer keys: that of the working folder, or the installed one."""
    return KEYS if holds_results() else _INSTALLED / KEYS.name


def results_folder() -> Path:
    """Return the folder of accepted results: that of the working folder, or the installed one."""
    return RESULTS if holds_results() else _INSTALLED / RESULTS.name


def site_folder() -> Path:
    """Return the folder of the settings and the hand-written pages: that of the working folder, or the installed one.

    A board that is built elsewhere lies in ``site/_build`` too, so that a folder ``site`` alone says nothing.
    """
    if (SITE / CONFIG).is_file():
        return SITE
    # Code that runs from the repository has the folder beside it.
    return _INSTALLED_SITE if _INSTALLED_SITE.is_dir() else _INSTALLED.with_name(SITE.name)
