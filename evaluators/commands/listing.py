"""The command ``python -m evaluators list``: prints the plug-ins of each kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from biasboard.ground.command_line import one_line_errors
from biasboard.ground.errors import ConfigError
from biasboard.ground.kinds import BACKENDS, BENCHMARKS, CALIBRATIONS, FORMATS, HARNESSES, PAGES, SCORERS, SHAPES, TASKS
from biasboard.ground.plain_text import listed
from biasboard.ground.plugins import PlugIns
from schemas.outputs.documents import ListedEntry, ListedKind, Listing
from schemas.printed import with_format

if TYPE_CHECKING:
    from evaluators.benchmark import IndexDefinition
    from evaluators.metric import MetricDefinition
    from evaluators.task import Prompt, Task

# What else a kind needs is imported in its functions, so that the names of all kinds are printed at once.
_MOST_NAMES = 4


class _Kind(NamedTuple):
    """A kind of plug-ins, or of what they define."""

    singular: ListedKind
    owners: Callable[[], tuple[str, ...]]
    """Function that returns the names of all plug-ins of the kind, or of the tasks that define such things."""
    entries: Callable[[str], Iterable[ListedEntry]]
    """Function that yields what there is to list of one of them."""
    plurals: Mapping[str, str] = MappingProxyType({})
    """Plural of each kind that one of them defines, of which its line names some if all are listed."""
    whole: Callable[[str], Iterable[str]] | None = None
    """Function that yields the lines about one of them if the user names it; None for a line of each entry."""
    of_tasks: bool = False
    """True if the names are those of tasks."""


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
        for line in _overview():
            print(line)
        kinds = [each for each in _KINDS.values() if not each.of_tasks]
        return Listing(
            entries=tuple(ListedEntry(kind=each.singular, name=one) for each in kinds for one in each.owners())
        )
    if kind not in _KINDS:
        raise ConfigError(f"'{kind}' is nothing to list; have: {', '.join(_KINDS)}")
    listed_kind = _KINDS[kind]
    have = listed_kind.owners()
    if name is not None and name not in have:
        what = "task" if listed_kind.of_tasks else "plug-in of this kind"
        raise ConfigError(f"list {kind} {name}: there is no such {what}; have: {', '.join(have)}")
    owners = have if name is None else (name,)
    is_brief = name is None and bool(listed_kind.plurals)
    lines_of = listed_kind.whole
    entries: list[ListedEntry] = []
    for owner in owners:
        found = list(listed_kind.entries(owner))
        if is_brief:
            what = "task" if listed_kind.of_tasks else listed_kind.singular
            print(_brief(f"{what} {owner}", found, **listed_kind.plurals))
        else:
            for line in map(_line, found) if lines_of is None else lines_of(owner):
                print(line)
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


def _overview() -> Iterator[str]:
    """Yield a line for each kind. Nothing is imported to count them, so that the command is quick."""
    width = max(map(len, _KINDS))
    for kind, listed_kind in _KINDS.items():
        names = listed_kind.owners()
        told = f"of {len(names)} tasks" if listed_kind.of_tasks else f"{len(names)}: {', '.join(names)}"
        yield f"{kind:<{width}}  {told}"
    yield "a line about each: biasboard list KIND; all about one: biasboard list KIND NAME"
    yield "prompts or metrics of a task: biasboard list metrics TASK; the text of a prompt: list prompts TASK PROMPT"
    yield "builders and their sources: biasboard build"


def _line(entry: ListedEntry) -> str:
    indent = "" if entry.of is None else "  "
    version = "" if entry.version is None else f" {entry.version}"
    extra = "" if entry.extra is None else f" (extra: {entry.extra})"
    about = entry.description or (entry.item_shape and f"asks about items of shape {entry.item_shape}")
    return f"{indent}{entry.kind} {entry.name}{version}" + (f": {about}{extra}" if about else "")


def _benchmark(name: str) -> Iterator[ListedEntry]:
    from evaluators.benchmark import load_benchmark

    benchmark = load_benchmark(name)
    yield ListedEntry(kind="benchmark", name=name)
    for baseline in benchmark.baselines:
        yield ListedEntry(kind="baseline", name=baseline.name, of=name, description=baseline.description)
    for index in benchmark.indices:
        yield ListedEntry(kind="index", name=index.name, of=name, description=index.description)


def _brief(owner: str, entries: Sequence[ListedEntry], **plurals: str) -> str:
    """Return a line about a plug-in with some of the names of each kind that it defines."""
    told = []
    for kind, plural in plurals.items():
        names = [entry.name for entry in entries if entry.kind == kind]
        told += [f"{len(names)} {plural} ({listed(names, most=_MOST_NAMES)})"] if names else []
    return f"{owner}: {'; '.join(told) or ' and '.join(f'0 {plural}' for plural in plurals.values())}"


def _whole_benchmark(name: str) -> Iterator[str]:
    """Yield a line for each baseline, and for each family of indices, those of one metric together."""
    from evaluators.benchmark import load_benchmark

    yield from (_line(entry) for entry in _benchmark(name) if entry.kind != "index")
    descriptions = {index.name: index.description for index in load_benchmark(name).indices}
    # By the metric, and then by the endings that its corrections share.
    families: dict[str, dict[tuple[str, ...], list[str]]] = {}
    for (base, correction), own in _endings(load_benchmark(name).indices).items():
        families.setdefault(base, {}).setdefault(tuple(own), []).append(correction)
    for base, of_base in families.items():
        for endings, corrections in of_base.items():
            names = [f"{base}{correction}{ending}" for correction in corrections for ending in endings]
            if len(names) == 1:
                yield f"  index {names[0]}: {descriptions[names[0]]}"
            else:
                family = f"{base}{_alternatives(corrections)}{_alternatives(endings)}"
                first, last = descriptions[names[0]], descriptions[names[-1]]
                yield f"  {len(names)} indices {family}; the first: {first} The last: {last}"
    if len(descriptions) > sum(map(len, families.values())):
        yield f"each index by itself: biasboard list benchmarks {name} --format json"


def _endings(indices: Iterable[IndexDefinition]) -> dict[tuple[str, str], list[str]]:
    """Return what follows in the names of indices that are means of one metric, such as a number of examples.

    Returns:
        Endings by the metric without a calibration and the ending that the calibration adds to it, both as in the
        names of metrics. An index of several metrics is its own metric, with an empty ending.
    """
    from evaluators.runs.measure.measuring import metric_definitions

    of_tasks: dict[str, dict[str, tuple[str, str]]] = {}
    endings: dict[tuple[str, str], list[str]] = {}
    for index in indices:
        metric, task = index.parts[0].metric, index.parts[0].task
        if {part.metric for part in index.parts} != {metric} or not index.name.startswith(metric):
            endings[index.name, ""] = [""]
            continue
        if task not in of_tasks:
            variants = _variants(metric_definitions(task))
            of_tasks[task] = {f"{base}{one}": (base, one) for base, ones in variants.items() for one in ("", *ones)}
        endings.setdefault(of_tasks[task][metric], []).append(index.name.removeprefix(metric))
    return endings


def _alternatives(words: Sequence[str]) -> str:
    """Return words as a shell writes them, in which braces stand for one of several.

    >>> _alternatives(["_k0", "_k2"]), _alternatives(["", "_bc"]), _alternatives(["_k0"])
    ('_{k0,k2}', '{,_bc}', '_k0')
    """
    if len(words) == 1:
        return words[0]
    shared = "_" if all(word.startswith("_") for word in words) else ""
    return f"{shared}{{{','.join(word.removeprefix(shared) for word in words)}}}"


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


def _documented(kind: PlugIns, name: ListedKind) -> _Kind:
    """Return a kind whose plug-ins are told by the first lines of their modules."""

    def entries(plug_in: str) -> Iterator[ListedEntry]:
        first = (kind.load(plug_in).__doc__ or "").partition("\n\n")[0]
        yield ListedEntry(kind=name, name=plug_in, description=" ".join(first.split()) or None)

    return _Kind(name, kind.names, entries)


def _task(name: str) -> Iterator[ListedEntry]:
    from evaluators.task import load_task

    task = load_task(name)
    yield ListedEntry(kind="task", name=name, version=task.version, item_shape=task.item_shape)


def _prompts(name: str) -> Iterator[ListedEntry]:
    from evaluators.task import load_task

    for prompt in load_task(name).prompts.values():
        yield _prompt(name, prompt)


def _prompt(task: str, prompt: Prompt) -> ListedEntry:
    requires = " and ".join(sorted(prompt.needs))
    return ListedEntry(kind="prompt", name=prompt.id, of=task, description=prompt.description, requires=requires)


def _whole_prompts(name: str) -> Iterator[str]:
    from evaluators.task import load_task

    yield from map(_line, _task(name))
    for line in _prompt_lines(load_task(name)):
        yield f"  {line}"


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


def _metrics(name: str) -> Iterator[ListedEntry]:
    from evaluators.runs.measure.measuring import metric_definitions

    for metric in metric_definitions(name):
        yield ListedEntry(
            kind="metric", name=metric.name, of=name, version=metric.version, description=metric.description
        )


def _whole_metrics(name: str) -> Iterator[str]:
    """Yield a line for each metric; the same after each calibration, as the versions say, shares its line."""
    from evaluators.runs.measure.measuring import metric_definitions

    yield from map(_line, _task(name))
    definitions = {definition.name: definition for definition in metric_definitions(name)}
    for base, variants in _variants(definitions.values()).items():
        also = f" (also {base}{', '.join(variants)})" if variants else ""
        yield f"  metric {base} {definitions[base].version}{also}: {definitions[base].description}"


def _variants(metrics: Iterable[MetricDefinition[Any]]) -> dict[str, list[str]]:
    """Return what calibrations add to the names of metrics, by the metric without one; the versions say which it is."""
    own: dict[str, list[str]] = {}
    definitions = {definition.name: definition for definition in metrics}
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
    return own


_KINDS = {
    "benchmarks": _Kind(
        "benchmark", BENCHMARKS.names, _benchmark, {"baseline": "baselines", "index": "indices"}, _whole_benchmark
    ),
    "backends": _Kind("backend", BACKENDS.names, _backend),
    "scorers": _Kind("scorer", SCORERS.names, _scorer),
    "harnesses": _Kind("harness", HARNESSES.names, _harness),
    "calibrations": _documented(CALIBRATIONS, "calibration"),
    "shapes": _documented(SHAPES, "item shape"),
    "pages": _documented(PAGES, "pages"),
    "formats": _documented(FORMATS, "format"),
    "tasks": _Kind("task", TASKS.names, _task),
    "prompts": _Kind("prompt", TASKS.names, _prompts, {"prompt": "prompts"}, _whole_prompts, of_tasks=True),
    "metrics": _Kind("metric", TASKS.names, _metrics, {"metric": "metrics"}, _whole_metrics, of_tasks=True),
}
