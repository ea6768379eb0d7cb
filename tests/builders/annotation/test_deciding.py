"""Thresholds, verdicts on items and pairs, the dataset of the accepted ones, and agreement, counted again plainly."""

from __future__ import annotations

import csv
import itertools
import sys
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from biasboard.ground.errors import DataError
from builders.dataset.output import write_dataset
from builders.publishable import check_manifest
from builders.synthbias.annotation import deciding
from builders.synthbias.annotation.accepted import accepted_draft
from builders.synthbias.annotation.agreement import agreement_on, report_lines
from builders.synthbias.annotation.annotated import AnnotatedDataset
from builders.synthbias.annotation.deciding import (
    Count,
    Expected,
    Policy,
    StopRule,
    VoteTally,
    decide_pairs,
    is_accepted,
    is_enough,
)
from builders.synthbias.annotation.state import State
from builders.synthbias.annotation.votes import AnnotatorKind, Ballot, Status, VoteQuestion
from schemas import validate
from schemas.documents.dataset import Manifest, Reject
from schemas.files import row_files
from schemas.folders.dataset_folder import read_manifest, read_split
from schemas.items.coreference import CoreferenceItem
from tests.builders.annotation.made_votes import BALLOTS, EMPTY, active, right, unanimous, votes

CLEAR, PAPER = StopRule.CLEAR, StopRule.PAPER


def test_the_inequalities_are_those_of_fractions() -> None:
    for n in range(40):
        for yes in range(n + 1):
            # Without votes, nothing holds.
            share, count = Fraction(yes, n) if n else Fraction(1, 2), Count(yes, n)
            assert count.above_three_quarters == (share > Fraction(3, 4))
            assert count.at_least_three_quarters == (share >= Fraction(3, 4))
            assert count.below_one_quarter == (share < Fraction(1, 4))
            assert count.is_consensus == (max(share, 1 - share) >= Fraction(3, 4))


def tally_of(counts: str) -> VoteTally:
    """The tally of ``yes/n`` for each question."""
    return VoteTally(*(Count(*map(int, count.split("/"))) for count in counts.split()))


@pytest.mark.parametrize(
    ("counts", "expected", "enough", "accepted"),
    [
        # 75 is not more than 75, and 25 is not less than 25.
        ("3/4 3/3 3/3", "open", True, False),
        ("4/4 3/4 3/4", "open", True, True),
        ("4/4 4/4 1/4", "first", True, False),
        ("4/4 3/4 0/4", "first", True, True),
        ("4/4 0/4 4/4", "first", True, False),
        ("4/4 2/4 4/4", "open", False, False),
        ("10/10 8/10 2/10", "first", True, True),
        # After ten votes nobody is asked, and below four everybody.
        ("10/10 7/10 5/10", "first", True, False),
        ("3/3 3/3 3/3", "open", False, True),
        # Where 75 % say no, nothing else need agree.
        ("1/4 1/1 0/1", "open", True, False),
    ],
)
def test_the_boundary_cases(counts: str, expected: Expected, enough: bool, accepted: bool) -> None:
    assert is_enough(tally_of(counts), PAPER) == enough
    assert is_accepted(tally_of(counts), expected) == accepted


def futures(tally: VoteTally, n: int) -> set[VoteTally]:
    """Every tally after n more ballots, by going through them one by one."""
    found = {tally}
    for _ in range(n):
        found = {
            VoteTally(
                Count(one.coherent.yes + coherent, one.coherent.n + 1),
                Count(one.first.yes + (coherent and first), one.first.n + coherent),
                Count(one.second.yes + (coherent and second), one.second.n + coherent),
            )
            for one in found
            for coherent, first, second in itertools.product((0, 1), repeat=3)
        }
    return found


def tallies(n: int) -> list[VoteTally]:
    return sorted(futures(tally_of("0/0 0/0 0/0"), n))


