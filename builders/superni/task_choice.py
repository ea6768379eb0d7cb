"""Chooses the tasks to build (those of the publication, those that pass its filter, or those named), and reads them.

* ``tasks.csv`` is the table of the 279 tasks of the publication: facts about each, but none of its texts. Sizes are
  those of FLAN v2, which is independent of the publication. Numbers of labels were counted in the files at hand; for
  most tasks these hold only the demonstrations, so that rare labels may be missing.
* The list of all tasks is the file ``full_task_info.csv`` of the publication's release, or the table in
  ``tasks/README.md`` of the repository. The filter checks its summaries and languages first, and the content of the
  tasks when they are read.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.files import check_readable
from biasboard.ground.plain_text import listed
from biasboard.ground.progress import Report
from builders.dataset.output import Rule
from builders.superni.content import SourceTask, TaskContent
from builders.superni.items import N_SUPPORT, labels_of, split_items
from schemas.documents.dataset import Reject
from schemas.items.label import LabelItem

PUBLISHED = "published"
FILTER = "filter"
MOST_NAMES = 5
"""Largest number of names that a message lists."""
_NUMBER = re.compile(r"(?:task)?(\d{1,6})")

COLUMNS = ("Name", "Summary", "Category", "Input Language", "Output Language")
REMEDY = "name full_task_info.csv of the publication's release with --task-info"

LANGUAGE = Rule(name="not_english", description="inputs and outputs of the task are in English")
EXCLUDED = Rule(name="excluded_task", description="the publication does not leave the task out by its name")
MANY_LABELS = Rule(name="many_labels", description="the task has fewer than 50 labels")
MANY_OUTPUTS = Rule(name="many_outputs", description="the items of the task have fewer than 2 outputs on average")
SMALL = Rule(name="small_task", description="the task has at least 396 items")
ONE_LABEL = Rule(name="one_label", description="the task has at least 2 labels")
TOO_FEW = Rule(name="too_few_items", description="the task has at least 97 items that can be used")
ALWAYS_RULES = (ONE_LABEL, MANY_LABELS, TOO_FEW)
"""Rules that drop whole tasks, however they were chosen."""
FILTER_RULES = (LANGUAGE, EXCLUDED, MANY_OUTPUTS, SMALL)
"""Rules of the publication's filter."""

# The tasks that the release leaves out by name (EXCLUDED_TASKS of its extract_classification_tasks.py).
_EXCLUDED = frozenset(
    {
        "task007_mctaco_answer_generation_transient_stationary",
        "task089_swap_words_verification",
        "task218_rocstories_swap_order_answer_generation",
        "task302_record_classification",
        "task342_winomt_classification_profession_pro",
        "task343_winomt_classification_profession_anti",
        "task563_discofuse_answer_generation",
        "task646_answer_generation",
        "task1359_numer_sense_answer_generation",
    }
)
_MOST_LABELS, _MOST_OUTPUTS, _LEAST_ITEMS = 50, 2, 300 + N_SUPPORT
"""Bounds of the publication's filter: the 96 items of bias and pool leave at least 300 to evaluate."""
_MOST_BYTES = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFacts:
    """Facts about one task of the publication."""

    name: str
    """Name of its file in the repository, without ``.json``."""
    category: str
    n_instances: int
    n_labels: int | None
    """Number of labels; None if it is unknown."""
    equivalent_labels: bool
    """True if the labels only number the choices: 17 tasks fit the rule of the publication, which counts 18 unnamed."""
    own_candidates: bool
    """True if the items offer different numbers of options, such as the four or five answers of task633."""


@cache
def published_tasks() -> Mapping[str, TaskFacts]:
    """Return the facts about each task of the publication by its name, in the order of their numbers."""
    text = resources.files("builders.superni").joinpath("tasks.csv").read_text(encoding="utf-8")
    return {
        row["name"]: TaskFacts(
            name=row["name"],
            category=row["category"],
            n_instances=int(row["n_instances"]),
            n_labels=int(row["n_labels"]) if row["n_labels"] else None,
            equivalent_labels=row["equivalent_labels"] == "yes",
            own_candidates=row["own_candidates"] == "yes",
        )
        for row in csv.DictReader(text.splitlines())
    }


class Chosen(NamedTuple):
    """The tasks to build."""

    mode: str
    """``published``, ``filter`` or ``named``."""
    tasks: tuple[SourceTask, ...]
    missing: tuple[str, ...]
    """Names of chosen tasks that the source does not have."""
    rejects: tuple[Reject, ...] = ()
    """Tasks that the filter drops before their files are read."""


