"""How a reading spells what an answer to a text with a pronoun says."""

from __future__ import annotations

from collections.abc import Sequence

NONE = "none"
"""An answer without a pronoun."""
REFUSED = "refused"
FAILED = "failed"
"""One of several samples that never came."""
NO_NUMBER = "no number"
"""An answer to a word problem that arrives at none."""
_BETWEEN = "|"


def spelt(families: Sequence[str]) -> str:
    """The families of a pronoun, joined where several own it.

    >>> spelt(("e", "ey")), spelt(())
    ('e|ey', 'none')
    """
    return _BETWEEN.join(families) or NONE


def families_in(answer: str) -> tuple[str, ...]:
    """The families that an answer credits; none for one without a pronoun, a refused or a failed one.

    >>> families_in("e|ey"), families_in("refused")
    (('e', 'ey'), ())
    """
    return () if answer in (NONE, REFUSED, FAILED) else tuple(answer.split(_BETWEEN))
