"""Verdicts on items and pairs, and the dataset of the accepted ones."""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from biasboard.ground.errors import DataError
from builders.dataset.output import ensure_publishable, write_dataset
from builders.synthbias.annotation.accepted import accepted_draft
from builders.synthbias.annotation.annotated import AnnotatedDataset
from builders.synthbias.annotation.deciding import (
    PairDecision,
    Policy,
    StopRule,
    are_decided_by_people,
    counting_ballots,
    decide_pairs,
    expected_reading,
)
from builders.synthbias.annotation.state import State
from builders.synthbias.annotation.votes import AnnotatorKind, Ballot, Status
from schemas import validate
from schemas.documents.dataset import Manifest, Reject
from schemas.files import row_files
from schemas.folders.dataset_folder import read_manifest, read_split
from schemas.items.coreference import CoreferenceItem
from tests.builders.annotation.made_votes import BALLOTS, active, right, state, unanimous, votes


def decided(
    annotated: AnnotatedDataset, ballots: dict[str, list[Ballot]], policy: Policy | None = None
) -> PairDecision:
    """The decision on the pair of these items, each with its ballots."""
    rows = [
        vote
        for item_id, found in ballots.items()
        for number, ballot in enumerate(found)
        for vote in votes(annotated.items[item_id], f"{item_id}-{number}", ballot)
    ]
    everybody = active(*{vote.annotator_id for vote in rows})
    pair_id = annotated.items[next(iter(ballots))].pair_id
    found = decide_pairs(annotated, state(rows, everybody), policy or Policy())
    return next(pair for pair in found if pair.pair_id == pair_id)


def sides_of(annotated: AnnotatedDataset, reading: str) -> tuple[CoreferenceItem, CoreferenceItem]:
    return next(pair.sides for pair in annotated.pairs.values() if expected_reading(pair.sides[0]) == reading)


@pytest.mark.slow
def test_a_pair_is_accepted_only_if_both_sides_are(annotated: AnnotatedDataset) -> None:
    one, other = sides_of(annotated, "first")
    good = [right(one)] * 4
    assert decided(annotated, {one.item_id: good, other.item_id: good}).verdict == "accepted"
    waiting = decided(annotated, {one.item_id: good, other.item_id: good[:3]})
    assert (waiting.verdict, [rule.name for rule, _ in waiting.rules]) == ("undecided", ["undecided"] * 2)
    assert "1 more votes needed at least" in waiting.rules[1][1]
    bad = decided(annotated, {one.item_id: good, other.item_id: [BALLOTS["incoherent"]] * 4})
    assert (bad.verdict, [rule.name for rule, _ in bad.rules]) == ("rejected", ["other_side", "incoherent"])


@pytest.mark.parametrize(
    ("expected", "voted", "rule"),
    [
        ("open", "first", "not_open"),
        ("open", "incoherent", "incoherent"),
        ("first", "second", "other_referent"),
        ("second", "first", "other_referent"),
        ("first", "open", "both_possible"),
    ],
)
def test_the_rule_that_an_item_breaks(annotated: AnnotatedDataset, expected: str, voted: str, rule: str) -> None:
    one, other = sides_of(annotated, expected)
    pair = decided(annotated, {side.item_id: [BALLOTS[voted]] * 4 for side in (one, other)})
    assert (pair.verdict, [rule.name for rule, _ in pair.rules]) == ("rejected", [rule] * 2)


def test_type_2_that_nobody_settles_is_unclear(annotated: AnnotatedDataset) -> None:
    one, other = sides_of(annotated, "first")
    split = [BALLOTS["first"]] * 3 + [BALLOTS["open"]]
    pair = decided(annotated, {side.item_id: split for side in (one, other)})
    assert [rule.name for rule, _ in pair.rules] == ["not_settled"] * 2


def test_relabelling_takes_both_sides(annotated: AnnotatedDataset) -> None:
    one, other = sides_of(annotated, "second")
    relabel = Policy(relabel=True)
    both = decided(annotated, {side.item_id: [BALLOTS["open"]] * 4 for side in (one, other)}, relabel)
    assert (both.verdict, both.is_relabelled) == ("accepted", True)
    mixed = {one.item_id: [BALLOTS["open"]] * 4, other.item_id: [BALLOTS["second"]] * 4}
    pair = decided(annotated, mixed, relabel)
    assert (pair.verdict, [rule.name for rule, _ in pair.rules]) == ("rejected", ["sides_disagree"] * 2)


