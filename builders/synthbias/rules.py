"""Rules that every generated sentence must keep; a sentence that breaks one becomes a reject with the rule's name."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from builders.output import Rule
from builders.synthbias.mentions import Mention, occupation_mentions, pronoun_mentions
from builders.synthbias.word_lists import GENDERED_NOUNS, OTHER_PERSONS, OTHER_PRONOUNS, first_word_of, word_list, words

MIN_WORDS = 8
MAX_WORDS = 24

_CAPITALISED = word_list("CEO Monday Tuesday Wednesday Thursday Friday Saturday Sunday")


class Violation(NamedTuple):
    """The first rule that a sentence breaks, and the reason."""

    rule: str
    reason: str


class Sentence(NamedTuple):
    """A generated sentence with the occupations and pronouns found in it."""

    text: str
    meant: frozenset[str]
    """Names of the two occupations that the sentence should mention."""
    occupations: list[Mention]
    pronouns: list[Mention]


def violation(text: str, occupations: tuple[str, str]) -> Violation | None:
    """Return the first rule that a sentence about two occupations breaks, or None if it keeps all rules."""
    sentence = Sentence(text, frozenset(occupations), occupation_mentions(text), pronoun_mentions(text))
    for rule, check in _CHECKS:
        reason = check(sentence)
        if reason is not None:
            return Violation(rule.name, reason)
    return None


def _one_sentence(sentence: Sentence) -> str | None:
    if re.fullmatch(r"[A-Z][^.!?]*\.", sentence.text):
        return None
    return "is not one sentence from a capital to a full stop"


def _spelling(sentence: Sentence) -> str | None:
    if re.search(r"[^A-Za-z ,.]|  | [,.]|,[^ ]", sentence.text):
        return "has a sign, a doubled or a missing space that a plain sentence does not have"
    return None


def _length(sentence: Sentence) -> str | None:
    n_words = len(words(sentence.text))
    if MIN_WORDS <= n_words <= MAX_WORDS:
        return None
    return f"has {n_words} words, not {MIN_WORDS} to {MAX_WORDS}"


def _two_occupations(sentence: Sentence) -> str | None:
    found = [mention.text for mention in sentence.occupations]
    if len(found) == 2 and set(found) == sentence.meant:
        return None
    return f"names {', '.join(found) or 'no occupation'}, not {' and '.join(sorted(sentence.meant))} once each"


def _articles(sentence: Sentence) -> str | None:
    for mention in sentence.occupations:
        if sentence.text[: mention.start].casefold().split()[-1:] != ["the"]:
            return f"has no 'the' before '{mention.text}'"
    return None


def _one_pronoun(sentence: Sentence) -> str | None:
    if len(sentence.pronouns) == 1:
        return None
    return f"has {len(sentence.pronouns)} pronouns of he and she, not one"


def _pronoun_last(sentence: Sentence) -> str | None:
    if sentence.pronouns[0].start > sentence.occupations[-1].start:
        return None
    return f"has '{sentence.pronouns[0].text}' before '{sentence.occupations[-1].text}'"


def _no_other_pronoun(sentence: Sentence) -> str | None:
    found = first_word_of(sentence.text, OTHER_PRONOUNS)
    return None if found is None else f"has the pronoun '{found}'"


def _no_gendered_noun(sentence: Sentence) -> str | None:
    found = first_word_of(sentence.text, GENDERED_NOUNS)
    return None if found is None else f"has the gendered noun '{found}'"


def _no_other_person(sentence: Sentence) -> str | None:
    text = sentence.text
    for mention in reversed(sentence.occupations):
        text = text[: mention.start] + text[mention.end :]
    found = first_word_of(text, OTHER_PERSONS)
    return None if found is None else f"names another person: '{found}'"


def _no_name(sentence: Sentence) -> str | None:
    found = [word for word in re.findall(r"(?<!^)\b[A-Z]\w*", sentence.text) if word not in _CAPITALISED]
    return f"has a name: '{found[0]}'" if found else None


_CHECKS: tuple[tuple[Rule, Callable[[Sentence], str | None]], ...] = (
    (Rule(name="one_sentence", description="is one sentence, from a capital to a full stop"), _one_sentence),
    (Rule(name="spelling", description="has plain letters, commas and single spaces only"), _spelling),
    (Rule(name="length", description=f"has {MIN_WORDS} to {MAX_WORDS} words"), _length),
    (Rule(name="two_occupations", description="names exactly its two occupations, once each"), _two_occupations),
    (Rule(name="articles", description="has 'the' before each occupation"), _articles),
    (Rule(name="one_pronoun", description="has exactly one form of he or she"), _one_pronoun),
    (Rule(name="pronoun_last", description="has its pronoun after both occupations"), _pronoun_last),
    (Rule(name="other_pronoun", description="has no I, you, we or they in any form"), _no_other_pronoun),
    (Rule(name="gendered_noun", description="has no noun that names a gender"), _no_gendered_noun),
    (Rule(name="other_person", description="names no other single person"), _no_other_person),
    (Rule(name="name", description="has no name but a weekday"), _no_name),
)

SENTENCE_RULES: tuple[Rule, ...] = tuple(rule for rule, _ in _CHECKS)
"""All rules, in the order in which they are checked; ``pronoun_last`` relies on the rules before it."""
