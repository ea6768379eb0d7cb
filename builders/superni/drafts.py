"""Makes the draft of a dataset from each source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from biasboard.ground.errors import ConfigError
from biasboard.ground.files import sha256_file
from biasboard.ground.progress import Report
from builders.dataset.card import SourceTexts
from builders.dataset.output import Draft, DraftSplit
from builders.superni import BUILDER, embedded, hub_copy, natural_instructions
from builders.superni.cards import PAPER, SUPERNI, superni_card
from builders.superni.content import ITEM_RULES, SourceTask
from builders.superni.content_free import english_words_source
from builders.superni.items import FLAG_RULES, N_TEST
from builders.superni.task_choice import (
    ALWAYS_RULES,
    FILTER,
    FILTER_RULES,
    PUBLISHED,
    BuiltTask,
    Chosen,
    choose_filtered,
    choose_named,
    choose_published,
    published_tasks,
    read_task_info,
    read_tasks,
)
from schemas.documents.dataset import Parameter, Source, Suite
from schemas.items.label import LabelItem

_BUILDER_VERSION = "1.1"
SUITE = "tasks"
_REFUSAL = (
    "each task keeps the licence of the data that it was made from ('Instance License'), and many of these are unknown"
)

_LIMITS = """\
* The tasks are as the source has them, with its faults: wrong labels, instructions that leave out a label, and texts
  that offend, above all in tasks about toxic language and stereotypes. Flags name faults that a program can see.
* Only the first output of an item counts as right.
* `equivalent_labels` marks the 17 published tasks that fit the rule of the publication (multiple choice by letter or
  number, and completion of sentences); it speaks of 18 and does not name them. Other tasks are never marked.
* Sizes of the tasks differ between states of the repository; `dataset.json` names those that differ from the table of
  the publication. The publication's own choice of 1,000 evaluation items was not seeded and cannot be repeated.
