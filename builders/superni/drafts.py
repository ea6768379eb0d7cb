"""Makes the draft of a dataset, with its card."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.plain_text import listed
from biasboard.ground.progress import Report, silent
from builders.dataset.card import Annotation, Card, CardTable, SourceTexts
from builders.dataset.output import Draft, DraftSplit
from builders.superni import BUILDER, embedded, natural_instructions
from builders.superni.content_free import english_words_source
from builders.superni.items import FLAG_RULES, N_TEST
from builders.superni.task_choice import (
    MOST_NAMES,
    PUBLISHED,
    TASK_RULES,
    BuiltTask,
    named_tasks,
    published_tasks,
    read_tasks,
)
from schemas.documents.dataset import Source, Suite
from schemas.items.label import LabelItem

_BUILDER_VERSION = "1.1"
SUITE = "tasks"
_REFUSAL = (
    "each task keeps the licence of the data that it was made from ('Instance License'), and many of these are unknown"
)

_PAPER = (
    "Reif and Schwartz 2024, *Beyond Performance: Quantifying and Mitigating Label Bias in LLMs* (arXiv:2405.02743, "
    "NAACL 2024)"
)
_SUPERNI = "Wang et al. 2022, *Super-NaturalInstructions* (arXiv:2204.07705, EMNLP 2022)"

_DATA_STATEMENT = """\
English classification tasks. Each config is one task, and its items have the instruction of the task, an input, the
labels that it may get, and the right label. Split `test` is evaluated; on the 32 items of `bias` the bias towards
labels is measured; from the 64 items of `pool` come demonstrations, in this order; `content_free` holds 43 inputs
without content, which have no right label: three placeholders and twenty of random words of the task, on which
calibrations are fitted, and twenty of English words, which random words are compared with to measure domain-label bias.
`equivalent_labels` marks tasks whose labels only name places, such as the letters of options."""

_HOW_BUILT = """\
The labels of a task are the sorted first outputs of all its items, as the source spells them. A random permutation of
the items, seeded by the seed of the build and the name of the task, gives `bias`, `pool` and `test`, in this order; no
task has an influence on another. The random words are drawn without replacement from the inputs of `test`, in lower
case, part by part: markers that nearly all inputs share, such as *Sentence 1:* or *(A)*, are kept, and each part gets
as many words as it has on average. Labels are never looked at for that. The English words stand in the same places in
the same numbers, drawn from the 850 of Ogden's Basic English (1930)."""

_INTENDED_USE = """\
To measure how evenly a model treats the labels of a task, beside how often it is right, and to compare calibrations. A
model that answers at random is even too: always read both."""

_OUT_OF_SCOPE_USE = """\
Do not read a good score as the absence of bias against people: labels of tasks are compared here, not groups of people.
Do not train on it a model that is evaluated on it. Means over tasks with different numbers of labels are no property
of any one of them."""

_ANNOTATION = Annotation(
    protocol=(
        "The right label of an item is the one that its source gives, or that follows from the phrases of which this "
        "project made it; nothing was annotated again."
    ),
    annotators="Those who made the tasks; the sources tell little about them.",
    per_item="1 that is kept",
)

_BIASES = """\
* The labels of a task are not equally frequent; *Balance* says how much the largest one has.
* Tasks about toxic language and stereotypes repeat the views of their sources and annotators.
* One language, and the kinds of tasks that its sources happened to have."""

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
    citation=f"and {_PAPER}, whose method it follows",
)
_NATURAL_INSTRUCTIONS = SourceTexts(
    title="SuperNI label bias, tasks of Super-NaturalInstructions",
    how_built="The tasks are files of the repository natural-instructions.",
    licence_terms=(
        "The repository is licensed under Apache-2.0, and each task keeps the licence of the data that it was made "
        "from, as the table says ('instances'). Many are unknown: **do not publish this dataset**."
    ),
    known_limits=_LIMITS,
    citation=f"{_PAPER} and {_SUPERNI}",
)


