"""Options that several commands share, and all options of the command ``run``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast, get_args

from biasboard.ground.errors import ConfigError
from biasboard.ground.options import Only, option
from evaluators.backend_options import MODEL_PANEL
from evaluators.runs.plan.run_options import MAX_FAILURE_RATE
from evaluators.scorer import SCORER_HELP, TextScorer, open_scorers
from schemas.documents.result import Normalisation, Signature

DATASET_HELP = "Folder of a built dataset, or one of the Hub: ORG/NAME or ORG/NAME@REVISION."
CACHE_VARIABLE = "BIASBOARD_CACHE"
_ITEMS = "Items"
_ASKING = "Asking"
_TEXTS = "Generated texts"
FILES_PANEL = "Files"
NORMALISATION_HELP = (
    f"{', '.join(get_args(Normalisation)[:-1])} or {get_args(Normalisation)[-1]}; by default that of the prompt, "
    "mostly sum. Not for generated texts."
)
MAX_FAILURES_HELP = "Share of requests that may fail; with more, the run ends without a result."


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemChoice:
    """The options that choose items and how they are asked."""

    # No option: commands other than run declare a parameter of their own for a single dataset.
    datasets: tuple[Path, ...] = ()
    configs: tuple[str, ...] = option(
        "Config or suite of the dataset; by default every suite, and every config that belongs to none. Repeatable.",
        flag="--config",
        panel=_ITEMS,
        default=(),
    )
    parts: tuple[str, ...] = option(
        "Config of a suite; by default all of the suite. Repeatable.", flag="--part", panel=_ITEMS, default=()
    )
    splits: tuple[str, ...] = option(
        "Split; by default all splits of the config. Repeatable.", flag="--split", panel=_ITEMS, default=()
    )
    limit: int | None = option(
        "Largest number of items per config, 0 for all; by default all, or what the task says. Sets such as minimal "
        "pairs are taken as a whole, and splits that only support a measurement are spared.",
        panel=_ITEMS,
        min=0,
    )
    task: str | None = option("Task, if several fit the items; see 'list'.", panel=_ITEMS)
    prompts: tuple[str, ...] = option(
        "Prompt, by default the task's first; CONFIG=PROMPT for one config or suite. Or a protocol: all its prompts. "
        "Repeatable: each config is asked with every one that its task has.",
        flag="--prompt",
        panel=_ASKING,
        default=(),
    )
    contexts: str | None = option(
        "Numbers of solved examples in the prompt, such as 0,2,8: asks with every set of that many; 8-NAME for 8 that "
        "are chosen by a rule of the task. With --prompt, those of its protocol. For tasks that show examples.",
        panel=_ASKING,
    )
    normalisation: str | None = option(NORMALISATION_HELP, panel=_ASKING)

    def words(self, signature: Signature) -> str:
        """Return the options that choose the same items again, with the config and the prompt of a signature."""
        pairs: Sequence[tuple[str, object]] = (
            ("config", signature.config),
            *(("part", part) for part in self.parts),
            *(("split", split) for split in self.splits),
            ("limit", self.limit),
            ("task", self.task),
            ("prompt", signature.prompt),
        )
        return " ".join(f"--{name} {value}" for name, value in pairs if value is not None)


OF_ITEMS = Only({"configs", "parts", "splits", "limit", "task", "prompts", "contexts"})
"""The options of :class:`ItemChoice` that choose what is asked, and not how answers are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunChoice(ItemChoice):
    """The options of the command ``run``: items, how they are asked, and the model."""

    datasets: tuple[Path, ...] = option(f"{DATASET_HELP} Repeatable.", flag="--dataset", panel=_ITEMS, default=...)
    backend: str = option("Backend that calls the model; see 'list'.", panel=MODEL_PANEL, default=...)
    model: str = option(
        "Model: a Hub id, a folder, a file of stored answers, or a baseline (or 'all' baselines).",
        panel=MODEL_PANEL,
        default=...,
    )
    out: Path = option("Folder of all runs.", panel=FILES_PANEL, default=Path("out/runs"))
    max_failure_rate: float = option(MAX_FAILURES_HELP, panel=_ASKING, default=MAX_FAILURE_RATE, min=0, max=1)
    cache: Path | None = option(
        "File of the cache that runs share: answers in it are reused.", panel=FILES_PANEL, envvar=CACHE_VARIABLE
    )
    scorers: tuple[str, ...] | None = option(SCORER_HELP, flag="--scorer", panel=_TEXTS)


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


def opened_scorers(names: Sequence[str] | None) -> tuple[TextScorer, ...]:
    """Open the named scorers, or for None the default ones, and print which of those are missing."""
    opened = open_scorers(names)
    for line in opened.missing:
        print(line)
    return opened.scorers
