"""What predicts the right option of a question without understanding it: the best cue of wording, length and place."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, cast

import numpy as np

from biasboard.ground.columns import FloatArray
from biasboard.ground.cue_search import predict_by_cues
from biasboard.ground.memory import machine_memory

_MEMORY = "best cue of options"
_WORD = re.compile(r"\w+(?:['-]\w+)*|[^\w\s]")
_MOST = 12_000
"""Maximum number of questions: so many take 1 GB, since each is compared with 2,000 others."""


class CueQuestion(NamedTuple):
    """A question with a right answer."""

    text: str
    options: tuple[str, ...]
    answer: str
    cluster: str


def predicted_options(questions: Sequence[CueQuestion]) -> list[str | None]:
    """Return the option of each question that the best cue predicts, found in other clusters.

    None where there are no other clusters to learn from, and for all if there are more questions than can be searched.
    """
    distinct = tuple(sorted(set(questions)))
    if not distinct or len(distinct) > _MOST:
        return [None] * len(questions)
    places = dict(zip(distinct, _predicted_places(distinct), strict=True))
    return [
        question.options[places[question]] if 0 <= places[question] < len(question.options) else None
        for question in questions
    ]


# Each prompt of a dataset asks about the same questions.
@lru_cache(maxsize=8)
def _predicted_places(questions: tuple[CueQuestion, ...]) -> list[int]:
    """Return the predicted place of the right option of each question; -1 for none."""
    memory, parts = machine_memory(), {"questions": hashlib.sha256(repr(questions).encode()).hexdigest()}
    known = memory.get(_MEMORY, parts)
    if not isinstance(known, list):
        words = [_words(question) for question in questions]
        places = np.array([question.options.index(question.answer) for question in questions])
        factors = [question.cluster for question in questions], [question.text for question in questions]
        known = predict_by_cues(words, _numbers(questions), places, factors).answers.tolist()
        memory.put(_MEMORY, parts, known)
    return cast(list[int], known)


def _words(question: CueQuestion) -> tuple[str, ...]:
    """Return the words of the text, and those of each option with its place."""
    return (
        *_WORD.findall(question.text.casefold()),
        *(
            f"{word} in option {place}"
            for place, option in enumerate(question.options, start=1)
            for word in _WORD.findall(option.casefold())
        ),
    )


def _numbers(questions: Sequence[CueQuestion]) -> Mapping[str, FloatArray]:
    """Return the places of the longest and shortest option, and of those mentioned first and last; lengths too."""
    lengths = [[len(option) for option in question.options] for question in questions]
    mentions = [
        [question.text.casefold().rfind(option.casefold()) for option in question.options] for question in questions
    ]
    columns = {
        "place of the longest option": [max(range(len(of_all)), key=of_all.__getitem__) for of_all in lengths],
        "place of the shortest option": [min(range(len(of_all)), key=of_all.__getitem__) for of_all in lengths],
        "place of the option mentioned last": [max(range(len(of_all)), key=of_all.__getitem__) for of_all in mentions],
        "place of the option mentioned first or not at all": [
            min(range(len(of_all)), key=of_all.__getitem__) for of_all in mentions
        ],
        "characters of the text": [len(question.text) for question in questions],
    }
    return {name: np.array(values, dtype=np.float64) for name, values in columns.items()}
