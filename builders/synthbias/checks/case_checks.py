"""Checks of the case of *him* and *his*, which goes wrong when *her* is exchanged in a finished sentence.

Two readers analyse each sentence as if its pronoun were *her*: each returns the case that the context needs, or that it
can be either. If both contradict the pronoun, it is an error; if one does, or neither can decide, a person must look.

One reader is not enough: a rule of this kind is right in 95 to 98 percent of the pairs of WinoBias and SynthBias. Of
the 48 sentences of SynthBias found by hand to have the wrong case, both readers object to 31, and the other 17 are for
review. ``builders.pronoun_case`` sees only the two neighbouring words; :func:`case_by_phrase` reads the phrase after
the pronoun and the verb before it. The two share no word list and no step, so that they err in different sentences.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from functools import cache, lru_cache
from itertools import pairwise
from typing import Literal, TypeAlias

from biasboard.ground.files import packaged_words
from builders.pronoun_case import TWO_OBJECTS, UnsettledCaseError, case_by_neighbours
from builders.synthbias.checks.check import Sentence, SentenceCheck, word_list
from schemas.lexicon import PronounCase

_GIVING = word_list("asked brought gave given giving offer offered offering sent served showed wished")
_CASE_OF_FORM: dict[str, PronounCase] = {"him": "accusative", "his": "possessive_dependent"}
_TOKEN = re.compile(r"[^\W\d_]+|\d+(?:[.,]\d+)*|\S")
_VERB_OF_HIS_OWN = word_list("is was has had does did can could will would shall should may might must")
"""Verbs before which *his* stands for *his* and a noun: "his was late"."""


Readings: TypeAlias = tuple[PronounCase | None, PronounCase | None]
"""The cases that a pronoun has by its neighbours and by the phrase after it; None if it can be either."""


def case_readings(before: str, after: str) -> Readings:
    """Return the cases that two readers find for a pronoun, as if it were *her*.

    >>> case_readings("The cook met the nurse and praised", "work.")
    ('possessive_dependent', 'possessive_dependent')
    """
    following = _TOKEN.search(after)
    preceding = _TOKEN.findall(before[-40:])
    by_neighbours = None
    with suppress(UnsettledCaseError):
        by_neighbours = case_by_neighbours(
            preceding[-1].casefold() if preceding else "",
            "her",
            following[0].casefold() if following else "",
            lemma_of=lambda word: verb_lemma(word, TWO_OBJECTS),
        )
    return by_neighbours, case_by_phrase(before, after)


@SentenceCheck
def _pronoun_case_error(sentence: Sentence) -> str | None:
    readings = _contradicted(sentence)
    asked, form = sentence.asked, _form(sentence)
    if asked is None or readings is None or None in readings or _CASE_OF_FORM[form] in readings:
        return None
    if form == "his" and not sentence.text[asked.end : asked.end + 2].strip(" .,;!?"):
        return None  # At the end of a clause it can be right: "mistook the coat for his".
    return f"has '{_form(sentence)}' where both readers want '{_other_form(sentence)}'"


@SentenceCheck
def _pronoun_case_review(sentence: Sentence) -> str | None:
    readings = _contradicted(sentence)
    if readings is None or _pronoun_case_error.find(sentence) is not None:
        return None
    if readings == (None, None):
        return f"has '{_form(sentence)}' where 'her' could be 'him' or 'his'"
    return f"has '{_form(sentence)}' where one of two readers wants '{_other_form(sentence)}'"


# The two checks above ask about the same sentence in turn.
@lru_cache(maxsize=1)
def _contradicted(sentence: Sentence) -> Readings | None:
    """Return the readings of the pronoun that is asked about; None if they agree with it, or it is not checked."""
    asked = sentence.asked
    if asked is None or asked.text.casefold() not in _CASE_OF_FORM:
        return None
    after = sentence.text[asked.end :]
    if asked.text.casefold() == "his":
        if sentence.claimed.case == "possessive_independent":
            return None  # Its counterpart is hers, and both readers analyse her.
        if after.split(maxsplit=1)[:1] and after.split(maxsplit=1)[0] in _VERB_OF_HIS_OWN:
            return None
    readings = case_readings(sentence.text[: asked.start], after)
    settled = {reading for reading in readings if reading is not None}
    return None if settled == {_CASE_OF_FORM[asked.text.casefold()]} else readings


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


ObjectOrPossessive: TypeAlias = Literal["accusative", "possessive_dependent"]

_LISTS = packaged_words("builders.synthbias.checks", "phrase_words.toml")
_WORDS = {name: frozenset(words) for name, words in _LISTS.items()}
_IRREGULAR = dict(zip(_LISTS["irregular"][::2], _LISTS["irregular"][1::2], strict=True))
_FRAMES = _WORDS["with_bare_verb"] | _WORDS["with_two_objects"] | _WORDS["with_meals"] | _WORDS["moving"] | {"wish"}
_DETERMINERS = word_list("a an the this that these those his her their its my your our some any all every")
_TOPICS = word_list("about over regarding")
_ADJECTIVE_ENDINGS = ("ful", "ous", "able", "ible", "less", "ic")
_PHRASE = re.compile(r"[\w'\u2019-]+|[^\w\s]")
_PHRASE_WORDS = 4


def case_by_phrase(before: str, after: str) -> ObjectOrPossessive | None:
    """Return the case that a pronoun needs in its context; None if the sentence can be read either way.

    >>> case_by_phrase("The nurse wished", "luck."), case_by_phrase("The nurse forgot", "own rule.")
    ('accusative', 'possessive_dependent')
    """
    phrase = _phrase(after)
    if not phrase:
        return "accusative"
    first, *rest = phrase
    if first == "own":
        return "possessive_dependent"
    if first in _WORDS["degrees"]:
        return "accusative" if _ends(rest) or _ends(rest[1:]) else "possessive_dependent"
    if first in _WORDS["closed"]:
        return "accusative"
    if first.endswith("ly") and first not in _WORDS["no_adverb"]:
        return "accusative" if _ends(rest) else "possessive_dependent"
    last = next(reversed(before.rsplit(maxsplit=1)), "").casefold()
    verb = verb_lemma(last, _FRAMES)
    if last in _TOPICS and first.endswith("ing") and rest and rest[0] not in _DETERMINERS and _ends(rest[1:]):
        return "possessive_dependent"  # "called about his leaking roof"
    return _by_frame(verb, first, rest) or _by_noun_phrase(verb, first, rest)


def _by_frame(verb: str, first: str, rest: Sequence[str]) -> ObjectOrPossessive | None:
    """Return the case if the verb takes a person and then a bare verb, a direction or a wish, and that follows."""
    if verb in _WORDS["with_bare_verb"]:
        if first in _WORDS["bare_verbs"]:
            return "accusative"
        if first in _WORDS["moods"] and verb in ("make", "let", "help") and (_ends(rest) or _modifies(rest)):
            return "accusative"
        # After a determiner or adverb no noun phrase continues, but a verb phrase does: "helped him plan ahead".
        if rest and (rest[0] in _DETERMINERS or rest[0] in _WORDS["adverbs"]):
            return "accusative"
    if verb in _WORDS["moving"] and first == "home" and _ends(rest):
        return "accusative"
    if verb == "wish" and (first in _WORDS["wishes"] or (rest and rest[0] in _WORDS["wishes"])):
        return "accusative"
    return None


def _by_noun_phrase(verb: str, first: str, rest: Sequence[str]) -> ObjectOrPossessive | None:
    if _is_adjective(first) and _ends(rest):
        # There is no noun that could be possessed.
        return "accusative"
    if first.endswith("ing") and "-" not in first:
        is_noun = first in _WORDS["nouns_in_ing"]
        if not is_noun or (rest and (rest[0] in _DETERMINERS or _modifies(rest))):
            return "accusative"
    if verb in _WORDS["with_two_objects"] and not _goes_to_somebody(rest):
        return None
    if verb in _WORDS["with_meals"] and first in _WORDS["meals"]:
        return None
    return "possessive_dependent"


def _phrase(after: str) -> list[str]:
    """Return the next words in lower case, up to the first punctuation mark."""
    words: list[str] = []
    for match in _PHRASE.finditer(after):
        token = match[0].casefold()
        if not token[0].isalnum() or len(words) == _PHRASE_WORDS:
            break
        words.append(token)
    return words


def _ends(rest: Sequence[str]) -> bool:
    """Return True if the phrase ends here: nothing follows, or a word that begins another phrase."""
    return not rest or rest[0] in _WORDS["prepositions"] or rest[0] in _WORDS["closed"]


def _goes_to_somebody(rest: Sequence[str]) -> bool:
    """Return True if a receiver or gift follows: "offered his help to the nurse", "gave his dog a bone"."""
    is_receiver = bool(rest) and rest[0] in _DETERMINERS
    return is_receiver or any(word == "to" and following in _DETERMINERS for word, following in pairwise(rest))


def _modifies(rest: Sequence[str]) -> bool:
    """Return True if an adjective or an adverb is all that follows: "stay calm", "laugh loudly"."""
    if not rest:
        return False
    is_adverb = rest[0].endswith("ly") and rest[0] not in _WORDS["no_adverb"]
    return (is_adverb or _is_adjective(rest[0])) and _ends(rest[1:])


def _is_adjective(word: str) -> bool:
    if word in _WORDS["adjectives"] or word.endswith(_ADJECTIVE_ENDINGS):
        return True
    return word.endswith("ed") and word not in _WORDS["no_participle"]


@cache
def verb_lemma(word: str, verbs: frozenset[str]) -> str:
    """Return the one of some verbs that a word is a form of; empty if there is none.

    >>> verb_lemma("offered", frozenset({"offer"})), verb_lemma("bidding", frozenset({"bid"}))
    ('offer', 'bid')
    """
    stems = [word, _IRREGULAR.get(word, word)]
    for ending in ("s", "es", "d", "ed", "ing"):
        if word.endswith(ending):
            stem = word.removesuffix(ending)
            stems += [stem, f"{stem}e", stem[:-1] if stem[-2:-1] == stem[-1:] else stem]
    if word.endswith(("ies", "ied")):
        stems.append(f"{word[:-3]}y")
    return next((stem for stem in stems if stem in verbs), "")
