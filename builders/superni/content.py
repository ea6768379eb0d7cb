"""The content of one task, in the same form for each source: its instruction, and inputs with their outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from biasboard.ground.errors import DataError
from biasboard.ground.plain_text import invisible_sign, printable
from builders.dataset.output import Rule
from schemas.documents.dataset import Reject

EMPTY_INPUT = Rule(name="empty_input", description="the item has an input of more than spaces")
EMPTY_OUTPUT = Rule(name="empty_output", description="the first output of the item is more than spaces")
MISSING_FIELD = Rule(name="missing_field", description="the item has an input, and one output or a list of outputs")
REPEATED_ID = Rule(name="repeated_id", description="no item before it in the task has the same id")
ITEM_RULES = (EMPTY_INPUT, EMPTY_OUTPUT, MISSING_FIELD, REPEATED_ID)
"""Rules that drop single items of a task."""


class Instance(NamedTuple):
    """One usable input of a task, with its outputs."""

    item_id: str
    text: str
    outputs: tuple[str, ...]
    location: str | None
    """Location in the source, such as ``task073_x.json, instance 12``, counted from 0; None for an embedded task."""

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
    """True if the labels only number the choices, as the letters of options do."""
    own_candidates: bool
    """True if the items of the task offer different numbers of options, so that each has its own labels."""
    licence: str
    """Licence of the task, as the source states it."""
    sha256: str | None
    """SHA-256 of the file; None for an embedded task."""
    instances: tuple[Instance, ...]
    rejects: tuple[Reject, ...]
    """Items that were dropped, each by one of ``ITEM_RULES``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTask:
    """A task of a source, not read yet."""

    name: str
    address: str
    """Address of the task, for the manifest."""
    read: Callable[[], TaskContent]
    """Reads the task; may raise DataError."""


class SourceRow(NamedTuple):
    """One row of a source, not checked yet."""

    location: str
    item_id: str | None
    """The id in the source; None if it has none."""
    text: object
    outputs: object


def sort_rows(
    rows: list[SourceRow], make_id: Callable[[str, int], str]
) -> tuple[tuple[Instance, ...], tuple[Reject, ...]]:
    """Sort rows into usable instances and rejects, keeping their order.

    Args:
        rows: Rows of one task.
        make_id: Function that returns the id of a row without one, from its input and the number of rows before it that
            have the same input.
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
        # No candidate text, since the licences of most tasks forbid showing it.
        rejects.append(Reject(candidate="", source_row=row.location, rule=rule.name, reason=reason))
    return tuple(instances), tuple(rejects)


def check_labels(instances: Iterable[Instance]) -> None:
    """Check that the labels of a task of the user's own can be seen; those of published tasks are what they are.

    Raises:
        DataError: a label has a control character, or a sign that changes the direction of writing.
    """
    for instance in instances:
        label = instance.label.strip()
        if (sign := invisible_sign(label)) is not None:
            shown = printable(label, most=60)
            raise DataError(f"{instance.location}: label '{shown}' has the control character {sign!a}; remove it")


def _outputs(value: object) -> tuple[str, ...] | None:
    """Return the outputs of a row, given as one text or as a list of texts; None if they are neither."""
    # The repository's old schema has one text instead of a list.
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list | tuple) or not all(isinstance(output, str) for output in values):
        return None
    return tuple(values)
