"""Chooses the tasks to build, those of the publication or those that are named, and reads them.

``tasks.csv`` is the table of the 279 tasks of the publication: facts about each, but none of its texts. They are the
tasks that pass its filter: in English; with *classification*, *classify* or *detect* in name, category or summary; with
fewer than 50 labels, fewer than 2 outputs per item on average, and at least 396 items, so that 300 are left to evaluate
beside the 96 of bias and pool; and none of those that its code leaves out by name. Sizes are those of FLAN v2, which is
independent of the publication. Numbers of labels were counted in the files at hand; for most tasks these hold only the
demonstrations, so that rare labels may be missing.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.plain_text import listed
from biasboard.ground.progress import Report
from builders.dataset.output import Rule
from builders.superni.items import N_SUPPORT, SourceTasks, TaskContent, labels_of, split_items
from schemas.documents.dataset import Reject
from schemas.items.label import LabelItem

PUBLISHED = "published"
MOST_NAMES = 5
"""Largest number of names that a message lists."""
_NUMBER = re.compile(r"(?:task)?(\d{1,6})")

ONE_LABEL = Rule(name="one_label", description="the task has at least 2 labels")
MANY_LABELS = Rule(name="many_labels", description="the task has fewer than 50 labels")
TOO_FEW = Rule(name="too_few_items", description="the task has at least 97 items that can be used")
TASK_RULES = (ONE_LABEL, MANY_LABELS, TOO_FEW)
"""Rules that drop whole tasks."""
_MOST_LABELS = 50


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


def named_tasks(words: Sequence[str], available: SourceTasks) -> list[str]:
    """Return the names of tasks that are named in full or by number, such as ``73`` or ``task073``.

    Raises:
        ConfigError: the source has no such task, or several with that number.
    """
    names: dict[str, None] = {}
    for word in words:
        number = _NUMBER.fullmatch(word)
        # Five numbers belong to two tasks each, such as 184.
        same = [name for name in available if number and (own := _NUMBER.match(name)) and int(own[1]) == int(number[1])]
        if word in available:
            same = [word]
        if len(same) > 1:
            raise ConfigError(f"--tasks {word}: several tasks have this number; give the name: {', '.join(same)}")
        if not same:
            have = listed(list(available), most=MOST_NAMES)
            raise ConfigError(f"--tasks {word}: the source has no such task; have: {have}")
        names[same[0]] = None
    return list(names)


def content_refusal(content: TaskContent, labels: Sequence[str]) -> tuple[Rule, str] | None:
    """Return the rule by which a task is dropped, and the reason; None if it is not."""
    n = len(content.instances)
    if n <= N_SUPPORT:
        return TOO_FEW, f"{n} items can be used, and {N_SUPPORT + 1} are needed"
    if len(labels) < 2:
        return ONE_LABEL, f"the only label is '{labels[0]}'"
    if len(labels) >= _MOST_LABELS:
        return MANY_LABELS, f"it has {len(labels)} labels"
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltTask:
    """The items of a task, and what the source has of it."""

    name: str
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
        facts = published_tasks().get(self.name)
        if facts is None:
            return None
        # Sizes change with the repository: task827 has 996 items in the publication and 997 in the table.
        parts = [f"{self.n_items} items instead of {facts.n_instances}"] if self.n_items != facts.n_instances else []
        if facts.n_labels not in (None, len(self.counts)):
            parts.append(f"{len(self.counts)} labels instead of {facts.n_labels}")
        return f"{self.name}: {', '.join(parts)}" if parts else None


def read_tasks(
    chosen: SourceTasks, *, is_named: bool, seed: int, limit: int, report: Report
) -> tuple[list[BuiltTask], list[Reject]]:
    """Read each chosen task, and return the usable ones and what was dropped; ``is_named`` if the user named them.

    Raises:
        DataError: the file of a task cannot be read, or no task can be used.
        ConfigError: a task that was named cannot be used.
    """
    tasks: list[BuiltTask] = []
    rejects: list[Reject] = []
    for number, (name, read) in enumerate(chosen.items()):
        report("reading tasks", number, len(chosen))
        content = read()
        labels = labels_of(content)
        rejects += content.rejects
        if (refusal := content_refusal(content, labels)) is not None:
            rule, reason = refusal
            if is_named:
                raise ConfigError(f"--tasks {name}: cannot be used, {reason}; leave it out")
            rejects.append(Reject(candidate=name, source_row=None, rule=rule.name, reason=reason))
            continue
        counts = Counter(instance.label for instance in content.instances)
        tasks.append(
            BuiltTask(
                name=name,
                category=content.category,
                counts={label: counts[label] for label in labels},
                licence=content.licence,
                sha256=content.sha256,
                splits=split_items(content, seed=seed, limit=limit),
            )
        )
    if not tasks:
        names = listed(list(chosen), most=MOST_NAMES)
        raise DataError(f"none of the {len(chosen)} tasks can be used ({names}); name others with --tasks")
    return tasks, rejects
