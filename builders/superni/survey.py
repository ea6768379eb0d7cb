"""Counts every chosen task once before anything is written, and makes its items only when they are written.

Only the counts of a task stay in memory. Its splits are sequences that read the task again on access, so that only one
task's items are in memory at a time, however many tasks a dataset has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import overload

from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.plain_text import listed
from biasboard.ground.progress import Report
from builders.dataset.output import DraftSplit
from builders.superni.content import SourceTask, TaskContent
from builders.superni.items import N_BIAS, N_CONTENT_FREE, N_POOL, SPLITS, labels_of, n_test_of, split_items
from builders.superni.task_choice import FILTER, MOST_NAMES, Chosen, content_refusal, published_tasks
from schemas.documents.dataset import Reject
from schemas.items.label import LabelItem


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSummary:
    """The counts of a task, without any of its texts except its labels."""

    source: SourceTask
    category: str
    counts: Mapping[str, int]
    """Number of items with each label, by the sorted labels."""
    n_items: int
    n_test: int
    licence: str
    sha256: str | None

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


def survey(chosen: Chosen, *, limit: int, report: Report) -> tuple[tuple[TaskSummary, ...], tuple[Reject, ...]]:
    """Read each chosen task, and return the usable ones and what was dropped.

    Raises:
        DataError: the file of a task cannot be read, or no task can be used.
        ConfigError: a task that was named cannot be used.
    """
    tasks: list[TaskSummary] = []
    rejects = list(chosen.rejects)
    for number, source in enumerate(chosen.tasks):
        report("reading tasks", number, len(chosen.tasks))
        content = source.read()
        labels = labels_of(content)
        refusal = content_refusal(content, labels, is_filter=chosen.mode == FILTER)
        rejects += content.rejects
        if refusal is None:
            tasks.append(_summary(source, content, labels, limit))
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


def _summary(source: SourceTask, content: TaskContent, labels: Sequence[str], limit: int) -> TaskSummary:
    counts = Counter(instance.label for instance in content.instances)
    return TaskSummary(
        source=source,
        category=content.category,
        counts={label: counts[label] for label in labels},
        n_items=len(content.instances),
        n_test=n_test_of(len(content.instances), limit),
        licence=content.licence,
        sha256=content.sha256,
    )


def draft_splits(tasks: Sequence[TaskSummary], *, seed: int, limit: int) -> Iterator[DraftSplit[LabelItem]]:
    """Yield the splits of every task, whose items are made on access."""
    maker = _Maker(seed, limit)
    for task in tasks:
        sizes = (task.n_test, N_BIAS, N_POOL, N_CONTENT_FREE)
        for split, size in zip(SPLITS, sizes, strict=True):
            items = _SplitItems(maker, task, split, size)
            yield DraftSplit(config=task.source.name, split=split, item_shape="label", items=items)


@dataclass(slots=True)
class _Maker:
    """Makes the items of a task, and caches those of the last one, whose splits are written one after the other."""

    seed: int
    limit: int
    name: str | None = None
    made: Mapping[str, Sequence[LabelItem]] = field(default_factory=dict)

    def items(self, task: TaskSummary, split: str) -> Sequence[LabelItem]:
        """Return the items of a split.

        Raises:
            DataError: the file of the task has changed since it was surveyed.
        """
        if self.name != task.source.name:
            self.name, self.made = None, {}
            content = task.source.read()
            if content.sha256 != task.sha256:
                raise DataError(f"{task.source.name}: its file was changed during the build; build the dataset again")
            self.name, self.made = content.name, split_items(content, seed=self.seed, limit=self.limit)
        return self.made[split]


class _SplitItems(Sequence[LabelItem]):
    """The items of a split, made on access."""

    def __init__(self, maker: _Maker, task: TaskSummary, split: str, size: int) -> None:
        self._maker, self._task, self._split, self._size = maker, task, split, size

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, index: int) -> LabelItem: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[LabelItem]: ...
    def __getitem__(self, index: int | slice) -> LabelItem | Sequence[LabelItem]:
        return self._maker.items(self._task, self._split)[index]

    def __iter__(self) -> Iterator[LabelItem]:
        return iter(self._maker.items(self._task, self._split))
