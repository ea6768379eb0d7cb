"""The files of a state: what is protected, what only grows, and what is refused."""

from __future__ import annotations

import csv
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.plain_text import protected, unprotected
from builders.synthbias.annotation.annotated import AnnotatedDataset
from builders.synthbias.annotation.safe_csv import read_rows, render
from builders.synthbias.annotation.state import State, pseudonyms, read_state, write_state
from builders.synthbias.annotation.votes import (
    Annotator,
    AnnotatorKind,
    Vote,
    VoteAnswer,
    VoteQuestion,
    standing_votes,
)
from tests.builders.annotation.made_votes import BALLOTS, active, votes


@given(st.text())
def test_protection_is_taken_off_exactly(cell: str) -> None:
    written = protected(cell)
    assert not written.startswith(("=", "+", "-", "@", "\t", "\r"))
    assert unprotected(written) == cell


def test_formulas_are_text_in_the_file_and_come_back(tmp_path: Path) -> None:
    cells = ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "'=1", "'quoted", 'plain, with "marks"\nand a line', ""]
    path = tmp_path / "f.csv"
    path.write_bytes(render([f"c{n}" for n in range(len(cells))], [cells]).encode())
    with path.open(newline="", encoding="utf-8") as file:
        _, raw = csv.reader(file)
    assert [cell[0] for cell in raw[:6]] == ["'"] * 6
    _, ((_, row),) = read_rows(path, remedy="")
    assert list(row.values()) == cells


def test_a_hostile_name_survives_the_state(annotated: AnnotatedDataset, tmp_path: Path) -> None:
    item = next(iter(annotated.items.values()))
    name = '=HYPERLINK("http://evil","x")'
    new = State(tuple(votes(item, name, BALLOTS["open"])), active(name))
    write_state(tmp_path, State((), {}), new)
    assert read_state(tmp_path) == new
    assert ",=" not in (tmp_path / "votes.csv").read_text(encoding="utf-8")


def test_votes_only_grow_and_old_bytes_stay(annotated: AnnotatedDataset, tmp_path: Path) -> None:
    first, second = list(annotated.items.values())[:2]
    old = State(tuple(votes(first, "anna", BALLOTS["open"])), active("anna", "ben"))
    write_state(tmp_path, State((), {}), old)
    before = (tmp_path / "votes.csv").read_bytes()
    # An editor that leaves out the last line break does no harm.
    (tmp_path / "votes.csv").write_bytes(before.removesuffix(b"\r\n"))
    new = State((*old.rows, *votes(second, "ben", BALLOTS["incoherent"])), old.annotators)
    write_state(tmp_path, read_state(tmp_path), new)
    assert (tmp_path / "votes.csv").read_bytes().startswith(before)
    assert read_state(tmp_path) == new
    with pytest.raises(ValueError, match=r"votes\.csv only grows"):
        write_state(tmp_path, new, old)


def test_a_withdrawn_vote_makes_room_for_the_next() -> None:
    def vote(answer: VoteAnswer, at: str) -> Vote:
        return Vote(
            item_id="i",
            pair_id="p",
            annotator_id="anna",
            question=VoteQuestion.COHERENT,
            answer=answer,
            submitted_at=at,
            source="",
        )

    rows = [vote(VoteAnswer.YES, "1"), vote(VoteAnswer.NO, "2"), vote(VoteAnswer.WITHDRAWN, "3")]
    assert standing_votes(rows[:2]) == {rows[0].key: rows[0]}
    assert standing_votes(rows) == {}
    again = vote(VoteAnswer.NO, "4")
    assert standing_votes([*rows, again]) == {again.key: again}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("votes.csv", "item_id\n", r"votes\.csv:1: has the columns item_id; restore item_id,pair_id,annotator_id"),
        ("annotators.csv", "annotator_id,kind,entrance,status,reason\na,cat,,active,\n", r"annotators\.csv:2: kind is"),
        (
            "annotators.csv",
            "annotator_id,kind,entrance,status,reason\na,human,,active,\na,human,,active,\n",
            r"annotators\.csv:3: annotator 'a' stands twice; keep one line",
        ),
        ("annotators.csv", "a,a\n", r"annotators\.csv:1: column 'a' stands twice"),
    ],
)
def test_a_broken_state_is_refused(name: str, text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_state(tmp_path)


def test_a_state_is_a_folder(tmp_path: Path) -> None:
    assert read_state(tmp_path / "none") == State((), {})
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="is a file; give a folder"):
        read_state(tmp_path / "file")


def test_who_only_stands_among_the_votes_is_untested(annotated: AnnotatedDataset, tmp_path: Path) -> None:
    item = next(iter(annotated.items.values()))
    write_state(tmp_path, State((), {}), State(tuple(votes(item, "anna", BALLOTS["open"])), {}))
    assert read_state(tmp_path).annotators == {"anna": Annotator(annotator_id="anna", kind=AnnotatorKind.HUMAN)}


def test_pseudonyms_stay_the_same_and_follow_from_a_secret(tmp_path: Path) -> None:
    names = pseudonyms(tmp_path / "one", ["anna", "ben"])
    assert names == pseudonyms(tmp_path / "one", ["anna", "ben"])
    assert len(set(names.values())) == 2
    assert set(names.values()).isdisjoint(pseudonyms(tmp_path / "two", ["anna", "ben"]).values())
    assert stat.S_IMODE((tmp_path / "one" / "salt").stat().st_mode) == 0o600
