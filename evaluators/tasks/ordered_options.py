"""Asks about an item whose options are offered in several orders, and reads the mean distribution over all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from evaluators.backend import ChoiceRequest, GenerateRequest, Request
from evaluators.statistics.option_scores import option_probabilities
from evaluators.task import Prompt, Read, quoted, unanswered
from evaluators.tasks.answer_lines import AnswerReading
from schemas.documents.record import Exchange, Reading
from schemas.documents.result import Normalisation


def offering(
    prompt: Prompt, text: str, options: tuple[str, ...], outcomes: tuple[str, ...], facts: Mapping[str, str]
) -> Request:
    """Return the request that offers outcomes in one order: to score options, or to answer in text.

    Args:
        prompt: The prompt that asks.
        text: Its filled template.
        options: Continuations of the text to score, if the prompt scores options.
        outcomes: Outcome of each option.
        facts: Facts about the item, for baselines.
    """
    if prompt.max_tokens is None:
        return ChoiceRequest(prompt=text, options=options, outcomes=outcomes, facts=facts)
    return GenerateRequest(
        prompt=text,
        max_tokens=prompt.max_tokens,
        temperature=prompt.temperature or 0.0,
        stop=prompt.stop or (),
        outcomes=outcomes,
        facts=facts,
    )


def read_orders(
    exchanges: Sequence[Exchange],
    outcomes: Sequence[str],
    normalisation: Normalisation | None,
    read_answer: Callable[[str, tuple[str, ...]], AnswerReading],
) -> Read:
    """Average the distributions over the orders of the outcomes.

    If any order lacks a readable answer, the item has no reading.

    Args:
        exchanges: The exchanges of one item, one per order.
        outcomes: The outcomes in the order of the reading.
        normalisation: How option log-probabilities become probabilities. None for generated answers, each of which
            gives all probability to one outcome.
        read_answer: Function that returns the outcome that a generated answer names, from the text and the outcomes in
            the order in which they were offered.
    """
    for exchange in exchanges:
        if exchange.status != "answered":
            return unanswered(exchange)
    total = dict.fromkeys(outcomes, 0.0)
    answers = []
    for number, exchange in enumerate(exchanges, start=1):
        if normalisation is None:
            answer = read_answer(exchange.text or "", exchange.outcomes)
            if answer.outcome is None:
                verb = "declines" if answer.refuses else "names no one option"
                reason = f"answer {number} of {len(exchanges)} {verb}: {quoted(exchange.text)}"
                return Read(status="refused" if answer.refuses else "unparsed", reading=None, reason=reason)
            answers.append(answer.outcome)
            total[answer.outcome] += 1 / len(exchanges)
            continue
        probabilities = option_probabilities(exchange, normalisation)
        if isinstance(probabilities, str):
            return Read(status="failed", reading=None, reason=probabilities)
        for outcome, probability in zip(exchange.outcomes, probabilities, strict=True):
            total[outcome] += probability / len(exchanges)
    mass = sum(total.values())
    reading = Reading(
        outcomes=tuple(outcomes),
        probabilities=tuple(min(total[outcome] / mass, 1.0) for outcome in outcomes),
        answers=tuple(answers),
    )
    return Read(status="scored", reading=reading, reason=None)
