"""Plans what a command line chooses: the configs and prompts of one or more datasets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from evaluators.commands.options import ItemChoice, normalisation_named, opened_scorers
from evaluators.runs.plan import Plan
from evaluators.runs.selection import Selection, select, shape_listed
from evaluators.scorer import TextScorer
from evaluators.task import ReadsScores, ShowsExamples, Task, prompt_of, task_for
from schemas.dataset import Manifest
from schemas.dataset_folder import read_manifest
from schemas.errors import ConfigError
from schemas.result import Normalisation


def plans_of(choice: ItemChoice) -> list[Plan]:
    """Return a plan for each config and each prompt that its task has.

    Raises:
        ConfigError: an option cannot be used, or a prompt or a config would be used by nothing, which is probably a
            mistake.
    """
    normalisation = normalisation_named(choice.normalisation)
    plans = []
    for dataset in dict.fromkeys(choice.datasets):
        manifest = read_manifest(dataset)
        for name in choice.configs or _whole_names(manifest, choice.parts):
            task = task_for(shape_listed(manifest, name), choice.task)
            selection = select(
                dataset,
                manifest,
                name,
                splits=choice.splits,
                parts=choice.parts,
                limit=choice.limit,
                support=task.support_splits if isinstance(task, ShowsExamples) else frozenset(),
            )
            plans += _plans_of_config(selection, task, choice, normalisation)
    used = {name for plan in plans for name in (plan.prompt.id, f"{plan.selection.config}={plan.prompt.id}")}
    for name in choice.prompts:
        if name not in used:
            asked = ", ".join(dict.fromkeys(f"{plan.selection.config} with {plan.prompt.id}" for plan in plans))
            raise ConfigError(f"--prompt {name} is not used; the run would ask {asked}; leave it out")
    return plans


class WantedScorers(NamedTuple):
    """The scorers of texts that a command names, or the default ones."""

    scorers: tuple[TextScorer, ...]
    given: tuple[str, ...]
    """Names of the scorers on the command line."""


def scorers_of(plans: Sequence[Plan], given: Sequence[str] | None) -> WantedScorers:
    """Open the scorers that some plans need; none if no task reads scores of texts.

    Args:
        plans: The plans.
        given: The names on the command line; None if it names none.

    Raises:
        ConfigError: there is no such scorer, or no task reads scores.
    """
    if not any(isinstance(plan.task, ReadsScores) for plan in plans):
        if given is not None:
            names = ", ".join(dict.fromkeys(plan.task.name for plan in plans))
            raise ConfigError(f"--scorer: task {names} reads no scores of texts; leave it out")
        return WantedScorers((), ())
    return WantedScorers(opened_scorers(given).scorers, tuple(given or ()))


def _whole_names(manifest: Manifest, parts: Sequence[str]) -> Sequence[str]:
    """Return the configs and suites that are asked if none is named; with parts, the suites that have them."""
    if not parts or len(manifest.suites) == 1:
        return [suite.name for suite in manifest.suites] if parts else manifest.whole_names
    found = [suite.name for suite in manifest.suites if {*parts} <= {*suite.configs}]
    if not found:
        have = ", ".join(suite.name for suite in manifest.suites) or "none"
        raise ConfigError(f"no suite of dataset '{manifest.name}' has all of --part {', '.join(parts)}; suites: {have}")
    return found


def _plans_of_config(
    selection: Selection, task: Task, choice: ItemChoice, normalisation: Normalisation | None
) -> list[Plan]:
    """Return a plan for each given prompt that the task has, or for its first prompt if none is given.

    A prompt given as ``CONFIG=PROMPT`` is for one config, which is then asked with no other.
    """
    given = list(dict.fromkeys(choice.prompts))
    own = [name.partition("=")[2] for name in given if name.partition("=")[0] == selection.config and "=" in name]
    general = [name for name in given if "=" not in name]
    # Where the task has none of them, the first one is refused with the names of those that exist.
    wanted: Sequence[str | None] = own or [name for name in general if name in task.prompts] or general[:1] or [None]
    plans = [Plan(selection, task, prompt_of(task, name), normalisation) for name in wanted]
    for plan in plans:
        _ = plan.normalisation  # Raises if the prompt cannot have it, before a model is loaded.
    return plans
