"""The files of a state, the entrance test, and who is asked what next."""

from __future__ import annotations

import csv
import stat
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

from biasboard.ground.errors import ConfigError, DataError
from builders.synthbias.annotation.annotated import AnnotatedDataset
from builders.synthbias.annotation.deciding import Policy, decide_pairs
from builders.synthbias.annotation.entrance import EXAMPLES, TEST, EntranceScore, entrance_score, status_of
from builders.synthbias.annotation.planning import (
    Request,
    batch_paths,
    chosen_batch,
    n_outstanding,
    plan_batch,
    read_batch,
    write_batch,
)
from builders.synthbias.annotation.safe_csv import read_rows, render
from builders.synthbias.annotation.state import State, pseudonyms, read_state, write_state
from builders.synthbias.annotation.vote_intake import take_in
from builders.synthbias.annotation.votes import (
    Annotator,
    AnnotatorKind,
    Ballot,
    VoteAnswer,
    VoteQuestion,
    standing_votes,
)
from builders.synthbias.frames import open_frames, settled_frames
from builders.synthbias.minimal_pairs import masked, mentions_in, wording
from schemas.lexicon import gender_of_pronoun, occupations
from tests.builders.annotation.made_votes import (
    BALLOTS,
    EMPTY,
    active,
    entrance_submissions,
    right,
    submission,
    unanimous,
    votes,
)


def test_formulas_are_text_in_the_file_and_come_back(tmp_path: Path) -> None:
    cells = ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "'=1", "'quoted", 'plain, with "marks"\nand a line', ""]
    path = tmp_path / "f.csv"
    path.write_bytes(render([f"c{n}" for n in range(len(cells))], [cells]).encode())
    with path.open(newline="", encoding="utf-8") as file:
        _, raw = csv.reader(file)
    assert [cell[0] for cell in raw[:6]] == ["'"] * 6
    _, ((_, row),) = read_rows(path, remedy="")
    assert list(row.values()) == cells


def test_votes_only_grow_and_old_bytes_stay(annotated: AnnotatedDataset, tmp_path: Path) -> None:
    first, second = list(annotated.items.values())[:2]
    name, path = '=HYPERLINK("http://evil","x")', tmp_path / "votes.csv"
    old = State(tuple(votes(first, name, BALLOTS["open"])), active(name, "ben"))
    write_state(tmp_path, EMPTY, old)
    assert read_state(tmp_path) == old
    assert ",=" not in path.read_text(encoding="utf-8")
    before = path.read_bytes()
    # An editor that leaves out the last line break does no harm.
    path.write_bytes(before.removesuffix(b"\r\n"))
    new = State((*old.rows, *votes(second, "ben", BALLOTS["incoherent"])), old.annotators)
    write_state(tmp_path, read_state(tmp_path), new)
    assert path.read_bytes().startswith(before)
    assert read_state(tmp_path) == new
    with pytest.raises(ValueError, match=r"votes\.csv only grows"):
        write_state(tmp_path, new, old)


def test_a_withdrawn_vote_makes_room_for_the_next(annotated: AnnotatedDataset) -> None:
    vote = next(votes(next(iter(annotated.items.values())), "anna", BALLOTS["open"]))
    no, withdrawn = (replace(vote, answer=answer) for answer in (VoteAnswer.NO, VoteAnswer.WITHDRAWN))
    assert standing_votes([vote, no]) == {vote.key: vote}
    assert standing_votes([vote, no, withdrawn]) == {}
    assert standing_votes([vote, no, withdrawn, no]) == {no.key: no}


def test_who_takes_a_vote_back_may_vote_on_the_other_side(annotated: AnnotatedDataset) -> None:
    one, other = (
        submission(side.item_id, "anna", BALLOTS["incoherent"]) for side in next(iter(annotated.pairs.values()))
    )
    taken_back = one._replace(answers={VoteQuestion.COHERENT: VoteAnswer.WITHDRAWN})
    sent = [vote._replace(submitted_at=str(time)) for time, vote in enumerate((one, taken_back, other))]
    assert take_in(annotated, EMPTY, sent).refused == ()
    assert [vote.refusal for vote in take_in(annotated, EMPTY, sent[::2]).refused] == ["both_sides"]


