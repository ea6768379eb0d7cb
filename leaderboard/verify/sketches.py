"""Sketches of the answers of a result, a few bytes an item, by which two results of one model are recognised."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from biasboard.ground.columns import Column, IntArray
from schemas.documents.result import Result
from schemas.files.record_columns import RecordColumns, as_hash, is_hashed

Odds: TypeAlias = npt.NDArray[np.float32]
Codes: TypeAlias = npt.NDArray[np.uint32]
Decisions: TypeAlias = npt.NDArray[np.uint16]
T = TypeVar("T", bound=np.generic)

ALIKE = 0.3
"""Share of equal answers from which two results are alike, as two of one model are.

Of 411 pairs of accepted results of two models, .08 is the most; a model trained for 50 steps has .25 of its base.
``tests/bench/bench_likeness.py`` measures both error rates: which pairs, and which disguised copies are found."""
LEAST_KAPPA, LEAST_OF_LARGEST = 0.55, 0.87
"""Cohen's kappa of being right, and its share of the largest one that both accuracies allow (Cohen 1960), from which
two results are alike whatever else differs: magnitudes can be invented, and set phrases, such as a letter, are shared.
Models of one family find the same items hard: of StereoSet's, RoBERTa base and large reach .78, .84 of the largest. The
share alone would find a weak model alike to a strong one, whose few errors it has too."""
LEAST_SHARED = 150
"""Smallest number of comparable answers: among 60, a trained model shares .67 where it shares .25 of 1,054, since ranks
are coarse."""
_MOST = 3_072
_WINDOW = 0.005
"""Largest difference between the ranks of two equal answers, as a share of the answers. Ranks, because a model whose
log-probabilities are all scaled or shifted is no other model; a share of near ranks and no correlation, because a few
absurd answers would spoil that."""
_NEIGHBOURS = 31
"""Number of answers whose ranks moved alike because others between them were replaced: that move is no difference."""
_REPEATED = 0.01
"""Share of a result's answers from which a value says nothing about the model: a short word, or a certain answer."""
_LONG_WORDS = re.compile(r"\w{4,}")
"""Words that count as a text's own: short ones, such as articles, are in every text."""
_LEAST_OWN_WORDS = 5
"""Smallest number of words of a text that its prompt lacks: two models may repeat that, or answer in a set phrase."""
_LEAST_OF_KIND = 8  # on average
_LEAST_DIFFERING = 60
"""Smallest number of items of which, by chance, one result would be right and the other not, for a kappa of both: 32
errors of each in 2,000."""


def asked(result: Result) -> tuple[str, str, str, int]:
    """Return which items a result asks, in whatever prompt and reading; only sketches on the same ones are compared."""
    signature = result.signature
    return signature.dataset, signature.dataset_version, signature.config, signature.n_items


class Sketch(NamedTuple):
    """What is kept of all answers to each of up to 3,072 items, which are the same in all results on these items."""

    odds: Odds
    """Log-odds of one outcome of the item, by its mean probability against the best other one over all exchanges, which
    stays where it is moved from one order of the options to another; NaN if there are none, or many items have the
    same."""
    highest: Odds
    """Highest log-odds of an exchange: where a model prefers a position, little noise drowns the mean."""
    texts: Codes
    """Smallest beginning of the hash of a generated text of the item; 0 if there is none, many items have the same, or
    its longest text has few words that the prompt lacks. A text that is kept elsewhere counts, since nobody can see its
    words."""
    decisions: Decisions
    """Number of the kind of the item, counted from 1, and in the last bit 1 if the answer is right, or where none is,
    one of the outcomes; 0 if there is none, or many items have the same log-odds. Items are of one kind if they have
    the same groups, but for groups that leave few items to a kind."""

    @property
    def is_telling(self) -> bool:
        """True if another model hardly gives exactly these answers: not if they are set phrases with few errors."""
        tells = bool(np.isfinite(self.odds).any() or self.texts.any())
        return tells or shared_errors(self.decisions, self.decisions) is not None

    def agreement(self, other: Sketch) -> float | None:
        """Return the share of equal answers of two results on the same items; None if too few can be compared."""
        shares = [
            _share_of_near(self.odds, other.odds),
            _share_of_near(self.highest, other.highest),
            _share_of_equal(self.texts, other.texts),
        ]
        return max((share for share in shares if share is not None), default=None)

    def likeness(self, other: Sketch) -> str | None:
        """Return in words how two results on the same items are alike, as two of one model are; None if not."""
        if len(self.odds) != len(other.odds):
            return None
        if (agreement := self.agreement(other) or 0.0) >= ALIKE:
            return f"{agreement:.0%} of the answers are equal"
        kappa, of_largest = shared_errors(self.decisions, other.decisions) or (0.0, 0.0)
        if kappa < LEAST_KAPPA or of_largest < LEAST_OF_LARGEST:
            return None
        how = f"a kappa of {kappa:.2f}, {of_largest:.0%} of the largest that their accuracies allow"
        return f"right and wrong on the same items, with {how}"


