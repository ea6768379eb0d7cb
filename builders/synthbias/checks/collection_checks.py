"""Checks that compare sentences: the two sides of a pair, and those that repeat each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from builders.pronoun_case import cases_of_form
from builders.synthbias.checks.check import Collection, FileCheck, PairCheck, Sentence
from builders.synthbias.minimal_pairs import wording
from schemas.lexicon import occupations

_PARTS = frozenset(word for name in occupations() for word in name.casefold().split())
"""The words of which the names of occupations consist."""


@PairCheck
def _not_minimal_pair(side: Sentence, other: Sentence) -> str | None:
    if side.masked != other.masked:
        return "differs from its counterpart in more than its pronouns"
    for pronoun, counterpart in zip(side.pronouns, other.pronouns, strict=True):
        if not cases_of_form(pronoun.text) & cases_of_form(counterpart.text):
            return f"has '{pronoun.text}' where its counterpart has '{counterpart.text}': one is in the wrong case"
    return None


@PairCheck
def _other_pronoun_marked(side: Sentence, other: Sentence) -> str | None:
    if _not_minimal_pair.find(side, other) is not None or _asked_index(side) == _asked_index(other):
        return None
    return "its counterpart asks about another pronoun"


def _asked_index(sentence: Sentence) -> int | None:
    """Return the index of the pronoun that is asked about among all pronouns; None if it is not among them."""
    asked = sentence.asked
    starts = [mention.start for mention in sentence.pronouns]
    return starts.index(asked.start) if asked is not None and asked.start in starts else None


@FileCheck
def _unpaired(collection: Collection) -> Iterator[tuple[int, str]]:
    paired = {index for pair in collection.pairs for index in pair}
    for group in collection.sides:
        reason = "no row has the other pronoun in the same words"
        if len(group) > 1:
            others = ", ".join(collection.sentences[index].id for index in group[:3])
            reason = f"{len(group)} rows are the same apart from the pronoun, not one of each gender: {others}"
        yield from ((index, reason) for index in group if index not in paired)


@FileCheck
def _duplicate_text(collection: Collection) -> Iterator[tuple[int, str]]:
    for same in collection.same_text:
        times = Counter(collection.sentences[index].type for index in same)
        for index in same:
            if (n_others := times[collection.sentences[index].type] - 1) > 0:
                yield index, f"its text stands in {n_others} other rows of the same type"


@FileCheck
def _repeated_wording(collection: Collection) -> Iterator[tuple[int, str]]:
    for same in collection.same_wording:
        sentences = [collection.sentences[index] for index in same]
        first = sentences[0]
        # Found once: of thousands of equal sentences, each would be compared with all.
        other = next((one for one in sentences if one.masked != first.masked), None)
        if other is not None:
            for index, sentence in zip(same, sentences, strict=True):
                where = (other if sentence.masked == first.masked else first).id
                yield index, f"has the words of {where}, with other capitals or punctuation"


@FileCheck
def _one_word_apart(collection: Collection) -> Iterator[tuple[int, str]]:
    wordings = [wording(collection.sentences[same[0]].masked) for same in collection.same_wording]
    others = _neighbours([text.split() for text in wordings])
    pairs = {frozenset(pair) for pair in collection.pairs}
    for number, (other, word) in sorted(others.items()):
        if pairs & {
            frozenset((one, two)) for one in collection.same_wording[number] for two in collection.same_wording[other]
        }:
            continue  # What the two sides of a pair differ in, ``not_minimal_pair`` says.
        where = collection.sentences[collection.same_wording[other][0]].id
        reason = f"differs from {where} in '{word}' alone" if word else f"lacks one word of {where} alone"
        yield from ((index, reason) for index in collection.same_wording[number])


def _neighbours(texts: Sequence[Sequence[str]]) -> dict[int, tuple[int, str]]:
    """Return for each text that differs from another one in one word: the index of that one, and the word.

    The word is empty where the other text has one more. Texts that differ in a word of an occupation are no neighbours.
    """
    found: dict[int, tuple[int, str]] = {}
    whole = {tuple(words): number for number, words in enumerate(texts)}
    shortened: dict[tuple[int, tuple[str, ...]], int] = {}
    for number, words in enumerate(texts):
        for place, word in enumerate(words):
            if word in _PARTS:
                continue
            rest = (*words[:place], *words[place + 1 :])
            # A word more, or another word in the same place.
            for other in (whole.get(rest), shortened.setdefault((place, rest), number)):
                if other is not None and other != number:
                    found.setdefault(number, (other, word))
                    theirs = texts[other][place] if len(texts[other]) == len(words) else ""
                    found.setdefault(other, (number, theirs))
    return found


@FileCheck
def _cross_type_text(collection: Collection) -> Iterator[tuple[int, str]]:
    for same in collection.same_text:
        if len(same) > 1 and len(collection.types(same)) > 1:
            yield from ((index, "its text stands in both types") for index in same)


@FileCheck
def _shared_template(collection: Collection) -> Iterator[tuple[int, str]]:
    for same in collection.same_template:
        # Two rows with the same template are just the two sides of a pair.
        if len(same) > 2:
            yield from ((index, f"{len(same) - 2} rows of other pairs have its template") for index in same)


@FileCheck
def _cross_type_template(collection: Collection) -> Iterator[tuple[int, str]]:
    # The published SynthBias has 33 such templates, in 242 rows.
    for same in collection.same_template:
        if len(same) > 1 and len(collection.types(same)) > 1:
            yield from ((index, "its template stands in both types") for index in same)
