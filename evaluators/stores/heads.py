"""Finds beginnings that many prompts share, such as an instruction with examples, so that they are stored once."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

LEAST = 256
"""Number of characters from which a shared beginning is worth a row of its own."""
MOST_HEADS = 16
"""Number of beginnings that a prompt is compared with."""
_MOST_RECENT = 8


class Heads:
    """The beginnings that the latest prompts share.

    Prompts of one task come near each other, whatever the order in which a backend answers. A prompt is therefore
    compared with the latest beginnings, and then with the latest prompts.
    """

    def __init__(self, known: Iterable[str] = ()) -> None:
        """Begin with some beginnings.

        Args:
            known: Beginnings in the order in which they were last used.
        """
        self._heads = deque(known, maxlen=MOST_HEADS)
        self._recent: deque[str] = deque(maxlen=_MOST_RECENT)

    def head_of(self, prompt: str) -> str:
        """Return the beginning of a prompt that is stored apart; empty if the prompt is stored as a whole."""
        fitting = [head for head in self._heads if prompt.startswith(head)]
        head = max(fitting, key=len, default="") or self._new_head(prompt)
        if head:
            if head in self._heads:
                self._heads.remove(head)
            self._heads.append(head)
        self._recent.append(prompt)
        return head

    def _new_head(self, prompt: str) -> str:
        length = max((_n_shared(prompt, other) for other in self._recent), default=0)
        # What ends with a line is more often shared by others than what ends inside one.
        line = prompt.rfind("\n", 0, length) + 1
        length = line if line >= LEAST else length
        return prompt[:length] if length >= LEAST else ""


def _n_shared(left: str, right: str) -> int:
    """Return the number of characters at the beginning that two texts share.

    >>> _n_shared("the baker", "the banker")
    6
    """
    # Halving compares slices, which takes a fraction of the time of os.path.commonprefix on texts of a megabyte.
    least, most = 0, min(len(left), len(right))
    while least < most:
        middle = (least + most + 1) // 2
        if left.startswith(right[least:middle], least):
            least = middle
        else:
            most = middle - 1
    return least
