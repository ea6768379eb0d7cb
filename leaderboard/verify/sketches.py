"""Sketches of the answers of a result, a few bytes an item, by which two results of one model are recognised."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from biasboard.ground.columns import Column, FloatArray, IntArray
from schemas.documents.result import Result
from schemas.files.record_columns import RecordColumns
from schemas.files.record_hashes import as_hash, is_hashed

Odds: TypeAlias = npt.NDArray[np.float32]
Codes: TypeAlias = npt.NDArray[np.uint32]
Decisions: TypeAlias = npt.NDArray[np.uint16]
T = TypeVar("T", np.float32, np.uint32)

ALIKE = 0.5
"""Share of equal answers from which two results are alike, as two of one model are.

Unrelated models stay far below. The fifteen models whose answers were published with GIFI (2,200 sentences, 1,100 math
problems, 2,200 continuations, 200 stories; 379 pairs) share at most .09 of their wordings, Gemini 1.5 Flash and Pro on
word problems, and at most .014 of their exact texts; TinyStories and SmolLM2 share .05 of their ranks
on synthbias. A trained model moves away from its base: TinyStories trained for 200 steps (rate 1e-4, r = .98) shares
.10, for 50 (r = .997) .25, as it does in 8 bits. In bfloat16 it shares .96, with noise of .01 nats 1.00, of .3 nats
.63, and with three in ten answers invented .67. What shares half after a training so short that nearly nothing moved is
the same model for a board."""
LEAST_KAPPA, LEAST_OF_LARGEST = 0.55, 0.87
"""Cohen's kappa of being right, and its share of the largest one that both accuracies allow (Cohen 1960), from which
two results are alike whose answers are set phrases, such as a letter: only which of them are wrong tells of a model.

A copy with one in twenty answers changed has .90 of the largest kappa at an accuracy of .5 and .94 at .95, where kappa
is .63. Models of one family find the same items hard: of ten published with StereoSet (1,294 sentences), BERT base and
large reach a kappa of .83 and .83 of the largest, RoBERTa base and large .78 and .84; only the ensemble is alike, to
GPT-2 models that it is the mean of. The share alone would find a weak model alike to a strong one, whose few errors it
has too."""
LEAST_SHARED = 150
"""Smallest number of comparable answers: among 60, a trained model shares .67 where it shares .25 of 1,054, since ranks
are coarse."""
_MOST = 4_096
_WINDOW = 0.005
"""Largest difference between the ranks of two equal answers, as a share of the answers. Ranks, because a model whose
log-probabilities are all scaled or shifted is no other model; a share of near ranks and no correlation, because a few
absurd answers would spoil that."""
_NEIGHBOURS = 31
"""Number of answers whose ranks moved alike because others between them were replaced: that move is no difference."""
_REPEATED = 0.01
"""Share of a result's answers from which a value says nothing about the model: a short word, or a certain answer."""
_WORDS = re.compile(r"\w+")
_N_WORDS = 5
_LONG = 4
"""Number of letters from which a word of the prompt counts as one of its own."""
_LEAST_OF_KIND = 8
"""Smallest mean number of items of a kind."""
_LEAST_DIFFERING = 60
"""Smallest number of items of which, by chance, one result would be right and the other not, for a kappa of both: 32
errors of each in 2,000."""
_FACTORS = np.array([0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1], dtype=np.uint32)


def asked(result: Result) -> tuple[str, str, str, int]:
    """Return which items a result asks, in whatever prompt and reading; only sketches on the same ones are compared."""
    signature = result.signature
    return signature.dataset, signature.dataset_version, signature.config, signature.n_items


class SharedErrors(NamedTuple):
    """How often two results are right or wrong on the same items."""

    kappa: float
    """Cohen's kappa of being right; 0 is what chance gives."""
    of_largest: float
    """Its share of the largest kappa that the accuracies allow."""


