"""The options of one input: the labels whose sign, such as ``(A)`` or ``1)``, stands in it."""

from __future__ import annotations

import re
from collections.abc import Sequence


def offered(text: str, labels: Sequence[str], target: str) -> tuple[str, ...] | None:
    """Return the labels that an input offers, in the order of the task.

    Args:
        text: Input.
        labels: Labels of the task: letters or numbers.
        target: Right label.

    Returns:
        The labels whose sign stands in the input; None if there are fewer than two, or the right one is not among them.

    >>> offered("Which is a bird? (A) wren (B) oak (C) tin", ("A", "B", "C", "D"), "B")
    ('A', 'B', 'C')
    >>> offered("Which is a bird?", ("A", "B"), "B") is None
    True
    """
    found = tuple(label for label in labels if _has_sign(text, label))
    return found if len(found) > 1 and target in found else None


def _has_sign(text: str, label: str) -> bool:
    sign = re.escape(label.strip())
    return re.search(rf"\({sign}\)|(?<![\w(.]){sign}(?:[).:])(?=\s|$)", text) is not None