def test_a_name_is_one_person_however_it_is_typed(annotated: AnnotatedDataset, tmp_path: Path) -> None:
    ana = "Ana Mar\u00eda"
    names = (f" {ana} ", "Ana  Mari\u0301a", "Ana\u00a0Mar\u00eda", ana)
    sides = (side for side, _ in annotated.pairs.values())
    sent = [submission(side.item_id, name, BALLOTS["incoherent"]) for side, name in zip(sides, names, strict=False)]
    state = take_in(annotated, EMPTY, sent).state
    assert (set(state.annotators), len(state.rows)) == ({ana}, 4)
    write_state(tmp_path, EMPTY, state)
    # A state that an older version or an editor has written.
    path = tmp_path / "votes.csv"
    path.write_text(path.read_text(encoding="utf-8").replace(ana, f"{ana}  ", 3), encoding="utf-8")
    assert set(read_state(tmp_path).annotators) == {ana}


def test_a_state_is_a_folder(annotated: AnnotatedDataset, tmp_path: Path) -> None:
    assert read_state(tmp_path / "none") == EMPTY
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="is a file; give a folder"):
        read_state(tmp_path / "file")
    # Who only stands among the votes is untested.
    item = next(iter(annotated.items.values()))
    write_state(tmp_path, EMPTY, State(tuple(votes(item, "anna", BALLOTS["open"])), {}))
    assert read_state(tmp_path).annotators == {"anna": Annotator(annotator_id="anna", kind=AnnotatorKind.HUMAN)}


def test_pseudonyms_stay_the_same_and_follow_from_a_secret(tmp_path: Path) -> None:
    names = pseudonyms(tmp_path / "one", ["anna", "ben"])
    assert names == pseudonyms(tmp_path / "one", ["anna", "ben"])
    assert len(set(names.values())) == 2
    assert set(names.values()).isdisjoint(pseudonyms(tmp_path / "two", ["anna", "ben"]).values())
    assert stat.S_IMODE((tmp_path / "one" / "salt").stat().st_mode) == 0o600


def test_ten_sentences_of_the_test_are_open_and_ten_settled_and_all_differ() -> None:
    answers = Counter(solved.answers for solved in TEST)
    assert answers == {BALLOTS["open"]: 8, BALLOTS["first"]: 4, BALLOTS["second"]: 4, BALLOTS["incoherent"]: 4}
    # Every occupation once, each sentence with one of either list.
    assert Counter(name for one in TEST for name in (one.sentence.first, one.sentence.second)) == dict.fromkeys(
        occupations(), 1
    )
    genders = Counter(gender_of_pronoun(solved.sentence.pronoun) for solved in TEST)
    assert genders == {"masculine": 10, "feminine": 10}


def template_of(text: str) -> str:
    """A text without its occupations and pronouns."""
    found = mentions_in(text)
    return wording(masked(text, [*found.occupations, *found.pronouns]))


def test_no_sentence_of_the_test_is_a_frame_of_the_dataset() -> None:
    frames = [*open_frames(), *settled_frames()]
    built = {template_of(frame.about("cook", "baker").filled("masculine")) for frame in frames}
    assert len(built) == len(frames)
    assert built.isdisjoint(template_of(solved.sentence.text) for solved in (*TEST, *EXAMPLES))


def test_a_score_counts_sentences_all_of_whose_answers_are_right() -> None:
    right_ones = {solved.sentence.item_id: solved.answers for solved in TEST}
    first = TEST[0].sentence.item_id
    odd = next(solved.sentence.item_id for solved in TEST if solved.answers.coherent is False)
    # Answers about the pronoun of an incoherent sentence do not matter.
    answers = dict.fromkeys(VoteQuestion, VoteAnswer.YES) | {VoteQuestion.COHERENT: VoteAnswer.NO}
    for changed, score in (
        ({}, (20, 20)),
        ({first: Ballot(True, True, False)}, (19, 20)),
        ({odd: Ballot.of(answers)}, (20, 20)),
        ({first: Ballot(True, True, None)}, None),
    ):
        assert entrance_score({**right_ones, **changed}) == score
    del right_ones[first]
    assert entrance_score(right_ones) is None


