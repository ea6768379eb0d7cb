"""Counts how two readers understood each frame.

The readers are language models. Each was asked once about each frame, filled with two occupations of the same
stereotype, without being given the intended answer. This is not annotation by people.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from io import StringIO
from typing import TYPE_CHECKING

from builders.dataset.card import CardTable
from builders.synthbias.frames import SentenceFrame, open_frames, settled_frames, text_of

if TYPE_CHECKING:
    import pandas as pd

VOTES = "votes.csv"
_QUESTIONS = {
    "coherent": "coherent",
    "first": "can mean the first",
    "second": "can mean the second",
    "leans": "more probable",
}


@cache
def votes() -> pd.DataFrame:
    """Return all votes, including those on frames that were dropped because of them.

    Returns:
        A row for each frame and reader: ``coherent``, and ``first`` and ``second`` (whether the pronoun can mean the
        occupation mentioned there), are True or False; ``leans`` is the one that it more probably means, or neither.
    """
    import pandas as pd

    read = pd.read_csv(StringIO(text_of(VOTES)), dtype=str)
    return read.assign(**{name: read[name] == "y" for name in ("coherent", "first", "second")})


def that_were_read(frames: Iterable[SentenceFrame]) -> list[SentenceFrame]:
    """Return the frames on which every reader has voted."""
    n_votes = votes()["frame"].value_counts()
    return [frame for frame in frames if n_votes.get(frame.frame_id) == votes()["reader"].nunique()]


def n_dropped() -> int:
    """Return the number of frames that were read and then dropped."""
    kept = {frame.frame_id for frame in (*open_frames(), *settled_frames())}
    return len({*votes()["frame"]} - kept)


def readings_table() -> CardTable:
    """Count the readings of the frames in use, by reader and for all readers together."""
    openly, settled = (
        {frame.frame_id: frame.referent for frame in that_were_read(frames)}
        for frames in (open_frames(), settled_frames())
    )
    of_open, of_settled = (votes()[votes()["frame"].isin([*frames])] for frames in (openly, settled))
    referent = of_settled["frame"].map(settled)
    is_right = (of_settled["first"] == (referent == "first")) & (of_settled["second"] == (referent == "second"))
    rows = (
        (f"type 1 ({len(openly)} frames that were read): coherent", of_open, of_open["coherent"]),
        ("type 1: both readings possible", of_open, of_open["first"] & of_open["second"]),
        ("type 1: leans to the first", of_open, of_open["leans"] == "first"),
        ("type 1: leans to the second", of_open, of_open["leans"] == "second"),
        ("type 1: leans to neither", of_open, of_open["leans"] == "neither"),
        (f"type 2 ({len(settled)} frames that were read): coherent", of_settled, of_settled["coherent"]),
        ("type 2: the referent possible, and nobody else", of_settled, is_right),
    )
    return CardTable(
        header=("", *(f"reader {reader}" for reader in sorted({*votes()["reader"]})), "all readers"),
        rows=tuple(
            (
                title,
                *map(str, holds.groupby(asked["reader"]).sum()),
                str(holds.groupby(asked["frame"]).all().sum()),
            )
            for title, asked, holds in rows
        ),
    )


def agreement_table() -> CardTable:
    """Count the frames on which all readers gave the same answer, over all votes, by question and type."""
    n_answers = votes().groupby("frame")[[*_QUESTIONS]].nunique()
    of_type = [n_answers[n_answers.index.str.startswith(prefix)] for prefix in ("open-", "settled-")]
    return CardTable(
        header=("all readers gave the same answer", "type 1", "type 2"),
        rows=tuple(
            (title, *(f"{(of_frames[name] == 1).sum()} of {len(of_frames)}" for of_frames in of_type))
            for name, title in _QUESTIONS.items()
        ),
    )
