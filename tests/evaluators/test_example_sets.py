"""The comparison of sets of examples, against numbers worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from evaluators.benchmark import PartSource, ShownContext
from evaluators.runs.measure.index_values import ModelResults, ScoredResult, SetTable, set_tables
from schemas.documents.result import Result
from tests.schemas.examples import result

NAN = float("nan")
IDEALS = {"f1": 1.0, "spread": 0.0}


def of_suite(parts: Sequence[str] = ("a", "b", "c")) -> Result:
    made = result()
    return replace(made, signature=replace(made.signature, config="suite", parts=tuple(parts)))


def tables(sets: Sequence[Mapping[str, Sequence[float]]], parts: Sequence[str] = ("a", "b", "c")) -> list[SetTable]:
    """The tables of results after 8 examples, one for each set."""
    scored = {
        PartSource("task", context=ShownContext(8, number)): ScoredResult(
            of_suite(parts), {}, {}, {name: np.array(values) for name, values in one.items()}
        )
        for number, one in enumerate(sets)
    }
    return set_tables(ModelResults("made", "made", "1.0.0", "made", "", scored), IDEALS)


def means(table: SetTable) -> dict[str, tuple[float | None, ...]]:
    return {row.name: tuple(one.value for one in row.means.values()) for row in table.rows}


THREE = (
    {"f1": (0.1, 0.6, 0.9), "spread": (1.0, 0.2, 0.3)},
    {"f1": (0.3, 0.5, 0.9), "spread": (0.4, 0.6, NAN)},
    {"f1": (0.2, 0.1, 0.6), "spread": (0.7, 0.1, 0.5)},
)


def test_each_part_takes_the_set_that_is_best_for_it() -> None:
    (table,) = tables(THREE)
    assert (table.n_examples, table.n_sets, table.n_parts) == (8, 3, 3)
    found = means(table)
    assert found["mean of the sets"] == pytest.approx(((0.2 + 0.4 + 0.8) / 3, (0.7 + 0.3 + 0.4) / 3))
    # By F1: the second set, the first one, and of two equal ones the first.
    assert found["best f1"] == pytest.approx(((0.3 + 0.6 + 0.9) / 3, (0.4 + 0.2 + 0.3) / 3))
    assert found["worst f1"] == pytest.approx(((0.1 + 0.1 + 0.6) / 3, (1.0 + 0.1 + 0.5) / 3))
    # The second set has a median in the third part, where it has no spread.
    assert found["median f1"] == pytest.approx(((0.2 + 0.5 + 0.9) / 3, (0.7 + 0.6) / 2))
    assert found["least spread"] == pytest.approx(((0.3 + 0.1 + 0.9) / 3, (0.4 + 0.1 + 0.3) / 3))
    assert found["most spread"] == pytest.approx(((0.1 + 0.5 + 0.6) / 3, (1.0 + 0.6 + 0.5) / 3))
    deviations = [np.std(values, ddof=1) for values in ([0.1, 0.3, 0.2], [0.6, 0.5, 0.1], [0.9, 0.9, 0.6])]
    assert found["standard deviation over the sets"][0] == pytest.approx(np.mean(deviations))


def test_the_number_of_sets_is_told_beside_that_of_the_indices() -> None:
    (table,) = tables(THREE)
    assert (table.n_defined, table.of_sets) == (3, "3 sets")  # This benchmark has no indices.
    scored = {
        PartSource("classification", context=ShownContext(k, number)): ScoredResult(
            of_suite(), {}, {}, {name: np.array(values) for name, values in one.items()}
        )
        for k in (8, 2)
        for number, one in enumerate(THREE)
    }
    found = set_tables(ModelResults("superni", "superni", "1.0.0", "release", "", scored), IDEALS)
    assert [(table.n_examples, table.of_sets) for table in found] == [(2, "3 sets"), (8, "3 of 5 sets")]


def test_a_part_without_any_value_counts_nowhere() -> None:
    (table,) = tables([{"f1": (0.5, NAN), "spread": (NAN, NAN)}] * 2, ("a", "b"))
    for row in table.rows:
        assert row.means["spread"].value is None
    best = next(row for row in table.rows if row.name == "best f1").means["f1"]
    assert (best.value, best.n) == (0.5, 1)


def test_one_set_or_results_of_other_items_are_not_compared() -> None:
    assert tables(THREE[:1]) == []
    scored = {
        PartSource("task", context=ShownContext(8, number)): ScoredResult(
            of_suite(parts), {}, {}, {name: np.zeros(2) for name in IDEALS}
        )
        for number, parts in enumerate((("a", "b"), ("a", "c")))
    }
    assert set_tables(ModelResults("made", "made", "1.0.0", "made", "", scored), IDEALS) == []
