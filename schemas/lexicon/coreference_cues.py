"""What predicts whom a pronoun means, without an understanding of the sentence: the best cue of its wording.

Occupations and the gender of the pronoun are masked, because they are what the items vary: a preference for an
occupation is what other baselines have. Left are the words, their order, punctuation, lengths and the form of the
pronoun.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import NamedTuple, cast

import numpy as np

from biasboard.ground.columns import FloatArray
from biasboard.ground.cue_search import predict_by_cues
from biasboard.ground.memory import machine_memory
from schemas.lexicon import pronoun_families

OCCUPATION = "<occupation>"
_SUBJECT, _OBJECT, _SELF = "<he/she>", "<him/his/her>", "<himself/herself>"
_PRONOUNS = (_SUBJECT, _OBJECT, _SELF)
_BEST_CUE = "best cue"
_TOKEN = re.compile(r"<[a-z/]+>|\w+(?:['-]\w+)*|[^\w\s]")


class CueText(NamedTuple):
    """A text about two occupations and a pronoun that means one of them."""

    text: str
    occupations: tuple[str, ...]
    """The two occupations, in the order of their mention."""
    means_first: bool
    frame: str
    """Name of the sentence frame; empty if it is unknown, and then the masked text stands for it."""


class BestCue(NamedTuple):
    """The answers of the best cue."""

    means_first: tuple[bool | None, ...]
    """True for each text in which it predicts that the pronoun means the occupation mentioned first; None where there
    are no other frames and occupation pairs to learn from."""
    rules: tuple[str, ...]
    """The cues, the one that was the best most often first."""


def masked_words(text: str, occupations: Sequence[str]) -> tuple[str, ...]:
    """Return the words and punctuation marks of a text, with occupations and the gender of pronouns masked.

    >>> masked_words("The cook saw the nurse when she left.", ("cook", "nurse"))[:6]
    ('the', '<occupation>', 'saw', 'the', '<occupation>', 'when')
    """
    names = "|".join(sorted(map(re.escape, occupations), key=len, reverse=True))
    forms = _form_masks()
    without = re.sub(rf"(?<!\w)(?:{names})(?!\w)", OCCUPATION, text)
    return tuple(forms.get(word, word) for word in _TOKEN.findall(without.lower()))


@cache
def _form_masks() -> dict[str, str]:
    """Return the mask of each form of *he* and *she*; *her* is an object or a possessive, so both share one."""
    masks = {}
    for family in ("he", "she"):
        for case, form in pronoun_families()[family].forms.items():
            masks[form] = {"nominative": _SUBJECT, "reflexive": _SELF}.get(case, _OBJECT)
    return masks


def best_cue(texts: Sequence[CueText]) -> BestCue:
    """Predict each text by the best cue among those fitted on other frames and other occupation pairs.

    Texts that differ only in what is masked count once.
    """
    rows = [(masked_words(text.text, text.occupations), text._replace(text="")) for text in texts]
    distinct = tuple(sorted(set(rows)))
    if not distinct:
        return BestCue((), ())
    answers, rules = _predicted(distinct)
    of_row = dict(zip(distinct, answers, strict=True))
    return BestCue(tuple(None if of_row[row] < 0 else of_row[row] == 0 for row in rows), tuple(rules))


# Each prompt of a dataset asks about the same sentences.
@lru_cache(maxsize=8)
def _predicted(rows: tuple[tuple[tuple[str, ...], CueText], ...]) -> tuple[list[int], list[str]]:
    """Return the predicted answer of each row, and the rules; the builder, the baseline and the board need the same."""
    memory, parts = machine_memory(), {"rows": hashlib.sha256(repr(rows).encode()).hexdigest()}
    known = memory.get(_BEST_CUE, parts)
    if not isinstance(known, dict):
        words = [of_text for of_text, _ in rows]
        frames = [text.frame or " ".join(of_text) for of_text, text in rows]
        pairs = ["|".join(sorted(text.occupations)) for _, text in rows]
        # Answer 0 is the occupation mentioned first.
        answers = np.array([int(not text.means_first) for _, text in rows])
        predicted = predict_by_cues(words, positions_and_lengths(words), answers, (frames, pairs))
        known = {"answers": predicted.answers.tolist(), "rules": list(predicted.rules)}
        memory.put(_BEST_CUE, parts, known)
    return cast(list[int], known["answers"]), cast(list[str], known["rules"])


def positions_and_lengths(texts: Sequence[Sequence[str]]) -> dict[str, FloatArray]:
    """Return positions and lengths; a position is -1 where the text has no such word."""
    occupations = [[place for place, word in enumerate(words) if word == OCCUPATION] for words in texts]
    pronouns = [next((place for place, word in enumerate(words) if word in _PRONOUNS), -1) for words in texts]
    first, second = (
        np.array([places[number] if len(places) > number else -1 for places in occupations], dtype=np.float64)
        for number in (0, 1)
    )
    pronoun = np.array(pronouns, dtype=np.float64)
    length = np.array([len(words) for words in texts], dtype=np.float64)
    return {
        "words before the first occupation": first,
        "words before the second occupation": second,
        "words before the pronoun": pronoun,
        "words from the second occupation to the pronoun": pronoun - second,
        "words from the pronoun on": length - pronoun,
        "words": length,
        "characters": np.array([len(" ".join(words)) for words in texts], dtype=np.float64),
        "characters before the pronoun": np.array(
            [len(" ".join(words[: max(place, 0)])) for words, place in zip(texts, pronouns, strict=True)],
            dtype=np.float64,
        ),
    }