* Models may have seen the tasks in training, or been trained to solve them."""
_EMBEDDED = SourceTexts(
    title="SuperNI label bias, embedded tasks",
    how_built=(
        "The tasks are of this project. Their inputs are combined from phrases that we wrote, so that the right label "
        "follows from the text."
    ),
    licence_terms="The texts are licensed under Apache-2.0, like the code.",
    known_limits=(
        "* The inputs of a task share phrases, which makes them easier and less varied than those that people write; "
        "items of a task are less independent than their number suggests.\n"
        "* They are far fewer than the tasks of the publication, and none of them is one; values cannot be compared "
        "with published ones."
    ),
    citation=f"and {PAPER}, whose method it follows",
)


class TaskOptions(NamedTuple):
    """The build options that all sources share."""

    tasks: tuple[str, ...]
    """Names or numbers of tasks, or one word: ``published`` or ``filter``. Empty for the default of the source."""
    limit: int | None
    seed: int
    report: Report


class BuiltTasks(NamedTuple):
    """A draft, with the facts that the command line prints about it."""

    draft: Draft[LabelItem]
    chosen: Chosen
    tasks: tuple[BuiltTask, ...]


def from_embedded(options: TaskOptions) -> BuiltTasks:
    """Build a draft from the tasks of this project.

    Raises:
        ConfigError: there is no embedded task of a given name.
    """
    available = embedded.source_tasks()
    if words := {PUBLISHED, FILTER} & set(options.tasks):
        raise ConfigError(
            f"--tasks {words.pop()}: the embedded tasks are not published ones; leave it out, or name them"
        )
    chosen = choose_named(options.tasks, available) if options.tasks else Chosen("all", tuple(available.values()), ())
    sources = tuple(
        Source(
            name=f"embedded task {task.name}",
            address=task.address,
            revision=_BUILDER_VERSION,
            sha256=None,
            licence=embedded.LICENCE,
            redistributable=True,
        )
        for task in chosen.tasks
    )
    return _built("embedded", chosen, options, sources, _EMBEDDED)


def from_natural_instructions(
    root: Path, options: TaskOptions, *, revision: str | None, task_info: Path | None
) -> BuiltTasks:
    """Build a draft from task files of the repository natural-instructions.

    Args:
        root: Folder of the task files, or of the repository.
        options: Options of the build.
        revision: Commit of the repository, only recorded and not checked; None if it is unknown.
        task_info: List of all tasks, for ``--tasks filter``.

    Raises:
        DataError: there is no such folder, it has none of the tasks, or a file cannot be read.
        ConfigError: a named task does not exist or cannot be used, or the list of all tasks is missing.
    """
    available = natural_instructions.source_tasks(root)
    folder = natural_instructions.tasks_folder(root)
    chosen = _chosen(options, available, task_info, folder)
    texts = SourceTexts(
        title="SuperNI label bias, tasks of Super-NaturalInstructions",
        how_built="The tasks are files of the repository natural-instructions.",
        licence_terms=(
            "The repository is licensed under Apache-2.0, and each task keeps the licence of the data that it was made "
            "from, as the table says ('instances'). Many are unknown: **do not publish this dataset**."
        ),
        known_limits=_LIMITS,
        citation=f"{PAPER} and {SUPERNI}",
    )
    return _built("natural-instructions", chosen, options, _info_sources(task_info), texts, revision)


def from_hub(source: Path, options: TaskOptions, *, revision: str | None, task_info: Path | None) -> BuiltTasks:
    """Build a draft from a folder in the layout of Muennighoff/natural-instructions, or from the Hub.

    Raises:
        DataError: the folder cannot be downloaded or has none of the tasks, or a file cannot be read.
        ConfigError: a named task does not exist or cannot be used, or the list of all tasks is missing.
    """
    is_published = (options.tasks or (PUBLISHED,)) == (PUBLISHED,)
    folder, commit = hub_copy.hub_folder(source, revision, published_tasks() if is_published else None)
    infos = read_task_info(task_info, folder) if task_info is not None else {}
    available = hub_copy.source_tasks(folder, {name: info.category for name, info in infos.items() if info.category})
    chosen = _chosen(options, available, task_info, folder)
    texts = SourceTexts(
        title="SuperNI label bias, tasks of Super-NaturalInstructions from the Hub",
        how_built=(
            "The tasks are files of the dataset Muennighoff/natural-instructions, whose rows of one id are joined to "
            "one item with several outputs. Their categories are those of the publication."
        ),
        licence_terms=(
            "Each task keeps the licence of the data that it was made from, which the dataset on the Hub does not "
            "tell: **do not publish this dataset**."
        ),
        known_limits=_LIMITS,
        citation=f"{PAPER} and {SUPERNI}",
    )
    return _built("hub", chosen, options, _info_sources(task_info), texts, commit)


def _chosen(options: TaskOptions, available: Mapping[str, SourceTask], task_info: Path | None, folder: Path) -> Chosen:
    words = options.tasks or (PUBLISHED,)
    if len(words) > 1 and (mixed := {PUBLISHED, FILTER} & set(words)):
        raise ConfigError(
            f"--tasks {mixed.pop()}: cannot be mixed with other tasks; give the word alone, or names alone"
        )
    if words == (PUBLISHED,):
        return choose_published(available)
    if words == (FILTER,):
        return choose_filtered(available, read_task_info(task_info, folder))
    return choose_named(words, available)


def _info_sources(task_info: Path | None) -> tuple[Source, ...]:
    """Return the source of the list of all tasks, if there is one."""
    if task_info is None:
        return ()
    return (
        Source(
            name="list of all tasks",
            address=task_info.name,
            revision=None,
            sha256=sha256_file(task_info),
            licence="not told",
            redistributable=False,
        ),
    )


def _built(
    source: str,
    chosen: Chosen,
    options: TaskOptions,
    sources: Sequence[Source],
    texts: SourceTexts,
    revision: str | None = None,
) -> BuiltTasks:
    described = BUILDER.source(source)
    limit = N_TEST if options.limit is None else options.limit
    tasks, rejects = read_tasks(chosen, seed=options.seed, limit=limit, report=options.report)
    if not described.redistributable:
        sources = (*sources, *(_task_source(task, source, revision) for task in tasks))
    draft = Draft(
        name=described.dataset,
        benchmark=BUILDER.name,
        version="1.1.0",
        title=texts.title,
        builder=f"builders.{BUILDER.name} ({source})",
        builder_version=_BUILDER_VERSION,
        parameters=_parameters(source, chosen, tasks, limit),
        seed=options.seed,
        sources=(*sources, english_words_source()),
        licence=described.licence,
        publish_refusal=None if described.redistributable else _REFUSAL,
        splits=tuple(
            DraftSplit(config=task.source.name, split=split, item_shape="label", items=items)
            for task in tasks
            for split, items in task.splits.items()
        ),
        rejects=rejects,
        reject_rules=(*ITEM_RULES, *ALWAYS_RULES, *(FILTER_RULES if chosen.mode == FILTER else ())),
        flag_rules=FLAG_RULES,
        card=superni_card(tasks, **{name: text for name, text in texts._asdict().items() if name != "title"}),
        suites=(Suite(name=SUITE, configs=tuple(task.source.name for task in tasks)),),
    )
    return BuiltTasks(draft, chosen, tasks)


def _parameters(source: str, chosen: Chosen, tasks: Sequence[BuiltTask], limit: int) -> dict[str, Parameter]:
    differences = [difference for task in tasks if (difference := task.difference) is not None]
    return {
        "source": source,
        "tasks": ", ".join(task.name for task in chosen.tasks) if chosen.mode == "named" else chosen.mode,
        "limit": limit,
        "n_wanted_tasks": len(chosen.tasks) + len(chosen.missing),
        "n_tasks": len(tasks),
        "missing_tasks": ", ".join(chosen.missing) or None,
        "other_counts": "; ".join(differences) or None,
    }


def _task_source(task: BuiltTask, source: str, revision: str | None) -> Source:
    licence = f"Apache-2.0 (repository); instances: {task.licence}" if source != "hub" else task.licence
    return Source(
        name=task.source.name,
        address=task.source.address,
        revision=revision,
        sha256=task.sha256,
        licence=licence,
        redistributable=False,
    )
