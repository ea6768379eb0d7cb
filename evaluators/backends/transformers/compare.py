"""Compares packed scoring with plain scoring before a run relies on packed scoring."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

from evaluators.backends.transformers.packed import PackedScorer
from evaluators.backends.transformers.plain import Batch, PlainScorer, Score
from evaluators.models.tokenizer import Rows

_ROUNDING = {"float16": 0.0125, "bfloat16": 0.1}
"""Difference in nats that is tolerated in each half precision, per square root of the number of option tokens."""
_EXACT = 1e-4
_NOISE = 4.0
"""Tolerated difference between the two ways of scoring, in multiples of the difference that padding alone makes."""
_N_HEAD = 4
T = TypeVar("T")


class _Sample(NamedTuple):
    """A sample of requests that share one row."""

    requests: list[Rows]
    n_prefix: int
    compared: list[int]
    """Indices of the requests that are also scored by plain scoring."""


def difference(
    packed: PackedScorer, plain: PlainScorer, encoded: Sequence[Rows | None], plan: Sequence[Batch], precision: str
) -> str | None:
    """Return why packed scoring cannot be relied on for these requests; None if it agrees with plain scoring.

    Args:
        packed: Packed scorer. It scores rows as in the run: the widest, the one with the most requests, and the last.
        plain: Plain scorer. It scores some requests of these rows, one option after the other.
        encoded: Token ids of each request; None for a request that is not scored.
        plan: Batches that the packed scorer planned.
        precision: Precision of the model, such as ``bfloat16``.
    """
    for sample in [*_real(encoded, plan), *_made(encoded)]:
        # A model that does not support packing may raise any exception. Plain scoring shows whether it works at all.
        try:
            ours = packed.score([sample.requests], sample.n_prefix)
            chosen = [_ends(sample.requests[index]) for index in sample.compared]
            ours = [_first_and_last(ours[index]) for index in sample.compared]
            # Plain scoring of all options at once could need more memory than packed scoring, so score one at a time.
            expected = [[_alone(plain, rows, ids) for ids in rows.ids] for rows in chosen]
            together = plain.score([[rows] for rows in chosen]) if precision in _ROUNDING else expected
        except Exception as error:
            return f"{type(packed.network).__name__} fails on it ({' '.join(str(error).split())[:100]})"
        noise = max(_apart(one, other) for one, other in _pairs(together, expected))
        tolerance = _EXACT if precision not in _ROUNDING else _ROUNDING[precision] + _NOISE * noise
        for rows, scores, wanted in zip(chosen, ours, expected, strict=True):
            for ids, one, other in zip(rows.ids, scores, wanted, strict=True):
                found = _apart(one, other)
                # Every comparison with NaN is false. Written with "not", the condition treats NaN as a difference.
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
    """Yield one row of made-up texts that part early: a short text after two long ones.

    Some models take the position in the row for the position in the text, or look back a fixed number of positions in
    the row. Only a row like this one shows it.
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
    """Return the request with only its first and last options, which are at the two ends of its tree."""
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
    # Equal infinities count as no difference; subtracting them would give NaN.
    return max(0.0 if a == b else abs(a - b) for a, b in pairs)
