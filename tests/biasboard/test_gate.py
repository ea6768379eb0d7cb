"""Which models pass a gate: by summaries made by hand, with the numbers that decide computed by hand too."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from biasboard.gate import GateChoice, check_asked, limits_of, outcome_lines, outcomes
from biasboard.ground.errors import ConfigError
from leaderboard.pages.summary_forms import groups_apart, missing_text
from schemas.documents.model_summary import (
    BenchmarkSummary,
    GateOutcome,
    MeasureValue,
    MissingOfGroup,
    ModelDifference,
    ModelSummary,
)
from schemas.documents.result import Interval

BENCHMARK, MEASURE = "synthbias", "worst_group_accuracy"
KNOWN = MeasureValue(
    interval_reason=None,
    name=MEASURE,
    label="Worst-group accuracy",
    sentence="The accuracy of the worst group.",
    version="1",
    config="type2",
    splits=("test",),
    value=0.8,
    reason=None,
    interval=Interval(method="jackknife", level=0.95, low=0.74, high=0.86, n_clusters=40, n_resamples=None),
    at_worst=0.8,
    n=400,
    unit="items",
    ideal=1.0,
    minimum=0.0,
    maximum=1.0,
    ranks=True,
    useless=None,
    difference=None,
)
OF_BENCHMARK = BenchmarkSummary(
    benchmark=BENCHMARK,
    heading="SynthBias",
    dataset=BENCHMARK,
    dataset_version="1.0.0",
    protocol="mcq2-v1",
    rank=None,
    why_unranked="alone",
    beats_useless=True,
    is_below=False,
    is_other_below=False,
    n_missing_of_other=None,
    why_not_compared=None,
    measures=(KNOWN,),
    results=("0" * 64,),
    is_whole=True,
    claims=(),
    **dict.fromkeys(("n_missing", "n_refused", "n_unparsed", "n_failed"), 0),  # type: ignore[arg-type]
    n_items=400,
)


def summary_of(*benchmarks: BenchmarkSummary, against: str | None = None) -> ModelSummary:
    return ModelSummary(
        schema_version="1",
        model="acme/one",
        revision=None,
        backend="openai",
        precision=None,
        identity_sha256="0" * 64,
        against=against,
        benchmarks=benchmarks,
    )


def decided(measure: MeasureValue, limit: float, of: BenchmarkSummary = OF_BENCHMARK, **choice: Any) -> GateOutcome:
    given = GateChoice(fail_under=(f"{measure.name}={limit}",), **choice)
    first, *_ = outcomes(
        summary_of(replace(of, measures=(measure,))), limits_of(given, [BENCHMARK]), given, [BENCHMARK]
    )
    return first


def ranging(measure: MeasureValue, low: float, high: float) -> MeasureValue:
    assert measure.interval is not None
    return replace(measure, interval=replace(measure.interval, low=low, high=high))


def test_the_far_end_of_the_interval_decides() -> None:
    for limit, passes in ((0.74, True), (0.75, False)):
        found = decided(KNOWN, limit)
        assert (found.passed, found.decided_by, found.reason is None) == (passes, 0.74, passes)
        assert found.value == 0.8
    gap = replace(KNOWN, name="accuracy_gap", ideal=0.0, value=-0.01, minimum=-1.0, at_worst=-0.01)
    gap = ranging(gap, -0.12, 0.1)
    assert decided(gap, 0.11).decided_by == -0.12
    assert not decided(gap, 0.11).passed
    assert decided(gap, 0.12).passed
    assert decided(gap, -0.12).passed, "a limit is a distance from the ideal"


def test_missing_answers_count_at_their_worst() -> None:
    # A tenth is missing: .9 * .8 + .1 * 0.
    missing = replace(KNOWN, at_worst=0.72)
    found = decided(missing, 0.7)
    assert found.decided_by == pytest.approx(0.74 - 0.08)
    assert "may be 0.6600 by its interval and with missing answers at their worst" in str(found.reason)
    by_point = decided(missing, 0.7, point=True)
    assert by_point.decided_by == pytest.approx(0.72)
    assert by_point.passed


@pytest.mark.parametrize(
    ("of_measure", "of_benchmark", "reason"),
    [
        ({"value": None, "reason": "nothing was read"}, {}, "is unknown: nothing was"),
        ({}, {"is_whole": False}, "only some items were asked; ask all, or add --allow limited"),
        ({"n": 29}, {}, "rests on 29 items, fewer than 30; ask more, or add"),
        ({"interval": None}, {}, "has no interval; add --point"),
        ({"at_worst": None}, {"n_missing": 3}, "has no bound, and 3 of 400"),
        ({"ideal": None}, {}, "is unknown: it has no ideal"),
    ],
)
def test_what_cannot_be_decided_does_not_pass(
    of_measure: dict[str, Any], of_benchmark: dict[str, Any], reason: str
) -> None:
    found = decided(replace(KNOWN, **of_measure), 0.1, replace(OF_BENCHMARK, **of_benchmark))
    assert not found.passed
    assert found.decided_by is None
    assert reason in str(found.reason)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("worst_group_accuracy=70", "the measure lies between 0 and 1; give such a value"),
        ("pro_rate=0", "every value keeps this limit; give one nearer to the ideal 0.5"),
        ("gifi.worst_group_accuracy=0.7", "gifi is not asked, only synthbias"),
        ("ucref=0.7", "no such measure; the headlines are synthbias."),
        *((text, "write MEASURE=VALUE, such as synthbias.") for text in ("0.7", "ucerf=nan", "ucerf=")),
    ],
)
def test_a_limit_that_decides_nothing_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"--fail-under {text}: {message}")):
        limits_of(GateChoice(fail_under=(text,)), [BENCHMARK])
    with pytest.raises(ConfigError, match="there is no gate"):
        limits_of(GateChoice(point=True), [BENCHMARK])
    with pytest.raises(
        ConfigError, match="--allow limit: can be limited, earlier, several, useless; did you mean limited"
    ):
        limits_of(GateChoice(max_missing=0.1, allow=("limit",)), [BENCHMARK])


def test_a_coin_and_answers_of_earlier_calls_decide_only_if_they_may() -> None:
    coin = replace(OF_BENCHMARK, beats_useless=False, why_below="accuracy 0.5 is a coin's")
    found = decided(KNOWN, 0.7, of=coin)
    assert not found.passed
    assert "not shown to beat a useless predictor; what a coin" in str(found.reason)
    (allowed,) = decided(KNOWN, 0.7, of=coin, allow=("useless",)).warnings
    assert "not shown to beat a useless predictor" in allowed
    assert not decided(KNOWN, 0.7).warnings
    doubts = {"earlier": "3 of 20 answers are from earlier calls", "several": "2 models answered"}
    allowed_by: Mapping[tuple[str, ...], bool] = {(): False, ("earlier",): False, ("earlier", "several"): True}
    for allow, passes in allowed_by.items():
        choice = GateChoice(max_missing=0.1, allow=allow)
        (found,) = outcomes(summary_of(OF_BENCHMARK), [], choice, [BENCHMARK], doubts=doubts)
        assert (found.passed, found.warnings) == (passes, tuple(doubts.values()) * passes)
        remedies = [f"{why}; ask again with a new" for what, why in doubts.items() if what not in allow]
        assert all(remedy in str(found.reason) for remedy in remedies)


def test_few_answers_decide_only_if_they_may_and_never_if_all_are_alike() -> None:
    # An index is of few measures.
    assert decided(replace(KNOWN, n=7, config=None), 0.7).passed
    of_some, few = replace(OF_BENCHMARK, is_whole=False), replace(KNOWN, n=24)
    assert decided(few, 0.7, of_some, allow=("limited",)).passed
    assert not decided(few, 0.75, of_some, allow=("limited",)).passed
    alike = ranging(KNOWN, 0.8, 0.8)
    found = decided(alike, 0.7, of_some, allow=("limited",))
    assert "because no cluster of these few items changes it" in str(found.reason)
    (warning,) = decided(alike, 0.7).warnings
    assert "no interval, because no cluster of items changes it" in warning


def test_the_same_weights_cannot_be_worse_and_the_other_gates_are_decided() -> None:
    choice = GateChoice(max_worse=("0.05", "ucerf=0.1"), max_missing=0.1)
    decided = outcomes(summary_of(OF_BENCHMARK), [], choice, [BENCHMARK], same_as="acme/last")
    missing, same = decided
    assert missing.passed
    assert (same.passed, same.decided_by, same.compared_with) == (True, 0.0, "acme/last")
    assert same.warnings == ("acme/last has the weights and settings of this model, so that nothing can be worse",)
    assert next(iter(outcome_lines([same]))).endswith("worse than acme/last by at most 0.05: passed: not worse")


def lacking_scores(groups: tuple[MissingOfGroup, ...], n_missing: int, n_items: int = 400) -> BenchmarkSummary:
    apart = tuple(groups_apart(groups))
    lacking = replace(OF_BENCHMARK, n_items=n_items, n_missing=n_missing, n_refused=n_missing)
    return replace(lacking, missing_of_groups=groups, lacking_more=apart)


def test_groups_are_named_that_lack_more_than_the_others_of_their_config() -> None:
    def of(config: str, name: str, value: str, n_refused: int, n_items: int) -> MissingOfGroup:
        counts = {"n_items": n_items, "n_refused": n_refused, "n_unparsed": 0, "n_failed": 0}
        return MissingOfGroup(config=config, name=name, value=value, **counts)

    groups = (
        *(of("type2", "gender", "she", 49, 100), of("type2", "gender", "he", 0, 100)),
        # Half of two items are no more than chance, and alike in each.
        *(of("type2", "occupation", "editor", 1, 2), of("type2", "occupation", "guard", 48, 198)),
        *(of("type2", "stereotype", "pro", 26, 100), of("type2", "stereotype", "anti", 23, 100)),
        *(of("type1", "gender", "she", 0, 100), of("type1", "gender", "he", 0, 100)),
    )
    lacking = lacking_scores(groups, n_missing=49)
    assert missing_text(lacking).endswith("; more than in other groups: 49 of 100 with gender she in type2")
    assert missing_text(lacking_scores(groups[2:], n_missing=49)).endswith("; no group stands out")
    # A group is not hidden behind the others by a limit on all.
    (gate,) = outcomes(summary_of(lacking), [], GateChoice(max_missing=0.2), [BENCHMARK])
    assert (gate.passed, gate.value, gate.decided_by) == (False, 49 / 400, 0.49)
    assert gate.reason == "49 of 100 items with gender she in type2 (49.0%) have no score, more than 20.0%"
    of_all = lacking_scores(groups[2:], n_missing=49)
    (gate,) = outcomes(summary_of(of_all), [], GateChoice(max_missing=0.2), [BENCHMARK])
    assert (gate.passed, gate.value) == (True, 49 / 400)
    # Where nothing has a score, nobody is spared.
    assert missing_text(replace(lacking, n_items=49)).endswith("have no score: 49 refused")


def test_a_group_that_lacks_some_in_each_config_stands_out_in_all_together() -> None:
    def of(config: str, value: str, n_refused: int, n_items: int = 12) -> MissingOfGroup:
        counts = {"n_items": n_items, "n_refused": n_refused, "n_unparsed": 0, "n_failed": 0}
        return MissingOfGroup(config=config, name="gender", value=value, **counts)

    groups = of("type1", "she", 5), of("type1", "he", 0), of("type2", "she", 5), of("type2", "he", 0)
    # Of C(24, 5) choices of five, C(12, 5) are all of one gender: 1.9 % in each config, 0.035 % in both.
    assert [(one.value, one.config, one.n_missing) for one in groups_apart(groups)] == [("she", "type1 and type2", 10)]
    lacking = lacking_scores(groups, n_missing=10, n_items=48)
    assert missing_text(lacking).endswith("more than in other groups: 10 of 24 with gender she in type1 and type2")
    # A config in which all lack many says nothing of a group that only this config has more of.
    uneven = of("type1", "she", 50, 60), of("type1", "he", 9, 10), of("type2", "she", 0, 10), of("type2", "he", 1, 60)
    assert groups_apart(uneven) == []
    # The gate takes the config in which the group lacks most, though all together are clearer.
    most = of("type1", "she", 12), of("type1", "he", 0), of("type2", "she", 3), of("type2", "he", 0)
    lacking = lacking_scores(most, n_missing=15, n_items=48)
    assert missing_text(lacking).endswith("15 of 24 with gender she in type1 and type2")
    (gate,) = outcomes(summary_of(lacking), [], GateChoice(max_missing=0.9), [BENCHMARK])
    assert (gate.passed, gate.decided_by) == (False, 1.0)


def test_a_refusal_in_a_tiny_group_is_chance_and_a_group_of_which_all_are_refused_is_none() -> None:
    def of(value: str, n_refused: int, n_items: int) -> MissingOfGroup:
        counts = {"n_items": n_items, "n_refused": n_refused, "n_unparsed": 0, "n_failed": 0}
        return MissingOfGroup(config="type2", name="occupation", value=value, **counts)

    by_chance = of("guard", 1, 2), of("editor", 2, 6), of("cook", 2, 392)
    few = lacking_scores(by_chance, n_missing=5)
    (gate,) = outcomes(summary_of(few), [], GateChoice(max_missing=0.3), [BENCHMARK])
    assert (gate.passed, gate.decided_by) == (True, 5 / 400)
    all_refused = lacking_scores((of("guard", 4, 4), of("cook", 2, 396)), n_missing=6)
    # Of C(400, 4) ways to choose four, C(6, 4) have all in the group: 15 in 1.05 billion.
    assert [one.value for one in all_refused.lacking_more] == ["guard"]
    (gate,) = outcomes(summary_of(all_refused), [], GateChoice(max_missing=0.3), [BENCHMARK])
    assert (gate.passed, gate.decided_by) == (False, 1.0)


def test_a_benchmark_may_lack_so_many_answers_and_no_measure() -> None:
    lacking = replace(OF_BENCHMARK, n_missing=20, n_refused=20)
    for most, passes in ((0.05, True), (0.04, False)):
        (found,) = outcomes(summary_of(lacking), [], GateChoice(max_missing=most), [BENCHMARK])
        assert (found.passed, found.value) == (passes, 0.05)
    assert found.reason == "20 of 400 items (5.0%) have no score, more than 4.0%"
    few = summary_of(replace(OF_BENCHMARK, is_whole=False))
    for is_allowed in (False, True):
        (found,) = outcomes(
            few, [], GateChoice(max_missing=0.5, allow=("limited",) if is_allowed else None), [BENCHMARK]
        )
        assert found.passed == is_allowed
    choice = GateChoice(fail_under=(f"{MEASURE}=0.1",), max_missing=0.1, max_worse=("0.1",))
    missing = [*outcomes(summary_of(), limits_of(choice, [BENCHMARK]), choice, [BENCHMARK])]
    assert [one.passed for one in missing] == [False] * 3
    assert [one.reason for one in missing] == [
        "synthbias.worst_group_accuracy was not measured",
        *["nothing was measured"] * 2,
    ]


@pytest.mark.parametrize(
    ("difference", "of", "choice", "passes", "value"),
    [
        ({"lead": -0.01, "low": -0.04, "high": 0.02}, {}, {}, True, 0.04),
        ({"lead": -0.01, "low": -0.06, "high": 0.04}, {}, {}, False, 0.06),
        ({"lead": -0.01, "low": -0.06, "high": 0.04}, {}, {"point": True}, True, 0.01),
        # What both models did not answer is no difference between them.
        ({"lead": 0.0, "low": 0.0, "high": 0.0, "lead_at_worst": -0.2, "missing_alike": 1.0}, {}, {}, True, 0.0),
        ({"lead": 0.0, "low": 0.0, "high": 0.0, "lead_at_worst": -0.2, "missing_alike": 0.5}, {}, {}, False, 0.1),
        # Of .01 better to .02 worse, if the missing answers cost .03.
        ({"lead": 0.1, "low": 0.01, "high": 0.19, "lead_at_worst": 0.07}, {}, {}, True, 0.02),
        ({"lead": -0.01, "low": None, "high": None}, {}, {}, False, None),
        (None, {}, {}, False, None),
        ({"lead": 0.1, "low": 0.01, "high": 0.19}, {"is_whole": False}, {}, False, None),
        ({"lead": 0.1, "low": 0.01, "high": 0.19}, {"beats_useless": False}, {}, False, None),
        ({"lead": 0.1, "low": 0.01, "high": 0.19}, {"is_whole": False}, {"allow": ("limited",)}, True, -0.01),
    ],
)
def test_a_release_is_worse_than_the_last_by_so_much_at_most(
    difference: dict[str, float | None] | None,
    of: dict[str, bool],
    choice: dict[str, Any],
    passes: bool,
    value: float | None,
) -> None:
    stated = {"value": 0.9, "lead_at_best": 0.0, "outcome": "tied"}
    both = None if difference is None else {"lead_at_worst": difference["lead"]} | stated | difference
    measure = replace(KNOWN, difference=None if both is None else ModelDifference(**both))  # type: ignore[arg-type]
    summary = summary_of(replace(OF_BENCHMARK, measures=(measure,), **of), against="acme/last")  # type: ignore[arg-type]
    (found,) = outcomes(summary, [], GateChoice(max_worse=("0.05",), **choice), [BENCHMARK])
    assert (found.passed, found.decided_by) == (passes, None if value is None else pytest.approx(value))
    assert found.value == (None if difference is None or not found.measure else -(difference["lead"] or 0.0))
    assert (found.reason is None) == passes


def test_a_measure_that_the_last_release_had_must_be_there() -> None:
    better = ModelDifference(
        value=0.7, lead=0.1, low=0.05, high=0.15, lead_at_worst=0.1, lead_at_best=0.1, outcome="better"
    )
    of = replace(OF_BENCHMARK, measures=(replace(KNOWN, difference=better),), not_measured=("ucerf",))
    summary = summary_of(of, against="acme/last")
    lost, kept = outcomes(summary, [], GateChoice(max_worse=("0.05",)), [BENCHMARK])
    assert (lost.passed, lost.reason) == (False, "it has a value of acme/last alone")
    assert kept.passed


def test_each_measure_may_have_a_limit_of_its_own() -> None:
    worse = ModelDifference(
        value=0.8, lead=-0.04, low=-0.08, high=0.0, lead_at_worst=-0.04, lead_at_best=-0.04, outcome="tied"
    )
    other = replace(KNOWN, name="ucerf", difference=worse)
    summary = summary_of(replace(OF_BENCHMARK, measures=(replace(KNOWN, difference=worse), other)), against="acme/last")

    def passed(*limits: str) -> dict[str | None, bool]:
        choice = GateChoice(max_worse=limits)
        limits_of(choice, [BENCHMARK])
        return {one.measure: one.passed for one in outcomes(summary, [], choice, [BENCHMARK])}

    assert passed("0.05") == {MEASURE: False, "ucerf": False}
    assert passed("0.05", "ucerf=0.1") == {MEASURE: False, "ucerf": True}
    assert passed(f"{BENCHMARK}.{MEASURE}=0.1") == {MEASURE: True}
    # A measure that only one of both has does not vanish.
    assert passed("0.1", "accuracy_gap=0.1") == {MEASURE: True, "ucerf": True, "accuracy_gap": False}
    for wrong, message in (("-1", "write VALUE or MEASURE=VALUE"), ("ucref=0.1", "did you mean ucerf")):
        with pytest.raises(ConfigError, match=message):
            passed(wrong)


def test_each_gate_has_a_line_and_the_number_that_decided_it() -> None:
    lead = ModelDifference(
        value=0.7, lead=0.1, low=0.05, high=0.15, lead_at_worst=0.1, lead_at_best=0.1, outcome="better"
    )
    of = replace(OF_BENCHMARK, n_missing=20, measures=(replace(KNOWN, difference=lead),))
    summary = summary_of(of, against="acme/last")
    choice = GateChoice(fail_under=(f"{MEASURE}=0.7",), max_missing=0.05, max_worse=("0.0",))
    found = list(outcomes(summary, limits_of(choice, [BENCHMARK]), choice, [BENCHMARK]))
    assert [*outcome_lines(found)] == [
        f"gate {MEASURE}=0.7: passed: decided by 0.7400",
        "gate synthbias.max_missing=0.05: passed: decided by 0.0500",
        f"gate synthbias.{MEASURE} worse than acme/last by at most 0: passed: better by at least 0.0500",
        "gates: all 3 passed",
    ]
    worse = replace(lead, lead=-0.01, low=-0.02, lead_at_worst=-0.01)
    of = replace(of, measures=(replace(KNOWN, difference=worse),), beats_useless=False, why_below="it is a coin")
    summary = summary_of(of, against="acme/last")
    for most, said, last in (
        (0.03, "passed: worse by at most 0.0200", "all 1 passed"),
        (0.01, "FAILED: may be", "1 of 1 failed"),
    ):
        lines = [
            *outcome_lines(
                [*outcomes(summary, [], GateChoice(max_worse=(str(most),), allow=("useless",)), [BENCHMARK])]
            )
        ]
        assert f"by at most {most}: {said}" in lines[0]
        assert lines[-1] == f"gates: {last}"
        assert any("it is a coin" in line for line in lines[1:]) == lines[-1].endswith("passed")


def test_a_gate_on_what_cannot_be_asked_is_refused_before_anything_is() -> None:
    asked = {"synthbias": {MEASURE, "eo_gap"}, "gifi": {"index"}}
    both, alone = [*asked], {"synthbias": {MEASURE}}
    left_out = "gifi cannot be asked, as said above; another --prompt may fit, or leave it out"
    for choice in (
        GateChoice(max_missing=0.1),
        GateChoice(max_worse=("0.1",)),
        GateChoice(fail_under=("gifi.index=0.7",)),
    ):
        limits = limits_of(choice, both)
        check_asked(limits, choice, both, asked)
        with pytest.raises(ConfigError, match=f"{left_out}: --benchmarks synthbias$"):
            check_asked(limits, choice, both, alone)
    of_other = GateChoice(fail_under=(f"{MEASURE}=0.7",))
    check_asked(limits_of(of_other, both), of_other, both, alone)
    # Any measure of a benchmark, which the model must be asked in a way that has it.
    by_pronoun = GateChoice(fail_under=("synthbias.eo_gap=0.1",))
    check_asked(limits_of(by_pronoun, both), by_pronoun, both, asked)
    with pytest.raises(ConfigError, match="synthbias has no such measure as it is asked here"):
        check_asked(limits_of(by_pronoun, both), by_pronoun, both, alone)
    with pytest.raises(ConfigError, match=r"of which benchmark\? Write synthbias.eo_gap"):
        limits_of(GateChoice(fail_under=("eo_gap=0.1",)), both)
    assert limits_of(GateChoice(fail_under=("eo_gap=0.1",)), [BENCHMARK])[0].benchmark == BENCHMARK
