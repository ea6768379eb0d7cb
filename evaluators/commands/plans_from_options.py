"""Makes plans for the configs and prompts that a user chooses, from one or more datasets."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from biasboard.ground.errors import ConfigError
from biasboard.ground.progress import note
from evaluators.commands.shared_options import ItemChoice, normalisation_named, opened_scorers
from evaluators.runs.plan.plan import Plan, left_out_words, with_examples
from evaluators.runs.plan.selection import Selection, select, shape_listed
from evaluators.scorer import TextScorer
from evaluators.task import Prompt, Task, prompt_of, task_for
from schemas.documents.dataset import Manifest
from schemas.documents.result import Normalisation
from schemas.folders.dataset_folder import dataset_at, read_manifest


class _Config(NamedTuple):
    """A config or suite of a dataset, and the task that asks about its items."""

    dataset: Path
    manifest: Manifest
    name: str
    task: Task


def plans_of(choice: ItemChoice) -> list[Plan]:
    """Return a plan for each chosen config and each chosen prompt that its task has.

    Raises:
        ConfigError: an option cannot be used, or a named prompt or config fits no plan, probably by mistake.
    """
    normalisation = normalisation_named(choice.normalisation)
    chosen: list[_Config] = []
    for dataset in map(dataset_at, dict.fromkeys(choice.datasets)):
        manifest = read_manifest(dataset)
        for name in choice.configs or _whole_names(manifest, choice.parts):
            chosen.append(_Config(dataset, manifest, name, task_for(shape_listed(manifest, name), choice.task)))
    of_tasks = {name for config in chosen for name in (*config.task.prompts, *_protocols(config.task))}
    plans = [plan for config in chosen for plan in _plans_of_config(config, choice, normalisation, of_tasks)]
    used = {
        name
        for plan in plans
        for own in _names(plan, with_contexts=choice.contexts is not None)
        for name in (own, f"{plan.selection.config}={own}")
    }
    for name in choice.prompts:
        if name not in used:
            asked = ", ".join(dict.fromkeys(f"{plan.selection.config} with {plan.prompt.id}" for plan in plans))
            raise ConfigError(f"--prompt {name} is not used; the run would ask {asked}; leave it out")
    return plans


def named_prompts(task: Task, config: str, given: Sequence[str]) -> list[str]:
    """Return the prompts and protocols among values of ``--prompt`` that choose prompts for a config.

    ``CONFIG=PROMPT`` chooses a prompt for one config, which is then asked with no other.
    """
    pairs = [name.partition("=") for name in dict.fromkeys(given)]
    own = [prompt for name, equals, prompt in pairs if equals and name == config]
    return own or [name for name, equals, _ in pairs if not equals and name in {*task.prompts, *_protocols(task)}]


def prompt_groups(task: Task, contexts: str | None = None, named: Sequence[str] = ()) -> list[Sequence[Prompt]]:
    """Return the prompts that are asked together: those named, or the default ones and then those in their place.

    A prompt stands alone, unless the task shows examples: then all of its protocol in the chosen contexts are asked.

    Raises:
        ConfigError: a named prompt does not exist.
    """
    if named:
        return [_prompts(task, named, contexts)]
    names = dict.fromkeys(
        (prompt.protocol if task.examples_split is not None else None) or prompt.id
        for prompt in task.prompts.values()
        if prompt.requires != "import"
    )
    groups: list[Sequence[Prompt]] = []
    for name in names:
        # A protocol need not have prompts in every context.
        with suppress(ConfigError):
            groups.append(_prompts(task, [name], contexts))
    return groups


def _names(plan: Plan, *, with_contexts: bool) -> set[str | None]:
    """Return the values of ``--prompt`` that select this plan; with ``--contexts``, also its protocol's prompts."""
    protocol = plan.prompt.protocol
    names = {plan.prompt.id, protocol}
    if with_contexts and protocol is not None:
        names |= {other.id for other in plan.task.prompts.values() if other.protocol == protocol}
    return names


def scorers_of(plans: Sequence[Plan], names: Sequence[str] | None) -> tuple[TextScorer, ...]:
    """Open the scorers that some plans need; none if no task reads scores of texts.

    Args:
        plans: The plans.
        names: The names on the command line; None if it has none.

    Raises:
        ConfigError: there is no such scorer, or no task reads scores.
    """
    if not any(plan.task.reads_scores for plan in plans):
        if names is not None:
            tasks = ", ".join(dict.fromkeys(plan.task.name for plan in plans))
            raise ConfigError(f"--scorer: task {tasks} reads no scores of texts; leave it out")
        return ()
    return opened_scorers(names)