class SketchMaker:
    """Makes the sketch of a result part by part."""

    def __init__(self) -> None:
        """Start without records."""
        nothing = np.zeros(0, dtype=np.uint32)
        self._items, self._is_right, self._texts = [nothing], [nothing], [nothing]
        self._odds = [np.zeros((0, 2), dtype=np.float32)]
        self._groups: list[dict[str, Codes]] = [{}]

    def add(self, records: RecordColumns) -> None:
        """Take the answers of one more part into the sketch."""
        of_items = _hashes(records.columns["item_id"])
        # No other items of this part can be among those of the sketch.
        nearest = np.argsort(of_items, kind="stable")[:_MOST]
        largest = np.sort(np.concatenate(self._items))[_MOST - 1 : _MOST]
        nearest = nearest[of_items[nearest] <= largest] if len(largest) else nearest
        self._items.append(of_items[nearest])
        self._odds.append(_log_odds(records)[nearest])
        self._is_right.append(_is_right(records)[nearest])
        self._groups.append({name: codes[nearest] for name, codes in _groups(records).items()})
        self._texts.append(_texts(records, nearest))

    @property
    def sketch(self) -> Sketch:
        """The sketch of all answers so far."""
        items = np.concatenate(self._items)
        # Those with the smallest hashes of their items, in the order of the hashes: any beginning is a random sample.
        chosen = np.argsort(items, kind="stable")[:_MOST]
        every = np.concatenate(self._odds)[chosen].T
        odds, highest = (_without_repeated(each, np.float32(np.nan)) for each in every)
        names = sorted({name for groups in self._groups for name in groups})
        nothing = np.uint32(0)
        of_parts = [*zip(self._groups, self._items, strict=True)]
        groups = [np.concatenate([of.get(name, nothing * part) for of, part in of_parts])[chosen] for name in names]
        # One answer to everything is none that its log-probabilities chose.
        is_right = np.where(np.isnan(every[0]) == np.isnan(odds), np.concatenate(self._is_right)[chosen], 0)
        return Sketch(
            odds=odds,
            highest=highest,
            texts=_without_repeated(np.concatenate(self._texts)[chosen], nothing),
            decisions=np.where(is_right > 0, 2 * _kinds(groups, len(chosen)) + is_right - 1, 0).astype(np.uint16),
        )


def _hashes(column: Column) -> Codes:
    """Return a hash of each text of a column."""
    coded = column.coded
    of_texts = np.array([zlib.crc32(str(text).encode()) for text in (*coded.texts, None)], dtype=np.uint32)
    return of_texts[coded.codes]


def _of_lists(reduce: np.ufunc, values: npt.NDArray[T], offsets: IntArray) -> npt.NDArray[T]:
    """Return what a function makes of the values of each list; 0 of an empty one."""
    found = np.zeros(len(offsets) - 1, dtype=values.dtype)
    found[np.diff(offsets) > 0] = reduce.reduceat(values, offsets[:-1][np.diff(offsets) > 0])
    return found


def _is_right(records: RecordColumns) -> Codes:
    """Return for each record 2 if its likeliest outcome, or half of its answers, is right, 1 if not, 0 if unknown."""
    readings, targets = records.readings, records.columns["target"]
    shares, outcomes, answers = (readings[name].lists for name in ("probabilities", "outcomes", "answers"))
    offered, values = _hashes(outcomes.values), shares.values.numbers
    # Without a target, one of the outcomes stands for it.
    right = np.where(targets.known, _hashes(targets), _of_lists(np.minimum, offered, outcomes.offsets))
    best = values == np.repeat(_of_lists(np.maximum, values, outcomes.offsets), outcomes.lengths)
    hits = _of_lists(np.add, best & (offered == np.repeat(right, outcomes.lengths)), outcomes.offsets)
    agreeing = (_hashes(answers.values) == np.repeat(right, answers.lengths)).astype(np.int64)
    named = 2 * _of_lists(np.add, agreeing, answers.offsets) >= answers.lengths
    is_known = (outcomes.lengths > 0) | ((answers.lengths > 0) & targets.known)
    return np.where(is_known, 1 + np.where(outcomes.lengths > 0, hits, named), 0).astype(np.uint32)


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


