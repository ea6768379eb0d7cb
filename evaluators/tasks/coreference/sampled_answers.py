"""Answers that are sampled several times per order of the options: their votes, and their log-probabilities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from evaluators.task import Read, unanswered
from evaluators.tasks.answer_lines import AnswerReading
from schemas.documents.record import Exchange, Reading

_N_QUOTED = 60
"""Number of characters of an answer's end that a reason quotes."""


def read_votes(
    exchanges: Sequence[Exchange],
    outcomes: Sequence[str],
    read_answer: Callable[[str, tuple[str, ...]], AnswerReading],
) -> Read:
    """Return the share of the sampled answers that name each outcome.

    The share is of the answers that could be read, and is averaged over the orders, so that a preference for a letter
    favours no outcome even if more answers in one order are unread. If an order lacks any such answer, the item has no
    reading. An answer that was cut off is unread, whatever it had said before.

    Args:
        exchanges: The exchanges of one item, any number per order.
        outcomes: The outcomes in the order of the reading.
        read_answer: Function that returns the outcome that a whole answer names, from the text and the outcomes in the
            order in which they were offered.
    """
    votes: dict[tuple[str, ...], Counter[str]] = {}
    unread: dict[tuple[str, ...], list[tuple[Exchange, AnswerReading]]] = {}
    answers = []
    for exchange in exchanges:
        if exchange.status == "failed":
            return unanswered(exchange)
        answer = AnswerReading(None, refuses=exchange.status == "refused")
        if exchange.status == "answered" and exchange.finish_reason != "length":
            answer = read_answer(exchange.text or "", exchange.outcomes)
        counts = votes.setdefault(exchange.outcomes, Counter())
        if answer.outcome is None:
            unread.setdefault(exchange.outcomes, []).append((exchange, answer))
        else:
            counts[answer.outcome] += 1
        answers.append(answer.outcome or "")
    for order, counts in votes.items():
        if not counts:
            refuses = all(answer.refuses for _, answer in unread[order])
            why = _why_unread(*unread[order][0])
            reason = f"no answer of {len(unread[order])} with {order[0]} first can be read; the first {why}"
            return Read(status="refused" if refuses else "unparsed", reason=reason)
    shares = [sum(counts[outcome] / counts.total() for counts in votes.values()) / len(votes) for outcome in outcomes]
    reading = Reading(
        outcomes=tuple(outcomes), probabilities=tuple(min(share, 1.0) for share in shares), answers=tuple(answers)
    )
    return Read(status="scored", reading=reading)


def _why_unread(exchange: Exchange, answer: AnswerReading) -> str:
    if exchange.finish_reason == "length":
        return f"was cut off after {exchange.n_completion_tokens or 'the largest number of'} tokens"
    verb = "declines" if answer.refuses else "names no one option at its end"
    return f"{verb}: {(exchange.text or exchange.error or '')[-_N_QUOTED:]!r}"