def draft(
    root: Path | None = None,
    names: Sequence[str] = (),
    *,
    revision: str | None = None,
    limit: int = N_TEST,
    seed: int = 42,
    report: Report = silent,
) -> Draft[LabelItem]:
    """Build a draft from the tasks of this project, or from task files of the repository natural-instructions.

    Args:
        root: Folder of the task files, or of the repository; None for the tasks of this project.
        names: Names or numbers of tasks. None, or ``published`` alone for files, stands for all tasks of this project,
            or for those of the publication.
        revision: Commit of the repository, only recorded and not checked; None if it is unknown.
        limit: Maximum number of evaluation items per task.
        seed: Seed of the splits and of the random words.
        report: Called with the progress.

    Raises:
        DataError: there is no such folder, it has none of the tasks, or a file cannot be read.
        ConfigError: a named task does not exist or cannot be used.
    """
    described = BUILDER.source("embedded" if root is None else "natural-instructions")
    texts = _EMBEDDED if root is None else _NATURAL_INSTRUCTIONS
    available = embedded.source_tasks() if root is None else natural_instructions.source_tasks(root)
    if PUBLISHED in names and (root is None or len(names) > 1):
        raise ConfigError(
            f"--tasks {PUBLISHED}: stands for files of the publication, alone; leave it out, or give names alone"
        )
    is_named = bool(names) and PUBLISHED not in names
    wanted = named_tasks(names, available) if is_named else list(available if root is None else published_tasks())
    chosen = {name: available[name] for name in wanted if name in available}
    if not chosen:
        raise DataError(
            f"--tasks {PUBLISHED}: the source has none of the {len(wanted)} tasks; "
            f"have: {listed(list(available), most=MOST_NAMES)}; name others with --tasks"
        )
    tasks, rejects = read_tasks(chosen, is_named=is_named, seed=seed, limit=limit, report=report)
    return Draft(
        name=described.dataset,
        benchmark=BUILDER.name,
        version="1.1.0",
        title=texts.title,
        builder=f"builders.{BUILDER.name} ({described.name})",
        builder_version=_BUILDER_VERSION,
        parameters={
            "source": described.name,
            "tasks": ", ".join(wanted) if is_named else "all" if root is None else PUBLISHED,
            "limit": limit,
            "n_wanted_tasks": len(wanted),
            "n_tasks": len(tasks),
            "missing_tasks": ", ".join(name for name in wanted if name not in available) or None,
            "other_counts": "; ".join(filter(None, (task.difference for task in tasks))) or None,
        },
        seed=seed,
        sources=(*(_source(task, root, revision) for task in tasks), english_words_source()),
        licence=described.licence,
        publish_refusal=None if described.redistributable else _REFUSAL,
        splits=tuple(
            DraftSplit(config=task.name, split=split, item_shape="label", items=items)
            for task in tasks
            for split, items in task.splits.items()
        ),
        rejects=tuple(rejects),
        reject_rules=(*natural_instructions.ITEM_RULES, *TASK_RULES),
        flag_rules=FLAG_RULES,
        card=Card(
            data_statement=_DATA_STATEMENT,
            how_built=f"{texts.how_built}\n\n{_HOW_BUILT}",
            annotation=_ANNOTATION,
            biases=_BIASES,
            licence_terms=texts.licence_terms,
            intended_use=_INTENDED_USE,
            out_of_scope_use=_OUT_OF_SCOPE_USE,
            known_limits=texts.known_limits,
            balance=_balance(tasks),
            citation=f"Cite this project with the dataset version, {texts.citation}.",
            task_categories=("text-classification",),
            tags=("label-bias", "calibration", "bias-evaluation"),
        ),
        suites=(Suite(name=SUITE, configs=tuple(task.name for task in tasks)),),
    )


def _source(task: BuiltTask, root: Path | None, revision: str | None) -> Source:
    if root is None:
        name, address, revision = f"embedded task {task.name}", f"{embedded.ADDRESS}/{task.name}.toml", _BUILDER_VERSION
        licence = embedded.LICENCE
    else:
        name, address = task.name, f"{natural_instructions.ADDRESS}, tasks/{task.name}.json"
        licence = f"Apache-2.0 (repository); instances: {task.licence}"
    return Source(
        name=name,
        address=address,
        revision=revision,
        sha256=task.sha256,
        licence=licence,
        redistributable=root is None,
    )


def _balance(tasks: Sequence[BuiltTask]) -> CardTable:
    rows = [
        (
            task.name,
            task.category,
            str(len(task.counts)),
            str(task.n_items),
            f"{max(task.counts.values()) / task.n_items:.3f}",
            listed([_short_label(label) for label in task.counts], most=12),
        )
        for task in tasks
    ]
    header = ("task", "category", "labels", "items in all", "share of the largest label", "labels by name")
    return CardTable(header=header, rows=tuple(rows))


def _short_label(label: str) -> str:
    return " ".join((label if len(label) <= 40 else f"{label[:39]}…").split())
