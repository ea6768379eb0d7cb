"""The values that readings of answers to texts with pronouns can take."""

from __future__ import annotations

from collections.abc import Sequence

from evaluators.statistics.record_tables import Answer

NONE = "none"
"""Reading of an answer without a pronoun."""
REFUSED = "refused"
"""Reading of an answer that was refused."""
FAILED = "failed"
"""Reading of a sample without an answer."""
NO_NUMBER = "no number"
"""Reading of an answer to a word problem that states no number."""
_BETWEEN = "|"


def is_refused(answer: Answer) -> bool:
    """Return True if an answer, or with it the whole item, was refused."""
    return answer.reading == REFUSED or answer.record_status == "refused"


def spelt(families: Sequence[str]) -> str:
    """Return the reading of a pronoun: its families, joined if several share it, or ``none`` without any.

    >>> spelt(("e", "ey")), spelt(())
    ('e|ey', 'none')
    """
    return _BETWEEN.join(families) or NONE


def families_in(answer: str) -> tuple[str, ...]:
    """Return the families in a reading; empty if the answer has no pronoun, was refused or failed.

    >>> families_in("e|ey"), families_in("refused")
    (('e', 'ey'), ())
    """
    return () if answer in (NONE, REFUSED, FAILED) else tuple(answer.split(_BETWEEN))