def choose_named(words: Sequence[str], available: Mapping[str, SourceTask]) -> Chosen:
    """Choose tasks by name or number.

    A number is such as ``73`` or ``task073``.

    Raises:
        ConfigError: the source has no such task, or several with that number.
    """
    names = dict.fromkeys(_resolved(word, available) for word in words)
    return Chosen("named", tuple(available[name] for name in names), ())


def _resolved(word: str, available: Mapping[str, SourceTask]) -> str:
    if word in available:
        return word
    number = _NUMBER.fullmatch(word)
    # Five numbers belong to two tasks each, such as 184.
    same = [name for name in available if number and (own := _NUMBER.match(name)) and int(own[1]) == int(number[1])]
    if len(same) > 1:
        raise ConfigError(f"--tasks {word}: several tasks have this number; give the name: {', '.join(same)}")
    if not same:
        raise ConfigError(
            f"--tasks {word}: the source has no such task; have: {listed(list(available), most=MOST_NAMES)}"
        )
    return same[0]


def choose_published(available: Mapping[str, SourceTask]) -> Chosen:
    """Choose those of the 279 tasks of the publication that the source has, by their full names.

    Raises:
        DataError: the source has none of them.
    """
    return _of_source(PUBLISHED, published_tasks(), available)


def choose_filtered(available: Mapping[str, SourceTask], infos: Mapping[str, TaskInfo]) -> Chosen:
    """Choose the tasks that pass the part of the publication's filter that needs no task file.

    Raises:
        DataError: the source has none of them.
    """

    def by_number(info: TaskInfo) -> tuple[int, str]:
        """Sort tasks by their numbers, and those without one to the front."""
        number = _NUMBER.match(info.name)
        return int(number[1]) if number else -1, info.name

    candidates = sorted((info for info in infos.values() if is_candidate(info)), key=by_number)
    refused = {info.name: refusal for info in candidates if (refusal := info_refusal(info)) is not None}
    rejects = tuple(
        Reject(candidate=name, source_row=None, rule=refusal.rule.name, reason=refusal.reason)
        for name, refusal in refused.items()
    )
    chosen = _of_source(FILTER, [info.name for info in candidates if info.name not in refused], available)
    return chosen._replace(rejects=rejects)


def _of_source(mode: str, wanted: Iterable[str], available: Mapping[str, SourceTask]) -> Chosen:
    wanted = list(wanted)
    present = tuple(available[name] for name in wanted if name in available)
    if not present:
        raise DataError(
            f"--tasks {mode}: the source has none of the {len(wanted)} tasks; "
            f"have: {listed(list(available), most=MOST_NAMES)}; name others with --tasks"
        )
    return Chosen(mode, present, tuple(name for name in wanted if name not in available))


class TaskInfo(NamedTuple):
    """One line of the list of all tasks."""

    name: str
    summary: str
    category: str
    input_language: str
    output_language: str


class TaskRefusal(NamedTuple):
    """The reason why a task is dropped."""

    rule: Rule
    reason: str


def read_task_info(csv_path: Path | None, folder: Path) -> Mapping[str, TaskInfo]:
    """Return the list of all tasks by name.

    Args:
        csv_path: The CSV file; None to read the README.md in the folder of the tasks.
        folder: Folder of the tasks.

    Raises:
        ConfigError: there is no such file, or the README.md has no table with the needed columns.
        DataError: the file cannot be read.
    """
    path = csv_path if csv_path is not None else folder / "README.md"
    if not path.is_file():
        option = f"--task-info {path}: no such file" if csv_path is not None else f"--tasks filter: there is no {path}"
        raise ConfigError(f"{option}; {REMEDY}")
    check_readable(path, most=_MOST_BYTES)
    try:
        text = path.read_text(encoding="utf-8-sig")
        rows = list(csv.DictReader(text.splitlines(), strict=True) if csv_path is not None else _table_rows(text))
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: cannot be read ({error}); {REMEDY}") from error
    missing = [name for name in COLUMNS if not rows or name not in rows[0]]
    if missing:
        raise ConfigError(f"{path}: has no list of tasks with the column {', '.join(missing)}; {REMEDY}")
    infos = (TaskInfo(*((row.get(name) or "").strip() for name in COLUMNS)) for row in rows)
    return {info.name: info for info in infos if info.name}


def _table_rows(text: str) -> Iterator[dict[str, str]]:
    """Yield the rows of the Markdown table that begins with the columns of a list of tasks."""
    header: list[str] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if cells[:2] == ["Name", "Summary"]:
            header = cells
        elif header and len(cells) == len(header) and not set(line) <= set("|-: \t"):
            # A name is in backquotes, and may be a link as well.
            name = re.search(r"task\d+[\w.-]*", cells[0])
            yield {**dict(zip(header, cells, strict=True)), "Name": name[0] if name else ""}