class Sketch(NamedTuple):
    """What is kept of the first answers to up to 4,096 items, which are the same in all results on these items."""

    odds: Odds
    """Log-odds of the first option against the best other one; NaN if there are none, or many answers have the same."""
    texts: Codes
    """Beginning of the hash of the generated text; 0 if there is none, many answers have the same, or the text has no
    wording. A text that is kept elsewhere counts, since nobody can see its words."""
    wordings: Codes
    """Hash of five words of the text, those with the smallest one (Broder 1997), so that two texts have the same with
    the probability with which they share such words; 0 also where texts are kept elsewhere. Words of the prompt, and
    what many texts of the result share, are set phrases and do not count."""
    decisions: Decisions
    """Number of the kind of the item, counted from 1, and in the last bit 1 if the answer is right; 0 if there is none,
    none is right, or there are log-odds. Items are of one kind if they have the same groups, but for groups that leave
    few items to a kind."""

    @property
    def is_telling(self) -> bool:
        """True if another model hardly gives exactly these answers: not if they are set phrases with few errors."""
        tells = bool(np.isfinite(self.odds).any() or self.texts.any())
        return tells or shared_errors(self.decisions, self.decisions) is not None

    def agreement(self, other: Sketch) -> float | None:
        """Return the share of equal answers of two results on the same items; None if too few can be compared."""
        shares = [
            _share_of_near(self.odds, other.odds),
            _share_of_equal(self.texts, other.texts),
            _share_of_equal(self.wordings, other.wordings),
        ]
        return max((share for share in shares if share is not None), default=None)

    def likeness(self, other: Sketch) -> str | None:
        """Return in words how two results on the same items are alike, as two of one model are; None if they are not.

        Where answers can be told apart by themselves, their equality decides, and otherwise how their errors go
        together: two models may well find the same items hard.
        """
        if len(self.odds) != len(other.odds):
            return None
        if (agreement := self.agreement(other)) is not None:
            return f"{agreement:.0%} of the answers are equal" if agreement >= ALIKE else None
        errors = shared_errors(self.decisions, other.decisions)
        if errors is None or errors.kappa < LEAST_KAPPA or errors.of_largest < LEAST_OF_LARGEST:
            return None
        return (
            f"right and wrong on the same items, with a kappa of {errors.kappa:.2f}, {errors.of_largest:.0%} of the "
            "largest that their accuracies allow"
        )


class SketchMaker:
    """Makes the sketch of a result part by part."""

    def __init__(self) -> None:
        """Start without records."""
        self._items: list[Codes] = []
        self._odds: list[FloatArray] = []
        self._is_right: list[Codes] = []
        self._groups: list[dict[str, Codes]] = []
        self._texts: list[tuple[str | None, str | None]] = []

    def add(self, records: RecordColumns) -> None:
        """Take the answers of one more part into the sketch."""
        # The first answer to each item: how many more there are may differ between published results.
        first = records.first_exchanges[:-1][np.diff(records.first_exchanges) > 0]
        of_items = _hashes(records.columns["item_id"])[records.owners[first]]
        # No other items of this part can be among those of the sketch.
        nearest = np.argsort(of_items, kind="stable")[:_MOST]
        largest = np.sort(_joined(self._items))[_MOST - 1 : _MOST]
        nearest = nearest[of_items[nearest] <= largest] if len(largest) else nearest
        first = first[nearest]
        owners = records.owners[first]
        texts, prompts = (
            Column(records.exchanges[name].array.take(pa.array(first))).texts for name in ("text", "prompt")
        )
        self._items.append(of_items[nearest])
        self._odds.append(_log_odds(records)[first])
        # Where there are log-probabilities, they tell more than what follows from them.
        self._is_right.append(np.where(np.isfinite(self._odds[-1]), np.uint32(0), _is_right(records, owners)))
        self._groups.append({name: codes[owners] for name, codes in _groups(records).items()})
        self._texts += [(text, text and prompt) for text, prompt in zip(texts, prompts, strict=True)]

    @property
    def sketch(self) -> Sketch:
        """The sketch of all answers so far."""
        items = _joined(self._items)
        # Those with the smallest hashes of their items, in the order of the hashes: any beginning is a random sample.
        chosen = np.argsort(items, kind="stable")[:_MOST]
        texts = [self._texts[index] for index in chosen.tolist()]
        odds = np.concatenate(self._odds)[chosen] if self._odds else np.zeros(0)
        wordings = _wordings(texts)
        hashes = [
            int(as_hash(text)[7:15], 16) if text and (wording or is_hashed(text)) else 0
            for wording, (text, _) in zip(wordings.tolist(), texts, strict=True)
        ]
        names = sorted({name for groups in self._groups for name in groups})
        sizes = [len(of_part) for of_part in self._items]
        nothing = np.uint32(0)
        groups = [
            _joined([of.get(name, np.full(n, nothing)) for of, n in zip(self._groups, sizes, strict=True)])[chosen]
            for name in names
        ]
        is_right = _joined(self._is_right)[chosen]
        return Sketch(
            odds=_without_repeated(np.where(np.isfinite(odds), odds, np.nan).astype(np.float32), np.float32(np.nan)),
            texts=_codes(hashes),
            wordings=_without_repeated(wordings, np.uint32(0)),
            decisions=np.where(is_right > 0, 2 * _kinds(groups, len(chosen)) + is_right - 1, 0).astype(np.uint16),
        )


