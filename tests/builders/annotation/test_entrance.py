"""The entrance test: what it holds, and how it is scored."""

from __future__ import annotations

from collections import Counter

import pytest

from builders.synthbias.annotation.annotated import AnnotatedDataset
from builders.synthbias.annotation.entrance import EXAMPLES, TEST, EntranceScore, EntranceUnit, entrance_score
from builders.synthbias.annotation.state import State
from builders.synthbias.annotation.vote_intake import EntranceRule, take_in
from builders.synthbias.annotation.votes import Ballot, VoteAnswer, VoteQuestion
from builders.synthbias.frames import open_frames, settled_frames
from builders.synthbias.mentions import masked, mentions_in, wording
from schemas.lexicon import gender_of_pronoun, occupations
from tests.builders.annotation.made_votes import BALLOTS, entrance_submissions


def test_ten_sentences_are_open_and_ten_settled_and_all_differ() -> None:
    answers = Counter(solved.answers for solved in TEST)
    assert answers == {BALLOTS["open"]: 8, BALLOTS["first"]: 4, BALLOTS["second"]: 4, BALLOTS["incoherent"]: 4}
    named = Counter(name for solved in TEST for name in (solved.sentence.first, solved.sentence.second))
    # Every occupation once, each sentence with one of either list.
    assert named == dict.fromkeys(occupations(), 1)
    for solved in (*TEST, *EXAMPLES):
        sentence = solved.sentence
        stereotypes = {occupations()[name].stereotype for name in (sentence.first, sentence.second)}
        assert stereotypes == {"male", "female"}
        assert sentence.text[sentence.pronoun_start :].startswith(sentence.pronoun)
    genders = Counter(gender_of_pronoun(solved.sentence.pronoun) for solved in TEST)
    assert genders == {"masculine": 10, "feminine": 10}
    assert [solved.answers for solved in EXAMPLES] == [BALLOTS["open"], BALLOTS["second"], BALLOTS["incoherent"]]
    assert all(solved.why for solved in EXAMPLES)


def template_of(text: str) -> str:
    """A text without its occupations and pronouns."""
    found = mentions_in(text)
    return wording(masked(text, [*found.occupations, *found.pronouns]))


def test_no_sentence_of_the_test_is_a_frame_of_the_dataset() -> None:
    frames = [*open_frames(), *settled_frames()]
    built = set()
    for frame in frames:
        built.add(template_of(frame.about("cook", "baker").filled("masculine")))
    assert len(built) == len(frames)
    for solved in (*TEST, *EXAMPLES):
        assert template_of(solved.sentence.text) not in built


def test_a_score_counts_sentences_or_answers() -> None:
    ballots = {solved.sentence.item_id: solved.answers for solved in TEST}
    assert entrance_score(ballots, EntranceUnit.ITEM) == EntranceScore(20, 20)
    # 16 coherent sentences have three answers, four have one.
    assert entrance_score(ballots, EntranceUnit.ANSWER) == EntranceScore(52, 52)
    first = TEST[0].sentence.item_id
    wrong = {**ballots, first: Ballot(True, True, False)}
    assert entrance_score(wrong, EntranceUnit.ITEM) == EntranceScore(19, 20)
    assert entrance_score(wrong, EntranceUnit.ANSWER) == EntranceScore(51, 52)
    # Answers about the pronoun of a sentence that is called incoherent do not matter.
    odd = next(solved.sentence.item_id for solved in TEST if solved.answers.coherent is False)
    incoherent = Ballot.of(
        {
            VoteQuestion.COHERENT: VoteAnswer.NO,
            VoteQuestion.FIRST: VoteAnswer.YES,
            VoteQuestion.SECOND: VoteAnswer.YES,
        }
    )
    assert entrance_score({**ballots, odd: incoherent}, EntranceUnit.ITEM) == EntranceScore(20, 20)
    assert entrance_score({**ballots, first: Ballot(True, True, None)}, EntranceUnit.ITEM) is None
    del ballots[first]
    assert entrance_score(ballots, EntranceUnit.ITEM) is None


@pytest.mark.parametrize(("wrong", "status"), [(0, "active"), (4, "active"), (5, "failed")])
def test_eighty_percent_pass(wrong: int, status: str, annotated: AnnotatedDataset) -> None:
    intake = take_in(annotated, State((), {}), entrance_submissions("anna", wrong=wrong))
    anna = intake.state.annotators["anna"]
    assert (anna.entrance, anna.status) == (f"{20 - wrong}/20", status)


def test_another_rule_judges_the_same_votes_again(annotated: AnnotatedDataset) -> None:
    state = take_in(annotated, State((), {}), entrance_submissions("anna", wrong=5)).state
    easier = take_in(annotated, state, entrance_submissions("anna", wrong=5), entrance=EntranceRule(75))
    assert (easier.n_added, easier.state.annotators["anna"].status) == (0, "active")
    by_answer = take_in(annotated, state, [], entrance=EntranceRule(75, EntranceUnit.ANSWER))
    # Four coherent sentences with three answers each and one with a single answer are wrong: 13 of 52.
    anna = by_answer.state.annotators["anna"]
    assert (anna.entrance, anna.status) == ("39/52", "active")


def test_a_score_is_compared_without_rounding() -> None:
    assert EntranceScore(16, 20).reaches(80)
    assert not EntranceScore(15, 20).reaches(80)
    assert not EntranceScore(41, 52).reaches(79)
    assert EntranceScore.parse("17/20") == EntranceScore(17, 20)
    assert EntranceScore.parse("passed") is None
