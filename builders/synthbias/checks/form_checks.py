"""A check of the form of a pronoun that the words before and after it do not allow: "because him left", "hers desk".

It tells the subject, the object, the possessive before a noun, the one that stands alone, and the reflexive apart by
lists of words, and says nothing where a list does not settle it. Whether *him* or *his* is right, ``case_checks`` asks
in more detail, and both sides of a pair are compared with each other by ``not_minimal_pair``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from biasboard.ground.toml_files import packaged_words
from builders.synthbias.checks.case_checks import case_readings, verb_lemma
from builders.synthbias.checks.check import SentenceCheck
from builders.synthbias.checks.sentence import Sentence
from builders.synthbias.mentions import mentions_in
from schemas.lexicon import gender_of_pronoun

_WORDS: Mapping[str, frozenset[str]] = {
    name: frozenset(words) for name, words in packaged_words("builders.synthbias.checks", "form_words.toml").items()
}
_PHRASES = packaged_words("builders.synthbias.checks", "phrase_words.toml")
_CLOSED, _NO_PARTICIPLES = frozenset(_PHRASES["closed"]), frozenset(_PHRASES["no_participle"])
_TOKEN = re.compile(r"\w+(?:['\u2019-]\w+)*|[^\w\s]")
_APOSTROPHES = ("'", "\u2019")
_FORMS = {
    "masculine": ("he", "him", "his", "his"),
    "feminine": ("she", "her", "her", "hers"),
}
_OTHER_SUBJECT = re.compile(
    r"\b(?:because|since|after|before|when|while|until|if|although|though|that) (?:the|an?|this) "
    r"(?:(?!and|or|who|to|by|for|of|about|with|in|on|at|beside|between|from)[\w'\u2019-]+ )+$"
)
"""The end of a text that has an own subject, and no preposition before the pronoun."""
_SUBJECT, _OBJECT, _POSSESSIVE, _INDEPENDENT = range(4)


class _Place(NamedTuple):
    """The words around a pronoun, in lower case; empty where the sentence begins or ends."""

    before: str
    after: str
    next: str
    """The word behind the one after it."""
    text_before: str
    text_after: str

    @property
    def ends(self) -> bool:
        """True if nothing follows, or punctuation."""
        return not self.after[:1].isalnum()

    @property
    def opens_clause(self) -> bool:
        """True if the word before it can open a clause, or nothing stands there."""
        before = self.before
        return (
            not before[:1].isalnum()
            or before in _WORDS["openers"]
            or before in _WORDS["openers_or_prepositions"]
            or before in _WORDS["saying"]
        )


@SentenceCheck
def _pronoun_form(sentence: Sentence) -> str | None:
    asked, place = sentence.asked, _place(sentence)
    wanted = _form_wanted(sentence)
    if asked is None or wanted is None:
        return None
    around = " ".join(filter(str.isalnum, (place.before, asked.text, place.after)))
    return f"has '{around}'; is '{wanted}' meant?"


@_pronoun_form.mended_by
def _with_wanted_form(sentence: Sentence) -> str | None:
    asked, wanted = sentence.asked, _form_wanted(sentence)
    if asked is None or wanted is None:
        return None
    return f"{sentence.text[: asked.start]}{wanted}{sentence.text[asked.end :]}"


def _form_wanted(sentence: Sentence) -> str | None:
    asked = sentence.asked
    gender = None if asked is None else gender_of_pronoun(asked.text)
    if asked is None or gender is None:
        return None
    wanted = _wanted(asked.text.casefold(), _place(sentence))
    return None if wanted is None else _FORMS[gender][wanted]


def _place(sentence: Sentence) -> _Place:
    start, end = (sentence.asked.start, sentence.asked.end) if sentence.asked else (0, 0)
    before = _TOKEN.findall(sentence.text[:start].casefold())
    after, following, *_ = [*_TOKEN.findall(sentence.text[end:].casefold()), "", ""]
    return _Place(before[-1] if before else "", after, following, sentence.text[:start], sentence.text[end:])


def _wanted(form: str, place: _Place) -> int | None:
    """Return the index of the form that is wanted, or None if the pronoun may be right."""
    if form in ("he", "she"):
        return _in_place_of_subject(place)
    is_subject = _is_subject(place)
    if form in ("him", "her"):
        # No noun can follow *him*, as one can *her*: "because her shift ended".
        if is_subject or (form == "him" and place.before in _WORDS["openers"]):
            return _SUBJECT
        # "The keys were her."
        return _INDEPENDENT if form == "her" and place.before in _WORDS["copulas"] and place.ends else None
    if form == "hers":
        return _in_place_of_hers(place)
    return _in_place_of_reflexive(place) if form in ("himself", "herself") else None


def _in_place_of_reflexive(place: _Place) -> int | None:
    """Return what *himself* should be; None if it can stand for an object that is the subject of its clause."""
    if place.before in _WORDS["openers"]:
        return _SUBJECT
    may_open = place.before in _WORDS["openers_or_prepositions"] and place.before not in ("and", "or", "nor")
    if may_open and (place.after in _WORDS["finite"] or _is_past(place.after)):
        return _SUBJECT
    clause = _OTHER_SUBJECT.search(place.text_before)
    if clause is not None and not mentions_in(clause[0]).occupations:
        return _OBJECT  # "because the noise had woken herself"
    if place.before in _WORDS["reflexive_objects"] or _is_verb(place.after) or place.after.endswith("ly"):
        return None
    readings = case_readings(place.text_before, place.text_after)
    return _POSSESSIVE if set(readings) == {"possessive_dependent"} else None


def _in_place_of_subject(place: _Place) -> int | None:
    """Return what *he* or *she* should be; None if a verb follows that it can be the subject of."""
    if place.text_after[:1] in _APOSTROPHES:
        return None  # "she'd"
    if place.before in _WORDS["prepositions"]:
        return _by_readers(place)
    if place.before in _WORDS["finite"]:
        return None  # "Had she known", "it was he".
    if place.ends:
        is_right = place.opens_clause or place.before in _WORDS["copulas"]
        return None if is_right else _OBJECT
    if place.after == "to" or (place.after in _WORDS["objects_go_on"] and not place.opens_clause):
        return _OBJECT  # "asked he to call", "gave she a call"
    is_plural = place.after.endswith("s") and not _is_verb(place.after)
    if is_plural and place.next in _WORDS["finite"] and place.before in _WORDS["openers"]:
        return _POSSESSIVE  # "because he keys were lost"
    if is_plural and verb_lemma(place.before, _WORDS["takes_things"]):
        return _POSSESSIVE  # "finished she reports"
    # No list tells verbs in -s from plurals, and an error that is none would cost a researcher the sentence.
    if not _may_be_noun(place.after) or _is_verb(place.after) or place.after.endswith(("s", "ly")):
        return None
    if any(word.startswith(tuple(_WORDS["demanding"])) for word in place.text_before.casefold().split()):
        return None  # "suggested that she leave": a bare verb looks like a noun.
    return _by_readers(place)


def _by_readers(place: _Place) -> int:
    """Return the form that the readers of the case find as if it were *her*: an object, or a noun's possessor."""
    readings = case_readings(place.text_before, place.text_after)
    return _OBJECT if readings.by_neighbours == "accusative" else _POSSESSIVE


