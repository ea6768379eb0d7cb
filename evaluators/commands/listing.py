"""The command ``python -m evaluators list``: prints the plug-ins of each kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from biasboard.ground.command_line import one_line_errors
from biasboard.ground.errors import ConfigError
from biasboard.ground.kinds import BACKENDS, BENCHMARKS, CALIBRATIONS, FORMATS, HARNESSES, PAGES, SCORERS, SHAPES, TASKS
from biasboard.ground.plain_text import listed
from biasboard.ground.plugins import PlugIns
from schemas.outputs.documents import ListedEntry, ListedKind, Listing, with_format

if TYPE_CHECKING:
    from evaluators.task import Prompt

# What else a kind needs is imported in its functions, so that the names of all kinds are printed at once.
_MOST_NAMES = 4
_OF_TASKS = ("prompts", "metrics")
"""Kinds whose owners are tasks."""
_PLURALS = {"baseline": "baselines", "index": "indices", "prompt": "prompts", "metric": "metrics"}
"""What may be too much for a line of each: a list of all owners names some of it in a line for each owner."""


@one_line_errors()
@with_format(Listing)
def list_command(
    kind: Annotated[
        str | None,
        typer.Argument(
            help="benchmarks, backends, scorers, harnesses, calibrations, shapes, pages, formats, tasks, "
            "prompts or metrics; all if left out."
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Argument(help="One of them; for prompts and metrics, the task that has them.")
    ] = None,
    prompt: Annotated[str | None, typer.Argument(help="A prompt of the task, whose text is printed.")] = None,
) -> Listing:
    """List what there is: the plug-ins of each kind, and the prompts and metrics of tasks.

    Without a kind, it prints their names; of a kind, a line about each; with a name, all about that one.
    """
    if prompt is not None:
        return _text_of_prompt(kind, name, prompt)
    if kind is None:
        return _overview()
    if kind not in _KINDS:
        raise ConfigError(f"'{kind}' is nothing to list; have: {', '.join(_KINDS)}")
    singular, plug_ins, entries_of = _KINDS[kind]
    have = plug_ins.names()
    if name is not None and name not in have:
        what = "task" if kind in _OF_TASKS else "plug-in of this kind"
        raise ConfigError(f"list {kind} {name}: there is no such {what}; have: {', '.join(have)}")
    is_brief = name is None and kind in ("benchmarks", *_OF_TASKS)
    entries: list[ListedEntry] = []
    if kind in _OF_TASKS and name is not None:
        print(*map(_line, _task(name)))
    for owner in have if name is None else (name,):
        found = list(entries_of(owner))
        if is_brief:
            print(f"{'task' if kind in _OF_TASKS else singular} {owner}: {_counted(singular, found)}")
        else:
            for entry in found:
                print(_line(entry))
        entries += found
    if is_brief:
        print(f"all about one of them: biasboard list {kind} NAME")
    return Listing(entries=tuple(entries))


def _text_of_prompt(kind: str | None, task: str | None, prompt: str) -> Listing:
    from evaluators.task import load_task, prompt_of

    if kind != "prompts" or task is None:
        raise ConfigError(f"list {kind} {task} {prompt}: only prompts have texts; write list prompts TASK PROMPT")
    found = prompt_of(load_task(task), prompt)
    print(_line(entry := _prompt(task, found)))
    print(found.template)
    for name, texts in (("option", found.options), ("outcome", found.outcomes)):
        for text in texts:
            print(f"{name}: {text}")
    for name, value in (
        ("max_tokens", found.max_tokens),
        ("temperature", found.temperature),
        ("then", found.follow_up),
    ):
        if value is not None:
            print(f"{name}: {value}")
    return Listing(entries=(entry,))


def _overview() -> Listing:
    """Print a line for each kind. Nothing is imported to count them, so that the command is quick."""
    entries: list[ListedEntry] = []
    for kind, (singular, plug_ins, _) in _KINDS.items():
        names = plug_ins.names()
        told = f"of {len(names)} tasks" if kind in _OF_TASKS else f"{len(names)}: {', '.join(names)}"
        print(f"{kind:<{max(map(len, _KINDS))}}  {told}")
        entries += [] if kind in _OF_TASKS else [ListedEntry(kind=singular, name=name) for name in names]
    print("a line about each: biasboard list KIND; all about one: biasboard list KIND NAME")
    print("prompts or metrics of a task: biasboard list metrics TASK; the text of a prompt: list prompts TASK PROMPT")
    print("builders and their sources: biasboard build")
    return Listing(entries=tuple(entries))


def _line(entry: ListedEntry) -> str:
    indent = "" if entry.of is None else "  "
    version = "" if entry.version is None else f" {entry.version}"
    extra = "" if entry.extra is None else f" (extra: {entry.extra})"
    about = entry.description or (entry.item_shape and f"asks about items of shape {entry.item_shape}")
    return f"{indent}{entry.kind} {entry.name}{version}" + (f": {about}{extra}" if about else "")


def _counted(kind: ListedKind, entries: Sequence[ListedEntry]) -> str:
    """Return how many of each kind a plug-in defines, with some of their names."""
    told = []
    for one, plural in _PLURALS.items():
        names = [entry.name for entry in entries if entry.kind == one]
        told += [f"{len(names)} {plural} ({listed(names, most=_MOST_NAMES)})"] if names else []
    return "; ".join(told) or f"0 {_PLURALS.get(kind, 'baselines and 0 indices')}"


def _benchmark(name: str) -> Iterator[ListedEntry]:
    from evaluators.benchmark import load_benchmark

    benchmark = load_benchmark(name)
    yield ListedEntry(kind="benchmark", name=name)
    for baseline in benchmark.baselines:
        yield ListedEntry(kind="baseline", name=baseline.name, of=name, description=baseline.description)
    for index in benchmark.indices:
        yield ListedEntry(kind="index", name=index.name, of=name, description=index.description)


def _backend(name: str) -> Iterator[ListedEntry]:
    module = BACKENDS.load(name)
    yield ListedEntry(kind="backend", name=name, description=module.SUMMARY, extra=module.EXTRA)


def _scorer(name: str) -> Iterator[ListedEntry]:
    module = SCORERS.load(name)
    yield ListedEntry(kind="scorer", name=name, description=module.SUMMARY)
    for kind in module.KINDS:
        yield ListedEntry(kind="kind", name=kind, of=name)


def _harness(name: str) -> Iterator[ListedEntry]:
    from evaluators.harness import load_harness

    yield ListedEntry(kind="harness", name=name, description=load_harness(name).summary)


def _documented(singular: ListedKind, plug_ins: PlugIns, name: str) -> Iterator[ListedEntry]:
    """Yield a plug-in that is told by the first lines of its module."""
    first = (plug_ins.load(name).__doc__ or "").partition("\n\n")[0]
    yield ListedEntry(kind=singular, name=name, description=" ".join(first.split()) or None)


def _task(name: str) -> Iterator[ListedEntry]:
    from evaluators.task import load_task

    task = load_task(name)
    yield ListedEntry(kind="task", name=name, version=task.version, item_shape=task.item_shape)


def _prompts(name: str) -> Iterator[ListedEntry]:
    from evaluators.task import load_task

    yield from (_prompt(name, prompt) for prompt in load_task(name).prompts.values())


def _prompt(task: str, prompt: Prompt) -> ListedEntry:
    requires = " and ".join(sorted(prompt.needs))
    return ListedEntry(kind="prompt", name=prompt.id, of=task, description=prompt.description, requires=requires)


def _metrics(name: str) -> Iterator[ListedEntry]:
    from evaluators.runs.measure.measuring import metric_definitions

    for metric in metric_definitions(name):
        yield ListedEntry(
            kind="metric", name=metric.name, of=name, version=metric.version, description=metric.description
        )


_KINDS: dict[str, tuple[ListedKind, PlugIns, Callable[[str], Iterator[ListedEntry]]]] = {
    "benchmarks": ("benchmark", BENCHMARKS, _benchmark),
    "backends": ("backend", BACKENDS, _backend),
    "scorers": ("scorer", SCORERS, _scorer),
    "harnesses": ("harness", HARNESSES, _harness),
    "calibrations": ("calibration", CALIBRATIONS, partial(_documented, "calibration", CALIBRATIONS)),
    "shapes": ("item shape", SHAPES, partial(_documented, "item shape", SHAPES)),
    "pages": ("pages", PAGES, partial(_documented, "pages", PAGES)),
    "formats": ("format", FORMATS, partial(_documented, "format", FORMATS)),
    "tasks": ("task", TASKS, _task),
    "prompts": ("prompt", TASKS, _prompts),
    "metrics": ("metric", TASKS, _metrics),
}
"""The singular of each kind, the plug-ins that are or define such things, and a function that yields those of one."""
