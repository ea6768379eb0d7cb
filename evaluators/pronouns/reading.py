"""What the tasks on texts in eleven pronoun families read from an answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evaluators.detectors.pronouns import first_families
from evaluators.detectors.refusals import is_refusal
from evaluators.pronouns.answers import FAILED, NO_NUMBER, REFUSED, spelt
from evaluators.task import Read
from schemas.lexicon import pronoun_families
from schemas.record import Exchange, Reading

_MOST_SHOWN = 60


def read_texts(
    exchanges: Sequence[Exchange],
    read: Callable[[Exchange], str],
    *,
    unless: Callable[[str], bool] = lambda answer: False,
) -> Read:
    """Read each answer; refused ones are marked, and an item all of whose answers are refused is.

    Args:
        exchanges: Of one item.
        read: What an answer says.
        unless: Whether what an answer says shows that it refuses nothing.
    """
    if all(exchange.status != "answered" for exchange in exchanges):
        first = exchanges[0]
        status = "failed" if first.status == "answered" else first.status
        return Read(status=status, reading=None, reason=first.error or "no answer")
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
    told = read(exchange)
    return REFUSED if is_refusal(exchange.text or "") and not unless(told) else told


def pronoun_of(exchange: Exchange) -> str:
    """The families of the first pronoun, joined where several own it; ``none`` without one."""
    return spelt(first_families(exchange.text or "", exchange.prompt))


def family_groups(family: str) -> dict[str, str]:
    """Groups of a record whose text stands in a family."""
    return {"family": family, "family_class": pronoun_families()[family].pronoun_class}
