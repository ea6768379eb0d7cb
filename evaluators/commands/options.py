"""Options that several commands have in common, and the choices of the command ``run``."""

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
    """The choices of the command ``run``: items, model, and how they are asked, as the command line names them."""

    datasets: tuple[Path, ...]
    backend: str
    model: str
    out: Path
    configs: tuple[str, ...]
    """Configs and suites to ask; all if empty, like the parts of suites and the splits."""
    parts: tuple[str, ...]
    splits: tuple[str, ...]
    limit: int | None
    task: str | None
    prompts: tuple[str, ...]
    normalisation: str | None
    max_failure_rate: float
    cache: Path | None
    scorers: tuple[str, ...] | None
    """Scorers of the texts; None for the default ones that are installed."""


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


def opened_scorers(given: Sequence[str] | None) -> Opened:
    """Open the scorers that a user names, or the default ones for None, and print which default ones are missing."""
    opened = open_scorers(given)
    for line in opened.missing:
        print(line)
    return opened
