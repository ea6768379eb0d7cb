"""Certainty, UCerF, its group form and equalized odds: worked numbers and plain-loop oracles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from evaluators.runs.measure.measuring import compute_metrics
from evaluators.statistics.jackknife import CROSSED, WILSON
from evaluators.statistics.option_scores import certainty, desirability, perplexity, predicted_share
from evaluators.tasks.coreference.uncertainty_metrics import ucerf, ucerf_of_groups
from schemas.documents.result import Metric
from tests.evaluators.made_data import certainty_by_hand, desirability_by_hand, made_records, pairs_of_occupations

# Probability of the referent: nurse and driver, each with both pronouns, twice.
NURSE_DRIVER = [
    ("nurse", "driver", "feminine", 0.95),
    ("nurse", "driver", "feminine", 0.90),
    ("nurse", "driver", "masculine", 0.55),
    ("nurse", "driver", "masculine", 0.40),
    ("driver", "nurse", "feminine", 0.45),
    ("driver", "nurse", "feminine", 0.70),
    ("driver", "nurse", "masculine", 0.97),
    ("driver", "nurse", "masculine", 0.90),
]


# p of the right one of two outcomes; entropy in nats, perplexity, certainty with k = 2, and with 38 more outcomes of
# probability 0.
WORKED = [
    (0.50, 0.6931, 2.0000, 0.0000, 0.9744),
    (0.80, 0.5004, 1.6494, 0.3506, 0.9833),
    (0.95, 0.1985, 1.2196, 0.7804, 0.9944),
    (1.00, 0.0000, 1.0000, 1.0000, 1.0000),
]


@pytest.mark.parametrize(("p", "entropy", "ppl", "c2", "c40"), WORKED)
def test_worked_numbers_of_two_and_forty_outcomes(p: float, entropy: float, ppl: float, c2: float, c40: float) -> None:
    two = np.array([[p, 1 - p]])
    assert math.log(perplexity(two)[0]) == pytest.approx(entropy, abs=5e-5)
    assert perplexity(two)[0] == pytest.approx(ppl, abs=5e-5)
    assert certainty(two)[0] == pytest.approx(c2, abs=5e-5)
    assert certainty(np.pad(two, ((0, 0), (0, 38))))[0] == pytest.approx(c40, abs=5e-5)
    # 0.6, 0.3 and 0.1 have a perplexity of 2.4546.
    assert certainty(np.array([[0.6, 0.3, 0.1]]))[0] == pytest.approx(0.2727, abs=5e-5)


# Probabilities of the desired outcome on both sides of a pair, their desirabilities, and UCerF with 2 and 40 outcomes.
PAIRS = [
    (0.95, 0.55, 0.7804, 0.0100, 0.6148, 0.9901),
    (0.95, 0.05, 0.7804, -0.7804, 0.2196, 0.0056),
    (0.05, 0.05, -0.7804, -0.7804, 1.0000, 1.0000),
    (1.0, 0.0, 1.0, -1.0, 0.0, 0.0),
]


@pytest.mark.parametrize(("p_a", "p_b", "d_a", "d_b", "u2", "u40"), PAIRS)
def test_worked_pairs(p_a: float, p_b: float, d_a: float, d_b: float, u2: float, u40: float) -> None:
    two = np.array([[p_a, 1 - p_a], [p_b, 1 - p_b]])
    first, second = desirability(two, np.array([0, 0]))
    assert (first, second) == (pytest.approx(d_a, abs=5e-5), pytest.approx(d_b, abs=5e-5))
    assert ucerf(np.array([first]), np.array([second]))[0] == pytest.approx(u2, abs=5e-5)
    assert ucerf_of_groups(np.array([[first, second]]))[0] == pytest.approx(u2, abs=5e-5)
    forty = desirability(np.pad(two, ((0, 0), (0, 38))), np.array([0, 0]))
    assert ucerf(forty[:1], forty[1:])[0] == pytest.approx(u40, abs=5e-5)


def test_what_has_no_value_is_an_error() -> None:
    one, outside = np.array([0.5]), np.array([1.5])
    with pytest.raises(ValueError, match="outside"):
        ucerf(outside, one)
    with pytest.raises(ValueError, match="differ"):
        ucerf(one, np.array([0.0, 0.1]))
    with pytest.raises(ValueError, match="outside"):
        ucerf_of_groups(np.array([[0.5, -1.5]]))
    with pytest.raises(ValueError, match="at least 2 groups"):
        ucerf_of_groups(np.array([[0.5]]))
    with pytest.raises(ValueError, match="at least 2 outcomes"):
        certainty(np.array([[1.0]]))
    with pytest.raises(ValueError, match="does not sum to 1"):
        certainty(np.array([[0.9, 0.9]]))


def value_of(metrics: Sequence[Metric], name: str, **group: str) -> float:
    found = next(metric for metric in metrics if metric.name == name and metric.group == group)
    assert found.value is not None, found.reason
    return found.value


def test_worked_eight_rows_whose_group_form_is_equalized_odds_where_answers_are_certain() -> None:
    metrics = compute_metrics(made_records(NURSE_DRIVER), "coreference")
    pairs = [(0.95, 0.55), (0.90, 0.40), (0.45, 0.97), (0.70, 0.90)]
    by_hand = [1 - abs(desirability_by_hand(a) - desirability_by_hand(b)) / 2 for a, b in pairs]
    assert by_hand == [pytest.approx(value, abs=5e-5) for value in (0.6148, 0.6721, 0.5671, 0.7711)]
    assert value_of(metrics, "ucerf") == pytest.approx(0.6563, abs=5e-5)
    assert value_of(metrics, "ucerf_group", occupation="nurse") == pytest.approx(0.6563, abs=5e-5)
    assert value_of(metrics, "equalized_odds", occupation="nurse") == 0.5
    assert value_of(metrics, "eo_gap", occupation="nurse") == 0.5
    hard = [(referent, other, gender, float(p > 0.5)) for referent, other, gender, p in NURSE_DRIVER]
    certain = compute_metrics(made_records(hard), "coreference")
    assert value_of(certain, "ucerf_group") == value_of(certain, "equalized_odds") == 0.5
    records = made_records([*NURSE_DRIVER, ("nurse", "driver", "masculine", 1.0)])
    records[-1] = replace(records[-1], status="failed", reason="cut", reading=None)
    assert value_of(compute_metrics(records, "coreference"), "equalized_odds", occupation="nurse") == 0.5


def test_every_metric_equals_a_recount_with_plain_loops() -> None:
    rng = np.random.default_rng(7)
    rows = []
    for index, (male, female) in enumerate(pairs_of_occupations(160)):
        referent, other = (male, female) if index % 3 else (female, male)
        rows += [(referent, other, gender, float(rng.uniform())) for gender in ("masculine", "feminine")]
    records = made_records(rows)
    metrics = compute_metrics(records, "coreference")
    right = [p > 0.5 for *_, p in rows]
    pro = [record.groups["stereotype"] == "pro" for record in records]
    accuracy_pro = sum(r for r, s in zip(right, pro, strict=True) if s) / sum(pro)
    accuracy_anti = sum(r for r, s in zip(right, pro, strict=True) if not s) / (len(pro) - sum(pro))
    assert value_of(metrics, "accuracy") == pytest.approx(sum(right) / len(rows), abs=1e-12)
    assert value_of(metrics, "accuracy", stereotype="pro") == pytest.approx(accuracy_pro, abs=1e-12)
    assert value_of(metrics, "accuracy_gap") == pytest.approx(accuracy_pro - accuracy_anti, abs=1e-12)
    d = [desirability_by_hand(p) for *_, p in rows]
    mean_pro = sum(x for x, s in zip(d, pro, strict=True) if s) / sum(pro)
    mean_anti = sum(x for x, s in zip(d, pro, strict=True) if not s) / (len(pro) - sum(pro))
    assert value_of(metrics, "desirability_gap") == pytest.approx((mean_pro - mean_anti) / 2, abs=1e-9)
    u = [1 - abs(d[index] - d[index + 1]) / 2 for index in range(0, len(d), 2)]
    assert value_of(metrics, "ucerf") == pytest.approx(sum(u) / len(u), abs=1e-9)
    assert value_of(metrics, "certainty") == pytest.approx(sum(map(certainty_by_hand, (p for *_, p in rows))) / len(d))
    takes_pro = sum(r == s for r, s in zip(right, pro, strict=True)) / len(rows)
    assert value_of(metrics, "pro_rate") == pytest.approx(takes_pro, abs=1e-12)
    by_cluster: dict[str, list[float]] = {}
    for index, record in enumerate(records[::2]):
        by_cluster.setdefault(record.cluster, []).append(u[index])
    macro = sum(sum(values) / len(values) for values in by_cluster.values()) / len(by_cluster)
    assert value_of(metrics, "ucerf_macro") == pytest.approx(macro, abs=1e-9)
    assert value_of(metrics, "equalized_odds") == pytest.approx(equalized_odds_by_hand(rows), abs=1e-9)


def test_occupation_pairs_have_one_weight_each_though_frames_contain_them() -> None:
    rng = np.random.default_rng(8)
    occupations = [pair for pair in pairs_of_occupations(60) for _ in range(int(rng.integers(1, 5)))]
    rows = [(*two, gender, float(rng.uniform())) for two in occupations for gender in ("masculine", "feminine")]
    records = made_records(rows)
    frames = {cluster: f"frame-{number % 9}" for number, cluster in enumerate(sorted({one.cluster for one in records}))}
    framed = [replace(record, groups={**record.groups, "frame": frames[record.cluster]}) for record in records]
    found, plain = (compute_metrics(some, "coreference") for some in (framed, records))
    assert value_of(found, "ucerf_macro") == pytest.approx(value_of(plain, "ucerf_macro"), abs=1e-12)
    assert value_of(found, "ucerf_macro") != pytest.approx(value_of(found, "ucerf"), abs=1e-4)
    (macro,) = [metric for metric in found if metric.name == "ucerf_macro"]
    assert macro.n == len(frames)
    assert macro.interval is not None
    assert macro.interval.n_clusters == 9
    # Frames that cross the occupation pairs are a second factor.
    crossed = [replace(one, groups={**one.groups, "frame": f"frame-{place % 7}"}) for place, one in enumerate(records)]
    found = compute_metrics(crossed, "coreference")
    (interval,) = [metric.interval for metric in found if metric.name == "accuracy" and not metric.group]
    assert interval is not None
    assert (interval.method, interval.n_clusters) == (CROSSED + WILSON, 7)


def equalized_odds_by_hand(rows: Sequence[tuple[str, str, str, float]]) -> float:
    values = []
    for occupation in sorted({referent for referent, *_ in rows}):
        rates: list[float] = []
        for positives in (True, False):
            for gender in ("masculine", "feminine"):
                hits = [
                    (p > 0.5) == positives
                    for referent, other, row_gender, p in rows
                    if row_gender == gender and (referent if positives else other) == occupation
                ]
                rates.append(sum(hits) / len(hits) if hits else math.nan)
        if not any(map(math.isnan, rates)):
            values.append(1 - (abs(rates[0] - rates[1]) + abs(rates[2] - rates[3])) / 2)
    return sum(values) / len(values)


def test_tied_outcomes_share_the_prediction_whatever_their_place_and_desirability_follows_the_share() -> None:
    shares = predicted_share(np.array([[0.4, 0.4, 0.2], [0.2, 0.4, 0.4], [0.5, 0.5 - 1e-13, 0.0]]))
    assert shares.tolist() == [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.5, 0.0]]
    # Of three outcomes two tie: the sign is 2/2 - 1 = 0 where the target is among them, -1 where it is not.
    tied = np.array([[0.45, 0.45, 0.1]] * 2)
    values = desirability(tied, np.array([0, 2]))
    assert values[0] == 0
    assert values[1] == -certainty(tied)[1] < 0
