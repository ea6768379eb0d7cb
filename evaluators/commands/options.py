"""Options that several commands have in common, and the choices of the command ``run``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast, get_args

import typer

from biasboard.ground.errors import ConfigError
from evaluators.scorer import Opened, open_scorers
from schemas.documents.result import Normalisation

CACHE_VARIABLE = "BIASBOARD_CACHE"
CONFIG_HELP = (
    "Config or suite of the dataset; by default every suite, and every config that belongs to none. Repeatable."
)
LIMIT = typer.Option(
    min=0,
    help="Largest number of items per config, 0 for all; by default all, or what the task says. Sets such as minimal "
    "pairs are taken as a whole, and splits that only support a measurement are spared.",
)
CONTEXTS = typer.Option(
    help="Numbers of solved examples in the prompt, such as 0,2,8: asks with every set of that many; 8-NAME for 8 that "
    "are chosen by a rule of the task. With --prompt, those of its protocol. For tasks that show examples."
)
PROMPT = typer.Option(
    help="Prompt, by default the task's first; CONFIG=PROMPT for one config or suite. Or a protocol: all its prompts. "
    "Repeatable: each config is asked with every one that its task has."
)
PART_HELP = "Config of a suite; by default all of the suite. Repeatable."
SPLIT_HELP = "Split; by default all splits of the config. Repeatable."
TASK_HELP = "Task, if several fit the items; see 'list'."
NORMALISATION = typer.Option(
    help=f"{', '.join(get_args(Normalisation)[:-1])} or {get_args(Normalisation)[-1]}; by default that of the prompt, "
    "mostly sum. Not for generated texts."
)
MAX_FAILURES = typer.Option(
    min=0, max=1, help="Share of requests that may fail; with more, the run ends without a result."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemChoice:
    """The choice of items and of how they are asked, as the command line names them."""

    datasets: tuple[Path, ...]
    configs: tuple[str, ...]
    """Configs and suites to ask; all if empty, like the parts of suites and the splits."""
    parts: tuple[str, ...]
    splits: tuple[str, ...]
    limit: int | None
    """Largest number of items of each config; 0 for all, None for what the task says."""
    task: str | None
    prompts: tuple[str, ...]
    """Prompts and protocols; the task's default if empty."""
    contexts: str | None = None
    """Numbers of solved examples, separated by commas; None for those of the prompts, or for the task's default."""
    normalisation: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunChoice(ItemChoice):
    """The choices of the command ``run``: items, how they are asked, and the model."""

    backend: str
    model: str
    out: Path
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