def test_the_stop_rule_decides_what_is_undecided(annotated: AnnotatedDataset) -> None:
    one, other = sides_of(annotated, "open")
    three_of_four = [BALLOTS["open"]] * 3 + [BALLOTS["incoherent"]]
    ballots = {side.item_id: three_of_four for side in (one, other)}
    assert decided(annotated, ballots).verdict == "rejected"
    assert decided(annotated, ballots, Policy(stop_rule=StopRule.DECISIVE)).verdict == "undecided"


def test_only_complete_ballots_of_those_who_count_count(annotated: AnnotatedDataset) -> None:
    one, other = sides_of(annotated, "open")
    rows = [
        *votes(one, "anna", BALLOTS["open"]),
        *votes(one, "failed", BALLOTS["open"]),
        *votes(one, "new", BALLOTS["open"]),
        *votes(one, "model", BALLOTS["open"]),
        *list(votes(one, "ben", BALLOTS["open"]))[:2],
        # Put together by hand: somebody on both sides counts once.
        *votes(other, "anna", BALLOTS["open"]),
        *votes(other, "model", BALLOTS["open"]),
    ]
    annotators = {**active("anna", "ben"), **active("model", kind=AnnotatorKind.MODEL)}
    annotators["failed"] = replace(annotators["anna"], annotator_id="failed", status=Status.FAILED)
    annotators["new"] = replace(annotators["anna"], annotator_id="new", status=Status.UNTESTED)
    found = state(rows, annotators)

    def who(policy: Policy, item: CoreferenceItem) -> set[str]:
        return set(counting_ballots(found, policy).get(item.item_id, {}))

    assert (who(Policy(), one), who(Policy(), other)) == ({"anna"}, set())
    assert who(Policy(count_untested=True), one) == {"anna", "new"}
    assert (who(Policy(count_models=True), one), who(Policy(count_models=True), other)) == (
        {"anna", "model"},
        {"model"},
    )


def with_models(annotated: AnnotatedDataset, people: int, models: int) -> State:
    found = unanimous(annotated, people)
    names = [f"model-{number}" for number in range(models)]
    rows = [vote for item in annotated.items.values() for name in names for vote in votes(item, name, right(item))]
    return State((*found.rows, *rows), {**found.annotators, **active(*names, kind=AnnotatorKind.MODEL)})


def test_a_model_decides_only_when_asked_and_then_no_human_has_validated(annotated: AnnotatedDataset) -> None:
    two_and_two = with_models(annotated, 2, 2)
    assert {pair.verdict for pair in decide_pairs(annotated, two_and_two, Policy())} == {"undecided"}
    policy = Policy(count_models=True)
    accepted = decide_pairs(annotated, two_and_two, policy)
    assert {pair.verdict for pair in accepted} == {"accepted"}
    assert not are_decided_by_people(accepted, annotated, two_and_two, policy)
    four_and_two = with_models(annotated, 4, 2)
    assert are_decided_by_people(decide_pairs(annotated, four_and_two, policy), annotated, four_and_two, policy)


def written(annotated: AnnotatedDataset, found: State, folder: Path, policy: Policy | None = None) -> Manifest:
    policy = policy or Policy()
    draft = accepted_draft(
        annotated,
        found,
        policy,
        decide_pairs(annotated, found, policy),
        name="synthbias-annotated",
        version="1.0.0",
        state_folder=folder / "state",
    )
    return write_dataset(draft, folder / "out", overwrite=True)


