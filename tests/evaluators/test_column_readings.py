"""Readings and tables from columns: the same as from rows, and a changed number is never taken for certain."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

from biasboard.ground.errors import DataError
from evaluators.backend import ChoiceRequest, Request, Response
from evaluators.runs.measure.recording import exchange_of
from evaluators.statistics.bootstrap import cluster_draws, exact_product, quantiles, resampled_sums
from evaluators.statistics.option_scores import option_probabilities, option_probabilities_of
from evaluators.tasks.coreference.coreference_table import UNDETERMINED
from evaluators.tasks.coreference.coreference_task import TASK
from schemas.documents.record import Exchange, Reading, Record
from schemas.documents.result import Normalisation
from schemas.files.record_columns import RecordColumns
from tests.evaluators.made_data import made_items, record_of

PROMPTS = ("intrinsic-v1", "mcq2-v1", "mcq3-v1")
NORMALISATIONS: tuple[Normalisation, ...] = get_args(Normalisation)


def answer(request: Request, rng: np.random.Generator) -> Response:
    assert isinstance(request, ChoiceRequest)
    n = len(request.options)
    logprobs = rng.normal(-8, 3, n).clip(max=-0.01).tolist()
    if rng.random() < 0.1:
        logprobs[0] = -math.inf
    return Response(
        status="answered",
        option_logprobs=tuple(logprobs),
        option_end_logprobs=tuple(rng.normal(-3, 1, n).clip(max=0).tolist()),
        option_token_counts=tuple(rng.integers(1, 5, n).tolist()),
        n_moved_tokens=0,
    )


def made_records(prompt_id: str, normalisation: Normalisation, n: int = 12) -> list[Record]:
    rng = np.random.default_rng(4)
    records = []
    for item in made_items(n):
        asked = TASK.requests(item, TASK.prompts[prompt_id])
        exchanges = tuple(exchange_of(one, answer(one, rng), show_prompt=True, chat=False) for one in asked)
        records.append(record_of(TASK, item, exchanges, normalisation))
    return records


@pytest.mark.parametrize("normalisation", NORMALISATIONS)
@pytest.mark.parametrize("prompt_id", PROMPTS)
def test_readings_are_certain_exactly_where_they_follow(prompt_id: str, normalisation: Normalisation) -> None:
    records = made_records(prompt_id, normalisation)
    assert TASK.certain_readings(RecordColumns.of(records), normalisation).all()
    for other in NORMALISATIONS:
        follows = [TASK.read(record.exchanges, other).reading == record.reading for record in records]
        assert TASK.certain_readings(RecordColumns.of(records), other).tolist() == follows


def swapped(record: Record) -> Record:
    assert record.reading is not None
    reading = record.reading
    return replace(record, reading=replace(reading, outcomes=reading.outcomes[::-1]))


def moved(record: Record) -> Record:
    assert record.reading is not None
    first, second, *rest = record.reading.probabilities
    step = 1e-8 if first < 0.5 else -1e-8
    return replace(record, reading=replace(record.reading, probabilities=(first + step, second - step, *rest)))


def with_answers(record: Record) -> Record:
    assert record.reading is not None
    return replace(record, reading=replace(record.reading, answers=("first",) * len(record.exchanges)))


def with_exchange(change: Callable[[Exchange], Exchange]) -> Callable[[Record], Record]:
    return lambda record: replace(record, exchanges=(*record.exchanges[:-1], change(record.exchanges[-1])))


CHANGES: dict[str, Callable[[Record], Record]] = {
    "outcomes of the reading swapped": swapped,
    "a probability moved by 1e-8": moved,
    "answers beside probabilities": with_answers,
    "no reading": lambda record: replace(record, status="failed", reason="broken", reading=None),
    "a log-probability": with_exchange(lambda one: replace(one, option_logprobs=(-0.001, *one.option_logprobs[1:]))),
    "an unknown log-probability": with_exchange(
        lambda one: replace(one, option_logprobs=(None, *one.option_logprobs[1:]))
    ),
    "all options impossible": with_exchange(
        lambda one: replace(one, option_logprobs=(-math.inf,) * len(one.option_logprobs))
    ),
    "a bound": with_exchange(lambda one: replace(one, option_is_bound=(True, *[False] * (len(one.options) - 1)))),
    "an exchange without an answer": with_exchange(lambda one: replace(one, status="refused", error="no")),
    "outcomes of an exchange swapped": with_exchange(lambda one: replace(one, outcomes=one.outcomes[::-1])),
    "an outcome twice": with_exchange(lambda one: replace(one, outcomes=(one.outcomes[0],) * len(one.outcomes))),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("prompt_id", PROMPTS)
def test_a_changed_record_is_not_certain(prompt_id: str, name: str) -> None:
    records = made_records(prompt_id, "sum")
    for place in (0, 5):
        several = [*records[:place], CHANGES[name](records[place]), *records[place + 1 :]]
        assert several[place] != records[place]
        mask = TASK.certain_readings(RecordColumns.of(several), "sum")
        assert not mask[place]
        assert mask.sum() == len(records) - 1


def test_records_of_several_forms_are_read_one_by_one() -> None:
    records = [*made_records("mcq2-v1", "sum"), *made_records("mcq3-v1", "sum")]
    assert not TASK.certain_readings(RecordColumns.of(records), "sum").any()
    assert not TASK.certain_readings(RecordColumns.of(records[:12]), None).any()
    assert not TASK.certain_readings(RecordColumns.of([]), "sum").any()


@pytest.mark.parametrize("normalisation", NORMALISATIONS)
def test_distributions_of_many_exchanges_equal_those_of_single_ones(normalisation: Normalisation) -> None:
    records = made_records("mcq3-v1", "sum", 30)
    exchanges = [exchange for record in records for exchange in record.exchanges]
    found = option_probabilities_of(RecordColumns.of(records).exchanges, 3, normalisation)
    assert found.is_certain.all()
    for values, exchange in zip(found.values, exchanges, strict=True):
        assert values.tolist() == pytest.approx(option_probabilities(exchange, normalisation), abs=1e-14)


def with_outcomes(record: Record, outcomes: tuple[str, ...]) -> Record:
    """The record with other outcomes everywhere, all equally probable."""
    n = len(outcomes)
    exchange = replace(
        record.exchanges[0],
        outcomes=outcomes,
        options=outcomes,
        option_logprobs=(-1.0,) * n,
        option_end_logprobs=(-1.0,) * n,
        option_token_counts=(1,) * n,
        option_byte_counts=(1,) * n,
    )
    reading = Reading(outcomes=outcomes, probabilities=(1 / n,) * n, answers=())
    return replace(record, exchanges=(exchange,), reading=reading)


def test_tens_of_thousands_of_outcomes_take_no_memory() -> None:
    (record, *_) = made_records("intrinsic-v1", "sum", 2)
    many = with_outcomes(record, tuple(f"outcome {number}" for number in range(60_000)))
    assert not TASK.certain_readings(RecordColumns.of([many]), "sum").any()


def test_undetermined_is_no_reference() -> None:
    (record, *_) = made_records("intrinsic-v1", "sum", 2)
    strange = replace(with_outcomes(record, ("nurse", UNDETERMINED)), reference=UNDETERMINED, target=UNDETERMINED)
    with pytest.raises(DataError, match="are not two occupations with the reference 'undetermined'"):
        TASK.table([strange])


def made_parts(shapes: Sequence[tuple[int, int]]) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.normal(size=shape) for shape in shapes]


def test_many_sums_equal_single_ones_to_the_bit() -> None:
    parts = made_parts([(40, 2)] * 300 + [(40, 1)] * 2 + [(40, 22), (60, 3), (60, 4), (40, 2)])
    for part, sums in zip(parts, resampled_sums(parts), strict=True):
        assert np.array_equal(sums, exact_product(cluster_draws(len(part)), part))


@pytest.mark.parametrize("n_clusters", [1, 2, 40, 395, 9000])
def test_sums_are_exact_in_any_order_and_on_any_processor(n_clusters: int) -> None:
    rng = np.random.default_rng(n_clusters)
    columns = [rng.normal(size=n_clusters) * 10.0 ** rng.integers(-9, 9, n_clusters), rng.random(n_clusters)]
    table = np.column_stack([*columns, rng.integers(0, 50, n_clusters).astype(float), np.zeros(n_clusters)])
    draws = rng.multinomial(n_clusters, np.full(n_clusters, 1 / n_clusters), size=20).astype(float)
    sums = exact_product(draws, table)
    for row, counts in zip(sums, draws, strict=True):
        exact = [math.fsum(v for v, n in zip(column, counts, strict=True) for _ in range(int(n))) for column in table.T]
        # The exact sums, rounded once.
        assert row.tolist() == exact
    order = rng.permutation(n_clusters)
    assert np.array_equal(exact_product(draws[:, order], table[order]), sums)
    assert np.array_equal(exact_product(draws, table[:, :1]), sums[:, :1])


def test_sums_of_equal_columns_equal_single_ones_to_the_bit() -> None:
    table = made_parts([(40, 9)])[0]
    parts = [table[:, [0, 0, 1]], table[:, [1, 8]], table[:, [3, 3]] * 0, table[:, ::-1], table[:, [5, 5]]]
    for many in (parts, parts[-1:], [parts[2]] * 2 + [table[:, [4, 4]]]):
        for part, sums in zip(many, resampled_sums(many), strict=True):
            assert np.array_equal(sums, exact_product(cluster_draws(len(part)), part))


@pytest.mark.parametrize("n", [1, 2, 3, 40, 1999, 2000])
def test_quantiles_equal_those_of_numpy_to_the_bit(n: int) -> None:
    rng = np.random.default_rng(n)
    for values in (rng.normal(size=n), rng.normal(size=n).round(1), np.zeros(n)):
        for shares in ((0.025, 0.975), (0.0, 1.0), tuple(rng.random(5))):
            assert quantiles(values, shares) == np.quantile(values, shares).tolist()
