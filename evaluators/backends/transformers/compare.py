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
            packed_scores = packed.score([sample.requests], sample.n_prefix)
            packed_ends = [_first_and_last(packed_scores[index]) for index in sample.compared]
            # The first and last options of a request are at the two ends of its tree.
            requests = [sample.requests[index] for index in sample.compared]
            chosen = [rows._replace(ids=tuple(_first_and_last(rows.ids))) for rows in requests]
            # Plain scoring of all options at once could need more memory than packed scoring, so score one at a time.
            expected = [[plain.score([[rows._replace(ids=(ids,))]])[0][0] for ids in rows.ids] for rows in chosen]
            together = plain.score([[rows] for rows in chosen]) if precision in _ROUNDING else expected
        except Exception as error:
            return f"{type(packed.network).__name__} fails on it ({' '.join(str(error).split())[:100]})"
        noise = max(
            _gap(score, wanted)
            for scores, wanted_scores in zip(together, expected, strict=True)
            for score, wanted in zip(scores, wanted_scores, strict=True)
        )
        tolerance = _EXACT if precision not in _ROUNDING else _ROUNDING[precision] + _NOISE * noise
        for rows, scores, wanted_scores in zip(chosen, packed_ends, expected, strict=True):
            for ids, score, wanted in zip(rows.ids, scores, wanted_scores, strict=True):
                gap = _gap(score, wanted)
                # Every comparison with NaN is false. Written with "not", the condition treats NaN as a difference.
                if not gap <= tolerance * max(1, len(ids) - rows.n_context) ** 0.5:
                    return f"it differs by {gap:.2g} nats from plain scoring on requests of the run"
    return None


def _real(encoded: Sequence[Rows | None], plan: Sequence[Batch]) -> Iterator[_Sample]:
    trees = [(tree, batch.n_prefix) for batch in plan for tree in batch.rows]
    # Batches begin with their widest row.
    widest = max(
        ((batch.rows[0], batch.n_prefix) for batch in plan),
        key=lambda entry: sum(len(ids) for index in entry[0] if (rows := encoded[index]) for ids in rows.ids),
    )
    fullest = max(trees, key=lambda entry: len(entry[0]))
    for tree, n_prefix in dict.fromkeys([widest, fullest, trees[-1]]):
        requests = [rows for index in tree if (rows := encoded[index]) is not None]
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


def _first_and_last(values: Sequence[T]) -> list[T]:
    return [values[index] for index in sorted({0, len(values) - 1})]


def _gap(score: Score, wanted: Score) -> float:
    """Return the larger of the differences between two scores of an option and of the end token after it, in nats."""
    pairs = [(score.logprob, wanted.logprob), (score.end_logprob or 0.0, wanted.end_logprob or 0.0)]
    # Equal infinities count as no difference; subtracting them would give NaN.
    return max(0.0 if a == b else abs(a - b) for a, b in pairs)