@pytest.mark.parametrize(
    ("counts", "enough"),
    [
        # What the paper's rule stops at and rejects goes on.
        ("3/4 3/3 3/3", False),
        ("4/4 4/4 1/4", False),
        ("4/5 4/4 0/4", True),
        ("4/4 3/4 0/4", True),
        ("4/4 3/4 3/4", True),
        ("4/4 2/4 4/4", False),
        ("3/3 3/3 3/3", False),
        ("1/4 1/1 0/1", False),
        ("0/4 0/0 0/0", True),
        ("1/5 1/1 0/1", True),
        ("10/10 7/10 5/10", True),
    ],
)
def test_clear_stops_where_no_answer_lies_between_the_shares_of_the_verdict(counts: str, enough: bool) -> None:
    assert is_enough(tally_of(counts), CLEAR) == enough


def share_accepted(
    rng: np.random.Generator, rule: StopRule, chances: tuple[float, float, float]
) -> tuple[float, float]:
    """The share of simulated pairs of type 2 that are accepted, and the mean number of votes on a side.

    ``chances`` are those of finding the sentence coherent, and of saying that either occupation can be meant.
    """
    n_pairs, n_accepted, n_votes = 400, 0, 0
    for _ in range(n_pairs):
        readings = []
        for _ in range(2):
            tally = tally_of("0/0 0/0 0/0")
            while not is_enough(tally, rule):
                coherent, first, second = (rng.random(3) < chances).tolist()
                tally = VoteTally(
                    Count(tally.coherent.yes + coherent, tally.coherent.n + 1),
                    Count(tally.first.yes + (coherent and first), tally.first.n + coherent),
                    Count(tally.second.yes + (coherent and second), tally.second.n + coherent),
                )
            readings.append(deciding.reading_of(tally))
            n_votes += tally.coherent.n
        n_accepted += readings == ["first", "first"]
    return n_accepted / n_pairs, n_votes / 2 / n_pairs


@pytest.mark.slow
def test_the_default_rule_keeps_good_pairs_and_no_bad_ones_with_few_votes() -> None:
    rng = np.random.default_rng(3)
    assert Policy().stop_rule is CLEAR
    good = 0.97, 0.97, 0.03
    kept, votes = share_accepted(rng, CLEAR, good)
    assert kept > 0.97
    assert votes < 5
    assert share_accepted(rng, PAPER, good)[0] < 0.75
    for bad in ((0.97, 0.97, 0.97), (0.97, 0.03, 0.97), (0.03, 0.5, 0.5)):
        assert share_accepted(rng, CLEAR, bad)[0] == 0
    # Where half of all say that the other occupation can be meant too.
    assert share_accepted(rng, CLEAR, (0.97, 0.97, 0.5))[0] < 0.1


@pytest.mark.parametrize("rule", list(StopRule))
def test_votes_asked_at_once_are_never_in_vain(rule: StopRule) -> None:
    for n in (0, 2, 4, 5, 7):
        for tally in tallies(n)[::3]:
            asked = deciding.votes_to_ask(tally, rule)
            assert (asked == 0) == is_enough(tally, rule)
            assert n + asked <= deciding.MAX_VOTES
            for fewer in range(1, asked):
                assert not any(is_enough(after, rule) for after in futures(tally, fewer))
            assert not asked or any(is_enough(after, rule) for after in futures(tally, asked))


def sides_of(annotated: AnnotatedDataset, reading: str) -> tuple[CoreferenceItem, CoreferenceItem]:
    return next(sides for sides in annotated.pairs.values() if deciding.expected_reading(sides[0]) == reading)


RELABEL = Policy(relabel=True)
SPLIT, DOUBTED = ["first", "first", "first", "open"], ["open", "open", "open", "incoherent"]