def _joined(of_parts: Sequence[Codes]) -> Codes:
    return np.concatenate([*of_parts, np.zeros(0, dtype=np.uint32)])


def _hashes(column: Column) -> Codes:
    """Return a hash of each text of a column."""
    coded = column.coded
    of_texts = np.array([zlib.crc32(str(text).encode()) for text in (*coded.texts, None)], dtype=np.uint32)
    return of_texts[coded.codes]


def _is_right(records: RecordColumns, owners: IntArray) -> Codes:
    """Return for some records 2 if the most probable or named outcome is right, 1 if it is wrong, 0 if unknown."""
    readings, targets = records.readings, records.columns["target"].texts
    shares, outcomes, answers = (readings[name].lists for name in ("probabilities", "outcomes", "answers"))
    values, offered, named = shares.values.numbers, outcomes.values.texts, answers.values.texts
    ends = (lists.offsets[owners + end].tolist() for lists in (outcomes, answers) for end in (0, 1))
    is_right = np.zeros(len(owners), dtype=np.uint32)
    # A record without a reading has empty lists.
    for place, (row, start, end, first, last) in enumerate(zip(owners.tolist(), *ends, strict=True)):
        if targets[row] is not None and (start < end or first < last):
            decision = offered[start + int(np.argmax(values[start:end]))] if start < end else named[first]
            is_right[place] = 1 + (decision == targets[row])
    return is_right


def _groups(records: RecordColumns) -> dict[str, Codes]:
    """Return a hash of what each record has in common with others, by name, each of shape (n,)."""
    owners, keys, values = records.columns["groups"].entries
    hashes = _hashes(values)
    found = {"": _hashes(records.columns["config"]), "target": _hashes(records.columns["target"])}
    for code, name in enumerate(keys.coded.texts):
        of_name = keys.coded.codes == code
        found[f"group {name}"] = np.zeros(len(records), dtype=np.uint32)
        found[f"group {name}"][owners[of_name]] = hashes[of_name]
    return found


def _kinds(groups: Sequence[Codes], n: int) -> Codes:
    """Return the number of the kind of each item, from 1: by as many groups as leave several items to a kind."""
    kinds = np.ones(n, dtype=np.uint32)
    for codes in sorted(groups, key=lambda codes: len(np.unique(codes))):
        pairs = kinds.astype(np.uint64) << np.uint64(32) | codes
        found, finer = np.unique(pairs, return_inverse=True)
        if n >= _LEAST_OF_KIND * len(found):
            kinds = (finer + 1).astype(np.uint32)
    return kinds


def _log_odds(records: RecordColumns) -> FloatArray:
    """Return the log-odds of the first option of each exchange; NaN where there are no two of them."""
    lists = records.exchanges["option_logprobs"].lists
    odds: FloatArray = np.full(len(lists.lengths), np.nan)
    has_two = lists.lengths >= 2
    if has_two.any():
        starts = np.asarray(lists.offsets[:-1])[has_two]
        values = lists.values.numbers.copy()
        first = values[starts]
        values[starts] = -np.inf
        has_any = lists.lengths > 0
        best_others = np.maximum.reduceat(values, np.asarray(lists.offsets[:-1])[has_any])[has_two[has_any]]
        with np.errstate(invalid="ignore"):
            odds[has_two] = first - best_others
    return odds


def _codes(values: Iterable[int]) -> Codes:
    return _without_repeated(np.fromiter(values, dtype=np.uint32), np.uint32(0))


def _without_repeated(values: npt.NDArray[T], nothing: T) -> npt.NDArray[T]:
    """Return values with ``nothing`` in place of those that many answers share."""
    if not len(values):
        return values
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True, equal_nan=True)
    kept = values.copy()
    kept[counts[places] > max(2, _REPEATED * len(values))] = nothing
    return kept


