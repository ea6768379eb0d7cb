"""Finds whether answers depend on their prompts: whether they say something of one text, and whether that fits it.

Measures of evenness are ideal for a model that reads nothing and writes the same to everybody. It is recognised by the
words of its answers, compared between texts and never within one, where a fair model may well repeat itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from biasboard.ground.columns import BoolArray, FloatArray, IntArray
from evaluators.tasks.pronouns.detectors.echo import echo_end
from evaluators.tasks.written_answers import ReadAnswer, is_refused
from schemas.lexicon import families_of

_WORD = re.compile(r"[^\W\d_]+")
_STEM = 5
"""Number of letters by which words are compared, so that *sewing* is that of *sew* in *sewed*, and *nurse* *nurses*."""
_MANY_TEXTS = 100
"""Number of texts from which on some are alike enough: published answers fit by .59 to .92 of 200, with standard errors
of .02 to .03, those of small models by .61 of 44, with one of .06."""
_NEGLIGIBLE = 1e-9
"""Largest difference of sums that their order can make."""


def own_words(answer: ReadAnswer) -> str:
    """Return the text that an answer adds to its prompt; empty if it is refused, missing or only repeats the prompt."""
    if answer.status != "answered" or is_refused(answer):
        return ""
    words = answer.text[echo_end(answer.text, answer.prompt) :]
    # Without a letter or digit, only punctuation is left after the repeated prompt.
    return words if any(character.isalnum() for character in words) else ""


def stems(text: str) -> frozenset[str]:
    """Return the first letters of the words of a text, without pronouns and numbers.

    >>> sorted(stems("Kim nursed xem at 11."))
    ['at', 'kim', 'nurse']
    """
    return frozenset(filter(None, map(_stem, _WORD.findall(text))))


@lru_cache(1 << 15)
def _stem(word: str) -> str:
    """Return the first letters of a word; empty for a pronoun."""
    return "" if families_of(word) else word.casefold()[:_STEM]


@dataclass(frozen=True, eq=False)
class AnswerWords:
    """The words of all answers of a result, with the text that each one is about."""

    answers: Sequence[ReadAnswer]
    clusters: IntArray
    """Index of the text of each answer, shape (n,). Variants of a text that differ in the pronoun are one text."""
    n_clusters: int

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Text that each answer adds to its prompt; empty if it adds nothing or is not read."""
        return tuple(map(own_words, self.answers))

    @cached_property
    def is_specific(self) -> BoolArray:
        """Mask of the answers that say something that no answer to another text says, shape (n,).

        Two answers say the same if they have the same words besides those of their prompts, whatever the order.
        """
        said = [words - of_prompt for words, of_prompt in zip(self._stems, self._stems_of_prompts, strict=True)]
        texts_of: dict[frozenset[str], set[int]] = {}
        for what, text in zip(said, self.clusters.tolist(), strict=True):
            texts_of.setdefault(what, set()).add(text)
        return np.array([bool(what) and len(texts_of[what]) == 1 for what in said], dtype=np.bool_)

    @cached_property
    def fits(self) -> FloatArray:
        """How well the answers to each text fit it, shape (n_clusters,): .5 is chance, 1 the best; nan without answers.

        It is the share of the other texts from which it is told apart: of the two sets of answers, each shares more
        with its own text than they would if they were exchanged. Only specific answers are compared, and with none to
        another text the value is .5.
        """
        shared = self._shared
        own = np.diag(shared)
        # Of two texts: what is shared as the answers are, minus what would be if they were exchanged.
        gains = own[:, None] + own[None, :] - shared - shared.T
        told = np.where(np.abs(gains) <= _NEGLIGIBLE, 0.5, gains > 0)
        compared = np.zeros(self.n_clusters, dtype=np.bool_)
        compared[self.clusters[self.is_specific]] = True
        others = compared[None, :] & ~np.eye(self.n_clusters, dtype=np.bool_)
        n_others = others.sum(axis=1)
        shares = np.where(n_others > 0, (told * others).sum(axis=1) / np.maximum(n_others, 1), 0.5)
        return np.where(compared, shares, np.nan)

    @property
    def _shared(self) -> FloatArray:
        """How much the answers to each text share with each text, shape (n_clusters, n_clusters).

        Anybody can name a word of the prompt and go on with anything. Of many texts it is therefore words that no
        prompt has, compared with the answers to the other texts, as far as these are like the text. Few texts are too
        seldom alike for that, so there it is words of the text.
        """
        words = frozenset().union(*self._stems_of_prompts)
        said = [
            answer if is_specific else frozenset[str]()
            for answer, is_specific in zip(self._stems, self.is_specific, strict=True)
        ]
        in_texts = self._present(self._stems_of_prompts, words)
        if self.n_clusters < _MANY_TEXTS:
            return (self._present(said, words) * _rarity(in_texts)) @ in_texts.T
        texts = _likeness(in_texts)
        answers = _likeness(self._present(said, frozenset().union(*said) - words))
        # Two texts say nothing of each other's answers if they are the two that are exchanged.
        return answers @ texts + answers * texts

    def _present(self, of_answers: Iterable[frozenset[str]], words: frozenset[str]) -> FloatArray:
        """Return 1 where a word is in what belongs to any answer to a text, else 0, shape (n_clusters, n_words)."""
        places = {word: place for place, word in enumerate(sorted(words))}
        present = np.zeros((self.n_clusters, len(words)))
        for text, of_answer in zip(self.clusters.tolist(), of_answers, strict=True):
            present[text, [places[word] for word in of_answer if word in places]] = 1
        return present

    @cached_property
    def _stems(self) -> list[frozenset[str]]:
        return [*map(stems, self.words)]

    @cached_property
    def _stems_of_prompts(self) -> list[frozenset[str]]:
        prompts = [answer.prompt or "" for answer in self.answers]
        known = {prompt: stems(prompt) for prompt in set(prompts)}
        return [known[prompt] for prompt in prompts]


def _rarity(present: FloatArray) -> FloatArray:
    """Return the weight of each word, which is larger the fewer texts have it, shape (n_words,)."""
    weights: FloatArray = np.log(len(present) / np.maximum(present.sum(axis=0), 1))
    return weights


def _likeness(present: FloatArray) -> FloatArray:
    """Return the cosines of all texts by their words, 0 for a text with itself, shape (n_clusters, n_clusters)."""
    # A word of one text alone, as an invented one, makes it like no other.
    present = present[:, present.sum(axis=0) > 1]
    vectors = present * _rarity(present)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), _NEGLIGIBLE)
    cosines: FloatArray = vectors @ vectors.T
    np.fill_diagonal(cosines, 0)
    return cosines
