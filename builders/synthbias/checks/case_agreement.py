"""Checks of the case of *him* and *his*, which swapping *her* in a finished sentence gets wrong.

Two readers look at each sentence as if its pronoun were *her*, and each says which case the place needs, or that it may
be either. If both say that the pronoun is wrong, it is an error; if one does, or neither knows, somebody must look.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from builders.pronoun_case import TWO_OBJECTS, UnsettledCaseError, case_by_neighbours
from builders.synthbias.checks.case_by_phrase import case_by_phrase, verb_lemma
from builders.synthbias.checks.check import SentenceCheck
from builders.synthbias.checks.sentence import Sentence
from builders.synthbias.word_lists import word_list
from schemas.lexicon import PronounCase

_GIVING = word_list("asked brought gave given giving offer offered offering sent served showed wished")
_CASE_OF_FORM: dict[str, PronounCase] = {"him": "accusative", "his": "possessive_dependent"}
_TOKEN = re.compile(r"[^\W\d_]+|\d+(?:[.,]\d+)*|\S")
_VERB_OF_HIS_OWN = word_list("is was has had does did can could will would shall should may might must")
"""Verbs before which *his* stands for *his* and a noun: "his was late"."""


class Readings(NamedTuple):
    """The case that each reader takes a place in a sentence for; None if it may be either."""

    by_neighbours: PronounCase | None
    by_phrase: PronounCase | None


def case_readings(before: str, after: str) -> Readings:
    """Return the cases that two readers take a place for, as if *her* stood in it.

    Args:
        before: Text before the pronoun.
        after: Text behind the pronoun.

    >>> case_readings("The cook met the nurse and praised", "work.")
    Readings(by_neighbours='possessive_dependent', by_phrase='possessive_dependent')
    """
    behind = _TOKEN.search(after)
    ahead = _TOKEN.findall(before[-40:])
    try:
        by_neighbours = case_by_neighbours(
            ahead[-1].casefold() if ahead else "",
            "her",
            behind[0].casefold() if behind else "",
            lemma_of=lambda word: verb_lemma(word, TWO_OBJECTS),
        )
    except UnsettledCaseError:
        return Readings(None, case_by_phrase(before, after))
    return Readings(by_neighbours, case_by_phrase(before, after))


@SentenceCheck
def _pronoun_case_error(sentence: Sentence) -> str | None:
    readings = _contradicted(sentence)
    if readings is None or None in readings or _CASE_OF_FORM[_form(sentence)] in readings or _may_stand_alone(sentence):
        return None
    return f"has '{_form(sentence)}' where both readers want '{_other_form(sentence)}'"


@SentenceCheck
def _pronoun_case_review(sentence: Sentence) -> str | None:
    readings = _contradicted(sentence)
    if readings is None or _pronoun_case_error.find(sentence) is not None:
        return None
    if readings == (None, None):
        return f"has '{_form(sentence)}' where 'her' could be 'him' or 'his'"
    return f"has '{_form(sentence)}' where one of two readers wants '{_other_form(sentence)}'"


@lru_cache(maxsize=1)
def _contradicted(sentence: Sentence) -> Readings | None:
    """Return the readings of the pronoun that is asked about, if they do not bear it out."""
    asked = sentence.asked
    if asked is None or asked.text.casefold() not in _CASE_OF_FORM:
        return None
    after = sentence.text[asked.end :]
    if asked.text.casefold() == "his" and sentence.claimed.case == "possessive_independent":
        return None  # Its counterpart is hers, and both readers look for what her can stand for.
    if (
        asked.text.casefold() == "his"
        and after.split(maxsplit=1)[:1]
        and after.split(maxsplit=1)[0] in _VERB_OF_HIS_OWN
    ):
        return None
    readings = case_readings(sentence.text[: asked.start], after)
    settled = {reading for reading in readings if reading is not None}
    return None if settled == {_CASE_OF_FORM[asked.text.casefold()]} else readings


def _may_stand_alone(sentence: Sentence) -> bool:
    """Return True for *his* at the end of a clause, which can be right: "mistook the coat for his"."""
    asked = sentence.asked
    return (
        asked is not None and _form(sentence) == "his" and not sentence.text[asked.end : asked.end + 2].strip(" .,;!?")
    )


def _form(sentence: Sentence) -> str:
    return sentence.asked.text.casefold() if sentence.asked else ""


def _other_form(sentence: Sentence) -> str:
    return "his" if _form(sentence) == "him" else "him"


@SentenceCheck
def _dative_or_possessive(sentence: Sentence) -> str | None:
    asked = sentence.asked
    if asked is None or asked.text != "his":
        return None
    verb = next(iter(sentence.text[: asked.start].split()[-1:]), "")
    return f"has '{verb} his', where 'her' could be the receiver" if verb in _GIVING else None
