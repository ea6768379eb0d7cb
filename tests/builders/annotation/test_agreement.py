"""Agreement, cost and yield, counted again with plain loops."""

from __future__ import annotations

import itertools
import sys
from collections import Counter

import numpy as np
import pytest

from builders.synthbias.annotation.agreement import agreement_on, make_report
from builders.synthbias.annotation.annotated import AnnotatedDataset
from builders.synthbias.annotation.deciding import Policy, decide_pairs
from builders.synthbias.annotation.state import State
from builders.synthbias.annotation.votes import AnnotatorKind, Ballot, VoteQuestion
from tests.builders.annotation.made_votes import BALLOTS, active, right, unanimous, votes


def alpha_by_loops(items: list[list[bool]]) -> float:
    """Krippendorff's alpha of nominal data by its definition: observed over expected disagreement of pairs."""
    items = [answers for answers in items if len(answers) >= 2]
    everything = [answer for answers in items for answer in answers]
    n = len(everything)
    observed = sum(
        sum(one != other for one, other in itertools.permutations(answers, 2)) / (len(answers) - 1) for answers in items
    )
    totals = Counter(everything)
    expected = 2 * totals[True] * totals[False] / (n - 1)
    return 1 - observed / expected


@pytest.fixture
def ballots() -> dict[str, dict[str, Ballot]]:
    rng = np.random.default_rng(3)
    found: dict[str, dict[str, Ballot]] = {}
    for item in range(30):
        lean = rng.random()
        found[f"i{item}"] = {
            f"p{person}": Ballot(True, bool(rng.random() < lean), bool(rng.random() < 0.5))
            if rng.random() < 0.9
            else BALLOTS["incoherent"]
            for person in range(int(rng.integers(0, 6)))
        }
    return found


@pytest.mark.parametrize("question", list(VoteQuestion))
def test_alpha_and_agreement_are_those_of_plain_loops(
    question: VoteQuestion, ballots: dict[str, dict[str, Ballot]]
) -> None:
    pytest.importorskip("krippendorff", reason="the extra 'agreement' is not installed")
    answers = [
        [
            bool(getattr(ballot, question))
            for ballot in found.values()
            if ballot.coherent or question is VoteQuestion.COHERENT
        ]
        for found in ballots.values()
    ]
    found = agreement_on(question, ballots)
    assert found.krippendorff_alpha == pytest.approx(alpha_by_loops(answers))
    shared = [one for one in answers if len(one) >= 2]
    agreeing = [
        sum(a == b for a, b in itertools.combinations(one, 2)) / (len(one) * (len(one) - 1) / 2) for one in shared
    ]
    assert found.percent_agreement == pytest.approx(sum(agreeing) / len(agreeing))
    assert (found.n_items, found.n_votes) == (len(shared), sum(map(len, answers)))
    assert found.yes_rate == pytest.approx(sum(map(sum, answers)) / found.n_votes)


def test_alpha_of_a_published_table() -> None:
    pytest.importorskip("krippendorff", reason="the extra 'agreement' is not installed")
    # Two observers and ten units: Krippendorff 2011, Computing Krippendorff's Alpha-Reliability, part A.
    one = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0]
    other = [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    ballots = {
        f"u{unit}": {"a": Ballot(bool(a), True, True), "b": Ballot(bool(b), True, True)}
        for unit, (a, b) in enumerate(zip(one, other, strict=True))
    }
    found = agreement_on(VoteQuestion.COHERENT, ballots)
    assert found.krippendorff_alpha == pytest.approx(0.095, abs=5e-4)
    assert found.percent_agreement == 0.6


def test_an_unknown_alpha_has_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = agreement_on(VoteQuestion.COHERENT, {"i": {"a": BALLOTS["open"]}})
    assert (nobody.krippendorff_alpha, nobody.alpha_reason) == (None, "no item has two votes")
    same = agreement_on(VoteQuestion.COHERENT, {"i": {"a": BALLOTS["open"], "b": BALLOTS["open"]}})
    assert same.percent_agreement == 1
    assert same.krippendorff_alpha is None
    assert "all votes are the same" in str(same.alpha_reason)
    monkeypatch.setitem(sys.modules, "krippendorff", None)
    missing = agreement_on(VoteQuestion.FIRST, {"i": {"a": BALLOTS["first"], "b": BALLOTS["second"]}})
    assert missing.krippendorff_alpha is None
    assert "install the extra 'agreement'" in str(missing.alpha_reason)


@pytest.mark.slow
def test_a_report_counts_items_pairs_and_colleagues(annotated: AnnotatedDataset) -> None:
    pairs = list(annotated.pairs.values())
    found = unanimous(annotated, leave_out=[pairs[0].pair_id])
    contrary = [
        vote
        for item in list(annotated.items.values())[2:12]
        if annotated.groups[item.item_id] == "A"
        for vote in votes(item, "contrary", BALLOTS["incoherent"])
    ]
    model = list(votes(pairs[1].sides[0], "model", right(pairs[1].sides[0])))
    annotators = {**found.annotators, **active("contrary"), **active("model", kind=AnnotatorKind.MODEL)}
    state = State((*found.rows, *contrary, *model), annotators)
    report = make_report(annotated, state, Policy(), decide_pairs(annotated, state, Policy()))
    assert report.votes_per_item == {0: 2, 4: 38 - len(contrary), 5: len(contrary)}
    one, two = report.yields
    assert (one.type, one.n_pairs, one.n_pairs_accepted) == ("type1", 10, 9)
    assert (one.n_items, one.n_undecided, two.n_items, two.n_undecided) == (20, 2, 20, 0)
    assert report.rejects == {"undecided": 2}
    by_name = {entry.annotator_id: entry for entry in report.annotators}
    assert by_name["contrary"].agreement_rate == 0
    assert by_name["contrary"].n_compared == len(contrary)
    assert (by_name["model"].counts, by_name["model"].agreement_rate, by_name["model"].n_items) == (False, 1, 1)
    assert by_name["A0"].agreement_rate == 1
