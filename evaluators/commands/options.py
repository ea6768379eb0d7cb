"""Options that several commands have in common, and the choice that the command ``run`` makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast, get_args

from evaluators.scorer import Opened, open_scorers
from schemas.errors import ConfigError
from schemas.result import Normalisation

CACHE_VARIABLE = "BIASBOARD_CACHE"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunChoice:
    """The items of a dataset, the model that is asked, and how, as a command line names them."""

    dataset: Path
    backend: str
    model: str
    out: Path
    configs: tuple[str, ...]
    """All configs if empty, like the splits."""
    splits: tuple[str, ...]
    limit: int | None
    task: str | None
    prompts: tuple[str, ...]
    normalisation: str | None
    max_failure_rate: float
    cache: Path | None
    scorers: tuple[str, ...] | None
    """None for the default ones that are installed."""


def normalisation_named(text: str | None) -> Normalisation | None:
    """Return the normalisation that a user names.

    Raises:
        ConfigError: there is none of this name.
    """
    if text is None:
        return None
    if text not in get_args(Normalisation):
        raise ConfigError(f"--normalisation {text} does not exist; have: {', '.join(get_args(Normalisation))}")
    return cast(Normalisation, text)


def opened_scorers(given: Sequence[str] | None) -> Opened:
    """Find the scorers that a user names, the default ones for None, and print which of those are missing."""
    opened = open_scorers(given)
    for line in opened.missing:
        print(line)
    return opened