def _whole_names(manifest: Manifest, parts: Sequence[str]) -> Sequence[str]:
    """Return the configs and suites to ask if none is named; with ``--part``, the suites that have these parts."""
    if not parts or len(manifest.suites) == 1:
        return [suite.name for suite in manifest.suites] if parts else manifest.whole_names
    suites = [suite.name for suite in manifest.suites if {*parts} <= {*suite.configs}]
    if not suites:
        have = ", ".join(suite.name for suite in manifest.suites) or "none"
        raise ConfigError(f"no suite of dataset '{manifest.name}' has all of --part {', '.join(parts)}; suites: {have}")
    return suites


def _plans_of_config(
    config: _Config,
    choice: ItemChoice,
    normalisation: Normalisation | None,
    of_tasks: Collection[str | None],
) -> list[Plan]:
    """Return a plan for each chosen prompt that the task has, or for its default ones if none is chosen.

    ``CONFIG=PROMPT`` chooses a prompt for one config, which is then asked with no other.

    Args:
        config: The config.
        choice: The options of the user.
        normalisation: The normalisation that the user chose.
        of_tasks: Prompts and protocols of all tasks of the run.
    """
    general = [name for name in choice.prompts if "=" not in name]
    # A prompt that no task has stays, to be refused with the names of those that exist.
    unknown = [name for name in general[:1] if name not in of_tasks]
    task = config.task
    wanted = named_prompts(task, config.name, choice.prompts) or unknown
    plans: list[Plan] = []
    # Items are read once for all prompts that leave out the same splits, and hashed once for the same parts.
    selections: dict[frozenset[str], Selection] = {}
    smaller: dict[tuple[frozenset[str], str], Selection] = {}
    for prompt in _prompts(task, wanted, choice.contexts):
        without = prompt.unread_splits
        for split in choice.splits:
            if split in without:
                raise ConfigError(f"--split {split}: no measure reads it with prompt '{prompt.id}'; leave it out")
        if without not in selections:
            selections[without] = select(
                config.dataset,
                config.manifest,
                config.name,
                splits=choice.splits,
                parts=choice.parts,
                # --limit 0 asks for all items, even if the task has a default limit.
                limit=task.default_limit if choice.limit is None else choice.limit or None,
                support=task.support_splits,
                without=without,
            )
        selection, left_out = with_examples(selections[without], task, prompt)
        if left_out:
            why = left_out_words(left_out)
            if (without, why) not in smaller:
                note(f"config '{config.name}': parts left out with {_context_name(prompt)} examples: {why}")
            selection = smaller.setdefault((without, why), selection)
        plan = Plan(selection, task, prompt, normalisation)
        _ = plan.normalisation  # Raises before a model is loaded if the prompt cannot have it.
        plans.append(plan)
    return plans


def _prompts(task: Task, names: Sequence[str], contexts: str | None) -> Sequence[Prompt]:
    """Return the prompts to ask with.

    Args:
        task: The task.
        names: Prompts and protocols on the command line; empty for the default one.
        contexts: The value of ``--contexts``; None without it.
    """
    if task.examples_split is None:
        if contexts is not None:
            raise ConfigError(f"--contexts {contexts}: task '{task.name}' shows no examples; leave it out")
        return [prompt_of(task, name) for name in names] or [prompt_of(task, None)]
    wanted = tuple(map(str, task.default_contexts)) if contexts is None else tuple(map(str.strip, contexts.split(",")))
    prompts: dict[str, Prompt] = {}
    default = prompt_of(task, None)
    for name in names or [default.protocol or default.id]:
        if name in _protocols(task):
            prompts |= {prompt.id: prompt for prompt in _in_contexts(task, name, wanted)}
        elif contexts is None:
            prompts[name] = prompt_of(task, name)
        else:
            prompts |= {prompt.id: prompt for prompt in _in_contexts(task, prompt_of(task, name).protocol, wanted)}
    return list(prompts.values())


def _protocols(task: Task) -> frozenset[str | None]:
    """Return the protocols of a task whose prompts show examples; empty for other tasks."""
    is_shown = task.examples_split is not None
    return frozenset(prompt.protocol for prompt in task.prompts.values() if is_shown and prompt.protocol is not None)


def _in_contexts(task: Task, protocol: str | None, contexts: Sequence[str]) -> Iterator[Prompt]:
    """Yield the prompts of a protocol in some contexts: numbers of examples such as ``8``, ``8-RULE`` or ``8-more``."""
    of_protocol = [prompt for prompt in task.prompts.values() if prompt.protocol == protocol]
    have = dict.fromkeys(map(_context_name, of_protocol))
    for name in contexts:
        if name not in have:
            raise ConfigError(
                f"--contexts: no prompt of protocol '{protocol}' has context '{name}'; have, separated by commas: "
                f"{', '.join(have)}"
            )
    yield from (prompt for prompt in of_protocol if _context_name(prompt) in contexts)


def _context_name(prompt: Prompt) -> str:
    """Return the number of examples that a prompt shows, and the rule that chooses them, if any, or ``more``."""
    return "-".join(filter(None, (str(prompt.n_examples), prompt.example_rule, "more" if prompt.is_extra else None)))
