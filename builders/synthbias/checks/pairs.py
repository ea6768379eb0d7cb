"""Checks of the two sides of a minimal pair, and of sentences that have no counterpart."""

from __future__ import annotations

from collections.abc import Iterator

from builders.synthbias.checks.check import FileCheck, PairCheck
from builders.synthbias.checks.collection import Collection
from builders.synthbias.checks.sentence import Sentence
from builders.synthbias.pairing import cases_of_form


@PairCheck
def _not_minimal_pair(one: Sentence, other: Sentence) -> str | None:
    if one.masked != other.masked:
        return "differs from its counterpart in more than its pronouns"
    for mine, theirs in zip(one.pronouns, other.pronouns, strict=True):
        if not cases_of_form(mine.text) & cases_of_form(theirs.text):
            return f"has '{mine.text}' where its counterpart has '{theirs.text}', in another case"
    return None


@PairCheck
def _other_pronoun_marked(one: Sentence, other: Sentence) -> str | None:
    if _not_minimal_pair.find(one, other) is not None or _rank(one) == _rank(other):
        return None
    return "its counterpart asks about another pronoun"


def _rank(sentence: Sentence) -> int | None:
    """Return the index of the pronoun that is asked about among all pronouns, or None if it is none of them."""
    asked = sentence.asked
    starts = [mention.start for mention in sentence.pronouns]
    return starts.index(asked.start) if asked is not None and asked.start in starts else None


@FileCheck
def _unpaired(collection: Collection) -> Iterator[tuple[int, str]]:
    paired = {index for pair in collection.pairs for index in pair}
    for group in collection.sides:
        reason = f"{len(group) - 1} other rows are the same apart from the pronoun, not one with the other gender"
        yield from ((index, reason) for index in group if index not in paired)
