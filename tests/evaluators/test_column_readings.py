"""Readings and tables from columns: the same as from rows, and a changed number is never taken for certain."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest

from biasboard.ground.errors import DataError
from evaluators.backend import ChoiceRequest, Request, Response
from evaluators.runs.measure.recording import exchange_of
from evaluators.task import Asked
from evaluators.tasks.coreference.coreference_task import TASK
from evaluators.tasks.lettered_answers import UNDETERMINED
from schemas.documents.record import Exchange, Reading, Record
from schemas.documents.result import Normalisation
from schemas.files.record_columns import RecordColumns
from tests.evaluators.made_data import made_items, record_of
from tests.schemas import examples


def answer(request: Request, rng: np.random.Generator) -> Response:
    assert isinstance(request, ChoiceRequest)
    n = len(request.options)
    logprobs = rng.normal(-8, 3, n)
    if rng.random() < 0.1:
        logprobs[0] = -math.inf
    # Of a token that is no letter there is a half at most, so that letters of one token are read.
    logprobs -= np.logaddexp.reduce(logprobs) + rng.uniform(0.01, 0.69)
    return Response(
        status="answered",
        option_logprobs=tuple(logprobs.tolist()),
        option_end_logprobs=tuple(rng.normal(-3, 1, n).clip(max=0).tolist()),
        option_token_counts=tuple(rng.integers(1, 5, n).tolist()),
        n_moved_tokens=0,
    )


def made_records(prompt_id: str, normalisation: Normalisation, n: int = 12) -> list[Record]:
    rng = np.random.default_rng(4)
    records = []
    for item in made_items(n):
        asked = TASK.requests(item, Asked(TASK.prompts[prompt_id]))
        exchanges = tuple(exchange_of(one, answer(one, rng), show_prompt=True, chat=False) for one in asked)
        records.append(record_of(TASK, item, exchanges, normalisation))
    return records


@pytest.mark.parametrize("normalisation", get_args(Normalisation))
def test_readings_are_certain_exactly_where_they_follow(normalisation: Normalisation) -> None:
    records = made_records("mcq3-v1", normalisation)
    assert TASK.certain_readings(RecordColumns.of(records), normalisation).all()
    for other in ("sum", "token_mean"):
        follows = [TASK.read(record.exchanges, other).reading == record.reading for record in records]
        assert TASK.certain_readings(RecordColumns.of(records), other).tolist() == follows


def with_reading(change: Callable[[Reading], dict[str, Any]]) -> Callable[[Record], Record]:
    def changed(record: Record) -> Record:
        assert record.reading is not None
        return replace(record, reading=replace(record.reading, **change(record.reading)))

    return changed


def moved(reading: Reading) -> dict[str, Any]:
    first, second, *rest = reading.probabilities
    step = 1e-8 if first < 0.5 else -1e-8
    return {"probabilities": (first + step, second - step, *rest)}


def with_exchange(change: Callable[[Exchange], dict[str, Any]]) -> Callable[[Record], Record]:
    return lambda record: replace(
        record, exchanges=(*record.exchanges[:-1], replace(record.exchanges[-1], **change(record.exchanges[-1])))
    )


CHANGES: dict[str, Callable[[Record], Record]] = {
    "outcomes of the reading swapped": with_reading(lambda one: {"outcomes": one.outcomes[::-1]}),
    "a probability moved by 1e-8": with_reading(moved),
    "answers beside probabilities": with_reading(lambda one: {"answers": ("first",)}),
    "no reading": lambda record: replace(record, status="failed", reason="broken", reading=None),
    "a log-probability": with_exchange(lambda one: {"option_logprobs": (-0.001, *one.option_logprobs[1:])}),
    "an unknown log-probability": with_exchange(lambda one: {"option_logprobs": (None, *one.option_logprobs[1:])}),
    "all options impossible": with_exchange(lambda one: {"option_logprobs": (-math.inf,) * len(one.option_logprobs)}),
    "a bound": with_exchange(lambda one: {"option_is_bound": (True, *[False] * (len(one.options) - 1))}),
    "an exchange without an answer": with_exchange(lambda one: {"status": "refused", "error": "no"}),
    "outcomes of an exchange swapped": with_exchange(lambda one: {"outcomes": one.outcomes[::-1]}),
    "an outcome twice": with_exchange(lambda one: {"outcomes": (one.outcomes[0],) * len(one.outcomes)}),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("prompt_id", ["intrinsic-v1", "mcq3-v1"])
def test_a_changed_record_is_not_certain(prompt_id: str, name: str) -> None:
    records = made_records(prompt_id, "sum")
    several = [*records[:5], CHANGES[name](records[5]), *records[6:]]
    assert several[5] != records[5]
    mask = TASK.certain_readings(RecordColumns.of(several), "sum")
    assert not mask[5]
    assert mask.sum() == len(records) - 1


@pytest.mark.parametrize(("share", "n_tokens"), [(0.0099, 1), (0.0099, 2), (0.0101, 1)])
def test_letters_that_have_hardly_any_of_the_first_token_are_no_answer(share: float, n_tokens: int) -> None:
    def low(exchange: Exchange, n_tokens: int) -> Exchange:
        logprobs = tuple(math.log(share) + math.log(part) for part in (0.75, 0.25))
        return replace(exchange, option_logprobs=logprobs, option_token_counts=(n_tokens,) * 2)

    record = made_records("mcq2-v1", "sum")[0]
    exchanges = (record.exchanges[0], low(record.exchanges[1], n_tokens))
    read = TASK.reading(exchanges, "sum", "mcq2-v1")
    is_answer = share > 0.01 or n_tokens > 1
    assert read.status == ("scored" if is_answer else "unparsed")
    assert is_answer or "0.0099 of the first token's probability" in str(read.reason)
    # What the letters would say among themselves, which somebody may have stored nevertheless.
    among_themselves = TASK.reading((record.exchanges[0], low(record.exchanges[1], 2)), "sum", "mcq2-v1").reading
    stored = replace(record, exchanges=exchanges, reading=among_themselves)
    assert TASK.certain_readings(RecordColumns.of([stored]), "sum").tolist() == [is_answer]


def with_outcomes(record: Record, outcomes: tuple[str, ...]) -> Record:
    """The record with other outcomes everywhere, all equally probable."""
    n = len(outcomes)
    exchange = examples.choice_exchange(outcomes, (-1.0,) * n, outcomes)
    reading = Reading(outcomes=outcomes, probabilities=(1 / n,) * n, answers=())
    return replace(record, exchanges=(exchange,), reading=reading)


def test_records_of_several_forms_or_thousands_of_outcomes_are_read_one_by_one_and_undetermined_is_no_reference() -> (
    None
):
    records = [*made_records("mcq2-v1", "sum"), *made_records("mcq3-v1", "sum")]
    assert not TASK.certain_readings(RecordColumns.of(records), "sum").any()
    assert not TASK.certain_readings(RecordColumns.of(records[:12]), None).any()
    assert not TASK.certain_readings(RecordColumns.of([]), "sum").any()
    many = with_outcomes(records[0], tuple(f"outcome {number}" for number in range(60_000)))
    assert not TASK.certain_readings(RecordColumns.of([many]), "sum").any()
    strange = replace(with_outcomes(records[0], ("nurse", UNDETERMINED)), reference=UNDETERMINED, target=UNDETERMINED)
    with pytest.raises(DataError, match="are not two occupations with the reference 'undetermined'"):
        TASK.table([strange])
