"""The frame of a task's inputs, and inputs of random words in it."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from biasboard.ground.files import packaged_words
from builders.superni.content_free import InputMarkers, Marker, english_texts, find_frame, random_texts

SENTENCES = [f"Sentence 1: there are {n} {'big ' * (n % 3)}trees\nSentence 2: it is so {n}" for n in range(60)]
OF_SENTENCES = ["Sentence 1:", "Sentence 2:"]


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        ("Sentence 1: number {n} fell\nSentence 2: it rose", OF_SENTENCES),
        ("number {n} fell. (A) left (B) right. Question: cause", ["(A)", "(B)", "Question:"]),
        ("Prompt: number {n} \nCompletion A: left \nCompletion B: up", ["Prompt:", "Completion A:", "Completion B:"]),
        ("number {n}? 1) left 2) right", ["1)", "2)"]),
        ("i feel like number {n} today", []),
        # Words before a colon that change are left out of the marker.
        ("It was {n} Question: why", ["Question:"]),
        ([f"{name} went out Question: why" for name in ("Kim", "Lee", "Sam", "Jo") * 10], ["went out Question:"]),
        # A marker that many inputs lack belongs to the part before; one input in fifty may lack or add one.
        ([f"number {n}? (A) left (B) right" + (" (C) up" if n % 2 else "") for n in range(50)], ["(A)", "(B)"]),
        ([*SENTENCES[:49], "nothing at all"], OF_SENTENCES),
        ([*SENTENCES[:49], "Sentence 1: he said: no\nSentence 2: yes"], OF_SENTENCES),
        ([f"Left: {n} Right: {n}" if n % 2 else f"Right: {n} Left: {n}" for n in range(50)], []),
    ],
)
def test_markers_that_nearly_all_inputs_share_in_one_order_are_the_frame(
    texts: str | list[str], found: list[str]
) -> None:
    inputs = [texts.format(n=n) for n in range(50)] if isinstance(texts, str) else texts
    assert [marker.text for marker in find_frame(inputs).markers] == found


def test_parts_and_spaces_are_put_together_as_most_inputs_have_them() -> None:
    frame = find_frame(SENTENCES)
    assert frame.markers == (Marker("", "Sentence 1:", " "), Marker("\n", "Sentence 2:", " "))
    assert frame.parts(SENTENCES[1]) == ("", " there are 1 big trees\n", " it is so 1")
    assert frame.fill(["", "one two", "three"]) == "Sentence 1: one two\nSentence 2: three"
    assert frame.fill(["", "", "three"]) == "Sentence 1:\nSentence 2: three"
    assert frame.parts("Sentence 2: first") is None
    assert InputMarkers(()).parts("all of it") == ("all of it",)


def words_of(text: str) -> tuple[list[str], list[str]]:
    first, second = text.removeprefix("Sentence 1: ").split("\nSentence 2: ")
    return first.lower().split(), second.lower().split()


def test_random_and_english_words_stand_in_the_frame_in_mean_numbers() -> None:
    texts = list(random_texts(SENTENCES, 20, np.random.default_rng(5)))
    bags = [Counter(word for text in SENTENCES for word in words_of(text)[part]) for part in (0, 1)]
    for drawn in map(words_of, texts):
        for words, bag, length in zip(drawn, bags, (5, 4), strict=True):
            assert len(words) == length
            # Without replacement: a word that the inputs have once cannot stand twice.
            assert Counter(words) <= bag
    english = {word for group in packaged_words("builders.superni", "basic_english.toml").values() for word in group}
    others = list(english_texts(SENTENCES, 20, np.random.default_rng(5)))
    for first, second in map(words_of, others):
        assert (len(first), len(second)) == (5, 4)
        assert {*first, *second} <= {word.lower() for word in english}
    assert len(set(texts)) == len(set(others)) == 20
    (text,) = random_texts(["One Two two THREE"], 1, np.random.default_rng(1))
    assert sorted(text.split()) == ["one", "three", "two", "two"]
    # Drawn with replacement: an input may have more words than there are.
    (text,) = english_texts(["word " * 2_000], 1, np.random.default_rng(1))
    assert len(text.split()) == 2_000