def test_the_rule_judges_the_same_votes_without_rounding(annotated: AnnotatedDataset) -> None:
    for n_wrong, status in ((0, "active"), (4, "active"), (5, "failed")):
        state = take_in(annotated, EMPTY, entrance_submissions("anna", n_wrong=n_wrong)).state
        anna = state.annotators["anna"]
        assert (anna.entrance, anna.status) == (f"{20 - n_wrong}/20", status)
    easier = take_in(annotated, state, entrance_submissions("anna", n_wrong=5), entrance_percent=75)
    assert (easier.n_added, easier.state.annotators["anna"].status) == (0, "active")
    assert [status_of(EntranceScore(41, 52), percent) for percent in (78, 79)] == ["active", "failed"]
    assert (EntranceScore.parse("17/20"), EntranceScore.parse("passed")) == (EntranceScore(17, 20), None)


def planned(annotated: AnnotatedDataset, state: State, *names: str) -> list[Request]:
    return plan_batch(decide_pairs(annotated, state, Policy()), annotated.groups, state, names)


def test_the_first_batch_asks_every_sentence_four_times_and_parts_the_sides(annotated: AnnotatedDataset) -> None:
    requests = planned(annotated, EMPTY)
    assert [request.item_id for request in requests] == list(annotated.items)
    assert {request.n_votes for request in requests} == {4}
    groups = defaultdict(set)
    for request in requests:
        groups[request.pair_id].add(request.group)
    assert set(map(frozenset, groups.values())) == {frozenset("AB")}
    masculine = Counter(annotated.groups[item.item_id] for item in annotated.items.values() if item.pronoun == "he")
    assert min(masculine["A"], masculine["B"]) > 0


def test_what_is_decided_is_not_asked_nor_the_other_side_of_what_is_rejected(annotated: AnnotatedDataset) -> None:
    rejected, undecided, *_ = annotated.pairs.values()
    lost, waiting = rejected[0], undecided[0]
    found = unanimous(annotated, otherwise={lost.pair_id: None, waiting.pair_id: None})
    rows = [
        *found.rows,
        *(vote for n in range(4) for vote in votes(lost, f"A{n}", BALLOTS["incoherent"])),
        *(vote for n in range(3) for vote in votes(waiting, f"A{n}", right(waiting))),
    ]
    requests = planned(annotated, State(tuple(rows), found.annotators))
    expected = [(side.item_id, n) for side, n in zip(undecided, (1, 4), strict=True)]
    assert [(request.item_id, request.n_votes) for request in requests] == expected


def test_nobody_is_assigned_both_sides_or_a_sentence_twice(annotated: AnnotatedDataset) -> None:
    names = [f"p{n}" for n in range(9)]
    side, _ = next(iter(annotated.pairs.values()))
    state = State(tuple(votes(side, "p0", right(side))), active(*names))
    requests = planned(annotated, state, *names)
    seen = Counter((request.annotator_id, request.pair_id) for request in requests)
    seen["p0", side.pair_id] += 1
    assert max(seen.values()) == 1
    per_item = Counter(request.item_id for request in requests)
    assert per_item[side.item_id] == 3
    assert set(per_item.values()) == {3, 4}
    loads = Counter(request.annotator_id for request in requests)
    assert max(loads.values()) - min(loads.values()) <= 2
    # Too few annotators are spread over both sides.
    assert Counter(request.item_id for request in planned(annotated, EMPTY, "anna", "ben")) == dict.fromkeys(
        annotated.items, 1
    )


def test_batches_are_numbered_and_the_same_plan_is_no_new_batch(annotated: AnnotatedDataset, tmp_path: Path) -> None:
    requests = planned(annotated, EMPTY)
    first = write_batch(tmp_path, requests)
    assert (first.name, write_batch(tmp_path, requests)) == ("0001.csv", first)
    assert read_batch(first) == requests
    second = write_batch(tmp_path, requests[:4])
    assert [path.name for path in batch_paths(tmp_path)] == ["0001.csv", "0002.csv"]
    assert (chosen_batch(tmp_path, None), chosen_batch(tmp_path, 1)) == (second, first)
    with pytest.raises(ConfigError, match="no batch 3 here; have: 0001, 0002"):
        chosen_batch(tmp_path, 3)
    second.write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"0002\.csv:1: has the columns a,b, not item_id.*; remove it"):
        read_batch(second)


def test_outstanding_votes_are_counted(annotated: AnnotatedDataset) -> None:
    requests = planned(annotated, EMPTY)[:2]
    (one, other) = (request.item_id for request in requests)
    assert n_outstanding(requests, {}) == 8
    assert n_outstanding(requests, {one: 6, other: 1}) == 3
