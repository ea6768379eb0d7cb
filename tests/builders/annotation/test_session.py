"""The work of one annotator, and the server that the page asks."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from biasboard.ground.errors import ConfigError, DataError
from builders.synthbias.annotation.annotated import AnnotatedDataset, asked_id
from builders.synthbias.annotation.entrance import TEST
from builders.synthbias.annotation.session import Session, Turn, sampled_pairs
from builders.synthbias.annotation.state import State, locked, read_state, write_state
from builders.synthbias.annotation.vote_intake import take_in
from builders.synthbias.annotation.vote_page import MOST_BYTES, open_server, turn_json
from builders.synthbias.annotation.votes import Ballot, VoteAnswer, VoteQuestion
from tests.builders.annotation.made_votes import (
    BALLOTS,
    EMPTY,
    active,
    answers,
    entrance_submissions,
    right,
    serving,
    unanimous,
)


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


def test_the_test_comes_first_then_one_side_of_each_pair(annotated: AnnotatedDataset, tmp_path: Path) -> None:
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
    pairs = []
    while turn.sentence is not None:
        pairs.append(turn.sentence.pair_id)
        turn = answer_right(found, turn)
    assert (turn.phase, turn.done, turn.total) == ("done", 5, 5)
    assert sorted(pairs) == sorted(found.pairs)
    assert {vote.annotator_id for vote in read_state(tmp_path).rows} == {"anna", "ben"}
    # A new process goes on where the last one stopped.
    assert session(annotated, tmp_path).turn() == turn


def test_the_second_annotator_gets_the_side_with_fewer_votes(annotated: AnnotatedDataset, tmp_path: Path) -> None:
    seen: dict[str, set[str]] = {}
    for name in ("anna", "ben"):
        found = session(annotated, tmp_path, name)
        turn = pass_test(found)
        while turn.sentence is not None:
            seen.setdefault(turn.sentence.pair_id, set()).add(turn.sentence.item_id)
            turn = answer_right(found, turn)
    assert {len(sides) for sides in seen.values()} == {2}


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


def test_who_fails_the_test_is_asked_nothing_more(annotated: AnnotatedDataset, tmp_path: Path) -> None:
    found = session(annotated, tmp_path)
    for solved in TEST:
        turn = found.vote(solved.sentence.item_id, answers(BALLOTS["incoherent"]))
    assert (turn.phase, turn.sentence, turn.can_undo) == ("failed", None, False)
    assert turn.annotator.reason == "entrance test: 4/20, less than 80 percent"


def test_a_vote_that_is_not_asked_for_is_refused(annotated: AnnotatedDataset, tmp_path: Path) -> None:
    found = session(annotated, tmp_path)
    with pytest.raises(DataError, match="item 'entrance-02' is not asked now; load the page again"):
        found.vote("entrance-02", answers(BALLOTS["open"]))
    for given in (answers(Ballot(True, None, True)), dict.fromkeys(VoteQuestion, VoteAnswer.WITHDRAWN)):
        with pytest.raises(DataError, match="a question is not answered"):
            found.vote("entrance-01", given)
    assert read_state(tmp_path).rows == ()


def test_decided_pairs_are_not_asked(annotated: AnnotatedDataset, tmp_path: Path) -> None:
    left = next(iter(annotated.pairs))
    state = unanimous(annotated, otherwise={left: None})
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
    with serving(session(annotated, tmp_path / "state")) as address:
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
def test_another_page_cannot_vote(client: Client, tmp_path: Path) -> None:
    vote = {"item_id": "entrance-01", "answers": {"coherent": "no"}}
    assert client.post(vote, Origin="http://evil.example")[0] == 403
    assert client.post(vote, Origin="null")[0] == 403
    assert client.ask("POST", client.root + "vote", vote, Content_Type="application/json")[0] == 403
    assert client.post(vote, Content_Type="text/plain")[0] == 415
    assert client.ask("GET", client.root + "vote")[0] == 404
    assert not (tmp_path / "state" / "votes.csv").exists()
    assert client.post(vote)[0] == 200
    assert len(read_state(tmp_path / "state").rows) == 1


@pytest.mark.slow
def test_nonsense_is_refused_in_words_and_a_flood_is_not_read(client: Client, tmp_path: Path) -> None:
    no = {"coherent": "no"}
    bodies: tuple[object, ...] = (b"{", b"\xff", [], {"item_id": "entrance-01"}, {"item_id": "none", "answers": no})
    for body in bodies:
        status, said = client.post(body)
        assert (status, bool(said["error"])) == (409, True), body
    assert client.post(b"x" * (MOST_BYTES + 1))[0] == 413
    assert client.post(b"x", Content_Length="9" * 5000)[0] == 413
    assert not (tmp_path / "state" / "votes.csv").exists()


@pytest.mark.slow
def test_a_state_that_cannot_be_written_is_said_on_the_page(client: Client, tmp_path: Path) -> None:
    (tmp_path / "state" / ".lock").mkdir(parents=True)
    status, said = client.post({"item_id": "entrance-01", "answers": {"coherent": "no"}})
    told = f"{tmp_path}/state/.lock: Is a directory; every vote before this one is kept"
    assert (status, said["error"]) == (500, told)


@pytest.mark.slow
def test_a_port_that_is_taken_is_a_mistake(client: Client, annotated: AnnotatedDataset, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="choose another with --port"):
        open_server(session(annotated, tmp_path), int(client.host.rpartition(":")[2]))