@pytest.mark.parametrize(
    ("expected", "one", "other", "policy", "verdict", "rules"),
    [
        ("first", ["first"] * 4, ["first"] * 4, Policy(), "accepted", []),
        ("first", ["first"] * 4, ["first"] * 3, Policy(), "undecided", ["undecided"] * 2),
        ("first", ["first"] * 4, ["incoherent"] * 4, Policy(), "rejected", ["other_side", "incoherent"]),
        ("open", ["first"] * 4, ["first"] * 4, Policy(), "rejected", ["not_open"] * 2),
        ("first", ["second"] * 4, ["second"] * 4, Policy(), "rejected", ["other_referent"] * 2),
        ("first", ["second"] * 4, ["second"] * 4, RELABEL, "rejected", ["other_referent"] * 2),
        ("first", ["open"] * 4, ["open"] * 4, Policy(), "rejected", ["both_possible"] * 2),
        ("first", SPLIT, SPLIT, Policy(stop_rule=PAPER), "rejected", ["not_settled"] * 2),
        ("second", ["open"] * 4, ["open"] * 4, RELABEL, "accepted", []),
        ("second", ["open"] * 4, ["second"] * 4, RELABEL, "rejected", ["sides_disagree"] * 2),
        ("open", DOUBTED, DOUBTED, Policy(stop_rule=PAPER), "rejected", ["incoherent"] * 2),
        ("open", DOUBTED, DOUBTED, Policy(), "undecided", ["undecided"] * 2),
    ],
)
def test_both_sides_of_a_pair_are_accepted_or_the_rules_that_they_break_are_named(
    expected: str,
    one: list[str],
    other: list[str],
    policy: Policy,
    verdict: str,
    rules: list[str],
    annotated: AnnotatedDataset,
) -> None:
    rows = [
        vote
        for side, ballots in zip(sides_of(annotated, expected), (one, other), strict=True)
        for number, ballot in enumerate(ballots)
        for vote in votes(side, f"{side.item_id}-{number}", BALLOTS[ballot])
    ]
    state = State(tuple(rows), active(*{vote.annotator_id for vote in rows}))
    pair = next(pair for pair in decide_pairs(annotated, state, policy) if pair.pair_id == rows[0].pair_id)
    assert (pair.verdict, [rule.name for rule, _ in pair.rules]) == (verdict, rules)
    assert pair.is_relabelled == (verdict == "accepted" and policy.relabel)
    if len(other) == 3:
        assert "1 more votes needed at least" in pair.rules[1][1]


def test_only_complete_ballots_of_those_who_count_count(annotated: AnnotatedDataset) -> None:
    one, other = sides_of(annotated, "open")
    rows = [
        *(vote for name in ("anna", "failed", "new", "model") for vote in votes(one, name, BALLOTS["open"])),
        *list(votes(one, "ben", BALLOTS["open"]))[:2],
        # Put together by hand: somebody on both sides counts once.
        *votes(other, "anna", BALLOTS["open"]),
        *votes(other, "model", BALLOTS["open"]),
    ]
    annotators = {**active("anna", "ben", "failed", "new"), **active("model", kind=AnnotatorKind.MODEL)}
    for name, status in (("failed", Status.FAILED), ("new", Status.UNTESTED)):
        annotators[name] = replace(annotators[name], status=status)
    state = State(tuple(rows), annotators)

    def who(policy: Policy) -> tuple[set[str], set[str]]:
        ballots = deciding.counting_ballots(state, policy)
        return set(ballots.get(one.item_id, {})), set(ballots.get(other.item_id, {}))

    assert who(Policy()) == ({"anna"}, set())
    assert who(Policy(count_untested=True)) == ({"anna", "new"}, set())
    assert who(Policy(count_models=True)) == ({"anna", "model"}, {"model"})


def test_a_model_decides_only_when_asked_and_then_no_human_has_validated(annotated: AnnotatedDataset) -> None:
    policy = Policy(count_models=True)
    for n_people, verdict, by_people in ((2, "undecided", False), (4, "accepted", True)):
        people = unanimous(annotated, n_people)
        models = [
            vote
            for item in annotated.items.values()
            for name in ("m1", "m2")
            for vote in votes(item, name, right(item))
        ]
        state = State((*people.rows, *models), {**people.annotators, **active("m1", "m2", kind=AnnotatorKind.MODEL)})
        assert {pair.verdict for pair in decide_pairs(annotated, state, Policy())} == {verdict}
        accepted = decide_pairs(annotated, state, policy)
        assert {pair.verdict for pair in accepted} == {"accepted"}
        assert deciding.are_decided_by_people(accepted, annotated, state, policy) == by_people


