"""What the wording of texts predicts by itself, and whom a pronoun means by the cues of its sentence alone.

A cue is a yes-or-no property of a text: that it has a word, two adjacent words or any two words, or that a number such
as its length is at most a threshold. The rules are the most frequent answer, decision tables of one to three cues, and
the answer of the text with most words in common. A rule is fitted on some clusters and predicts others, so that only
what carries over to new texts counts (Gururangan et al. 2018, arXiv:1803.02324, call such cues annotation artifacts).
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import combinations, pairwise, product
from typing import NamedTuple, TypeVar, cast

import numpy as np

from biasboard.ground.columns import BoolArray, FloatArray, IntArray
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


MAX_DEPTH = 3
"""Maximum number of cues in a decision table."""
_N_REPEATS = 5
"""Number of divisions into folds; each text gets the answer that most of them predict. The accuracy of one division of
120 frames varies by .02 with the division."""
_N_FOLDS = (5, 3)
"""Number of folds of the clusters of either factor; each combination of folds is predicted in turn."""
_N_INNER_FOLDS = 4
"""Number of folds of the training clusters by which a rule is chosen."""
_N_WORDS, _N_ADJACENT, _N_PAIRED = 150, 60, 12
"""Numbers of the most frequent words, of the most frequent adjacent words, and of the words that are paired."""
_QUANTILES = np.linspace(0.1, 0.9, 7)
_MAX_NEIGHBOURS = 2000
"""Maximum number of texts among which the most similar one is sought, which bounds time and memory."""

T = TypeVar("T", bound=Hashable)


class Predicted(NamedTuple):
    """What the best cue predicts."""

    answers: IntArray
    """Predicted answer of each text, by rules that saw none of its clusters, shape (n,); -1 without other clusters."""
    rules: Mapping[str, int]
    """How often each rule was the best one, by its description."""


class DecisionTable(NamedTuple):
    """The answer for each combination of some cues."""

    cues: tuple[int, ...]
    """Indices of the cues."""
    answers: IntArray
    """Answer for each combination, with the first cue as the lowest bit; shape (2**n_cues,)."""

    def predict(self, holds: BoolArray) -> IntArray:
        """Return the answer for each text, shape (n,), given which cues hold, shape (n, k)."""
        cells = np.zeros(len(holds), dtype=np.int64)
        for bit, cue in enumerate(self.cues):
            cells += holds[:, cue].astype(np.int64) << bit
        predicted: IntArray = self.answers[cells]
        return predicted


def cues_of(
    words: Sequence[Sequence[str]], numbers: Mapping[str, FloatArray], clusters: Sequence[str]
) -> tuple[tuple[str, ...], BoolArray]:
    """Return a few hundred cues: the description of each, and the mask of those that hold, shape (n, n_cues).

    They are chosen by their frequency, without regard to any answers.

    Args:
        words: Words and punctuation marks of each text, n sequences.
        numbers: Further properties of the texts by name, such as their lengths; each of shape (n,).
        clusters: Cluster of each text, n names. Words that many clusters have come first.
    """
    present = [frozenset(of_text) for of_text in words]
    adjacent = [frozenset(pairwise(of_text)) for of_text in words]
    cues = [(f"'{word}'", _which_have(word, present)) for word in _most_frequent(present, clusters, _N_WORDS)]
    # A pair with a word that few or nearly all texts have says no more than one of its words.
    halving = sorted(range(len(cues)), key=lambda index: abs(cues[index][1].mean() - 0.5))[:_N_PAIRED]
    cues += [(f"{cues[a][0]} and {cues[b][0]}", cues[a][1] & cues[b][1]) for a, b in combinations(sorted(halving), 2)]
    cues += [
        (f"'{' '.join(pair)}'", _which_have(pair, adjacent)) for pair in _most_frequent(adjacent, clusters, _N_ADJACENT)
    ]
    cues += [
        (f"{name} up to {threshold:g}", values <= threshold)
        for name, values in numbers.items()
        for threshold in np.unique(np.quantile(values, _QUANTILES, method="lower")).tolist()
    ]
    varying = [(name, holds) for name, holds in cues if holds.any() and not holds.all()]
    holds = np.column_stack([holds for _, holds in varying]) if varying else np.zeros((len(words), 0), dtype=np.bool_)
    return tuple(name for name, _ in varying), holds


def _which_have(entry: T, sets: Sequence[frozenset[T]]) -> BoolArray:
    return np.array([entry in own for own in sets], dtype=np.bool_)


def _most_frequent(sets: Sequence[frozenset[T]], clusters: Sequence[str], n: int) -> list[T]:
    """Return the entries of most clusters, the most frequent first."""
    by_cluster: dict[str, set[T]] = {}
    for own, cluster in zip(sets, clusters, strict=True):
        by_cluster.setdefault(cluster, set()).update(own)
    counts = Counter(entry for entries in by_cluster.values() for entry in entries)
    return sorted(counts, key=lambda entry: (-counts[entry], str(entry)))[:n]


def predict_by_cues(
    words: Sequence[Sequence[str]],
    numbers: Mapping[str, FloatArray],
    answers: IntArray,
    factors: tuple[Sequence[str], Sequence[str]],
) -> Predicted:
    """Predict the answer of each text by the best of the rules that were fitted on other clusters.

    Args:
        words: Words and punctuation marks of each text, n sequences.
        numbers: Further properties of the texts by name; each of shape (n,).
        answers: Right answers, counted from 0; shape (n,).
        factors: The cluster of each text in either of two factors, n names each. No rule predicts a text that shares a
            cluster of either factor with one that it was fitted on.
    """
    names, holds = cues_of(words, numbers, factors[0])
    similarity = _Similarity(words)
    targets = np.eye(int(answers.max(initial=0)) + 1)[answers]
    votes = np.zeros_like(targets)
    rules: Counter[str] = Counter()
    for repeat in range(_N_REPEATS):
        first, second = (
            _folds(factor, answers, n, f"{repeat}/outer") for factor, n in zip(factors, _N_FOLDS, strict=True)
        )
        inner = _folds(factors[0], answers, _N_INNER_FOLDS, f"{repeat}/inner")
        for a, b in product(range(_N_FOLDS[0]), range(_N_FOLDS[1])):
            held_out, train = (first == a) & (second == b), (first != a) & (second != b)
            if not held_out.any() or not train.any():
                continue
            n_right = np.zeros(MAX_DEPTH + 2)
            for fold in range(_N_INNER_FOLDS):
                fit, check = train & (inner != fold), train & (inner == fold)
                if fit.any() and check.any():
                    guesses = (guess for _, guess in _rules(names, holds, similarity, targets, fit, check))
                    n_right += [(guess == answers[check]).sum() for guess in guesses]
            name, guess = list(_rules(names, holds, similarity, targets, train, held_out))[int(n_right.argmax())]
            votes[np.flatnonzero(held_out), guess] += 1
            rules[name] += 1
    predicted: IntArray = np.where(votes.any(axis=1), votes.argmax(axis=1), -1)
    return Predicted(predicted, dict(rules.most_common()))


def _rules(
    names: Sequence[str],
    holds: BoolArray,
    similarity: _Similarity,
    targets: FloatArray,
    fit: BoolArray,
    predict: BoolArray,
) -> Iterator[tuple[str, IntArray]]:
    """Yield the description of each rule, fitted on some texts, and what it predicts for others."""
    for table in decision_tables(holds[fit], targets[fit]):
        name = ", ".join(names[cue] for cue in table.cues)
        yield name or "most frequent answer", table.predict(holds[predict])
    yield "most similar text", similarity.predict(targets, fit, predict)


def decision_tables(holds: BoolArray, targets: FloatArray) -> Iterator[DecisionTable]:
    """Yield the decision tables of no cue, of the best one, and of those with the best further cue added to the last.

    Args:
        holds: Mask of the cues that hold, shape (n, k).
        targets: 1 for the right answer of each text and 0 for others, shape (n, n_answers).

    Yields:
        ``MAX_DEPTH + 1`` tables; if there are no cues, all are the first one.
    """
    table = DecisionTable((), targets.sum(axis=0)[None].argmax(axis=1))
    yield table
    cells = np.zeros(len(holds), dtype=np.int64)
    # Numbers of texts are exact in float32, which takes half the time.
    by_cue = holds.astype(np.float32).T
    for depth in range(MAX_DEPTH):
        if len(by_cue):
            # Axes: text, combination of the cues so far, answer.
            split = np.eye(2**depth, dtype=np.float32)[cells][:, :, None] * targets[:, None, :].astype(np.float32)
            counts = split.sum(axis=0)
            with_cue = (by_cue @ split.reshape(len(holds), -1)).reshape(len(by_cue), *counts.shape)
            n_right = (with_cue.max(axis=2) + (counts - with_cue).max(axis=2)).sum(axis=1)
            best = int(n_right.argmax())
            cells += holds[:, best].astype(np.int64) << depth
            answers = np.concatenate([counts - with_cue[best], with_cue[best]]).argmax(axis=1)
            table = DecisionTable((*table.cues, best), answers)
        yield table


class _Similarity:
    """How similar texts are, by the words that they share."""

    def __init__(self, words: Sequence[Sequence[str]]) -> None:
        present = [frozenset(of_text) for of_text in words]
        # Sorted, so that ties do not depend on the order of the texts.
        rows = {own: row for row, own in enumerate(sorted(set(present), key=sorted))}
        self._row_of = np.array([rows[own] for own in present])
        columns = {word: column for column, word in enumerate(sorted(frozenset[str]().union(*rows)))}
        has = np.zeros((len(rows), len(columns)), dtype=np.float32)
        for own, row in rows.items():
            has[row, [columns[word] for word in own]] = 1
        self._neighbours = np.arange(0, len(rows), -(-len(rows) // _MAX_NEIGHBOURS) or 1)
        sizes = has.sum(axis=1)
        shared = has @ has[self._neighbours].T
        # The share of common words among all of both (Jaccard): the longest text has most words in common with any.
        # In place, for each of these arrays takes 50 MB for 6,000 texts.
        of_either = sizes[:, None] + sizes[self._neighbours]
        of_either -= shared
        shared /= np.maximum(of_either, 1, out=of_either)
        self._similarity = shared

    def predict(self, targets: FloatArray, fit: BoolArray, predict: BoolArray) -> IntArray:
        """Return the most frequent answer to the most similar text of those to fit, for each text to predict."""
        counts = np.zeros((len(self._similarity), targets.shape[1]))
        np.add.at(counts, self._row_of[fit], targets[fit])
        is_known = counts[self._neighbours].sum(axis=1) > 0
        asked, index = np.unique(self._row_of[predict], return_inverse=True)
        if not is_known.any():
            return np.full(len(index), counts.sum(axis=0).argmax())
        nearest = self._neighbours[is_known][self._similarity[asked][:, is_known].argmax(axis=1)]
        predicted: IntArray = counts[nearest].argmax(axis=1)[index]
        return predicted


def _folds(names: Iterable[str], answers: IntArray, n: int, purpose: str) -> IntArray:
    """Divide clusters into folds of equal size and with nearly the same answers, by hashes of their names.

    Were the answers of a fold left to chance, those that are rare in it would be frequent outside it, and every rule
    that follows the frequencies outside would be worse than a coin.
    """
    clusters, index = np.unique(list(names), return_inverse=True)
    means = np.bincount(index, weights=answers) / np.bincount(index)
    hashes = np.array([hashlib.sha256(f"{purpose}/{name}".encode()).hexdigest() for name in clusters.tolist()])
    fold_of = np.empty(len(clusters), dtype=np.int64)
    fold_of[np.lexsort((hashes, means))] = np.arange(len(clusters)) % n
    folds: IntArray = fold_of[index]
    return folds
