"""Reads the frames of this project from ``texts/``, in groups that are distributed over the occupation pairs.

``open.toml`` holds the frames of type 1: both readings are natural, and nothing settles whom the pronoun means.
``settled.toml`` holds those of type 2, in quadruples: two beginnings, two endings, and the four frames that they make::

                                    ... because he was cold    ... because he had brought two
    the a borrowed a scarf from b            a                            b
    the a lent a scarf to b                  b                            a

These are Winograd schemas (Levesque et al. 2012) that change their answer in both halves. Whatever a predictor reads in
one half alone, a word, its place or its length, is right in two frames of four. Three kinds of cue settle the referent:

* *syntax*: only one reading is grammatical. A reflexive means the subject of its own verb, and an object pronoun never
  does (*asked the b to introduce him*: not b).
* *meaning*: the words fit only one person, such as who gives, chases or wakes whom, and with what result.
* *world*: both readings make sense, but only one is plausible (*borrowed a scarf because he was cold*).

The frames describe scenes at work and in everyday life that fit every occupation of the lexicon in either position, and
they mention no other single person.
"""

from __future__ import annotations

import string
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, cast

from biasboard.ground.errors import DataError
from builders.synthbias.minimal_pairs import Position, Slotted
from schemas.lexicon import CASES, PronounCase

Setting: TypeAlias = Literal["work", "everyday"]
Cue: TypeAlias = Literal["syntax", "meaning", "world"]

SETTINGS: tuple[Setting, ...] = ("work", "everyday")
CUES: tuple[Cue, ...] = ("syntax", "meaning", "world")

GROUP_SIZE = 20
"""Number of frames in a group: one for each of the twenty possible partners of an occupation."""
OPEN = "open.toml"
SETTLED = "settled.toml"

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceFrame:
    """A sentence with slots for two occupations and one pronoun.

    The text holds ``{first}`` and ``{second}`` for the occupations, in the order in which they are mentioned, and one
    slot named after a case, such as ``{accusative}``.
    """

    frame_id: str
    text: str
    referent: Position | None
    """Position of the occupation that the pronoun means; None if both readings are natural."""
    template_id: str | None = None
    """Identifier that the four frames of a quadruple share; None for a frame by itself."""
    setting: Setting | None = None
    """Kind of the scene; None if unknown."""
    cue: Cue | None = None
    """Kind of the cue that settles the referent; None if nothing does."""

    @property
    def case(self) -> PronounCase:
        """The grammatical case of the pronoun slot.

        Raises:
            ValueError: the text has no pronoun slot, or several.
        """
        slots = [name for _, name, _, _ in string.Formatter().parse(self.text) if name in CASES]
        if len(slots) != 1:
            raise ValueError(f"frame {self.frame_id}: {len(slots)} pronoun slots in '{self.text}'; write exactly one")
        return slots[0]

    def about(self, first: str, second: str) -> Slotted:
        """Return the sentence about two occupations, whose pronoun is still a slot."""
        case = self.case
        before, after = (part.format(first=first, second=second) for part in self.text.split("{" + case + "}"))
        return Slotted("type1" if self.referent is None else "type2", before, case, after, first, second, self.referent)


class Quadruple(NamedTuple):
    """The frames of two beginnings and two endings, of which either exchange changes the referent."""

    template_id: str
    first: tuple[SentenceFrame, SentenceFrame]
    """The two frames that mean the occupation mentioned first. They have no half in common."""
    second: tuple[SentenceFrame, SentenceFrame]
    """The two frames that mean the second; each has its ending from the frame of the same index in ``first``."""


@cache
def open_groups() -> tuple[tuple[SentenceFrame, ...], ...]:
    """Return the frames of type 1 in their groups.

    Raises:
        DataError: the file breaks the format.
    """
    frames = tuple(
        SentenceFrame(frame_id=row["id"], text=row["text"], referent=None, setting=row["setting"])
        for row in _rows(OPEN, "frame", {"id": str, "setting": str, "text": str})
    )
    return _grouped(frames, OPEN)


@cache
def settled_groups() -> tuple[tuple[Quadruple, ...], ...]:
    """Return the frames of type 2 as quadruples, in their groups.

    Raises:
        DataError: the file breaks the format.
    """
    fields = {"id": str, "setting": str, "cue": str, "beginnings": list, "endings": list}
    return _grouped([_quadruple(row) for row in _rows(SETTLED, "quadruple", fields)], SETTLED)


def open_frames() -> list[SentenceFrame]:
    """Return all frames of type 1."""
    return [frame for group in open_groups() for frame in group]


def settled_frames() -> list[SentenceFrame]:
    """Return all frames of type 2."""
    return [frame for group in settled_groups() for four in group for frame in (*four.first, *four.second)]


def text_of(name: str) -> str:
    """Return the content of a file in the folder of the frames."""
    return resources.files("builders.synthbias").joinpath("texts", name).read_text(encoding="utf-8")


def _rows(name: str, table: str, fields: Mapping[str, type]) -> list[Mapping[str, Any]]:
    rows = cast(list[Mapping[str, Any]], tomllib.loads(text_of(name))[table])
    for number, row in enumerate(rows, start=1):
        where = f"{name}: {table} {number}"
        if {key: type(value) for key, value in row.items()} != fields:
            raise DataError(f"{where}: has the fields {', '.join(sorted(row))}; write {', '.join(sorted(fields))}")
        if row["setting"] not in SETTINGS or row.get("cue", CUES[0]) not in CUES:
            raise DataError(f"{where}: write a setting of {', '.join(SETTINGS)} and a cue of {', '.join(CUES)}")
        if any(len(row.get(half, "ab")) != 2 for half in ("beginnings", "endings")):
            raise DataError(f"{where}: write two beginnings and two endings")
    return rows


def _quadruple(row: Mapping[str, Any]) -> Quadruple:
    def frame(beginning: int, ending: int) -> SentenceFrame:
        return SentenceFrame(
            frame_id=f"{row['id']}-{beginning + 1}{ending + 1}",
            text=row["beginnings"][beginning] + row["endings"][ending],
            referent="first" if beginning == ending else "second",
            template_id=row["id"],
            setting=row["setting"],
            cue=row["cue"],
        )

    return Quadruple(row["id"], (frame(0, 0), frame(1, 1)), (frame(1, 0), frame(0, 1)))


def _grouped(entries: Sequence[T], name: str) -> tuple[tuple[T, ...], ...]:
    if len(entries) % (3 * GROUP_SIZE):
        raise DataError(f"{name}: {len(entries)} entries; write a multiple of {3 * GROUP_SIZE}")
    return tuple(tuple(entries[start : start + GROUP_SIZE]) for start in range(0, len(entries), GROUP_SIZE))