def _is_subject(place: _Place) -> bool:
    """Return True if an object form, or *her*, stands where nothing but a subject can."""
    is_after_opener = place.before in _WORDS["openers"] or place.text_before.endswith(", for ")
    if place.after in _WORDS["finite"]:
        # "after him had left", beside "somebody like her was there".
        may_open = place.before in _WORDS["openers_or_prepositions"] - _WORDS["rather_prepositions"]
        return is_after_opener or may_open or place.before in _WORDS["saying"] or place.before in (",", "")
    if not (is_after_opener or place.before in _WORDS["saying"] or place.before in _WORDS["openers_or_prepositions"]):
        return False
    # "because her left the" and "because her arrived late", beside "because her left arm hurt".
    return _is_past(place.after) and (not place.next[:1].isalnum() or place.next in _CLOSED)


def _in_place_of_hers(place: _Place) -> int | None:
    """Return what *hers* should be; None if it can stand for her and a noun."""
    if verb_lemma(place.before, _WORDS["with_person"]) and (place.after in _CLOSED or place.ends):
        return _OBJECT
    if place.opens_clause and (_is_verb(place.after) or place.after.endswith("s")):
        return None
    if not _may_be_noun(place.after) or _is_verb(place.after) or place.after.endswith("ly"):
        return None
    return _POSSESSIVE


def _may_be_noun(word: str) -> bool:
    return word[:1].isalnum() and word not in _CLOSED


def _is_past(word: str) -> bool:
    return word in _WORDS["past"] or (word.endswith("ed") and word not in _NO_PARTICIPLES)


def _is_verb(word: str) -> bool:
    """Return True for a word that can be the verb of *he* or *she*, or an adverb before it; not for all in -s."""
    return _is_past(word) or word in _WORDS["finite"] or word in _WORDS["before_verb"]
