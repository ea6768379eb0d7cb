"""The content of a task, in one form for all sources: its instruction, and inputs with their outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from builders.dataset.output import Rule
from schemas.documents.dataset import Reject

EMPTY_INPUT = Rule(name="empty_input", description="the item has an input of more than spaces")
EMPTY_OUTPUT = Rule(name="empty_output", description="the first output of the item is more than spaces")
MISSING_FIELD = Rule(name="missing_field", description="the item has an input, and one output or a list of outputs")
REPEATED_ID = Rule(name="repeated_id", description="no item before it in the task has the same id")
ITEM_RULES = (EMPTY_INPUT, EMPTY_OUTPUT, MISSING_FIELD, REPEATED_ID)
"""Rules by which single items of a task are rejected."""


class Instance(NamedTuple):
    """One usable input of a task, with its outputs."""

    item_id: str
    text: str
    outputs: tuple[str, ...]
    location: str | None
    """File and index of the instance, such as ``task073_x.json, instance 0``; None for an embedded task."""

    @property
    def label(self) -> str:
        """The right label: the first output, as the source spells it."""
        return self.outputs[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskContent:
    """Everything that a source holds about one task."""

    name: str
    instruction: str
    category: str
    equivalent_labels: bool
    """True if the labels only say which choice is meant, such as A or B."""
    own_candidates: bool
    """True if the items offer different numbers of options, so that the set of labels differs between items."""
    licence: str
    """Licence of the task, as the source states it."""
    sha256: str | None
    """SHA-256 of the file; None for an embedded task."""
    instances: tuple[Instance, ...]
    rejects: tuple[Reject, ...]
    """Items that are rejected, each by one of ``ITEM_RULES``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTask:
    """A task of a source, not read yet."""

    name: str
    address: str
    """Address of the task, for the manifest."""
    read: Callable[[], TaskContent]
    """Function that reads the task, or raises DataError. It keeps nothing in memory: each call reads the file again."""


class InstancesAndRejects(NamedTuple):
    """The usable instances of a task, and rejects for its other rows."""

    instances: tuple[Instance, ...]
    rejects: tuple[Reject, ...]


class Row(NamedTuple):
    """One row of a source, not checked yet."""

    location: str
    item_id: str | None
    """The id that the source gives; None if it gives none."""
    text: object
    outputs: object


def split_rows(rows: list[Row], make_id: Callable[[str, int], str]) -> InstancesAndRejects:
    """Split rows into usable instances and rejects; both keep the order of the rows.

    Args:
        rows: Rows of one task.
        make_id: Function that makes the id of a row without one, from its input and the number of earlier instances
            with the same input.
    """
    instances: list[Instance] = []
    rejects: list[Reject] = []
    ids: set[str] = set()
    n_before: dict[str, int] = {}
    for row in rows:
        text, outputs = row.text, _outputs(row.outputs)
        if not isinstance(text, str) or outputs is None:
            rule, reason = MISSING_FIELD, "the input is no text, or the output neither a text nor a list of texts"
        elif not text.strip():
            rule, reason = EMPTY_INPUT, f"the input is {text!r}"
        elif not outputs or not outputs[0].strip():
            rule, reason = EMPTY_OUTPUT, f"the first output is {outputs[0]!r}" if outputs else "there is no output"
        else:
            item_id = make_id(text, n_before.get(text, 0)) if row.item_id is None else row.item_id
            n_before[text] = n_before.get(text, 0) + 1
            if item_id not in ids:
                ids.add(item_id)
                instances.append(Instance(item_id, text, outputs, row.location))
                continue
            rule, reason = REPEATED_ID, f"the id '{item_id}' stands in the task before"
        # Without the text of the candidate, which the licences of most tasks forbid to show.
        rejects.append(Reject(candidate="", source_row=row.location, rule=rule.name, reason=reason))
    return InstancesAndRejects(tuple(instances), tuple(rejects))


def _outputs(value: object) -> tuple[str, ...] | None:
    """Return the outputs of a row, given as one text or as a list of texts; None if they are neither."""
    # The old schema of natural-instructions has one text instead of a list.
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list | tuple) or not all(isinstance(output, str) for output in values):
        return None
    return tuple(values)