def test_the_dataset_of_accepted_pairs(annotated: AnnotatedDataset, tmp_path: Path) -> None:
    missing = [pair.pair_id for pair in annotated.pairs.values()][:3]
    found = unanimous(annotated, leave_out=missing)
    manifest = written(annotated, found, tmp_path)
    assert list(validate.problems(tmp_path / "out")) == []
    assert read_manifest(tmp_path / "out") == manifest
    assert manifest.human_validated is True
    ensure_publishable(manifest)
    kept = [item for entry in manifest.splits for item in read_split(tmp_path / "out", entry)]
    assert kept == [item for item in annotated.items.values() if item.pair_id not in missing]
    assert {count.rule: count.n for count in manifest.rejects if count.n} == {"gap_too_small": 5, "undecided": 6}
    rejects = [
        one for one in row_files.read_rows(tmp_path / "out" / "rejects.parquet", Reject) if one.rule == "undecided"
    ]
    assert {one.candidate for one in rejects} == {
        item.sentence for item in annotated.items.values() if item.pair_id in missing
    }
    assert {entry.path for entry in manifest.files} == {
        "annotation/votes.csv",
        "annotation/annotators.csv",
        "annotation/decisions.csv",
        "source/README.md",
    }
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "20 pairs: 17 accepted, 0 rejected, 3 undecided" in card
    assert "People wrote or checked the sentences" in card


def test_released_votes_have_pseudonyms_and_no_times(annotated: AnnotatedDataset, tmp_path: Path) -> None:
    found = unanimous(annotated)
    rows = tuple(replace(vote, submitted_at="2026-03-01T10:00:00.000Z", source="secret-place") for vote in found.rows)
    reasons = {name: replace(one, reason="told me so") for name, one in found.annotators.items()}
    written(annotated, State(rows, reasons), tmp_path)
    texts = [path.read_text(encoding="utf-8") for path in (tmp_path / "out" / "annotation").iterdir()]
    for secret in ("2026", "secret-place", "told me so", ",A0,", ",B1,"):
        assert not any(secret in text for text in texts)
    with (tmp_path / "out" / "annotation" / "votes.csv").open(encoding="utf-8", newline="") as file:
        released = list(csv.DictReader(file))
    assert len(released) == len(rows)
    assert len({vote["annotator"] for vote in released}) == len(found.annotators)
    assert Counter((vote["item_id"], vote["question"], vote["answer"]) for vote in released) == Counter(
        (vote.item_id, vote.question.value, vote.answer.value) for vote in rows
    )
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    written(annotated, State(rows, reasons), tmp_path)
    assert {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()} == before


def test_relabelled_pairs_move_to_type_1(annotated: AnnotatedDataset, tmp_path: Path) -> None:
    one, _ = sides_of(annotated, "first")
    rows = [
        vote
        for item_id, item in annotated.items.items()
        for number in range(4)
        for vote in votes(
            item,
            f"{annotated.groups[item_id]}{number}",
            BALLOTS["open"] if item.pair_id == one.pair_id else right(item),
        )
    ]
    found = state(rows, unanimous(annotated).annotators)
    manifest = written(annotated, found, tmp_path, Policy(relabel=True))
    assert list(validate.problems(tmp_path / "out")) == []
    splits = {entry.config: read_split(tmp_path / "out", entry) for entry in manifest.splits}
    moved = [item for item in splits["type1"] if item.flags == ("relabelled",)]
    assert {item.item_id for item in moved} == {side.item_id for side in annotated.pairs[one.pair_id].sides}
    assert len(splits["type2"]) == len(splits["type1"]) - 4
    assert {flag.rule: flag.n for flag in manifest.flags} == {"relabelled": 2}


def test_what_must_not_be_published_stays_so_and_shows_no_rejected_text(
    annotated: AnnotatedDataset, tmp_path: Path
) -> None:
    closed = AnnotatedDataset(
        annotated.folder,
        replace(annotated.manifest, redistributable=False, publish_refusal="its licence forbids it"),
        annotated.splits,
    )
    missing = next(iter(annotated.pairs))
    manifest = written(closed, unanimous(annotated, leave_out=[missing]), tmp_path)
    assert (manifest.redistributable, manifest.publish_refusal) == (False, "its licence forbids it")
    rejects = [
        one for one in row_files.read_rows(tmp_path / "out" / "rejects.parquet", Reject) if one.rule == "undecided"
    ]
    assert [(one.candidate, one.source_row is not None) for one in rejects] == [("", True)] * 2


def test_without_an_accepted_pair_there_is_no_dataset(annotated: AnnotatedDataset, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no pair is accepted, so that there is nothing to write; collect more votes"):
        written(annotated, State((), {}), tmp_path)
