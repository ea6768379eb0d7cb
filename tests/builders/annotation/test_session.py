"""The work of one annotator, and the server that the page asks."""

from __future__ import annotations

import csv
import http.client
import json
import stat
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from biasboard.ground.errors import ConfigError, DataError
from builders.synthbias.annotation import planning
from builders.synthbias.annotation.annotated import AnnotatedDataset, asked_id
from builders.synthbias.annotation.deciding import Policy, decide_pairs
from builders.synthbias.annotation.entrance import EXAMPLES, TEST, EntranceScore, entrance_score, status_of
from builders.synthbias.annotation.safe_csv import read_rows, render
from builders.synthbias.annotation.session import Session, Turn, sampled_pairs
from builders.synthbias.annotation.state import State, locked, pseudonyms, read_state, write_state
from builders.synthbias.annotation.vote_intake import take_in
from builders.synthbias.annotation.vote_page import MOST_BYTES, open_server, turn_json
from builders.synthbias.annotation.votes import (
    Annotator,
    AnnotatorKind,
    Ballot,
    VoteAnswer,
    VoteQuestion,
    standing_votes,
)
from builders.synthbias.embedded import open_frames, settled_frames
from builders.synthbias.minimal_pairs import masked, mentions_in, wording
from schemas.lexicon import gender_of_pronoun, occupations
from tests.builders.annotation import made_votes
from tests.builders.annotation.made_votes import BALLOTS, EMPTY, active, answers, entrance_submissions, right, votes


def session(annotated: AnnotatedDataset, folder: Path, name: str = "anna", n_pairs: int | None = 5) -> Session:
    times = (datetime(2026, 3, 1, tzinfo=UTC) + timedelta(seconds=n) for n in range(10_000))
    return Session(
        annotated=annotated,
        folder=folder,
        annotator_id=name,
        pairs=sampled_pairs(annotated, n_pairs, 0),
        now=lambda: next(times),
    )


def pass_test(found: Session) -> Turn:
    for solved in TEST:
        turn = found.vote(solved.sentence.item_id, answers(solved.answers))
    return turn


def answer_right(found: Session, turn: Turn) -> Turn:
    assert turn.sentence is not None
    return found.vote(turn.sentence.item_id, answers(right(found.annotated.items[turn.sentence.item_id])))


def test_the_test_comes_first_then_the_side_with_fewer_votes(annotated: AnnotatedDataset, tmp_path: Path) -> None:
    found = session(annotated, tmp_path)
    first = found.turn()
    assert (first.phase, first.done, first.total, first.can_undo) == ("entrance", 0, 20, False)
    turn = pass_test(found)
    assert (turn.phase, turn.done, turn.total, turn.annotator.entrance) == ("items", 0, 5, "20/20")
    # Each vote is written at once, and what another process writes is kept.
    assert len(read_state(tmp_path).rows) == 52
    with locked(tmp_path):
        state = read_state(tmp_path)
        write_state(tmp_path, state, take_in(annotated, state, entrance_submissions("ben")).state)
    asked = {}
    while turn.sentence is not None:
        asked[turn.sentence.pair_id] = turn.sentence.item_id
        turn = answer_right(found, turn)
    assert (turn.phase, turn.done, turn.total) == ("done", 5, 5)
    assert sorted(asked) == sorted(found.pairs)
    assert {vote.annotator_id for vote in read_state(tmp_path).rows} == {"anna", "ben"}
    # A new process goes on where the last one stopped.
    assert session(annotated, tmp_path).turn() == turn
    # The second annotator gets the side with fewer votes.
    found = session(annotated, tmp_path, "ben")
    turn = found.turn()
    for _ in range(5):
        assert turn.sentence is not None
        assert asked.pop(turn.sentence.pair_id) != turn.sentence.item_id
        turn = answer_right(found, turn)
    assert asked == {}


def test_undo_asks_the_last_sentence_again(annotated: AnnotatedDataset, tmp_path: Path) -> None:
    found = session(annotated, tmp_path)
    one, two = TEST[0].sentence.item_id, TEST[1].sentence.item_id
    found.vote(one, answers(BALLOTS["incoherent"]))
    found.vote(two, answers(TEST[1].answers))
    assert found.undo().sentence == TEST[1].sentence
    assert found.undo().sentence == TEST[0].sentence
    with pytest.raises(DataError, match="nothing can be taken back"):
        found.undo()
    turn = pass_test(found)
    assert turn.annotator.entrance == "20/20"
    # A finished test cannot be changed.
    assert turn.can_undo is False
    with pytest.raises(DataError, match="nothing can be taken back"):
        found.undo()
    asked = turn.sentence
    answer_right(found, turn)
    assert found.undo().sentence == asked
    withdrawn = [vote for vote in read_state(tmp_path).rows if vote.answer is VoteAnswer.WITHDRAWN]
    assert len(withdrawn) == 1 + len(answers(TEST[1].answers)) + 3


