"""The thresholds of the protocol: when a sentence has enough votes, and what the votes say about it.

All comparisons are between integers, because 75 percent of a number of votes is often no number of votes.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

MIN_VOTES = 4
MAX_VOTES = 10

Reading: TypeAlias = Literal["incoherent", "open", "first", "second", "unclear"]
"""Result of the votes: the pronoun can mean both occupations (``open``), only the one mentioned first or second, or
none of this is clear enough."""
Expected: TypeAlias = Literal["open", "first", "second"]
"""Reading with which a sentence was written: ``open`` for type 1, the position of the referent for type 2."""


class StopRule(StrEnum):
    """The values of ``--stop-rule``."""

    PAPER = "paper"
    """Stop at a consensus of 75 percent on every question, as the publication does."""
    DECISIVE = "decisive"
    """Stop when no further votes, up to ten, could change whether the sentence is accepted."""


class Count(NamedTuple):
    """The answers to one question."""

    yes: int
    n: int

    @property
    def above_three_quarters(self) -> bool:
        """True if more than 75 percent are yes."""
        return 4 * self.yes > 3 * self.n

    @property
    def at_least_three_quarters(self) -> bool:
        """True if there are answers, and at least 75 percent are yes."""
        return self.n > 0 and 4 * self.yes >= 3 * self.n

    @property
    def below_one_quarter(self) -> bool:
        """True if less than 25 percent are yes."""
        return 4 * self.yes < self.n

    @property
    def is_consensus(self) -> bool:
        """True if there are answers, and at least 75 percent are the same."""
        return self.n > 0 and 4 * max(self.yes, self.n - self.yes) >= 3 * self.n


class Tally(NamedTuple):
    """The votes on one sentence; those who find it incoherent are asked nothing further."""

    coherent: Count
    """Answers to: is the sentence coherent?"""
    first: Count
    """Answers to: can the pronoun mean the occupation mentioned first?"""
    second: Count
    """Answers to: can the pronoun mean the occupation mentioned second?"""


def reading_of(tally: Tally) -> Reading:
    """Return what the votes on a sentence say about it."""
    if not tally.coherent.above_three_quarters:
        return "incoherent"
    if tally.first.at_least_three_quarters and tally.second.at_least_three_quarters:
        return "open"
    if tally.first.at_least_three_quarters and tally.second.below_one_quarter:
        return "first"
    if tally.second.at_least_three_quarters and tally.first.below_one_quarter:
        return "second"
    return "unclear"


def is_accepted(tally: Tally, expected: Expected, *, relabel: bool = False) -> bool:
    """Return True if the votes accept a sentence.

    Args:
        tally: Votes on the sentence.
        expected: Reading with which it was written.
        relabel: True to accept a sentence of type 2 that the votes find open, as one of type 1.
    """
    reading = reading_of(tally)
    return reading == expected or (relabel and reading == "open")


def is_enough(tally: Tally, expected: Expected, rule: StopRule, *, relabel: bool = False) -> bool:
    """Return True if a sentence needs no more votes.

    Args:
        tally: Votes on the sentence.
        expected: Reading with which it was written.
        rule: Rule by which to stop.
        relabel: True if a sentence of type 2 may become one of type 1, see :func:`is_accepted`.
    """
    if tally.coherent.n < MIN_VOTES:
        return False
    if tally.coherent.n >= MAX_VOTES:
        return True
    if rule is StopRule.DECISIVE:
        return _is_certain(tally, expected, relabel)
    coherent = tally.coherent
    if coherent.is_consensus and 2 * coherent.yes < coherent.n:
        # Nobody need agree on the pronoun of a sentence that makes no sense.
        return True
    return all(count.is_consensus for count in tally)


@lru_cache(maxsize=1 << 16)
def votes_to_ask(tally: Tally, expected: Expected, rule: StopRule, *, relabel: bool = False) -> int:
    """Return the smallest number of further votes after which a sentence could have enough; 0 if it has.

    Fewer votes could not be enough, whatever they are, so that asking for these at once wastes none.
    """
    if is_enough(tally, expected, rule, relabel=relabel):
        return 0
    for n in range(max(1, MIN_VOTES - tally.coherent.n), MAX_VOTES - tally.coherent.n):
        if any(is_enough(after, expected, rule, relabel=relabel) for after in _after(tally, n)):
            return n
    return MAX_VOTES - tally.coherent.n


@lru_cache(maxsize=1 << 16)
def _is_certain(tally: Tally, expected: Expected, relabel: bool) -> bool:
    ends = {is_accepted(after, expected, relabel=relabel) for after in _after(tally, MAX_VOTES - tally.coherent.n)}
    return len(ends) == 1


def _after(tally: Tally, n: int) -> Iterator[Tally]:
    """Yield every tally that a number of further votes could lead to."""
    (coherent, first, second) = tally
    for yes in range(n + 1):
        for yes_first in range(yes + 1):
            for yes_second in range(yes + 1):
                yield Tally(
                    Count(coherent.yes + yes, coherent.n + n),
                    Count(first.yes + yes_first, first.n + yes),
                    Count(second.yes + yes_second, second.n + yes),
                )
