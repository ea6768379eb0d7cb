"""Reads the distribution over options: of one request, the mean over several orders, or the votes of samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from evaluators.statistics.option_scores import option_probabilities, why_elsewhere
from evaluators.task import Read, quoted, unanswered
from evaluators.tasks.answer_lines import AnswerReading
from schemas.documents.record import Exchange, Reading
from schemas.documents.result import Normalisation

_N_QUOTED = 60
"""Number of characters of a sampled answer's end that a reason quotes."""


def read_choice(exchange: Exchange, normalisation: Normalisation | None) -> Read:
    """Read the distribution over the options of the one request about an item."""
    if exchange.status != "answered":
        return unanswered(exchange)
    probabilities = option_probabilities(exchange, normalisation or "sum")
    if isinstance(probabilities, str):
        return Read(status="failed", reason=probabilities)
    reading = Reading(outcomes=exchange.outcomes, probabilities=tuple(probabilities), answers=())
    return Read(status="scored", reading=reading)


def read_orders(
    exchanges: Sequence[Exchange],
    outcomes: Sequence[str],
    normalisation: Normalisation | None,
    read_answer: Callable[[str, tuple[str, ...]], AnswerReading],
    *,
    stated_probability: Callable[[str], float | None] = lambda text: 1.0,
    unread: str = "names no one option",
) -> Read:
    """Average the distributions over the orders of the outcomes.

    If any order lacks a readable answer, the item has no reading.

    Args:
        exchanges: The exchanges of one item, one per order.
        outcomes: The outcomes in the order of the reading.
        normalisation: How option log-probabilities become probabilities. None for generated answers, each of which
            gives its stated probability to one outcome, and the rest to the others.
        read_answer: Function that returns the outcome that a generated answer names, from the text and the outcomes in
            the order in which they were offered.
        stated_probability: Function that returns the probability that a generated answer gives to the outcome; None if
            it states none, so that it cannot be read. By default it is 1.
        unread: What an answer does that cannot be read, for the reason why there is no reading.
    """
    for exchange in exchanges:
        if exchange.status != "answered":
            return unanswered(exchange)
    total = dict.fromkeys(outcomes, 0.0)
    answers = []
    for number, exchange in enumerate(exchanges, start=1):
        if normalisation is None:
            answer = read_answer(exchange.text or "", exchange.outcomes)
            stated = stated_probability(exchange.text or "")
            if answer.outcome is None or stated is None:
                verb = "declines" if answer.refuses else unread
                reason = f"answer {number} of {len(exchanges)} {verb}: {quoted(exchange.text)}"
                return Read(status="refused" if answer.refuses else "unparsed", reason=reason)
            answers.append(answer.outcome)
            for outcome in outcomes:
                share = stated if outcome == answer.outcome else (1 - stated) / (len(outcomes) - 1)
                total[outcome] += share / len(exchanges)
            continue
        if (elsewhere := why_elsewhere(exchange)) is not None:
            return Read(status="unparsed", reason=elsewhere)
        probabilities = option_probabilities(exchange, normalisation)
        if isinstance(probabilities, str):
            return Read(status="failed", reason=probabilities)
        for outcome, probability in zip(exchange.outcomes, probabilities, strict=True):
            total[outcome] += probability / len(exchanges)
    mass = sum(total.values())
    reading = Reading(
        outcomes=tuple(outcomes),
        probabilities=tuple(min(total[outcome] / mass, 1.0) for outcome in outcomes),
        answers=tuple(answers),
    )
    return Read(status="scored", reading=reading)


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
    by_order: dict[tuple[str, ...], list[tuple[Exchange, AnswerReading]]] = {}
    answers = []
    for exchange in exchanges:
        if exchange.status == "failed":
            return unanswered(exchange)
        answer = AnswerReading(None, refuses=exchange.status == "refused")
        if exchange.status == "answered" and exchange.finish_reason != "length":
            answer = read_answer(exchange.text or "", exchange.outcomes)
        by_order.setdefault(exchange.outcomes, []).append((exchange, answer))
        answers.append(answer.outcome or "")
    votes = []
    for order, of_order in by_order.items():
        votes.append(Counter(answer.outcome for _, answer in of_order if answer.outcome is not None))
        if not votes[-1]:
            exchange, answer = of_order[0]
            text = exchange.text or exchange.error or ""
            if exchange.finish_reason == "length":
                why = f"was cut off after {exchange.n_completion_tokens or 'the largest number of'} tokens"
            else:
                why = f"{'declines' if answer.refuses else 'names no one option at its end'}: {text[-_N_QUOTED:]!r}"
            reason = f"no answer of {len(of_order)} with {order[0]} first can be read; the first {why}"
            return Read(status="refused" if all(each.refuses for _, each in of_order) else "unparsed", reason=reason)
    shares = [sum(counts[outcome] / counts.total() for counts in votes) / len(votes) for outcome in outcomes]
    reading = Reading(
        outcomes=tuple(outcomes), probabilities=tuple(min(share, 1.0) for share in shares), answers=tuple(answers)
    )
    return Read(status="scored", reading=reading)