def test_a_vote_that_is_not_asked_for_is_refused_and_who_fails_the_test_is_asked_nothing_more(
    annotated: AnnotatedDataset, tmp_path: Path
) -> None:
    found = session(annotated, tmp_path)
    with pytest.raises(DataError, match="item 'entrance-02' is not asked now; load the page again"):
        found.vote("entrance-02", answers(BALLOTS["open"]))
    for given in (answers(Ballot(True, None, True)), dict.fromkeys(VoteQuestion, VoteAnswer.WITHDRAWN)):
        with pytest.raises(DataError, match="a question is not answered"):
            found.vote("entrance-01", given)
    assert read_state(tmp_path).rows == ()
    for solved in TEST:
        turn = found.vote(solved.sentence.item_id, answers(BALLOTS["incoherent"]))
    assert (turn.phase, turn.sentence, turn.can_undo) == ("failed", None, False)
    assert turn.annotator.reason == "entrance test: 4/20, less than 80 percent"


def test_decided_pairs_are_not_asked(annotated: AnnotatedDataset, tmp_path: Path) -> None:
    left = next(iter(annotated.pairs))
    state = made_votes.unanimous(annotated, otherwise={left: None})
    write_state(tmp_path, EMPTY, State(state.rows, {**state.annotators, **active("anna")}))
    turn = session(annotated, tmp_path, n_pairs=None).turn()
    assert (turn.total, turn.sentence and turn.sentence.pair_id) == (1, left)


def test_the_page_names_a_sentence_by_an_id_that_tells_nothing(annotated: AnnotatedDataset, tmp_path: Path) -> None:
    write_state(tmp_path, EMPTY, State((), active("anna")))
    found = session(annotated, tmp_path, n_pairs=1)
    sentence = found.turn().sentence
    assert sentence is not None
    given = asked_id(sentence.item_id)
    sent = json.dumps(turn_json(found.turn()))
    assert given in sent
    assert not any(word in sent for word in (sentence.item_id, "type1", "type2", "masculine", "feminine"))
    assert found.vote(given, answers(BALLOTS["open"])).phase == "done"
    assert {vote.item_id for vote in read_state(tmp_path).rows} == {sentence.item_id}


