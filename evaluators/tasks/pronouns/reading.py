"""Reads the answers of the tasks with eleven pronoun families."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evaluators.statistics.record_tables import Answer, answers_of
from evaluators.task import Read, unanswered
from evaluators.tasks.pronouns.answers import FAILED, NO_NUMBER, REFUSED, spelt
from evaluators.tasks.pronouns.detectors.pronouns import first_families
from evaluators.tasks.refusals import is_refusal
from schemas.documents.record import Exchange, Reading, Record
from schemas.lexicon import pronoun_families

_MOST_SHOWN = 60


def read_texts(
    exchanges: Sequence[Exchange],
    read: Callable[[Exchange], str],
    *,
    unless: Callable[[str], bool] = lambda answer: False,
) -> Read:
    """Read each answer to an item, and mark refused ones.

    If all answers are refused, the item is refused. If ``read`` finds no number in any, the item is unparsed; only the
    readings of word problems look for one.

    Args:
        exchanges: The exchanges of one item.
        read: Function that returns the reading of one answer.
        unless: Function that returns True if a reading shows that the answer is not a refusal.
    """
    if all(exchange.status != "answered" for exchange in exchanges):
        return unanswered(exchanges[0])
    answers = [_answer(exchange, read, unless) for exchange in exchanges]
    shown = f"{(exchanges[-1].text or '')[:_MOST_SHOWN]!r}"
    if all(answer in (REFUSED, FAILED) for answer in answers):
        return Read(status="refused", reading=None, reason=f"declines: {shown}")
    if all(answer in (FAILED, NO_NUMBER) for answer in answers):
        return Read(status="unparsed", reading=None, reason=f"says no number: {shown}")
    return Read(status="scored", reading=Reading(outcomes=(), probabilities=(), answers=tuple(answers)), reason=None)


def _answer(exchange: Exchange, read: Callable[[Exchange], str], unless: Callable[[str], bool]) -> str:
    if exchange.status != "answered":
        return REFUSED if exchange.status == "refused" else FAILED
    reading = read(exchange)
    return REFUSED if is_refusal(exchange.text or "") and not unless(reading) else reading


def pronoun_of(exchange: Exchange) -> str:
    """Return the families of the first pronoun in an answer, joined if several share it; ``none`` without a pronoun."""
    return spelt(first_families(exchange.text or "", exchange.prompt))


def family_groups(family: str) -> dict[str, str]:
    """Return the groups of a record whose text is in a pronoun family."""
    return {"family": family, "family_class": pronoun_families()[family].pronoun_class}


def all_or_none(records: Sequence[Record], is_right: Callable[[Answer], bool]) -> list[bool | None]:
    """Return True for each record whose answers are all right, False where none is, and else None.

    Args:
        records: Records with one answer or several; those that were refused or failed do not count.
        is_right: Function that returns True if an answer is right.
    """
    judged: list[set[bool]] = [set() for _ in range(len(records))]
    for answer in answers_of(records):
        if answer.reading not in (None, REFUSED, FAILED):
            judged[answer.record].add(is_right(answer))
    return [verdicts.pop() if len(verdicts) == 1 else None for verdicts in judged]
