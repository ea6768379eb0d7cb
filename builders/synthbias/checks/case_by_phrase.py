"""Reads the case of *him*, *his* or *her* off the phrase behind it and the verb before it.

It shares no list of words and no step with ``builders.pronoun_case``, which sees the two neighbouring words alone, so
that the two readers err in different sentences.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Literal, TypeAlias

from builders.packaged import packaged_words
from builders.synthbias.word_lists import word_list

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
    """Return the case that a pronoun needs in its place, or None if the sentence can be read in both ways.

    Args:
        before: Text before the pronoun.
        after: Text behind the pronoun.

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
        return "accusative" if _lacks_noun(rest) else "possessive_dependent"
    if first in _WORDS["closed"]:
        return "accusative"
    if first.endswith("ly") and first not in _WORDS["no_adverb"]:
        return "accusative" if _ends(rest) else "possessive_dependent"
    last = _last_word(before)
    verb = verb_lemma(last, _FRAMES)
    if last in _TOPICS and first.endswith("ing") and rest and rest[0] not in _DETERMINERS and _ends(rest[1:]):
        return "possessive_dependent"  # "called about his leaking roof"
    return _by_frame(verb, first, rest) or _by_noun_phrase(verb, first, rest)


def _by_frame(verb: str, first: str, rest: Sequence[str]) -> ObjectOrPossessive | None:
    """Return the case if the verb takes a person and a bare verb, a direction or a wish, and one follows."""
    if verb in _WORDS["with_bare_verb"]:
        if first in _WORDS["bare_verbs"]:
            return "accusative"
        if first in _WORDS["moods"] and verb in ("make", "let", "help") and (_ends(rest) or _modifies(rest)):
            return "accusative"
        # No noun phrase goes on with a determiner or an adverb, but a verb does: "helped him plan ahead".
        if rest and (rest[0] in _DETERMINERS or rest[0] in _WORDS["adverbs"]):
            return "accusative"
    if verb in _WORDS["moving"] and first == "home" and _ends(rest):
        return "accusative"
    if verb == "wish" and (first in _WORDS["wishes"] or (rest and rest[0] in _WORDS["wishes"])):
        return "accusative"
    return None


def _by_noun_phrase(verb: str, first: str, rest: Sequence[str]) -> ObjectOrPossessive | None:
    if _is_adjective(first) and _ends(rest):
        # The phrase has no noun that could be possessed.
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
    """Return the next words in lower case, up to the first sign."""
    found: list[str] = []
    for match in _PHRASE.finditer(after):
        token = match[0].casefold()
        if not token[0].isalnum() or len(found) == _PHRASE_WORDS:
            break
        found.append(token)
    return found


def _ends(rest: Sequence[str]) -> bool:
    """Return True if nothing follows, or a word with which something else begins."""
    return not rest or rest[0] in _WORDS["prepositions"] or rest[0] in _WORDS["closed"]


def _lacks_noun(rest: Sequence[str]) -> bool:
    return _ends(rest) or _ends(rest[1:])


def _goes_to_somebody(rest: Sequence[str]) -> bool:
    """Return True if receiver or gift stand behind: "offered his help to the nurse", "gave his dog a bone"."""
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


def _last_word(before: str) -> str:
    return next(reversed(before.rsplit(maxsplit=1)), "").casefold()


@cache
def verb_lemma(word: str, verbs: frozenset[str]) -> str:
    """Return which of some verbs a word is a form of, or an empty string.

    Args:
        word: Word in lower case.
        verbs: Infinitives.

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
