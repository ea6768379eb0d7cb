"""Whether packed scoring gives what plain scoring gives, tried before a run relies on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

from evaluators.backends.transformers.packed import PackedScorer
from evaluators.backends.transformers.plain import Batch, PlainScorer, Score
from evaluators.models.tokenizer import Rows

_ROUNDING = {"float16": 0.0125, "bfloat16": 0.1}
"""Nats by which a half precision may differ from itself, per square root of tokens."""
_EXACT = 1e-4
_NOISE = 4.0
"""How far the two ways may lie apart, in multiples of what padding alone changes."""
_N_HEAD = 4
T = TypeVar("T")


class _Sample(NamedTuple):
    """Requests in one row."""

    requests: list[Rows]
    n_prefix: int
    compared: list[int]
    """Those of them that are scored plainly too."""


def difference(
    packed: PackedScorer, plain: PlainScorer, encoded: Sequence[Rows | None], plan: Sequence[Batch], precision: str
) -> str | None:
    """Why packed scoring is not to be relied on for these requests; None if it gives what plain scoring gives.

    Args:
        packed: Scores the rows that it would score in the run: the widest, the one with the most requests, the last.
        plain: Scores requests of these rows one option after the other.
        encoded: Per request; None for what is not scored.
        plan: Of the packed scorer.
        precision: Of the model.
    """
    for sample in [*_real(encoded, plan), *_made(encoded)]:
        # A model that cannot be asked in this way may fail with anything; the plain way says whether it works at all.
        try:
            ours = packed.score([sample.requests], sample.n_prefix)
            chosen = [_ends(sample.requests[index]) for index in sample.compared]
            ours = [_first_and_last(ours[index]) for index in sample.compared]
            # One option after the other: together, the plain way could need more memory than the packed one.
            expected = [[_alone(plain, rows, ids) for ids in rows.ids] for rows in chosen]
            together = plain.score([[rows] for rows in chosen]) if precision in _ROUNDING else expected
        except Exception as error:
            return f"{type(packed.network).__name__} fails on it ({' '.join(str(error).split())[:100]})"
        noise = max(_apart(one, other) for one, other in _pairs(together, expected))
        tolerance = _EXACT if precision not in _ROUNDING else _ROUNDING[precision] + _NOISE * noise
        for rows, scores, wanted in zip(chosen, ours, expected, strict=True):
            for ids, one, other in zip(rows.ids, scores, wanted, strict=True):
                found = _apart(one, other)
                # Not a number compares false: a difference that cannot be told is one.
                if not found <= tolerance * max(1, len(ids) - rows.n_context) ** 0.5:
                    return f"it differs by {found:.2g} nats from plain scoring on requests of the run"
    return None


def _real(encoded: Sequence[Rows | None], plan: Sequence[Batch]) -> Iterator[_Sample]:
    trees = [(tree, batch.n_prefix) for batch in plan for tree in batch.rows]
    # Batches begin with their widest row.
    widest = max(
        ((batch.rows[0], batch.n_prefix) for batch in plan),
        key=lambda entry: sum(len(ids) for place in entry[0] if (rows := encoded[place]) for ids in rows.ids),
    )
    fullest = max(trees, key=lambda entry: len(entry[0]))
    for tree, n_prefix in dict.fromkeys([widest, fullest, trees[-1]]):
        requests = [rows for place in tree if (rows := encoded[place]) is not None]
        yield _Sample(requests, n_prefix, sorted({0, len(requests) - 1}))


def _made(encoded: Sequence[Rows | None]) -> Iterator[_Sample]:
    """Texts that part early, a short one behind two long ones.

    Where a model takes the place in the row for the place in the text, or looks back a number of places in the row,
    only such a row shows it.
    """
    longest = max((rows.ids[0] for rows in encoded if rows is not None), key=len)
    if len(longest) < 2 * _N_HEAD:
        return
    head, rest = list(longest[:_N_HEAD]), list(longest[_N_HEAD:])
    long = [[*head, *rest], [*head, *reversed(rest)]]
    short = [*head, *rest[len(rest) // 2 :], *rest[: len(rest) // 2]][: 3 * _N_HEAD]
    requests = [Rows((text,), len(text) - 1, 0) for text in long]
    requests.append(Rows((short,), _N_HEAD + 1, 0))
    yield _Sample(requests, _N_HEAD, [1, 2])


def _ends(rows: Rows) -> Rows:
    """The request with its first and its last option, which stand at the two ends of its tree."""
    return rows._replace(ids=tuple(_first_and_last(rows.ids)))


def _first_and_last(values: Sequence[T]) -> list[T]:
    return [values[index] for index in sorted({0, len(values) - 1})]


def _alone(plain: PlainScorer, rows: Rows, ids: list[int]) -> Score:
    return plain.score([[Rows((ids,), rows.n_context, rows.n_moved)]])[0][0]


def _pairs(some: Sequence[Sequence[Score]], others: Sequence[Sequence[Score]]) -> Iterator[tuple[Score, Score]]:
    for one, other in zip(some, others, strict=True):
        yield from zip(one, other, strict=True)


def _apart(one: Score, other: Score) -> float:
    pairs = [(one.logprob, other.logprob), (one.end_logprob or 0.0, other.end_logprob or 0.0)]
    # Equal infinities are no difference.
    return max(0.0 if a == b else abs(a - b) for a, b in pairs)