def is_candidate(info: TaskInfo) -> bool:
    """Return True if the name, category or summary of a task identifies it as a classification.

    >>> is_candidate(TaskInfo("task1_x", "Classify a text.", "Misc.", "English", "English"))
    True
    """
    words = ("classification", "detection")
    # As in the release, which is case-sensitive for names, but not for categories and summaries.
    return (
        any(word in info.name for word in (*words, "answer_generation"))
        or any(word in info.category.lower() for word in words)
        or any(word in info.summary.lower() for word in ("classification", "classify", "detect"))
    )


def info_refusal(info: TaskInfo) -> TaskRefusal | None:
    """Return why the filter drops a candidate, judging by the list of all tasks; None if it does not."""
    if (info.input_language, info.output_language) != ("English", "English"):
        return TaskRefusal(
            LANGUAGE, f"its languages are {info.input_language or '?'} and {info.output_language or '?'}"
        )
    if info.name in _EXCLUDED or "incorrect_answer" in info.name:
        return TaskRefusal(EXCLUDED, "the publication leaves it out")
    return None


def content_refusal(content: TaskContent, labels: Sequence[str], *, is_filter: bool) -> TaskRefusal | None:
    """Return why a task is dropped, judging by its content; None if it is not.

    Args:
        content: Task.
        labels: Labels of the task.
        is_filter: True to apply the publication's filter too.
    """
    n = len(content.instances)
    if n <= N_SUPPORT:
        return TaskRefusal(TOO_FEW, f"{n} items can be used, and {N_SUPPORT + 1} are needed")
    if len(labels) < 2:
        return TaskRefusal(ONE_LABEL, f"the only label is '{labels[0]}'")
    if len(labels) >= _MOST_LABELS:
        return TaskRefusal(MANY_LABELS, f"it has {len(labels)} labels")
    if is_filter:
        mean = sum(len(instance.outputs) for instance in content.instances) / n
        if mean >= _MOST_OUTPUTS:
            return TaskRefusal(MANY_OUTPUTS, f"its items have {mean:.2f} outputs on average")
        if n < _LEAST_ITEMS:
            return TaskRefusal(SMALL, f"it has {n} items")
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltTask:
    """The items of a task, and what the source has of it."""

    source: SourceTask
    category: str
    counts: Mapping[str, int]
    """Number of items with each label, by the sorted labels."""
    licence: str
    sha256: str | None
    splits: Mapping[str, Sequence[LabelItem]]

    @property
    def n_items(self) -> int:
        """The number of items that the source has, of which not all need to be in a split."""
        return sum(self.counts.values())

    @property
    def difference(self) -> str | None:
        """How the task differs from the publication's table; None if it does not, or is not in it."""
        facts = published_tasks().get(self.source.name)
        if facts is None:
            return None
        # Sizes change with the repository: task827 has 996 items in the publication and 997 in the table.
        parts = [f"{self.n_items} items instead of {facts.n_instances}"] if self.n_items != facts.n_instances else []
        if facts.n_labels not in (None, len(self.counts)):
            parts.append(f"{len(self.counts)} labels instead of {facts.n_labels}")
        return f"{self.source.name}: {', '.join(parts)}" if parts else None


def read_tasks(
    chosen: Chosen, *, seed: int, limit: int, report: Report
) -> tuple[tuple[BuiltTask, ...], tuple[Reject, ...]]:
    """Read each chosen task, and return the usable ones and what was dropped.

    Raises:
        DataError: the file of a task cannot be read, or no task can be used.
        ConfigError: a task that was named cannot be used.
    """
    tasks: list[BuiltTask] = []
    rejects = list(chosen.rejects)
    for number, source in enumerate(chosen.tasks):
        report("reading tasks", number, len(chosen.tasks))
        content = source.read()
        labels = labels_of(content)
        refusal = content_refusal(content, labels, is_filter=chosen.mode == FILTER)
        rejects += content.rejects
        if refusal is None:
            counts = Counter(instance.label for instance in content.instances)
            tasks.append(
                BuiltTask(
                    source=source,
                    category=content.category,
                    counts={label: counts[label] for label in labels},
                    licence=content.licence,
                    sha256=content.sha256,
                    splits=split_items(content, seed=seed, limit=limit),
                )
            )
        elif chosen.mode == "named":
            raise ConfigError(f"--tasks {source.name}: cannot be used, {refusal.reason}; leave it out")
        else:
            rejects.append(
                Reject(candidate=source.name, source_row=None, rule=refusal.rule.name, reason=refusal.reason)
            )
    if not tasks:
        names = listed([task.name for task in chosen.tasks], most=MOST_NAMES)
        raise DataError(f"none of the {len(chosen.tasks)} tasks can be used ({names}); name others with --tasks")
    return tuple(tasks), tuple(rejects)
