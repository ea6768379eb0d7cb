"""Each rule for the sentences of frames, broken once."""

from __future__ import annotations

import pytest

from builders.synthbias.checks import EMBEDDED, Sentence, SentenceFinding, first_finding


def violation(text: str, occupations: tuple[str, str]) -> SentenceFinding | None:
    return first_finding(Sentence(text=text, meant=occupations), EMBEDDED)


SOUND = "The nurse thanked the guard because he had found the keys."

BROKEN = {
    "one_sentence": "The nurse thanked the guard. Later he found the keys.",
    "spelling": "The nurse thanked the  guard because he had found the keys.",
    "length": "The nurse told the guard he left.",
    "two_occupations": "The nurse thanked the guard because he had found the teacher.",
    "articles": "The nurse thanked a guard because he had found the keys.",
    "one_pronoun": "The nurse thanked the guard because he had found his keys.",
    "pronoun_last": "Because he had found the keys, the nurse thanked the guard.",
    "other_pronoun": "The nurse thanked the guard because he had found them.",
    "gendered_noun": "The nurse thanked the guard because he was a kind man.",
    "listed_person": "The nurse thanked the guard because he had helped a neighbor.",
    "name": "The nurse thanked the guard because he had come to Boston.",
}


def test_a_sound_sentence_breaks_no_rule() -> None:
    assert violation(SOUND, ("nurse", "guard")) is None
    assert (
        violation("The construction worker met the CEO on Sunday before she left.", ("CEO", "construction worker"))
        is None
    )


@pytest.mark.parametrize("rule", EMBEDDED)
def test_each_rule_is_found_by_its_name(rule: str) -> None:
    broken = violation(BROKEN[rule], ("nurse", "guard"))
    assert broken is not None
    assert broken.check == rule
    assert broken.reason


@pytest.mark.parametrize(
    "sentence",
    [
        "The nurse thanked the nurse because he had found the keys.",
        "The nurse thanked the lawyer because he had found the keys.",
        "The nurse thanked the guards because he had found the keys.",
    ],
)
def test_a_missing_a_repeated_and_another_occupation_are_no_pair(sentence: str) -> None:
    broken = violation(sentence, ("nurse", "guard"))
    assert broken is not None
    assert broken.check == "two_occupations"


def test_length_counts_words_from_8_to_24() -> None:
    eight = "The nurse met the guard before he left."
    assert len(eight.split()) == 8
    assert violation(eight, ("nurse", "guard")) is None
    ending = " and ".join(["left"] * 9)
    assert len(f"The nurse met the guard before he {ending}.".split()) == 24
    assert violation(f"The nurse met the guard before he {ending}.", ("nurse", "guard")) is None
    longer = violation(f"The nurse met the guard before he finally {ending}.", ("nurse", "guard"))
    assert longer is not None
    assert longer.reason == "has 25 words, not 8 to 24"
