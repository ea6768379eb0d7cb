"""The frame of a task's inputs, and inputs of random words in it."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from biasboard.ground.toml_files import packaged_words
from builders.superni.content_free import InputMarkers, Marker, english_texts, find_frame, random_texts

SENTENCES = [f"Sentence 1: there are {n} {'big ' * (n % 3)}trees\nSentence 2: it is so {n}" for n in range(60)]


def markers(texts: list[str]) -> list[str]:
    return [marker.text for marker in find_frame(texts).markers]


@pytest.mark.parametrize(
    ("make", "found"),
    [
        ("Sentence 1: number {n} fell\nSentence 2: it rose", ["Sentence 1:", "Sentence 2:"]),
        ("number {n} fell. (A) left (B) right. Question: cause", ["(A)", "(B)", "Question:"]),
        ("number {n}?\n(A)left (B)right", ["(A)", "(B)"]),
        (
            "Prompt: number {n} \nCompletion A: left \nCompletion B: right",
            ["Prompt:", "Completion A:", "Completion B:"],
        ),
        ("number {n}? 1) left 2) right", ["1)", "2)"]),
        ("paragraph- number {n}. question: why", ["question:"]),
        ("i feel like number {n} today", []),
    ],
)
def test_markers_that_all_inputs_share_are_the_frame(make: str, found: list[str]) -> None:
    assert markers([make.format(n=n) for n in range(50)]) == found


def test_a_marker_that_many_inputs_lack_belongs_to_the_part_before() -> None:
    texts = [f"number {n}? (A) left (B) right" + (" (C) up" if n % 2 else "") for n in range(50)]
    assert markers(texts) == ["(A)", "(B)"]
    # One input in fifty may lack a marker, and one may say something before a colon.
    assert markers([*SENTENCES[:49], "nothing at all"]) == ["Sentence 1:", "Sentence 2:"]
    assert markers([*SENTENCES[:49], "Sentence 1: he said: no\nSentence 2: yes"]) == ["Sentence 1:", "Sentence 2:"]


def test_markers_in_changing_order_are_no_frame() -> None:
    texts = [f"Left: {n} Right: {n}" if n % 2 else f"Right: {n} Left: {n}" for n in range(50)]
    assert markers(texts) == []


def test_words_before_a_colon_that_change_are_left_out_of_the_marker() -> None:
    texts = [f"{name} went out Question: why" for name in ("Kim", "Lee", "Sam", "Jo") * 10]
    assert markers(texts) == ["went out Question:"]
    assert markers([f"It was {n} Question: why" for n in range(40)]) == ["Question:"]


def test_parts_and_spaces_are_put_together_as_most_inputs_have_them() -> None:
    frame = find_frame(SENTENCES)
    assert frame.markers == (Marker("", "Sentence 1:", " "), Marker("\n", "Sentence 2:", " "))
    assert frame.parts(SENTENCES[1]) == ("", " there are 1 big trees\n", " it is so 1")
    assert frame.fill(["", "one two", "three"]) == "Sentence 1: one two\nSentence 2: three"
    assert frame.fill(["", "", "three"]) == "Sentence 1:\nSentence 2: three"
    assert frame.parts("Sentence 2: first") is None
    assert InputMarkers(()).parts("all of it") == ("all of it",)


def test_random_words_come_from_their_own_part_without_replacement() -> None:
    texts = list(random_texts(SENTENCES, 20, np.random.default_rng(5)))
    bags = [Counter[str](), Counter[str]()]
    for text in SENTENCES:
        first, second = text.removeprefix("Sentence 1: ").split("\nSentence 2: ")
        bags[0].update(first.lower().split())
        bags[1].update(second.lower().split())
    lengths = [math.ceil(sum(bag.values()) / len(SENTENCES)) for bag in bags]
    assert lengths == [5, 4]
    for text in texts:
        drawn = text.removeprefix("Sentence 1: ").split("\nSentence 2: ")
        for words, bag, length in zip(drawn, bags, lengths, strict=True):
            assert len(words.split()) == length
            # Without replacement: a word that the inputs have once cannot stand twice.
            assert all(n <= bag[word] for word, n in Counter(words.split()).items())
    assert len(set(texts)) == 20


def test_all_words_of_a_single_input_are_drawn_when_there_is_no_other() -> None:
    (text,) = random_texts(["One Two two THREE"], 1, np.random.default_rng(1))
    assert sorted(text.split()) == ["one", "three", "two", "two"]


def test_the_list_has_the_850_words_of_basic_english_in_the_groups_of_ogden() -> None:
    groups = packaged_words("builders.superni", "basic_english.toml")
    assert {name: len(words) for name, words in groups.items()} == {
        "operations": 100,
        "general_things": 400,
        "picturable_things": 200,
        "general_qualities": 100,
        "opposite_qualities": 50,
    }
    words = [word for group in groups.values() for word in group]
    assert len({word.casefold() for word in words}) == 850
    assert all(word.isascii() and word.isalpha() for word in words)


def test_english_words_stand_in_the_frame_in_the_numbers_of_random_words() -> None:
    english = {word for group in packaged_words("builders.superni", "basic_english.toml").values() for word in group}
    texts = list(english_texts(SENTENCES, 20, np.random.default_rng(5)))
    assert len(set(texts)) == 20
    for text in texts:
        first, second = text.removeprefix("Sentence 1: ").split("\nSentence 2: ")
        assert (len(first.split()), len(second.split())) == (5, 4)
        assert {*first.split(), *second.split()} <= english


def test_english_words_fill_an_input_of_more_words_than_there_are() -> None:
    (text,) = english_texts(["word " * 2_000], 1, np.random.default_rng(1))
    assert len(text.split()) == 2_000