def written(annotated: AnnotatedDataset, state: State, folder: Path, policy: Policy | None = None) -> Manifest:
    policy = policy or Policy()
    decisions = decide_pairs(annotated, state, policy)
    named = {"name": "synthbias-annotated", "version": "1.0.0", "state_folder": folder / "state"}
    draft = accepted_draft(annotated, state, policy, decisions, **named)  # type: ignore[arg-type]
    return write_dataset(draft, folder / "out", overwrite=True)


def undecided_in(folder: Path) -> list[Reject]:
    return [one for one in row_files.read_rows(folder / "rejects.parquet", Reject) if one.rule == "undecided"]


def test_the_dataset_of_accepted_pairs(annotated: AnnotatedDataset, tmp_path: Path) -> None:
    missing = list(annotated.pairs)[:3]
    manifest = written(annotated, unanimous(annotated, otherwise=dict.fromkeys(missing)), tmp_path)
    assert list(validate.problems(tmp_path / "out")) == []
    assert read_manifest(tmp_path / "out") == manifest
    assert manifest.human_validated is True
    check_manifest(manifest)
    kept = [item for entry in manifest.splits for item in read_split(tmp_path / "out", entry)]
    assert kept == [item for item in annotated.items.values() if item.pair_id not in missing]
    assert {count.rule: count.n for count in manifest.rejects if count.n} == {"gap_too_small": 5, "undecided": 6}
    left_out = {item.sentence for item in annotated.items.values() if item.pair_id in missing}
    assert {one.candidate for one in undecided_in(tmp_path / "out")} == left_out
    assert {entry.path for entry in manifest.files} == {
        *("annotation/votes.csv", "annotation/annotators.csv", "annotation/decisions.csv", "source/README.md")
    }
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "20 pairs: 17 accepted, 0 rejected, 3 undecided" in card
    assert "People wrote or checked the sentences" in card


def test_released_votes_have_pseudonyms_and_no_times(annotated: AnnotatedDataset, tmp_path: Path) -> None:
    found = unanimous(annotated)
    rows = tuple(replace(vote, submitted_at="2026-03-01T10:00:00.000Z", source="secret-place") for vote in found.rows)
    state = State(rows, {name: replace(one, reason="told me so") for name, one in found.annotators.items()})
    written(annotated, state, tmp_path)
    texts = [path.read_text(encoding="utf-8") for path in (tmp_path / "out" / "annotation").iterdir()]
    for secret in ("2026", "secret-place", "told me so", ",A0,", ",B1,"):
        assert not any(secret in text for text in texts)
    with (tmp_path / "out" / "annotation" / "votes.csv").open(encoding="utf-8", newline="") as file:
        released = list(csv.DictReader(file))
    assert len({vote["annotator"] for vote in released}) == len(found.annotators)
    assert Counter((vote["item_id"], vote["question"], vote["answer"]) for vote in released) == Counter(
        (vote.item_id, vote.question.value, vote.answer.value) for vote in rows
    )
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    written(annotated, state, tmp_path)
    assert {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()} == before


def test_relabelled_pairs_move_to_type_1(annotated: AnnotatedDataset, tmp_path: Path) -> None:
    pair_id = sides_of(annotated, "first")[0].pair_id
    manifest = written(annotated, unanimous(annotated, otherwise={pair_id: BALLOTS["open"]}), tmp_path, RELABEL)
    assert list(validate.problems(tmp_path / "out")) == []
    splits = {entry.config: read_split(tmp_path / "out", entry) for entry in manifest.splits}
    moved = [item for item in splits["type1"] if item.flags == ("relabelled",)]
    assert {item.item_id for item in moved} == {side.item_id for side in annotated.pairs[pair_id]}
    assert len(splits["type2"]) == len(splits["type1"]) - 4
    assert {flag.rule: flag.n for flag in manifest.flags} == {"relabelled": 2}


