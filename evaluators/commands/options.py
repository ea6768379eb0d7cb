"""Reads options that several commands have in common."""

from __future__ import annotations

from typing import cast, get_args

from evaluators.scorer import Opened, open_scorers
from schemas.errors import ConfigError
from schemas.result import Normalisation


def normalisation_named(text: str | None) -> Normalisation | None:
    """Return the normalisation that a user names; None if none is named.

    Raises:
        ConfigError: there is no normalisation of this name.
    """
    if text is None:
        return None
    if text not in get_args(Normalisation):
        raise ConfigError(f"--normalisation {text} does not exist; have: {', '.join(get_args(Normalisation))}")
    return cast(Normalisation, text)


def opened_scorers(given: list[str] | None) -> Opened:
    """Open the scorers that a user names, or the default ones for None, and print which default ones are missing."""
    opened = open_scorers(given)
    for line in opened.missing:
        print(line)
    return opened
