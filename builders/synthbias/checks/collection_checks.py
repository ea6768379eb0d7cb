"""Checks that compare sentences: the two sides of a pair, and those that repeat each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from builders.synthbias.checks.check import FileCheck, PairCheck
from builders.synthbias.checks.sentence import Collection, Sentence
from builders.synthbias.minimal_pairs import cases_of_form


@PairCheck
def _not_minimal_pair(side: Sentence, other: Sentence) -> str | None:
    if side.masked != other.masked:
        return "differs from its counterpart in more than its pronouns"
    for pronoun, counterpart in zip(side.pronouns, other.pronouns, strict=True):
        if not cases_of_form(pronoun.text) & cases_of_form(counterpart.text):
            return f"has '{pronoun.text}' where its counterpart has '{counterpart.text}', in another case"
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
        reason = f"{len(group) - 1} other rows are the same apart from the pronoun, not one with the other gender"
        yield from ((index, reason) for index in group if index not in paired)


@FileCheck
def _duplicate_text(collection: Collection) -> Iterator[tuple[int, str]]:
    for same in collection.same_text:
        times = Counter(collection.sentences[index].type for index in same)
        for index in same:
            if (n_others := times[collection.sentences[index].type] - 1) > 0:
                yield index, f"its text stands in {n_others} other rows of the same type"


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