def test_what_must_not_be_published_stays_so_and_shows_no_rejected_text(
    annotated: AnnotatedDataset, tmp_path: Path
) -> None:
    closed = replace(annotated.manifest, redistributable=False, publish_refusal="its licence forbids it")
    found = unanimous(annotated, otherwise={next(iter(annotated.pairs)): None})
    manifest = written(AnnotatedDataset(annotated.folder, closed, annotated.splits), found, tmp_path)
    assert (manifest.redistributable, manifest.publish_refusal) == (False, "its licence forbids it")
    rejects = undecided_in(tmp_path / "out")
    assert [(one.candidate, one.source_row is not None) for one in rejects] == [("", True)] * 2
    # Without an accepted pair there is no dataset.
    with pytest.raises(DataError, match="no pair is accepted, so that there is nothing to write; collect more votes"):
        written(annotated, EMPTY, tmp_path)


def test_alpha_of_a_published_table() -> None:
    pytest.importorskip("krippendorff", reason="the extra 'agreement' is not installed")
    # Two observers and ten units: Krippendorff 2011, Computing Krippendorff's Alpha-Reliability, part A.
    ballots = {
        f"u{unit}": {"a": Ballot(a == "1", True, True), "b": Ballot(b == "1", True, True)}
        for unit, (a, b) in enumerate(zip("0100000010", "1110010000", strict=True))
    }
    found = agreement_on(VoteQuestion.COHERENT, ballots)
    assert found.krippendorff_alpha == pytest.approx(0.095, abs=5e-4)
    assert (found.percent_agreement, found.yes_rate, found.n_items, found.n_votes) == (0.6, 0.3, 10, 20)
    # Three votes on one sentence, and one on another, of which only the first has pairs: one of three agrees.
    mixed = [BALLOTS[name] for name in ("open", "second", "incoherent", "first")]
    of_items = {"i": {str(number): ballot for number, ballot in enumerate(mixed)}, "j": {"0": BALLOTS["open"]}}
    found = agreement_on(VoteQuestion.FIRST, of_items)
    assert (found.n_items, found.n_votes, found.yes_rate) == (1, 4, 0.75)
    assert found.percent_agreement == pytest.approx(1 / 3)


def test_an_unknown_alpha_has_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "krippendorff", None)
    for names, agreement, reason in (
        (["open"], None, "no item has two votes"),
        (["open", "open"], 1, "all votes are the same"),
        (["first", "second"], 0, "install the extra 'agreement'"),
    ):
        found = agreement_on(VoteQuestion.FIRST, {"i": {str(n): BALLOTS[name] for n, name in enumerate(names)}})
        assert (found.krippendorff_alpha, found.percent_agreement) == (None, agreement)
        assert reason in str(found.alpha_reason)


def test_a_report_compares_each_annotator_with_the_majority_of_the_others(annotated: AnnotatedDataset) -> None:
    items = list(annotated.items.values())
    rows = [vote for name in "abc" for item in items[:4] for vote in votes(item, name, right(item))]
    rows += [vote for item in items[:2] for vote in votes(item, "contrary", BALLOTS["incoherent"])]
    state = State(tuple(rows), active("a", "b", "c", "contrary"))
    cells = [line.split() for line in report_lines(annotated, state, Policy()) if line]
    assert [row[5:] for row in cells if row[0] in state.annotators] == [[*["4", "100.0", "%"]]] * 3 + [
        ["2", "0.0", "%"]
    ]
    # Nobody belongs to the majority of the others.
    (item, *_) = items
    of_two = State((*votes(item, "a", BALLOTS["open"]), *votes(item, "b", BALLOTS["incoherent"])), active("a", "b"))
    cells = [line.split() for line in report_lines(annotated, of_two, Policy()) if line]
    assert [row[5:] for row in cells if row[0] in ("a", "b")] == [["1", "0.0", "%"]] * 2
