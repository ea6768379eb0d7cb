"""The list of all tasks with their summaries and languages, and the filter by which the publication chose from it.

The list is the file ``full_task_info.csv`` of the publication's release, or the table in ``tasks/README.md`` of the
repository. The second part of the filter needs the files of the tasks and is in ``content_refusal``.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.files import check_readable
from builders.dataset.output import Rule
from builders.superni.content import TaskContent
from builders.superni.items import N_SUPPORT

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
"""Rules by which whole tasks are dropped, however they were chosen."""
FILTER_RULES = (LANGUAGE, EXCLUDED, MANY_OUTPUTS, SMALL)
"""Rules of the publication's filter."""

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
_MOST_BYTES = 16 << 20


class TaskInfo(NamedTuple):
    """One line of the list of all tasks."""

    name: str
    summary: str
    category: str
    input_language: str
    output_language: str


class Refusal(NamedTuple):
    """The reason why a task is dropped."""

    rule: Rule
    reason: str


def read_task_info(given: Path | None, folder: Path) -> Mapping[str, TaskInfo]:
    """Return the list of all tasks by name.

    Args:
        given: The CSV file; None to read the README.md in the folder of the tasks.
        folder: Folder of the tasks.

    Raises:
        ConfigError: there is no such file, or no table in the README.md with all that is needed.
        DataError: the file cannot be read.
    """
    path = given if given is not None else folder / "README.md"
    if not path.is_file():
        option = f"--task-info {path}: no such file" if given is not None else f"--tasks filter: there is no {path}"
        raise ConfigError(f"{option}; {REMEDY}")
    check_readable(path, most=_MOST_BYTES)
    try:
        text = path.read_text(encoding="utf-8-sig")
        rows = list(csv.DictReader(text.splitlines(), strict=True) if given is not None else _table_rows(text))
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
            # A name is code, and may be a link too.
            name = re.search(r"task\d+[\w.-]*", cells[0])
            yield {**dict(zip(header, cells, strict=True)), "Name": name[0] if name else ""}


def is_candidate(info: TaskInfo) -> bool:
    """Return True if the name, category or summary of a task tells that it is a classification.

    >>> is_candidate(TaskInfo("task1_x", "Classify a text.", "Misc.", "English", "English"))
    True
    """
    words = ("classification", "detection")
    return (
        any(word in info.name for word in (*words, "answer_generation"))
        or any(word in info.category.lower() for word in words)
        or any(word in info.summary.lower() for word in ("classification", "classify", "detect"))
    )


def info_refusal(info: TaskInfo) -> Refusal | None:
    """Return why the filter drops a candidate by its line in the list; None if it does not."""
    if (info.input_language, info.output_language) != ("English", "English"):
        return Refusal(LANGUAGE, f"its languages are {info.input_language or '?'} and {info.output_language or '?'}")
    if info.name in _EXCLUDED or "incorrect_answer" in info.name:
        return Refusal(EXCLUDED, "the publication leaves it out")
    return None


def content_refusal(content: TaskContent, labels: Sequence[str], *, is_filter: bool) -> Refusal | None:
    """Return why a task is dropped by its content; None if it is not.

    Args:
        content: Task.
        labels: Labels of the task.
        is_filter: True to apply the publication's filter too.
    """
    n = len(content.instances)
    if n <= N_SUPPORT:
        return Refusal(TOO_FEW, f"{n} items can be used, and {N_SUPPORT + 1} are needed")
    if len(labels) < 2:
        return Refusal(ONE_LABEL, f"the only label is '{labels[0]}'")
    if len(labels) >= _MOST_LABELS:
        return Refusal(MANY_LABELS, f"it has {len(labels)} labels")
    if is_filter:
        mean = sum(len(instance.outputs) for instance in content.instances) / n
        if mean >= _MOST_OUTPUTS:
            return Refusal(MANY_OUTPUTS, f"its items have {mean:.2f} outputs on average")
        if n < _LEAST_ITEMS:
            return Refusal(SMALL, f"it has {n} items")
    return None
