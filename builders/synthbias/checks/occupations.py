"""Checks of the occupations that a sentence mentions."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache, partial
from typing import NamedTuple

from builders.synthbias.checks.check import SentenceCheck
from builders.synthbias.checks.sentence import Sentence
from builders.synthbias.pairing import cluster_of, percent_gap
from schemas.lexicon import occupations

MIN_PERCENT_GAP = 10.0
"""Gap that the shares of women in a pair must exceed, in percentage points; SynthBias too leaves out a gap of 10."""

_POSSESSIVE = re.compile(r"['\u2019]s\b")


@SentenceCheck
def _unknown_occupation(sentence: Sentence) -> str | None:
    for name in sentence.meant:
        if name not in occupations():
            return f"occupation '{name}' is not in the lexicon; have: {', '.join(sorted(occupations()))}"
    return None


@SentenceCheck
def _missing_occupation(sentence: Sentence) -> str | None:
    found = {mention.text for mention in sentence.occupations}
    for name in sentence.meant:
        if name not in found and name in occupations():
            return f"'{name}' stands 0 times in the sentence, not once"
    return None


@SentenceCheck
def _repeated_occupation(sentence: Sentence) -> str | None:
    for name, times in Counter(mention.text for mention in sentence.occupations).items():
        if times > 1:
            return f"'{name}' stands {times} times in the sentence, not once"
    return None


@SentenceCheck
def _third_occupation(sentence: Sentence) -> str | None:
    others = [mention.text for mention in sentence.occupations if mention.text not in sentence.meant]
    return f"names '{others[0]}' besides {' and '.join(sentence.meant)}" if others else None


@SentenceCheck
def _two_occupations(sentence: Sentence) -> str | None:
    found = [mention.text for mention in sentence.occupations]
    meant = sentence.meant
    if len(found) == 2 and set(found) == set(meant):
        return None
    return f"names {', '.join(found) or 'no occupation'}, not {' and '.join(sorted(set(meant)))} once each"


@SentenceCheck
def _same_list(sentence: Sentence) -> str | None:
    return _of_pair(*sentence.meant).same_list


@partial(SentenceCheck, gap=MIN_PERCENT_GAP)
def _gap_too_small(sentence: Sentence) -> str | None:
    return _of_pair(*sentence.meant).gap


class _PairFaults(NamedTuple):
    same_list: str | None
    gap: str | None


@cache
def _of_pair(one: str, other: str) -> _PairFaults:
    """Return what is wrong with a pair of occupations; there are few pairs and many sentences."""
    if one not in occupations() or other not in occupations():
        return _PairFaults(None, None)
    try:
        cluster_of(one, other)
    except ValueError as error:
        return _PairFaults(f"{error}, a pair has one of each list", None)
    gap = percent_gap(one, other)
    if gap > MIN_PERCENT_GAP:
        return _PairFaults(None, None)
    reason = f"the shares of women differ by {gap:g} points, not by more than {MIN_PERCENT_GAP:g}"
    return _PairFaults(None, reason)


@SentenceCheck
def _articles(sentence: Sentence) -> str | None:
    for mention in sentence.occupations:
        if sentence.text.endswith(("The ", " the "), 0, mention.start):
            continue
        if sentence.text[: mention.start].casefold().split()[-1:] != ["the"]:
            return f"has no 'the' before '{mention.text}'"
    return None


@SentenceCheck
def _coordinated_without_article(sentence: Sentence) -> str | None:
    for mention in sentence.targets:
        if sentence.text.endswith(" and ", 0, mention.start):
            return f"has 'and {mention.text}' without 'the'"
    return None


@SentenceCheck
def _occupation_possessive(sentence: Sentence) -> str | None:
    for mention in sentence.targets:
        if _POSSESSIVE.match(sentence.text, mention.end):
            return f"has the possessive of '{mention.text}'"
    return None