def _log_odds(records: RecordColumns) -> Odds:
    """Return the log-odds of an outcome of each record by its mean probability and the highest ones, shape (n, 2)."""
    outcomes, logprobs = (records.exchanges[name].lists for name in ("outcomes", "option_logprobs"))
    # A failed exchange may have any number of log-probabilities.
    n = np.where(outcomes.lengths == logprobs.lengths, outcomes.lengths, 0)
    values = logprobs.values.numbers[np.repeat(n > 0, logprobs.lengths)]
    offered = _hashes(outcomes.values)[np.repeat(n > 0, outcomes.lengths)]
    offsets = np.concatenate([[0], np.cumsum(n)])
    chosen = offered == np.repeat(_of_lists(np.minimum, offered, offsets), n)
    best, other = (_of_lists(np.maximum, np.where(mask, values, -np.inf), offsets) for mask in (chosen, ~chosen))
    with np.errstate(invalid="ignore", divide="ignore"):
        odds = np.where(n >= 2, best - other, np.nan)
        known = np.isfinite(odds)
        mine, rest = (
            np.bincount(records.owners[known], np.exp(-np.logaddexp(0, sign * odds[known])), len(records))
            for sign in (-1, 1)
        )
        highest = _of_lists(np.maximum, np.where(known, odds, -np.inf), records.first_exchanges)
        return np.stack([np.log(mine) - np.log(rest), np.where(mine > 0, highest, np.nan)], axis=1).astype(np.float32)


def _texts(records: RecordColumns, of: IntArray) -> Codes:
    """Return for some records the smallest hash of a text; 0 without any, or if the longest one says little."""
    rows = np.full(len(records), -1)
    rows[of] = np.arange(len(of))
    column = records.exchanges["text"]
    places = np.flatnonzero((rows[records.owners] >= 0) & (column.text_lengths > 0))
    owners, texts = rows[records.owners[places]], column.array.take(pa.array(places)).to_pylist()
    codes = np.array([int(as_hash(text)[7:15], 16) for text in texts], dtype=np.uint32)
    hashes = np.zeros(len(of), dtype=np.uint32)
    owned, firsts = np.unique(np.sort(owners), return_index=True)
    hashes[owned] = codes[np.lexsort((codes, owners))[firsts]]
    chosen = np.lexsort((codes, -column.text_lengths[places], owners))[firsts]
    prompts = records.exchanges["prompt"].array.take(pa.array(places[chosen])).to_pylist()
    for row, place, prompt in zip(owned.tolist(), chosen.tolist(), prompts, strict=True):
        own = {*_LONG_WORDS.findall(texts[place].lower())} - {*_LONG_WORDS.findall((prompt or "").lower())}
        if len(own) < _LEAST_OWN_WORDS and not is_hashed(texts[place]):
            hashes[row] = 0
    return hashes


def _without_repeated(values: npt.NDArray[T], nothing: T) -> npt.NDArray[T]:
    """Return values with ``nothing`` in place of those that many answers share."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True, equal_nan=True)
    kept = values.copy()
    kept[counts[places] > max(2, _REPEATED * len(values))] = nothing
    return kept


def _share_of_equal(ours: Codes, theirs: Codes) -> float | None:
    both = (ours > 0) & (theirs > 0)
    n = int(np.count_nonzero(both))
    return None if n < LEAST_SHARED else float(np.count_nonzero(both & (ours == theirs)) / n)


def shared_errors(ours: Decisions, theirs: Decisions) -> tuple[float, float] | None:
    """Return how the errors of two results go together; None for too few items, errors or right answers.

    The first number is Cohen's kappa of being right, for which 0 is what chance gives, and the second its share of the
    largest kappa that the accuracies allow.

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
    return float(beyond / (1 - by_chance)), float(beyond / largest)


def _share_of_near(ours: Odds, theirs: Odds) -> float | None:
    both = np.isfinite(ours) & np.isfinite(theirs)
    n = int(np.count_nonzero(both))
    if n < LEAST_SHARED:
        return None
    # The ranks of the other's answers, in the order of ours.
    their_ranks = theirs[both].argsort(kind="stable").argsort()[ours[both].argsort(kind="stable")]
    moved = their_ranks - np.arange(n)
    # Where one model prefers what the other does not, neighbours move alike too, and nothing is equal.
    if np.dot(their_ranks, np.arange(n) - (n - 1) / 2) <= 0:
        return 0.0
    around = np.pad(moved, _NEIGHBOURS // 2, mode="reflect")
    moved_alike = np.median(np.lib.stride_tricks.sliding_window_view(around, _NEIGHBOURS), axis=1)
    return float(np.count_nonzero(np.abs(moved - moved_alike) <= max(1.0, _WINDOW * n)) / n)
