"""The command ``python -m evaluators list``: prints the plug-ins of each kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from biasboard.ground.command_line import one_line_errors
from biasboard.ground.errors import ConfigError
from biasboard.ground.plain_text import listed
from evaluators.kinds import BACKENDS, BENCHMARKS, SCORERS, TASKS, harness_names
from schemas.printed import with_format

if TYPE_CHECKING:
    from evaluators.task import Task

# What else a kind needs is imported in its functions, so that the names of all kinds are printed at once.
_MOST_NAMES = 4


class _Kind(NamedTuple):
    """A kind of plug-ins, or of what they define."""

    owners: Callable[[], tuple[str, ...]]
    """Function that returns the names of all plug-ins of the kind, or of the tasks that define such things."""
    brief: Callable[[str], Iterable[str]]
    """Function that yields the lines about one of them if all are listed."""
    whole: Callable[[str], Iterable[str]]
    """Function that yields the lines about one of them if the user names it."""
    of_tasks: bool = False
    """True if the names are those of tasks."""


@one_line_errors()
@with_format()
def list_command(
    kind: Annotated[
        str | None,
        typer.Argument(help="benchmarks, backends, scorers, harnesses, tasks, prompts or metrics; all if left out."),
    ] = None,
    name: Annotated[
        str | None, typer.Argument(help="One of them; for prompts and metrics, the task that has them.")
    ] = None,
) -> None:
    """List benchmarks with their baselines, backends, scorers, harnesses, tasks, prompts and metrics.

    Without a kind, it prints their names; of a kind, a line about each; with a name, all about that one.
    """
    if kind is None:
        for line in _overview():
            print(line)
        return
    if kind not in _KINDS:
        raise ConfigError(f"'{kind}' is nothing to list; have: {', '.join(_KINDS)}")
    owners, brief, whole, of_tasks = _KINDS[kind]
    if name is not None and name not in owners():
        what = "task" if of_tasks else "plug-in of this kind"
        raise ConfigError(f"list {kind} {name}: there is no such {what}; have: {', '.join(owners())}")
    for owner in owners() if name is None else [name]:
        for line in (brief if name is None else whole)(owner):
            print(line)
    if name is None and brief is not whole:
        print(f"all about one of them: biasboard list {kind} NAME")


def _overview() -> Iterator[str]:
    """Yield a line for each kind. Nothing is imported to count them, so that the command is quick."""
    width = max(map(len, _KINDS))
    for kind, (owners, _, _, of_tasks) in _KINDS.items():
        names = owners()
        yield f"{kind:<{width}}  " + (f"of {len(names)} tasks" if of_tasks else f"{len(names)}: {', '.join(names)}")
    yield "a line about each: biasboard list KIND; all about one: biasboard list KIND NAME"
    yield "prompts or metrics of a task: biasboard list metrics TASK"


def _benchmark(name: str) -> Iterator[str]:
    from evaluators.benchmark import load_benchmark

    benchmark = load_benchmark(name)
    yield f"benchmark {name}"
    for baseline in benchmark.baselines:
        yield f"  baseline {baseline.name}: {baseline.description}"
    for index in benchmark.indices:
        yield f"  index {index.name}: {index.description}"


def _brief_benchmark(name: str) -> Iterator[str]:
    from evaluators.benchmark import load_benchmark

    benchmark = load_benchmark(name)
    parts = (
        ("baselines", [baseline.name for baseline in benchmark.baselines]),
        ("indices", [index.name for index in benchmark.indices]),
    )
    known = (f"{len(names)} {what} ({listed(names, most=_MOST_NAMES)})" for what, names in parts if names)
    yield f"benchmark {name}: {'; '.join(known)}"


def _backend(name: str) -> Iterator[str]:
    module = BACKENDS.load(name)
    extra = "" if module.EXTRA is None else f" (extra: {module.EXTRA})"
    yield f"backend {name}: {module.SUMMARY}{extra}"


def _scorer(name: str) -> Iterator[str]:
    module = SCORERS.load(name)
    yield f"scorer {name}: {module.SUMMARY}"
    for kind in module.KINDS:
        yield f"  kind {kind}"


def _harness(name: str) -> Iterator[str]:
    from evaluators.harness import load_harness

    yield f"harness {name}: {load_harness(name).summary}"


def _task(name: str) -> Iterator[str]:
    from evaluators.task import load_task

    task = load_task(name)
    yield f"task {name} {task.version}: asks about items of shape {task.item_shape}"


def _prompts(name: str) -> Iterator[str]:
    from evaluators.task import load_task

    yield from _task(name)
    for line in _prompt_lines(load_task(name)):
        yield f"  {line}"


def _brief_prompts(name: str) -> Iterator[str]:
    from evaluators.task import load_task

    prompts = tuple(load_task(name).prompts)
    yield f"task {name}: {len(prompts)} prompts ({listed(prompts, most=_MOST_NAMES)})"


def _prompt_lines(task: Task) -> Iterator[str]:
    """Yield a line for each prompt; prompts of a protocol that differ only in their examples share a line."""
    protocols: set[str | None] = set()
    for prompt in task.prompts.values():
        if prompt.n_examples is None:
            yield f"prompt {prompt.id}: {prompt.description}"
        elif prompt.protocol not in protocols:
            protocols.add(prompt.protocol)
            same = [other.id for other in task.prompts.values() if other.protocol == prompt.protocol]
            names = same[0] if len(same) == 1 else f"{len(same)} prompts, {same[0]} to {same[-1]}"
            yield f"protocol {prompt.protocol}: {names}; the first: {prompt.description}"


def _metrics(name: str) -> Iterator[str]:
    """Yield a line for each metric; the same after each calibration, as the versions say, shares its line."""
    from evaluators.runs.measure.measuring import metric_definitions

    yield from _task(name)
    own: dict[str, list[str]] = {}
    definitions = {definition.name: definition for definition in metric_definitions(name)}
    for definition in definitions.values():
        bases = [
            base
            for base in own
            if definition.name.startswith(f"{base}_") and definition.version.startswith(f"{definitions[base].version}+")
        ]
        if bases:
            base = max(bases, key=len)
            own[base].append(definition.name.removeprefix(base))
        else:
            own[definition.name] = []
    for base, variants in own.items():
        also = f" (also {base}{', '.join(variants)})" if variants else ""
        yield f"  metric {base} {definitions[base].version}{also}: {definitions[base].description}"


def _brief_metrics(name: str) -> Iterator[str]:
    from evaluators.runs.measure.measuring import metric_definitions

    names = [definition.name for definition in metric_definitions(name)]
    yield f"task {name}: {len(names)} metrics" + (f" ({listed(names, most=_MOST_NAMES)})" if names else "")


_KINDS = {
    "benchmarks": _Kind(BENCHMARKS.names, _brief_benchmark, _benchmark),
    "backends": _Kind(BACKENDS.names, _backend, _backend),
    "scorers": _Kind(SCORERS.names, _scorer, _scorer),
    "harnesses": _Kind(harness_names, _harness, _harness),
    "tasks": _Kind(TASKS.names, _task, _task),
    "prompts": _Kind(TASKS.names, _brief_prompts, _prompts, of_tasks=True),
    "metrics": _Kind(TASKS.names, _brief_metrics, _metrics, of_tasks=True),
}
