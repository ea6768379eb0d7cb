"""Certainty estimated from sampled answers: a case by hand, plain-loop oracles, and where the estimators agree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

from evaluators.runs.measure.measuring import compute_metrics
from evaluators.tasks.coreference.coreference_task import TASK, CoreferenceTable
from evaluators.tasks.coreference.uncertainty_metrics import semantic_entropy_certainty
from schemas.documents.record import Record
from schemas.documents.result import Metric
from schemas.items.coreference import CoreferenceItem
from tests.evaluators import made_data
from tests.evaluators.made_data import certainty_by_hand, made_items
from tests.schemas import examples

Chain = tuple[str | None, float | None]
"""The outcome that a sampled text names, None for none, and its log-probability per token."""
N_TOKENS = 4


def record_of(item: CoreferenceItem, orders: Sequence[Sequence[Chain]]) -> Record:
    """The record of an item, with the sampled answers to both orders of its options."""
    exchanges = []
    for order, chains in zip((item.occupations, item.occupations[::-1]), orders, strict=True):
        for sample, (outcome, logprob) in enumerate(chains):
            text = "no idea" if outcome is None else f"Reason {sample}.\nAnswer: {'AB'[order.index(outcome)]}"
            exchange = replace(examples.generated_exchange(text, order), sample=sample, n_completion_tokens=N_TOKENS)
            exchanges.append(replace(exchange, text_logprob=None if logprob is None else logprob * N_TOKENS))
    return made_data.record_of(TASK, item, tuple(exchanges), None, "cot-v1")


def metric_of(records: Sequence[Record], name: str) -> Metric:
    found = compute_metrics(records, "coreference")
    return next(metric for metric in found if metric.name == name and not metric.group)


def value_of(records: Sequence[Record], name: str) -> float:
    metric = metric_of(records, name)
    assert metric.value is not None, metric.reason
    return metric.value


def test_semantic_entropy_by_hand_and_a_text_that_is_sampled_again_adds_no_mass() -> None:
    item = made_items(1)[0]
    right, wrong = item.reference, next(name for name in item.occupations if name != item.reference)
    half, quarter = math.log(0.5), math.log(0.25)
    # First order: the right cluster has .5 + .25 = .75, the wrong one .25, so p = .75. Second order: .25 against .25,
    # so p = .5; an unread text belongs to no cluster. Mean .625: SE = -.625 ln .625 - .375 ln .375 = .66156,
    # exp(SE) = 1.93782, and the certainty (2 - 1.93782) / (2 - 1) = .0622.
    # Votes: (2/3 + 1/2) / 2 = .58333: entropy .67919, exp 1.97229, certainty .0277.
    orders: list[list[Chain]] = [
        [(right, half), (right, quarter), (wrong, quarter)],
        [(right, quarter), (wrong, quarter), (None, half)],
    ]
    table = CoreferenceTable.of([record_of(item, orders)])
    assert semantic_entropy_certainty(table)[0] == pytest.approx(0.0622, abs=5e-5)
    assert table.certainty[0] == pytest.approx(0.0277, abs=5e-5)
    assert value_of([record_of(item, orders)], "parsed_answer_rate") == pytest.approx(5 / 6)
    chains: list[Chain] = [(right, math.log(0.7)), (wrong, math.log(0.3))]
    once = record_of(item, [chains, chains])
    twice = tuple(exchange for exchange in once.exchanges for _ in range(2 - (exchange.sample or 0)))
    read = TASK.reading(twice, None, "cot-v1").reading
    assert read is not None
    # The likelihoods are the probabilities, though two of three votes are for the reference.
    assert max(read.probabilities) == pytest.approx(2 / 3)
    table = CoreferenceTable.of([replace(once, exchanges=twice, reading=read)])
    assert semantic_entropy_certainty(table)[0] == pytest.approx(certainty_by_hand(0.7))


def made_records(rng: np.random.Generator, n_pairs: int, n_samples: int, *, even: bool = False) -> list[Record]:
    """Records of minimal pairs with drawn probabilities; the log-probabilities are equal if ``even``."""
    records = []
    for item in made_items(n_pairs):
        p = rng.uniform()
        other = next(name for name in item.occupations if name != item.reference)
        orders: list[list[Chain]] = [
            [
                (item.reference if rng.uniform() < p else other, -1.0 if even else float(-rng.exponential()))
                for _ in range(n_samples)
            ]
            for _ in range(2)
        ]
        records.append(record_of(item, orders))
    return records


def oracle_certainty(record: Record) -> float:
    """By plain loops over the exchanges."""
    shares = []
    for order in dict.fromkeys(exchange.outcomes for exchange in record.exchanges):
        masses = dict.fromkeys(order, 0.0)
        for exchange in record.exchanges:
            if exchange.outcomes == order:
                assert exchange.text_logprob is not None
                named = order["AB".index(str(exchange.text)[-1])]
                masses[named] += math.exp(exchange.text_logprob / N_TOKENS)
        shares.append(masses[str(record.reference)] / sum(masses.values()))
    return certainty_by_hand(sum(shares) / len(shares))


def test_every_metric_equals_a_recount_with_plain_loops() -> None:
    records = made_records(np.random.default_rng(3), 30, 3)
    certainties = [oracle_certainty(record) for record in records]
    votes = [
        record.reading.probabilities[record.reading.outcomes.index(str(record.reference))]
        for record in records
        if record.reading is not None
    ]
    signs = [0.0 if abs(p - 0.5) < 1e-9 else math.copysign(1, p - 0.5) for p in votes]
    d = [sign * c for sign, c in zip(signs, certainties, strict=True)]
    u = [1 - abs(d[index] - d[index + 1]) / 2 for index in range(0, len(d), 2)]
    assert value_of(records, "ucerf_semantic_entropy") == pytest.approx(sum(u) / len(u))
    assert value_of(records, "certainty_semantic_entropy") == pytest.approx(sum(certainties) / len(d))
    first = [certainty_by_hand(p) for p in votes]
    correlation = spearmanr(np.round(first, 9), np.round(certainties, 9)).statistic
    assert value_of(records, "certainty_correlation_semantic_entropy") == pytest.approx(correlation)
    # Texts of equal likelihood give the discrete form, which the reading has.
    even = made_records(np.random.default_rng(5), 30, 5, even=True)
    assert value_of(even, "ucerf_group_semantic_entropy") == pytest.approx(value_of(even, "ucerf_group"))


def test_unknown_likelihoods_are_null_with_a_reason_and_unread_rows_are_excluded() -> None:
    records = made_records(np.random.default_rng(9), 6, 2)
    item = made_items(6)[0]
    unknown = record_of(item, [[(item.reference, None)], [(item.reference, -1.0)]])
    metric = metric_of([unknown, *records[1:]], "ucerf_semantic_entropy")
    assert (metric.n, metric.n_excluded) == (5, 1)
    unread = record_of(item, [[(None, -1.0)], [(item.reference, -1.0)]])
    assert unread.status == "unparsed"
    assert metric_of([unread, *records[1:]], "certainty_semantic_entropy").n_excluded == 1
    none = metric_of([unknown], "ucerf_semantic_entropy")
    assert (none.value, none.n_excluded) == (None, 1)
    silent = record_of(item, [[(item.reference, None)]] * 2)
    assert metric_of([silent], "ucerf_semantic_entropy").reason == "the log-probabilities of the texts are unknown"
