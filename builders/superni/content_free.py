"""Inputs without content, on which calibrations are fitted.

Placeholders are those of contextual calibration (Zhao et al. 2021, arXiv:2102.09690). Random words are those of
domain-context calibration (Fei et al. 2023, arXiv:2305.19148) as Reif and Schwartz use it: in each part of a task's
frame, as many words as the part has on average, drawn without replacement from the words of this part in all test
inputs. Labels are never used. English words stand in the same frame in the same numbers, as those that Fei et al.
compare with random words to measure domain-label bias. They draw from the 25,487 words of the package english-words
1.1.0, which have names and abbreviations and lack *after* and *government*; we draw from the 850 of Ogden's Basic
English, ``basic_english.toml``.

The frame of a task consists of the markers, such as ``Sentence 1:`` or ``(A)``, that nearly all of its inputs share in
the same order. A marker is one to four words before a colon, or the letter or number of an option. An option that only
some inputs have belongs to the part before it. Without such markers an input is a single part. The publication's
release instead splits inputs by a template for each task, which leaves the last character of a marker among the words
of 21 tasks.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from biasboard.ground.files import packaged_words
from builders.dataset.inputs import packaged_source
from schemas.documents.dataset import Source

PLACEHOLDERS = ("N/A", "", "[MASK]")
N_RANDOM = 20
"""Number of inputs of random words, and as many of English words."""
_LEAST_SHARE = 0.95
"""Least share of the inputs that have a marker, and of those that have all markers in the same order."""
_MOST_WORDS = 4
_WORDS = re.compile(r"(?<![\w'-])(?:[\w'-]+[^\S\n]){0,3}[\w'-]+\Z")
_LONGEST = 80
"""Number of characters before a colon in which the words of a marker are searched."""
_OPTION = re.compile(r"\([A-Za-z0-9]{1,2}\)|(?<![\w(])[A-Za-z0-9]{1,2}[).](?=\s)")


def random_texts(texts: Sequence[str], n: int, rng: np.random.Generator) -> Iterator[str]:
    """Yield inputs of random words in the frame of a task.

    The words are drawn from ``texts``, the test inputs of the task.
    """
    frame, words, lengths = _words_of_parts(texts)
    # Without replacement, as Reif and Schwartz draw, unlike Fei et al. There are always enough words: a mean length is
    # at most the size of the whole bag.
    for _ in range(n):
        yield frame.fill(
            [
                " ".join(bag[index] for index in rng.choice(len(bag), size=length, replace=False)) if length else ""
                for bag, length in zip(words, lengths, strict=True)
            ]
        )


def english_texts(texts: Sequence[str], n: int, rng: np.random.Generator) -> Iterator[str]:
    """Yield inputs of English words, each part with as many as in :func:`random_texts`.

    Words are drawn with replacement, as Fei et al. draw: a part may have more than there are.
    """
    frame, _, lengths = _words_of_parts(texts)
    english = [word for group in packaged_words("builders.superni", "basic_english.toml").values() for word in group]
    for _ in range(n):
        yield frame.fill(
            [" ".join(english[index] for index in rng.integers(len(english), size=length)) for length in lengths]
        )


def english_words_source() -> Source:
    """Return the list of English words as a source of a dataset."""
    name, path = "850 words of Basic English (Ogden 1930)", "builders/superni/basic_english.toml"
    return packaged_source(name, path, revision=None, licence="none, as they are single words")


def _words_of_parts(texts: Sequence[str]) -> tuple[InputMarkers, list[list[str]], list[int]]:
    """Return the frame of a task, and the words and the mean number of words of each of its parts."""
    frame = find_frame(texts)
    divided = [parts for text in texts if (parts := frame.parts(text)) is not None]
    words = [[word for part in column for word in part.lower().split()] for column in zip(*divided, strict=True)]
    return frame, words, [math.ceil(len(bag) / len(divided)) for bag in words]


class Marker(NamedTuple):
    """A text that separates parts of inputs, with the spaces around it in most of them."""

    before: str
    text: str
    after: str


class InputMarkers(NamedTuple):
    """The markers that the inputs of a task share, in their order; none if there is no frame."""

    markers: tuple[Marker, ...]

    def parts(self, text: str) -> tuple[str, ...] | None:
        """Return the text before the first marker and after each marker; None if the input lacks one in this order.

        >>> InputMarkers((Marker("", "Q:", " "), Marker(" ", "A:", " "))).parts("Q: Who is it? A: me")
        ('', ' Who is it? ', ' me')
        """
        parts = []
        start = 0
        for marker in self.markers:
            position = text.find(marker.text, start)
            if position < 0:
                return None
            parts.append(text[start:position])
            start = position + len(marker.text)
        return (*parts, text[start:])

    def fill(self, parts: Sequence[str]) -> str:
        """Return an input with these parts, and with the spaces around markers that most inputs have."""
        text = parts[0]
        for marker, part in zip(self.markers, parts[1:], strict=True):
            text += (marker.before if text else "") + marker.text + (marker.after + part if part else "")
        return text


def find_frame(texts: Sequence[str]) -> InputMarkers:
    """Find the markers that nearly all inputs of a task share in one order."""
    counts = Counter(name for text in texts for name in set(_names(text)))
    frequent = {name for name, n in counts.items() if n >= _LEAST_SHARE * len(texts)}
    orders = Counter(_order(text, frequent) for text in texts)
    if not orders:
        return InputMarkers(())
    names = max(orders.items(), key=lambda entry: (entry[1], entry[0]))[0]
    bare = InputMarkers(tuple(Marker("", name, "") for name in names))
    fitting = [parts for text in texts if (parts := bare.parts(text)) is not None]
    if not names or len(fitting) < _LEAST_SHARE * len(texts):
        return InputMarkers(())
    return InputMarkers(
        tuple(
            Marker(
                _commonest(parts[number][len(parts[number].rstrip()) :] for parts in fitting),
                name,
                _commonest(
                    after[: len(after) - len(after.lstrip())] for after in (parts[number + 1] for parts in fitting)
                ),
            )
            for number, name in enumerate(names)
        )
    )


def _names(text: str) -> Iterator[str]:
    """Yield all possible markers of an input: up to four words before each colon, and letters or numbers of options."""
    for colon in re.finditer(":", text):
        match = _WORDS.search(text[max(0, colon.start() - _LONGEST) : colon.start()])
        words = re.split(r"(\s)", match[0]) if match else []
        for n in range(1, min(_MOST_WORDS, (len(words) + 1) // 2) + 1):
            yield "".join(words[-(2 * n - 1) :]) + ":"
    yield from (match[0] for match in _OPTION.finditer(text))


def _order(text: str, frequent: set[str]) -> tuple[str, ...]:
    """Return the frequent markers of an input in order, and of overlapping ones only the longest."""
    spans: list[tuple[int, int, str]] = []
    for name in sorted(set(_names(text)) & frequent, key=lambda name: (-len(name), name)):
        match = re.search(rf"(?<![\w'(-]){re.escape(name)}", text)
        if match is not None and not any(start < match.end() and match.start() < end for start, end, _ in spans):
            spans.append((match.start(), match.end(), name))
    return tuple(name for _, _, name in sorted(spans))


def _commonest(values: Iterator[str]) -> str:
    counts = Counter(values)
    return max(counts.items(), key=lambda entry: (entry[1], entry[0]))[0]
