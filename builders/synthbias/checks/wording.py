"""Checks of how a sentence is written: its form, its length and its spelling."""

from __future__ import annotations

import re
from functools import partial
from operator import eq

from builders.synthbias.checks.check import SentenceCheck
from builders.synthbias.checks.sentence import Sentence
from builders.synthbias.word_lists import word_list

MIN_WORDS = 8
MAX_WORDS = 24

_ONE_SENTENCE = re.compile(r"[A-Z][^.!?]*\.")
_BREAK = re.compile(r"[.!?][\"\u201d\u2019']? [\"\u201c]?[A-Z]")
_UNPLAIN = re.compile(r"[^A-Za-z ,.]|  | [,.]|,[^ ]")
_SPACING = re.compile(r"^ |[^\S ]| (?=[ ,.;:!?]|$)|[,;](?=[^\W\d_])")
_DOUBLED = re.compile(r"\b([^\W\d_]+) \1\b", re.IGNORECASE)
_ARTICLE = re.compile(r"\b(an?) ([^\W\d_]+)", re.IGNORECASE)
_SOUNDS_LIKE_A_VOWEL = re.compile(r"(?:hour|honest|honou?r|heir)", re.IGNORECASE)
_SOUNDS_LIKE_A_CONSONANT = re.compile(
    r"(?:uni(?:[^nmd]|d[^e])|u[bkst][aeiou]|usu|util|uten|eu|ewe|one\b|once\b|u\b)", re.IGNORECASE
)
_ARTICLES = word_list("a an")
_MAY_STAND_TWICE = word_list("had that")


@SentenceCheck
def _one_sentence(sentence: Sentence) -> str | None:
    if _ONE_SENTENCE.fullmatch(sentence.text):
        return None
    return "is not one sentence from a capital to a full stop"


@SentenceCheck
def _multi_sentence(sentence: Sentence) -> str | None:
    return "has more than one sentence" if _BREAK.search(sentence.text) else None


@SentenceCheck
def _spelling(sentence: Sentence) -> str | None:
    if _UNPLAIN.search(sentence.text):
        return "has a sign, a doubled or a missing space that a plain sentence does not have"
    return None


@SentenceCheck
def _spacing(sentence: Sentence) -> str | None:
    found = _SPACING.search(sentence.text)
    return None if found is None else f"has a doubled, missing or wrong space at character {found.start() + 1}"


@partial(SentenceCheck, least=MIN_WORDS, most=MAX_WORDS)
def _length(sentence: Sentence) -> str | None:
    n_words = len(sentence.words)
    if MIN_WORDS <= n_words <= MAX_WORDS:
        return None
    return f"has {n_words} words, not {MIN_WORDS} to {MAX_WORDS}"


@SentenceCheck
def _doubled_word(sentence: Sentence) -> str | None:
    if not any(map(eq, sentence.words, sentence.words[1:])):
        return None
    for match in _DOUBLED.finditer(sentence.text):
        if match[1].casefold() not in _MAY_STAND_TWICE:
            return f"has '{match[1]}' twice in a row"
    return None


@SentenceCheck
def _wrong_article(sentence: Sentence) -> str | None:
    if _ARTICLES.isdisjoint(sentence.words):
        return None
    for article, word in _ARTICLE.findall(sentence.text):
        vowel = word[0].casefold() in "aeiou" and not _SOUNDS_LIKE_A_CONSONANT.match(word)
        vowel = vowel or _SOUNDS_LIKE_A_VOWEL.match(word) is not None
        # Letters of an abbreviation are spelt out, and no rule says which words are abbreviations.
        if vowel != (len(article) == 2) and not word.isupper():
            return f"has '{article} {word}'"
    return None


@SentenceCheck
def _non_ascii(sentence: Sentence) -> str | None:
    if sentence.text.isascii():
        return None
    found = next(sign for sign in sentence.text if not sign.isascii())
    return f"has the sign '{found}', which is not ASCII"
