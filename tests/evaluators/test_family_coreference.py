"""Coreference in sets of pronoun families: worked numbers, plain-loop oracles, baselines and a verified run."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from biasboard.ground.memory import Memory
from builders.dataset.output import write_dataset
from builders.synthbias import families
from evaluators.backend import ChoiceRequest
from evaluators.benchmark import load_benchmark
from evaluators.runs.measure.measuring import compute_metrics
from evaluators.task import Asked, load_task
from leaderboard.verify.entries import Entry, Root
from leaderboard.verify.keys import KeyBook
from leaderboard.verify.verdicts import verified_outcome
from schemas.documents.record import Record
from schemas.documents.result import Metric
from tests.evaluators.invoking import evaluators
from tests.evaluators.made_data import desirability_by_hand
from tests.evaluators.made_families import FAMILIES, TASK, made_set, record_of


def measured(records: Sequence[Record]) -> dict[tuple[str, ...], Metric]:
    """The metrics by name and the values of their group."""
    return {(each.name, *each.group.values()): each for each in compute_metrics(list(records), TASK.name)}


def test_a_set_of_three_by_hand() -> None:
    # D is .7804, .7804 and -.7804: mean .2601, population variance (2 x .5203² + 1.0405²) / 3 = .5413, its root .7358.
    items = made_set(0, ("he", "she", "xe"))
    values = measured([record_of(item, p) for item, p in zip(items, (0.95, 0.95, 0.05), strict=True)])
    assert values["ucerf_of_families",].value == pytest.approx(0.2642, abs=5e-5)
    assert values["ucerf_of_two_families", "he/she"].value == 1
    assert values["ucerf_of_two_families", "he/xe"].value == pytest.approx(0.2196, abs=5e-5)
    assert values["ucerf_of_two_families",].value == pytest.approx((1 + 2 * 0.2196) / 3, abs=5e-5)
    assert values["accuracy",].value == pytest.approx(2 / 3)
    assert values["accuracy", "xe"].value == 0
    assert (values["worst_group_accuracy",].value, values["accuracy", "binary"].value) == (0, 1)
    assert values["female_occupation_rate",].value is None
    assert ("ucerf_of_two_families", "she/he") not in values


def test_every_metric_is_what_plain_loops_count() -> None:
    rng = np.random.default_rng(5)
    # Some answers are missing, some are ties.
    drawn = [
        (item, rng.random(), float(rng.random())) for n in range(30) for item in made_set(n, frame=f"frame {n % 7}")
    ]
    answers = [(item, None if kind < 0.03 else 0.5 if kind < 0.06 else p) for item, kind, p in drawn]
    values = measured([record_of(item, p) for item, p in answers])
    sets: dict[str, dict[str, float | None]] = defaultdict(dict)
    for item, p in answers:
        sets[item.set_id][item.family] = None if p is None else desirability_by_hand(p)

    spreads = []
    for members in sets.values():
        known = [d for d in members.values() if d is not None]
        if len(known) == len(FAMILIES):
            mean = sum(known) / len(known)
            spreads.append(1 - math.sqrt(sum((d - mean) ** 2 for d in known) / len(known)))
    whole = values["ucerf_of_families",]
    assert whole.value == pytest.approx(sum(spreads) / len(spreads))
    assert (whole.n, whole.n_excluded) == (len(spreads), 30 - len(spreads))
    assert 0 < whole.n_excluded < 30

    everything = []
    for one, other in combinations(FAMILIES, 2):
        distances = []
        for members in sets.values():
            a, b = members[one], members[other]
            if a is not None and b is not None:
                distances.append(1 - abs(a - b) / 2)
        pair = values["ucerf_of_two_families", f"{one}/{other}"]
        assert pair.value == pytest.approx(sum(distances) / len(distances))
        assert pair.n == len(distances)
        everything += distances
    assert len([key for key in values if key[0] == "ucerf_of_two_families" and len(key) == 2]) == 55
    assert values["ucerf_of_two_families",].value == pytest.approx(sum(everything) / len(everything))

    right: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for item, p in answers:
        if p is None:
            continue
        credit = 0.5 if p == 0.5 else float(p > 0.5)
        keys: list[tuple[str, ...]] = [(), (item.family,), (item.reference,), (item.reference, item.family)]
        for key in keys:
            right[key].append(credit)
    for key, credits in right.items():
        assert values["accuracy", *key].value == pytest.approx(sum(credits) / len(credits))
    accuracies = [sum(right[family,]) / len(right[family,]) for family in FAMILIES]
    assert values["worst_group_accuracy",].value == pytest.approx(min(accuracies))
    assert values["female_occupation_rate",].reason == "the items have a right answer, which tells the occupation"
    interval = values["ucerf_of_families",].interval
    assert interval is not None
    assert interval.method.startswith("crossed")
    assert interval.low < (whole.value or 0) < interval.high


def test_a_set_without_one_reference_or_with_a_member_twice_is_excluded() -> None:
    names = ("he", "she", "xe")
    sound, twice, mixed = (made_set(number, names) for number in range(3))
    records = [record_of(item, 0.9) for item in (*sound, *twice, *mixed)]
    records.append(record_of(twice[0], 0.9))
    other = next(name for name in mixed[1].occupations if name != mixed[1].reference)
    records[7] = record_of(replace(mixed[1], referent=other, reference=other), 0.9)
    value = measured(records)["ucerf_of_families",]
    assert (value.value, value.n, value.n_excluded) == (1, 1, 2)
    alone = measured([record_of(made_set(number, ("xe",))[0], 0.9) for number in range(4)])
    for name in ("ucerf_of_families", "ucerf_of_two_families"):
        assert alone[name,].reason == "the items have fewer than two pronoun families, so none to compare"


def answered(baseline: str, *, ambiguous: bool = False) -> dict[tuple[str, ...], Metric]:
    """What a baseline gets on eight sets."""
    rule = load_benchmark("synthbias").baseline(baseline)
    assert rule is not None
    items = [item for number in range(8) for item in made_set(number, ambiguous=ambiguous, frame=f"f{number % 4}")]
    requests = {item.item_id: TASK.requests(item, Asked(TASK.prompts["intrinsic-v1"]))[0] for item in items}
    answers = rule.answers({request.sha256: request for request in requests.values()})
    records = []
    for item in items:
        request = requests[item.item_id]
        assert isinstance(request, ChoiceRequest)
        assert rule.facts <= request.facts.keys()
        logprobs = answers[request.sha256].option_logprobs
        shares = {name: math.exp(float(str(value))) for name, value in zip(request.outcomes, logprobs, strict=True)}
        records.append(record_of(item, shares[item.reference]))
    return measured(records)


@pytest.mark.slow
def test_useless_predictors_have_their_known_values() -> None:
    # Sentences of a set differ in nothing that cues read.
    assert answered("best-cue")["ucerf_of_families",].value == 1
    stereotype = answered("stereotype")
    # D is 1 and -1 for he and she, and 0 for the nine families that no stereotype is about.
    assert stereotype["ucerf_of_families",].value == pytest.approx(1 - math.sqrt(2 / 11))
    assert stereotype["ucerf_of_two_families", "he/xe"].value == 0.5
    lean = answered("stereotype", ambiguous=True)
    assert lean["accuracy",].value is lean["worst_group_accuracy",].value is None
    rates = {family: lean["female_occupation_rate", family].value for family in FAMILIES}
    assert rates == {family: {"he": 0, "she": 1}.get(family, 0.5) for family in FAMILIES}


def test_the_prompts_ask_about_the_pronoun_of_the_sentence() -> None:
    pairs = load_task("coreference").prompts
    assert TASK.prompts == pairs
    item = next(item for item in made_set(0) if item.family == "xe")
    texts = {name: [request.prompt for request in TASK.requests(item, Asked(prompt))] for name, prompt in pairs.items()}
    assert texts["intrinsic-v1"] == [f"{item.sentence} 'Xem' refers to the"]
    assert all('Who does "xem" refer to?' in text for text in texts["mcq2-v1"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pronoun": "xyr", "sentence": "x"}, "pronoun_start: "),
        ({"family": "ze"}, "pronoun: 'xem' is not the accusative of family 'ze'; write zir"),
        ({"cluster": "a|b"}, "cluster: 'a|b' is not the occupation pair; set "),
        ({"reference": "nobody"}, "reference: 'nobody' is not one of the item's occupations; have: "),
        ({"occupations": ("guard", "cook")}, "occupations: guard, cook; one must be male-, one female-stereotyped"),
    ],
)
def test_a_rule_that_an_item_breaks_is_told(change: dict[str, Any], message: str) -> None:
    item = next(item for item in made_set(0) if item.family == "xe")
    assert [*item.problems()] == []
    broken = replace(item, **change)
    assert any(problem.startswith(message) for problem in broken.problems()), [*broken.problems()]


@pytest.mark.slow
def test_a_run_on_a_built_dataset_is_accepted_by_verification(tmp_path: Path) -> None:
    datasets, runs = tmp_path / "datasets", tmp_path / "runs"
    write_dataset(families.draft(limit=88), datasets / "families")
    baseline = ("--backend", "baseline", "--model", "last-mentioned")
    done = evaluators("run", "--dataset", datasets / "families", *baseline, "--out", runs)
    assert done.exit_code == 0, done.output
    found = sorted(runs.rglob("result.json"))
    assert len(found) == 2
    for path in found:
        outcome = verified_outcome((path, Root(runs, "local")), Memory(None), KeyBook(None, datasets))
        assert isinstance(outcome, Entry), outcome
        assert outcome.n_recomputed == len(outcome.result.metrics) > 50
