"""What is masked in sentences, and what the best cue predicts."""

from __future__ import annotations

from itertools import product

import pytest

from schemas.lexicon.coreference_cues import CueText, best_cue, masked_words, positions_and_lengths

MALE, FEMALE = ("cook", "guard", "lawyer", "mover", "chief"), ("nurse", "clerk", "baker", "writer", "CEO")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The CEO's cook left.", "the <occupation> ' s <occupation> left ."),
        ("The cooks and the cook.", "the cooks and the <occupation> ."),
        ("He saw her, himself!", "<he/she> saw <him/his/her> , <himself/herself> !"),
        ("'Hers' is hers; his is his.", "' <him/his/her> ' is <him/his/her> ; <him/his/her> is <him/his/her> ."),
        ("Then the well-known cook said “she”.", "then the well-known <occupation> said “ <he/she> ” ."),
        ("", ""),
    ],
)
def test_occupations_and_the_gender_of_pronouns_are_masked(text: str, words: str) -> None:
    assert " ".join(masked_words(text, ("cook", "CEO"))) == words


def test_positions_are_counted_in_words() -> None:
    found = positions_and_lengths([masked_words("The cook met the nurse when she left.", ("cook", "nurse")), ("rain",)])
    assert [values.tolist() for name, values in found.items() if name.startswith("words")] == [
        *([1, -1], [4, -1], [6, -1], [2, 0], [3, 2], [9, 1])
    ]


def texts(name: str = "") -> list[CueText]:
    """Sixteen frames with all pairs of occupations and both pronouns, where *asked* tells the referent."""
    words = product(("At noon", "Today"), ("asked", "told"), ("before", "until", "when", "since"))
    return [
        CueText(f"{opening} the {one} {verb} the {two} {ending} {pronoun} left.", (one, two), verb == "asked", frame)
        for number, (opening, verb, ending) in enumerate(words)
        for frame in [name and f"{name} {number}"]
        for one, two in product(MALE, FEMALE)
        for pronoun in ("he", "she")
    ]


@pytest.mark.parametrize("name", ["", "frame"])
def test_a_word_that_tells_the_referent_is_found(name: str) -> None:
    best = best_cue(texts(name))
    assert list(best.means_first) == [text.means_first for text in texts(name)]
    assert "'asked'" in best.rules[0] or "'told'" in best.rules[0]


def test_the_occupations_tell_nothing() -> None:
    made = [text._replace(means_first=text.occupations[0] in MALE[:3]) for text in texts()]
    right = [guess == text.means_first for guess, text in zip(best_cue(made).means_first, made, strict=True)]
    # The referent is an occupation, which is masked: only the most frequent answer is left.
    assert sum(right) / len(right) == pytest.approx(0.6, abs=0.02)


def test_no_texts_have_no_cue() -> None:
    assert best_cue([]) == ((), ())
    assert best_cue(texts()[:1]).means_first == (None,)
