"""Reads and counts how two readers understood each frame.

The readers are language models. Each was asked once about each frame, filled with two occupations of the same
stereotype, without being given the intended answer. This is not annotation by people.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from io import StringIO
from typing import Literal, NamedTuple, TypeAlias

from biasboard.ground.errors import DataError
from builders.dataset.card import CardTable
from builders.synthbias.frames import SentenceFrame, open_frames, settled_frames, text_of

Lean: TypeAlias = Literal["first", "second", "neither"]

VOTES = "votes.csv"
_COLUMNS = ("frame", "reader", "coherent", "first", "second", "leans")
_YES: dict[str, bool] = {"y": True, "n": False}
_LEANS: dict[str, Lean] = {"first": "first", "second": "second", "neither": "neither"}


class FrameReading(NamedTuple):
    """The answers of one reader about one frame."""

    frame_id: str
    reader: str
    coherent: bool
    first: bool
    """True if the pronoun can mean the occupation mentioned first."""
    second: bool
    leans: Lean
    """Occupation that the pronoun more probably means."""


@cache
def votes() -> tuple[FrameReading, ...]:
    """Return all votes, including those on frames that were dropped because of them.

    Raises:
        DataError: the file breaks the format, or a reader voted twice on a frame.
    """
    rows = csv.reader(StringIO(text_of(VOTES)))
    if tuple(next(rows)) != _COLUMNS:
        raise DataError(f"{VOTES}: write the columns {', '.join(_COLUMNS)}")
    all_votes = tuple(_vote(row, f"{VOTES}: row {number}") for number, row in enumerate(rows, start=1))
    twice = [key for key, n in Counter((vote.frame_id, vote.reader) for vote in all_votes).items() if n > 1]
    if twice:
        raise DataError(f"{VOTES}: reader {twice[0][1]} voted twice on {twice[0][0]}; keep the first vote")
    return all_votes


def _vote(row: Sequence[str], where: str) -> FrameReading:
    try:
        frame_id, reader, coherent, first, second, leans = row
        return FrameReading(frame_id, reader, _YES[coherent], _YES[first], _YES[second], _LEANS[leans])
    except (KeyError, ValueError) as error:
        raise DataError(f"{where}: is not id, reader, y or n three times, and first, second or neither") from error


def readers() -> list[str]:
    """Return the names of the readers."""
    return sorted({vote.reader for vote in votes()})


def votes_on(frames: Iterable[SentenceFrame], reader: str) -> list[FrameReading]:
    """Return the votes of a reader on frames, in the order of the frames.

    Raises:
        KeyError: the reader has not voted on a frame.
    """
    by_frame = {vote.frame_id: vote for vote in votes() if vote.reader == reader}
    return [by_frame[frame.frame_id] for frame in frames]


def that_were_read(frames: Iterable[SentenceFrame]) -> list[SentenceFrame]:
    """Return the frames on which every reader has voted."""
    n_votes = Counter(vote.frame_id for vote in votes())
    return [frame for frame in frames if n_votes[frame.frame_id] == len(readers())]


def n_dropped() -> int:
    """Return the number of frames that were read and then dropped."""
    kept = {frame.frame_id for frame in (*open_frames(), *settled_frames())}
    return len({vote.frame_id for vote in votes()} - kept)


_QUESTIONS: tuple[tuple[str, Callable[[FrameReading], object]], ...] = (
    ("coherent", lambda vote: vote.coherent),
    ("can mean the first", lambda vote: vote.first),
    ("can mean the second", lambda vote: vote.second),
    ("more probable", lambda vote: vote.leans),
)


def readings_table() -> CardTable:
    """Count the readings of the frames in use, by reader and for both readers together."""
    openly, settled = that_were_read(open_frames()), that_were_read(settled_frames())
    by_reader = {reader: (votes_on(openly, reader), votes_on(settled, reader)) for reader in readers()}

    def row(name: str, holds: Callable[[SentenceFrame, FrameReading], bool], index: int) -> tuple[str, ...]:
        frames = (openly, settled)[index]
        held = [[holds(*pair) for pair in zip(frames, of[index], strict=True)] for of in by_reader.values()]
        n_all = sum(map(all, zip(*held, strict=True)))
        return (name, *(str(sum(of_reader)) for of_reader in held), str(n_all))

    def leaning(lean: Lean) -> Callable[[SentenceFrame, FrameReading], bool]:
        return lambda frame, vote: vote.leans == lean

    rows = (
        row(f"type 1 ({len(openly)} frames that were read): coherent", lambda frame, vote: vote.coherent, 0),
        row("type 1: both readings possible", lambda frame, vote: vote.first and vote.second, 0),
        *(row(f"type 1: leans to the {lean}", leaning(lean), 0) for lean in ("first", "second")),
        row("type 1: leans to neither", leaning("neither"), 0),
        row(f"type 2 ({len(settled)} frames that were read): coherent", lambda frame, vote: vote.coherent, 1),
        row(
            "type 2: the referent possible, and nobody else",
            lambda frame, vote: (vote.first, vote.second) == (frame.referent == "first", frame.referent == "second"),
            1,
        ),
    )
    return CardTable(header=("", *(f"reader {reader}" for reader in by_reader), "all readers"), rows=rows)


def agreement_table() -> CardTable:
    """Count the frames on which all readers gave the same answer, over all votes, by question and type."""
    frames = {"type 1": "open-", "type 2": "settled-"}
    by_frame: dict[str, list[FrameReading]] = {}
    for vote in votes():
        by_frame.setdefault(vote.frame_id, []).append(vote)
    of_type = {
        name: [on_frame for frame_id, on_frame in by_frame.items() if frame_id.startswith(prefix)]
        for name, prefix in frames.items()
    }
    rows = tuple(
        (
            question,
            *(
                f"{sum(len({answer(vote) for vote in on_frame}) == 1 for on_frame in groups)} of {len(groups)}"
                for groups in of_type.values()
            ),
        )
        for question, answer in _QUESTIONS
    )
    return CardTable(header=("all readers gave the same answer", *of_type), rows=rows)