class Client:
    """A client that says about itself what a test wants."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self.host, self.root = parts.netloc, parts.path

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection(self.host, timeout=10)
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        sent = {"Host": self.host, **headers}
        connection.request(method, path, body=data, headers={name.replace("_", "-"): sent[name] for name in sent})
        reply = connection.getresponse()
        found = (reply.status, dict(reply.getheaders()), reply.read())
        connection.close()
        return found

    def post(self, body: Any, **headers: str) -> tuple[int, Any]:
        own = {"Origin": f"http://{self.host}", "Content_Type": "application/json", **headers}
        status, _, content = self.ask("POST", self.root + "vote", body, **own)
        return status, json.loads(content) if content.startswith(b"{") else content


@pytest.fixture
def client(annotated: AnnotatedDataset, tmp_path: Path) -> Iterator[Client]:
    with made_votes.serving(session(annotated, tmp_path / "state")) as address:
        yield Client(address)


@pytest.mark.slow
def test_the_server_answers_behind_its_token_and_to_its_own_name_alone(client: Client) -> None:
    status, headers, page = client.ask("GET", client.root)
    assert status == 200
    assert b"<title>Annotation</title>" in page
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["Referrer-Policy"] == "no-referrer"
    for path in ("/", "/turn", "/x/turn", client.root[:-2] + "/", client.root + "page.py", client.root + "../secret"):
        assert client.ask("GET", path)[0] == 404, path
    assert len(client.root.strip("/")) >= 32
    port = client.host.rpartition(":")[2]
    assert client.ask("GET", client.root + "turn", Host=f"localhost:{port}")[0] == 200
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1:1", f"127.0.0.1.evil.example:{port}"):
        assert client.ask("GET", client.root + "turn", Host=host)[0] == 421


@pytest.mark.slow
def test_votes_of_another_page_nonsense_and_floods_are_refused(client: Client, tmp_path: Path) -> None:
    no = {"coherent": "no"}
    vote = {"item_id": "entrance-01", "answers": no}
    assert client.post(vote, Origin="http://evil.example")[0] == 403
    assert client.post(vote, Origin="null")[0] == 403
    assert client.ask("POST", client.root + "vote", vote, Content_Type="application/json")[0] == 403
    assert client.post(vote, Content_Type="text/plain")[0] == 415
    assert client.ask("GET", client.root + "vote")[0] == 404
    bodies: tuple[object, ...] = (b"{", b"\xff", [], {"item_id": "entrance-01"}, {"item_id": "none", "answers": no})
    for body in bodies:
        status, said = client.post(body)
        assert (status, bool(said["error"])) == (409, True), body
    assert client.post(b"x" * (MOST_BYTES + 1))[0] == 413
    assert client.post(b"x", Content_Length="9" * 5000)[0] == 413
    assert not (tmp_path / "state" / "votes.csv").exists()
    assert client.post(vote)[0] == 200
    assert len(read_state(tmp_path / "state").rows) == 1


@pytest.mark.slow
def test_a_state_that_cannot_be_written_is_said_on_the_page_and_a_taken_port_in_a_line(
    client: Client, annotated: AnnotatedDataset, tmp_path: Path
) -> None:
    (tmp_path / "state" / ".lock").mkdir(parents=True)
    status, said = client.post({"item_id": "entrance-01", "answers": {"coherent": "no"}})
    told = f"{tmp_path}/state/.lock: Is a directory; every vote before this one is kept"
    assert (status, said["error"]) == (500, told)
    # A port that is taken is a mistake.
    with pytest.raises(ConfigError, match="choose another with --port"):
        open_server(session(annotated, tmp_path), int(client.host.rpartition(":")[2]))


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
    # Also on the other side.
    pair, incoherent = next(iter(annotated.pairs.values())), BALLOTS["incoherent"]
    one, other = (made_votes.submission(side.item_id, "anna", incoherent) for side in pair)
    taken_back = one._replace(answers={VoteQuestion.COHERENT: VoteAnswer.WITHDRAWN})
    sent = [vote._replace(submitted_at=str(time)) for time, vote in enumerate((one, taken_back, other))]
    assert take_in(annotated, EMPTY, sent).refused == ()
    assert [vote.refusal for vote in take_in(annotated, EMPTY, sent[::2]).refused] == ["both_sides"]


def test_a_name_is_one_person_however_it_is_typed(annotated: AnnotatedDataset, tmp_path: Path) -> None:
    ana = "Ana Mar\u00eda"
    names = (f" {ana} ", "Ana  Mari\u0301a", "Ana\u00a0Mar\u00eda", ana)
    named = zip((side for side, _ in annotated.pairs.values()), names, strict=False)
    sent = [made_votes.submission(side.item_id, name, BALLOTS["incoherent"]) for side, name in named]
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
        found = mentions_in(text)
        return wording(masked(text, [*found.occupations, *found.pronouns]))

    # And none is a frame of the dataset.
    frames = [*open_frames(), *settled_frames()]
    built = {template_of(frame.about("cook", "baker").filled("masculine")) for frame in frames}
    assert len(built) == len(frames)
    assert built.isdisjoint(template_of(solved.sentence.text) for solved in (*TEST, *EXAMPLES))


def test_a_score_counts_sentences_all_of_whose_answers_are_right(annotated: AnnotatedDataset) -> None:
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
    # The rule judges the same votes without rounding.
    for n_wrong, status in ((0, "active"), (4, "active"), (5, "failed")):
        state = take_in(annotated, EMPTY, entrance_submissions("anna", n_wrong=n_wrong)).state
        anna = state.annotators["anna"]
        assert (anna.entrance, anna.status) == (f"{20 - n_wrong}/20", status)
    easier = take_in(annotated, state, entrance_submissions("anna", n_wrong=5), entrance_percent=75)
    assert (easier.n_added, easier.state.annotators["anna"].status) == (0, "active")
    assert [status_of(EntranceScore(41, 52), percent) for percent in (78, 79)] == ["active", "failed"]
    assert (EntranceScore.parse("17/20"), EntranceScore.parse("passed")) == (EntranceScore(17, 20), None)


def planned(annotated: AnnotatedDataset, state: State, *names: str) -> list[planning.Request]:
    return planning.plan_batch(decide_pairs(annotated, state, Policy()), annotated.groups, state, names)


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
    found = made_votes.unanimous(annotated, otherwise={lost.pair_id: None, waiting.pair_id: None})
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


def test_batches_are_numbered_the_same_plan_is_no_new_one_and_outstanding_votes_are_counted(
    annotated: AnnotatedDataset, tmp_path: Path
) -> None:
    requests = planned(annotated, EMPTY)
    first = planning.write_batch(tmp_path, requests)
    assert (first.name, planning.write_batch(tmp_path, requests)) == ("0001.csv", first)
    assert planning.read_batch(first) == requests
    second = planning.write_batch(tmp_path, requests[:4])
    assert [path.name for path in planning.batch_paths(tmp_path)] == ["0001.csv", "0002.csv"]
    assert (planning.chosen_batch(tmp_path, None), planning.chosen_batch(tmp_path, 1)) == (second, first)
    with pytest.raises(ConfigError, match="no batch 3 here; have: 0001, 0002"):
        planning.chosen_batch(tmp_path, 3)
    second.write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"0002\.csv:1: has the columns a,b, not item_id.*; remove it"):
        planning.read_batch(second)
    one, other = requests[:2]
    assert planning.n_outstanding([one, other], {}) == 8
    assert planning.n_outstanding([one, other], {one.item_id: 6, other.item_id: 1}) == 3