def _wordings(texts: Sequence[tuple[str | None, str | None]]) -> Codes:
    """Return the wording of each text, of which the prompt is known or None, as in :attr:`Sketch.wordings`."""
    words = [[] if not text or is_hashed(text) else _WORDS.findall(text.lower()) for text, _ in texts]
    # Short words, such as articles, are in every prompt.
    of_prompts = [
        {word for word in _WORDS.findall((prompt or "").lower()) if len(word) >= _LONG} if of_text else ()
        for of_text, (_, prompt) in zip(words, texts, strict=True)
    ]
    codes = np.array([_code_of(word) for of_text in words for word in of_text], dtype=np.uint32)
    is_foreign = [word in of for of_text, of in zip(words, of_prompts, strict=True) for word in of_text]
    owners = np.repeat(np.arange(len(texts), dtype=np.uint64), [len(of_text) for of_text in words])
    wordings = np.zeros(len(texts), dtype=np.uint32)
    n = len(codes) - _N_WORDS + 1
    if n < 1:
        return wordings
    mixed = np.zeros(n, dtype=np.uint32)
    for place, factor in enumerate(_FACTORS):
        mixed += codes[place : place + n] * factor
    mixed ^= mixed >> np.uint32(15)
    mixed *= np.uint32(0x2C1B3C6D)
    mixed ^= mixed >> np.uint32(12)
    n_foreign = np.concatenate([[0], np.cumsum(is_foreign)])
    is_own = (n_foreign[:n] == n_foreign[_N_WORDS:]) & (owners[:n] == owners[_N_WORDS - 1 :])
    half = np.uint64(32)
    found = np.unique(mixed[is_own].astype(np.uint64) << half | owners[:n][is_own])
    _, places, n_texts = np.unique(found >> half, return_inverse=True, return_counts=True)
    found = found[n_texts[places] <= max(2, _REPEATED * len(texts))]
    # The first one of each text is its smallest.
    of_texts, firsts = np.unique(found & np.uint64(0xFFFFFFFF), return_index=True)
    wordings[of_texts.astype(np.int64)] = np.maximum(found[firsts] >> half, 1)
    return wordings


@cache
def _code_of(word: str) -> int:
    return zlib.crc32(word.encode())


def _share_of_equal(ours: Codes, theirs: Codes) -> float | None:
    both = (ours > 0) & (theirs > 0)
    n = int(np.count_nonzero(both))
    return None if n < LEAST_SHARED else float(np.count_nonzero(both & (ours == theirs)) / n)


def shared_errors(ours: Decisions, theirs: Decisions) -> SharedErrors | None:
    """Return how the errors of two results go together; None for too few items, errors or right answers.

    What agrees by chance is one result's answer to an item and the other's to another item of the same kind: all models
    may be wrong where a word is rare or a stereotype misleads, and that is nothing they have of one another.

    Args:
        ours: Decisions of a result, as in :attr:`Sketch.decisions`, shape (n,).
        theirs: Decisions of another one on the same items, shape (n,).
    """
    both = (ours > 0) & (theirs > 0)
    _, kinds, sizes = np.unique(ours[both] >> 1, return_inverse=True, return_counts=True)
    several = sizes[kinds] > 1
    kinds, right, also = kinds[several], *((codes[both][several] & 1).astype(np.float64) for codes in (ours, theirs))
    n = len(kinds)
    if n < LEAST_SHARED:
        return None
    equal = right == also
    n_right, n_also, n_equal = (np.bincount(kinds, each, len(sizes)) for each in (right, also, equal))
    pairs = n_right * n_also + (sizes - n_right) * (sizes - n_also) - n_equal
    by_chance = float(np.sum(pairs[sizes > 1] / (sizes[sizes > 1] - 1))) / n
    beyond, largest = (agreed - by_chance for agreed in (equal.mean(), 1 - abs(right.mean() - also.mean())))
    if (1 - by_chance) * n < _LEAST_DIFFERING or largest <= 0:
        return None
    return SharedErrors(float(beyond / (1 - by_chance)), float(beyond / largest))


def _share_of_near(ours: Odds, theirs: Odds) -> float | None:
    both = np.isfinite(ours) & np.isfinite(theirs)
    n = int(np.count_nonzero(both))
    if n < LEAST_SHARED:
        return None
    our_ranks = _ranks(ours[both])
    their_ranks = _ranks(theirs[both])[np.argsort(our_ranks)]
    moved = their_ranks - np.arange(n)
    # Where one model prefers what the other does not, neighbours move alike too, and nothing is equal.
    if np.dot(their_ranks, np.arange(n) - (n - 1) / 2) <= 0:
        return 0.0
    around = np.pad(moved, _NEIGHBOURS // 2, mode="reflect")
    moved_alike = np.median(np.lib.stride_tricks.sliding_window_view(around, _NEIGHBOURS), axis=1)
    return float(np.count_nonzero(np.abs(moved - moved_alike) <= max(1.0, _WINDOW * n)) / n)


def _ranks(values: Odds) -> npt.NDArray[np.int32]:
    ranks = np.empty(len(values), dtype=np.int32)
    ranks[np.argsort(values, kind="stable")] = np.arange(len(values), dtype=np.int32)
    return ranks
