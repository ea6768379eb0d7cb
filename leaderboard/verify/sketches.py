"""Sketches of the answers of a result, a few bytes an item, by which the copy of a model is recognised."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from biasboard.ground.columns import BoolArray, FloatArray
from schemas.documents.result import Result
from schemas.files.record_columns import RecordColumns
from schemas.files.record_hashes import as_hash, is_hashed

Odds: TypeAlias = npt.NDArray[np.float32]
Codes: TypeAlias = npt.NDArray[np.uint32]
T = TypeVar("T", np.float32, np.uint32)

ALIKE = 0.5
"""Share of equal answers from which two results are taken for answers of one model.

Unrelated models stay far below. The fifteen models whose answers were published with GIFI (2,200 sentences, 1,100 math
problems, 2,200 continuations, 200 stories; 377 pairs) share at most .19 of their wordings, GPT-4o and its mini version
on sentences that both repeat, and at most .014 of their exact texts; TinyStories and SmolLM2 share .05 of their ranks
on synthbias. A trained model moves away from its base: TinyStories trained for 200 steps (rate 1e-4, r = .98) shares
.10, for 50 (r = .997) .25, as it does in 8 bits. In bfloat16 it shares .96, with noise of .01 nats 1.00, of .3 nats
.63, and with three in ten answers invented .67. What shares half after a training so short that nearly nothing moved is
the same model for a board."""
LEAST_SHARED = 150
"""Smallest number of comparable answers: among 60, a trained model shares .67 where it shares .25 of 1,054, since ranks
are coarse."""
_MOST = 4_096
_N_SCREENED, _SCREENING_WINDOW = 1_024, 0.02
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
_FACTORS = np.array([0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1], dtype=np.uint32)


class Asked(NamedTuple):
    """The items that a result asks, in whatever prompt and reading; sketches are compared on the same ones alone."""

    dataset: str
    dataset_version: str
    config: str
    n_items: int


def asked(result: Result) -> Asked:
    """Return what a result asks."""
    signature = result.signature
    return Asked(signature.dataset, signature.dataset_version, signature.config, signature.n_items)


class Sketch(NamedTuple):
    """What is kept of the first answers to up to 4,096 items, which are the same in all results on these items."""

    odds: Odds
    """Log-odds of the first option against the best other one; NaN if there are none, or many answers have the same."""
    texts: Codes
    """Beginning of the hash of the generated text; 0 if there is none, or many answers have the same."""
    wordings: Codes
    """Hash of five words of the text, those with the smallest one (Broder 1997), so that two texts have the same with
    the probability with which they share such words; 0 also where texts are kept elsewhere."""

    def agreement(self, other: Sketch) -> float | None:
        """Return the share of equal answers of two results on the same items; None if too few can be compared."""
        shares = [
            _share_of_near(self.odds, other.odds),
            _share_of_equal(self.texts, other.texts),
            _share_of_equal(self.wordings, other.wordings),
        ]
        return max((share for share in shares if share is not None), default=None)

    def is_like(self, other: Sketch) -> bool:
        """Return True if two results on the same items give the answers of one model."""
        return len(self.odds) == len(other.odds) and (self.agreement(other) or 0.0) >= ALIKE


class SketchMaker:
    """Makes the sketch of a result part by part."""

    def __init__(self) -> None:
        """Start without records."""
        self._items: list[npt.NDArray[np.uint32]] = []
        self._odds: list[FloatArray] = []
        self._texts: list[str | None] = []

    def add(self, records: RecordColumns) -> None:
        """Take the answers of one more part into the sketch."""
        # The first answer to each item: how many more there are may differ between published results.
        first = records.first_exchanges[:-1][np.diff(records.first_exchanges) > 0]
        items = records.columns["item_id"].texts
        of_items = [zlib.crc32(str(items[owner]).encode()) for owner in records.owners[first].tolist()]
        texts = records.exchanges["text"].texts
        self._items.append(np.array(of_items, dtype=np.uint32))
        self._odds.append(_log_odds(records)[first])
        self._texts += [texts[index] for index in first.tolist()]

    @property
    def sketch(self) -> Sketch:
        """The sketch of all answers so far."""
        items = np.concatenate(self._items) if self._items else np.zeros(0, dtype=np.uint32)
        # Those with the smallest hashes of their items, in the order of the hashes: any beginning is a random sample.
        chosen = np.argsort(items, kind="stable")[:_MOST]
        texts = [self._texts[index] for index in chosen.tolist()]
        odds = np.concatenate(self._odds)[chosen] if self._odds else np.zeros(0)
        return Sketch(
            odds=_without_repeated(np.where(np.isfinite(odds), odds, np.nan).astype(np.float32), np.float32(np.nan)),
            texts=_codes(int(as_hash(text)[7:15], 16) if text else 0 for text in texts),
            wordings=_codes(0 if not text or is_hashed(text) else _wording(text) for text in texts),
        )


def first_alike(sketches: Sequence[Sketch], is_same_model: Callable[[int, int], bool]) -> list[int | None]:
    """Return for each sketch the index of the first one before it that is alike, though of another model, or None.

    Args:
        sketches: Sketches of results on the same items; the first one of several copies is the original.
        is_same_model: Function that says of two indices whether both are of one model, which may repeat itself.
    """
    if not sketches:
        return []
    # Most pairs are far apart: a sample of each sketch, with a wider window, shows that in one pass over an array.
    ranks = np.stack([_sampled_ranks(sketch.odds[:_N_SCREENED]) for sketch in sketches])
    codes = [np.stack([getattr(sketch, name)[:_N_SCREENED] for sketch in sketches]) for name in ("texts", "wordings")]
    return [
        next(
            (
                earlier
                for earlier in np.flatnonzero(_may_be_alike(number, ranks, codes)).tolist()
                if not is_same_model(earlier, number) and sketches[earlier].is_like(sketches[number])
            ),
            None,
        )
        for number in range(len(sketches))
    ]


def _sampled_ranks(odds: Odds) -> Odds:
    ranks = np.full(len(odds), np.nan, dtype=np.float32)
    known = np.isfinite(odds)
    ranks[known] = _ranks(odds[known]) / max(int(np.count_nonzero(known)), 1)
    return ranks


def _may_be_alike(number: int, ranks: Odds, codes: Sequence[Codes]) -> BoolArray:
    """Return the mask of the sketches before one that could be alike."""
    may_be: BoolArray = np.zeros(number, dtype=np.bool_)
    with np.errstate(invalid="ignore"):
        near = np.abs(ranks[:number] - ranks[number])
        may_be |= _is_much(near <= _SCREENING_WINDOW, ~np.isnan(near))
    for values in codes:
        both = (values[:number] > 0) & (values[number] > 0)
        may_be |= _is_much(both & (values[:number] == values[number]), both)
    return may_be


def _is_much(equal: BoolArray, comparable: BoolArray) -> BoolArray:
    n_comparable = np.count_nonzero(comparable, axis=1)
    is_much: BoolArray = (n_comparable > 0) & (np.count_nonzero(equal, axis=1) >= 0.5 * ALIKE * n_comparable)
    return is_much


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


def _wording(text: str) -> int:
    codes = np.array([_code_of(word) for word in _WORDS.findall(text.lower())], dtype=np.uint32)
    if not len(codes):
        return 0
    n = max(len(codes) - _N_WORDS + 1, 1)
    mixed = np.zeros(n, dtype=np.uint32)
    for place, factor in enumerate(_FACTORS[: len(codes)]):
        mixed += codes[place : place + n] * factor
    mixed ^= mixed >> np.uint32(15)
    mixed *= np.uint32(0x2C1B3C6D)
    mixed ^= mixed >> np.uint32(12)
    return int(mixed.min()) or 1


@cache
def _code_of(word: str) -> int:
    return zlib.crc32(word.encode())


def _share_of_equal(ours: Codes, theirs: Codes) -> float | None:
    both = (ours > 0) & (theirs > 0)
    n = int(np.count_nonzero(both))
    return None if n < LEAST_SHARED else float(np.count_nonzero(both & (ours == theirs)) / n)


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
