"""Reads answers that are texts: one reading per answer, of which some are missing.

A record keeps the readings as texts. An answer that declines is ``refused``, and a failed sample among answered ones
``failed``, whatever the task looks for in the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from biasboard.ground.errors import DataError
from evaluators.task import Read, is_cut_before_answer, quoted, unanswered
from evaluators.tasks.answer_lines import is_refusal
from schemas.documents.record import Exchange, ExchangeStatus, Reading, Record, RecordStatus
from schemas.files.record_columns import RecordColumns

REFUSED = "refused"
"""Reading of an answer that was refused."""
FAILED = "failed"
"""Reading of a sample without an answer."""
UNREAD = frozenset({REFUSED, FAILED})
"""Readings of samples that are missing."""


def read_texts(
    exchanges: Sequence[Exchange],
    read: Callable[[Exchange], str],
    *,
    unless: Callable[[str], bool] = lambda answer: False,
    nothing: tuple[str, str] | None = None,
) -> Read:
    """Read each answer to an item, and mark refused ones.

    If all answers are refused, the item is refused.

    Args:
        exchanges: The exchanges of one item.
        read: Function that returns the reading of one answer.
        unless: Function that returns True if a reading shows that the answer is not a refusal.
        nothing: Reading of an answer in which nothing was found, and the reason why an item with no other is unparsed;
            None if there is none.
    """
    if all(exchange.status != "answered" for exchange in exchanges):
        return unanswered(exchanges[0])
    answers = []
    for exchange in exchanges:
        if exchange.status != "answered" or is_cut_before_answer(exchange):
            answers.append(REFUSED if exchange.status == "refused" else FAILED)
            continue
        reading = read(exchange)
        answers.append(REFUSED if is_refusal(exchange.text or "") and not unless(reading) else reading)
    shown = quoted(exchanges[-1].text)
    # A refusal among several samples is a reading like any other; metrics count it.
    if all(answer in (REFUSED, FAILED) for answer in answers):
        return Read(status="refused", reason=f"declines: {shown}")
    if nothing is not None and all(answer in (FAILED, nothing[0]) for answer in answers):
        return Read(status="unparsed", reason=f"{nothing[1]}: {shown}")
    return Read(status="scored", reading=Reading(outcomes=(), probabilities=(), answers=tuple(answers)))


class ReadAnswer(NamedTuple):
    """One of the answers to an item."""

    record: int
    """Index of its record."""
    item_id: str
    target: str | None
    """Right answer of the item; None if it has none."""
    record_status: RecordStatus
    status: ExchangeStatus
    prompt: str | None
    text: str
    """The generated text; empty if there is none."""
    reading: str | None
    """The reading of this answer; None if there is none."""


def answers_of(records: Sequence[Record]) -> list[ReadAnswer]:
    """Return every answer of every record, in order.

    Raises:
        DataError: a record has a reading, but not of each of its answers.
    """
    columns = RecordColumns.of(records)
    owners = columns.owners
    readings: list[str | None] = [None] * len(owners)
    answers = columns.readings["answers"].lists
    # A stranger's record may hold fewer readings than answers, which would shift readings to the wrong answers.
    if not np.array_equal(answers.lengths[columns.has_reading], np.diff(columns.first_exchanges)[columns.has_reading]):
        raise DataError("some records have a reading, but not of each of their answers; run the model again")
    is_read = columns.has_reading[owners]
    for index, reading in zip(np.flatnonzero(is_read).tolist(), answers.values.texts, strict=True):
        readings[index] = reading
    items, targets, statuses = (columns.columns[name].texts for name in ("item_id", "target", "status"))
    fields = (columns.exchanges[name].texts for name in ("status", "prompt", "text"))
    return [
        ReadAnswer(record, items[record], targets[record], statuses[record], status, prompt, text or "", reading)
        for record, status, prompt, text, reading in zip(owners.tolist(), *fields, readings, strict=True)
    ]


def is_refused(answer: ReadAnswer) -> bool:
    """Return True if an answer, or the whole item, was refused."""
    return answer.reading == REFUSED or answer.record_status == "refused"


def all_or_none(records: Sequence[Record], is_right: Callable[[ReadAnswer], bool]) -> list[bool | None]:
    """Return True for each record whose answers are all right, False where none is, and None otherwise.

    Args:
        records: Records with one answer or several; those that were refused or failed do not count.
        is_right: Function that returns True if an answer is right.
    """
    judged: list[set[bool]] = [set() for _ in range(len(records))]
    for answer in answers_of(records):
        if answer.reading not in (None, REFUSED, FAILED):
            judged[answer.record].add(is_right(answer))
    return [verdicts.pop() if len(verdicts) == 1 else None for verdicts in judged]
