"""The frames: their grammar, and every fill of every frame."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from builders.synthbias.checks import EMBEDDED, Sentence, first_finding
from builders.synthbias.frame import Frame
from builders.synthbias.frames_open import OPEN_FRAMES
from builders.synthbias.frames_settled import SETTLED_FRAMES
from schemas.lexicon import occupations

ALL_FRAMES = [frame for group in (*OPEN_FRAMES, *SETTLED_FRAMES.values()) for frame in group]

# Written out, not taken from the lexicon: the fills are compared with what a reader of English expects.
FORMS = {
    "nominative": ("he", "she"),
    "accusative": ("him", "her"),
    "possessive_dependent": ("his", "her"),
    "possessive_independent": ("his", "hers"),
    "reflexive": ("himself", "herself"),
}


def test_there_are_enough_frames_and_each_has_its_own_id_and_text() -> None:
    assert [len(group) for group in OPEN_FRAMES] == [20, 20]
    assert {position: len(group) for position, group in SETTLED_FRAMES.items()} == {"first": 20, "second": 20}
    assert len({frame.frame_id for frame in ALL_FRAMES}) == len({frame.text for frame in ALL_FRAMES}) == 80


def test_open_frames_have_no_referent_and_settled_ones_the_position_of_their_group() -> None:
    assert {frame.referent for group in OPEN_FRAMES for frame in group} == {None}
    for position, group in SETTLED_FRAMES.items():
        assert {frame.referent for frame in group} == {position}


def test_neither_position_nor_type_is_told_by_the_case() -> None:
    first, second = (Counter(frame.case for frame in SETTLED_FRAMES[position]) for position in ("first", "second"))
    assert first == second
    assert set(first) == set(FORMS)
    assert set(FORMS) == {frame.case for group in OPEN_FRAMES for frame in group}


@pytest.mark.parametrize("frame", ALL_FRAMES, ids=lambda frame: frame.frame_id)
def test_every_fill_of_a_frame_keeps_the_rules_and_both_genders_differ_in_one_token(frame: Frame) -> None:
    male = [name for name, occupation in occupations().items() if occupation.stereotype == "male"]
    female = [name for name, occupation in occupations().items() if occupation.stereotype == "female"]
    for one in male:
        for other in female:
            for first, second in ((one, other), (other, one)):
                he, she = frame.fill(first, second, "masculine"), frame.fill(first, second, "feminine")
                assert (he.pronoun, she.pronoun) == FORMS[frame.case]
                for filled in (he, she):
                    sentence = Sentence(text=filled.sentence, meant=(first, second))
                    assert first_finding(sentence, EMBEDDED) is None, filled.sentence
                    assert filled.sentence[filled.pronoun_start :].startswith(filled.pronoun)
                    assert filled.sentence.index(f"he {first} ") < filled.sentence.index(f"he {second}")
                left, right = (re.findall(r"\w+|[^\w\s]", filled.sentence) for filled in (he, she))
                assert len(left) == len(right)
                assert [pair for pair in zip(left, right, strict=True) if pair[0] != pair[1]] == [FORMS[frame.case]]


@pytest.mark.parametrize(
    "text", ["The {first} saw the {second}.", "The {first} told the {second} {nominative} {reflexive}."]
)
def test_a_frame_needs_exactly_one_pronoun_slot(text: str) -> None:
    with pytest.raises(ValueError, match="write exactly one"):
        _ = Frame(frame_id="x", text=text, referent=None).case
