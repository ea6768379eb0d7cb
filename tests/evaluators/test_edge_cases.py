"""What is not a number, is a tie, or has only one side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
import pytest

from biasboard.ground.errors import DataError
from evaluators.runs.measure.measuring import compute_metrics
from evaluators.statistics.option_scores import option_probabilities
from evaluators.tasks.coreference.coreference_task import TASK, CoreferenceTable
from schemas.documents.record import Exchange, Reading, Record
from schemas.documents.result import Metric, Normalisation
from tests.evaluators.made_data import made_records
from tests.schemas import examples

GUARD = ("guard", "nurse", "masculine", 0.8)
GOLDEN_PROMPTS = [
    *("e47ef4d28676", "2e84c98d9442", "47756ed57639", "705a289254e3", "49c4e7d6de18"),
    *("7ce8f6a95be2", "52f2308feae8", "e3fa19c7d286"),
]
PAIR = [GUARD, ("guard", "nurse", "feminine", 0.6)]


def metric(records: list[Record], name: str) -> Metric:
    return next(
        metric for metric in compute_metrics(records, "coreference") if metric.name == name and not metric.group
    )


def unscored(record: Record) -> Record:
    return replace(record, status="failed", reason="connection cut", reading=None)


def exchange(logprobs: tuple[float | None, ...], **changes: Any) -> Exchange:
    n = len(logprobs)
    sound = replace(
        examples.exchange(),
        outcomes=("guard", "construction worker")[:n],
        options=(" guard.", " construction worker.")[:n],
        option_logprobs=logprobs,
        option_end_logprobs=(-0.5, -2.5)[:n],
        option_token_counts=(1, 20)[:n],
        option_byte_counts=(7, 21)[:n],
    )
    return replace(sound, **changes)


def test_an_orphan_leaves_pairs_but_counts_for_accuracy_and_without_answers_nothing_has_a_value() -> None:
    records = made_records([*PAIR, ("driver", "nurse", "masculine", 0.9), ("driver", "nurse", "feminine", 0.2)])
    records[1] = unscored(records[1])
    pairwise, accuracy = metric(records, "ucerf"), metric(records, "accuracy")
    assert (pairwise.n, pairwise.n_excluded) == (1, 1)
    assert (accuracy.n, accuracy.n_excluded) == (3, 1)
    assert accuracy.value == pytest.approx(2 / 3)
    for one in compute_metrics([*map(unscored, made_records(PAIR))], "coreference"):
        assert (one.value, one.interval) == (None, None), one.name
        assert one.reason


def test_ambiguous_items_have_no_accuracy_and_an_even_ideal_and_mix_with_no_others() -> None:
    records = made_records(PAIR, ambiguous=True)
    for name in ("accuracy", "accuracy_gap", "desirability_gap", "equalized_odds", "eo_gap", "ucerf_group"):
        one = metric(records, name)
        assert one.value is None
        assert one.reason == "the items have no right answer"
    assert metric(records, "ucerf").value is not None
    assert metric(records, "pro_rate").value == 0.5
    assert (metric(records, "pro_rate").ideal, metric(records, "certainty").ideal) == (0.5, 0.0)
    with pytest.raises(DataError, match="score one config"):
        compute_metrics([*made_records(PAIR), *records], "coreference")


def test_a_third_outcome_is_left_out_of_ucerf_where_it_is_the_expected_answer() -> None:
    def with_third(*undetermined: float) -> list[Record]:
        changed = []
        for record, share in zip(made_records(PAIR, ambiguous=True), undetermined, strict=True):
            assert record.reading is not None
            guard, nurse = (one * (1 - share) for one in record.reading.probabilities)
            reading = Reading(
                outcomes=("guard", "nurse", "undetermined"), probabilities=(guard, nurse, share), answers=()
            )
            changed.append(replace(record, reading=reading))
        return changed

    records = with_third(0.5, 0.9)
    assert metric(records, "ucerf").value == pytest.approx(metric(made_records(PAIR, ambiguous=True), "ucerf").value)
    assert metric(records, "undetermined_rate").value == 1.0
    # Without any mass on the occupations, the pair is left out instead of dividing by zero.
    one = metric(with_third(1.0, 1.0), "ucerf")
    assert (one.value, one.n, one.n_excluded) == (None, 0, 1)


@pytest.mark.parametrize(("normalisation", "p_guard"), [("sum", 0.622), ("token_mean", 0.148), ("byte_mean", 0.363)])
def test_normalisations_of_options_of_unequal_length(normalisation: Normalisation, p_guard: float) -> None:
    # The published example: the sum prefers the guard, its means per token and per byte the construction worker.
    probabilities = option_probabilities(
        exchange((-4.0, -4.5), option_token_counts=(1, 2), option_byte_counts=(5, 19)), normalisation
    )
    assert isinstance(probabilities, list)
    assert sum(probabilities) == pytest.approx(1, abs=1e-12)
    assert probabilities[0] == pytest.approx(p_guard, abs=5e-4)


def test_the_end_token_counts_only_where_it_is_asked_for_and_a_merged_option_has_no_length() -> None:
    without, with_end = (option_probabilities(exchange((-3.0, -3.0)), mode) for mode in ("sum", "sum_with_end"))
    assert without == [0.5, 0.5]
    assert isinstance(with_end, list)
    assert with_end[0] == pytest.approx(0.8808, abs=5e-5)  # 1 / (1 + exp(-2))
    for n_moved_tokens in (2, None):
        merged = exchange((-1.0, -2.0), n_moved_tokens=n_moved_tokens)
        assert "merges" in str(option_probabilities(merged, "byte_mean"))
        assert isinstance(option_probabilities(merged, "sum"), list)


def test_no_distribution_is_a_failed_record_with_a_reason() -> None:
    for logprobs, reason in (
        ((-inf, -inf), "every option has a probability of zero"),
        ((None, -1.0), "was not returned"),
    ):
        read = TASK.read([exchange(logprobs)], "sum")
        assert (read.status, read.reading, reason in str(read.reason)) == ("failed", None, True)


def test_two_prompts_never_share_a_hash() -> None:
    prompts = [*TASK.prompts.values()]
    texts = replace(prompts[2], outcome_texts=(*prompts[2].outcome_texts[:2], "Nobody can tell"))
    hashes = [prompt.sha256() for prompt in [*prompts, texts]]
    assert len(set(hashes)) == len(GOLDEN_PROMPTS) + 1
    # Golden: a prompt that changes under its id would make old and new results look comparable.
    assert [prompt.sha256()[:12] for prompt in prompts] == GOLDEN_PROMPTS


def test_a_bound_is_read_where_it_can_hardly_matter_and_nowhere_else() -> None:
    low = exchange((-0.1, -9.0), option_is_bound=(False, True))
    assert option_probabilities(low, "sum") == pytest.approx([1 - 0.000136, 0.000136], abs=1e-6)
    high = option_probabilities(exchange((-0.7, -2.0), option_is_bound=(False, True)), "sum")
    assert isinstance(high, str)
    assert "up to 0.214" in high
    # The same as a value, not as a bound, is read as it is.
    assert option_probabilities(exchange((-0.7, -2.0)), "sum") == pytest.approx([0.786, 0.214], abs=1e-3)
    mean = option_probabilities(low, "token_mean")
    assert isinstance(mean, str)
    assert "bounds" in mean


def test_options_far_below_the_best_one_do_not_tie() -> None:
    best = -3_000.0
    logprobs = (best, best - 800.0, best - 900.0, best - 800.5, best - 10_000.0, -inf)
    six = {"options": tuple("abcdef"), "outcomes": tuple("abcdef"), "option_token_counts": (2,) * 6}
    probabilities = option_probabilities(exchange(logprobs, **six), "sum")
    assert isinstance(probabilities, list)
    assert sorted(range(6), key=lambda place: -probabilities[place]) == [0, 1, 3, 2, 4, 5]
    assert len({*probabilities}) == 6
    assert probabilities[0] == 1.0
    assert 0 < max(probabilities[1:]) < 1e-299
    assert probabilities[5] == 0.0


def looped(table: CoreferenceTable, group: Mapping[str, str]) -> tuple[list[tuple[int, int]], int]:
    """Find the pairs of a slice row by row, and the number of pairs that are left out."""
    gender, reference = table.column("pronoun_gender"), table.column("occupation")
    sides: dict[str, list[int]] = {}
    for index in np.flatnonzero(table.rows(group)):
        sides.setdefault(table.pair_ids[index], []).append(int(index))
    complete = []
    for pair in sides.values():
        by_gender = {str(gender[index]): index for index in pair}
        if len(pair) == 2 and by_gender.keys() == {"masculine", "feminine"}:
            masculine, feminine = by_gender["masculine"], by_gender["feminine"]
            if reference[masculine] == reference[feminine] and table.measured[pair].all():
                complete.append((masculine, feminine))
    return complete, len(sides) - len(complete)


def made_table(seed: int, n: int) -> CoreferenceTable:
    """A table with pairs of one, two and three sides, of one gender or both, measured or not, in any order."""
    rng = np.random.default_rng(seed)
    probabilities = rng.dirichlet([1.0, 1.0], n)
    probabilities[rng.random(n) < 0.1] = 0.0
    return CoreferenceTable(
        clusters=rng.integers(0, 5, n),
        n_clusters=5,
        crossing=None,
        groups={
            "pronoun_gender": rng.choice(["masculine", "feminine", "neutral"], n, p=[0.48, 0.48, 0.04]),
            "occupation": rng.choice(["baker", "judge"], n, p=[0.8, 0.2]),
            "stereotype": rng.choice(["pro", "anti", ""], n),
        },
        probabilities=probabilities,
        usable=probabilities.sum(axis=1) > 0,
        occupation_pairs=np.zeros(n, dtype=np.int64),
        pair_ids=tuple(f"pair-{number}" for number in rng.integers(0, max(1, n // 2), n)),
        has_referent=bool(seed % 2),
        has_undetermined=False,
    )


def test_pairs_are_those_of_a_loop_in_its_order() -> None:
    n_found = 0
    for seed in range(60):
        table = made_table(seed, (0, 1, 2, 7, 200)[seed % 5])
        for group in (
            {},
            {"occupation": "baker"},
            {"stereotype": "pro"},
            {"stereotype": "anti", "occupation": "judge"},
        ):
            masculine, feminine, n_excluded = table.pairs(group)
            expected = looped(table, group)
            assert (list(zip(masculine.tolist(), feminine.tolist(), strict=True)), n_excluded) == expected
            n_found += len(expected[0])
    assert n_found > 200
