"""Reads the frames of this project from ``texts/``, in groups that are distributed over the occupation pairs.

``open.toml`` holds the frames of type 1: both readings are natural, and nothing settles whom the pronoun means.
``settled.toml`` holds those of type 2, in twins: two frames with the same case and kind of cue, one whose pronoun means
the occupation mentioned first, and one whose pronoun means the second. Three kinds of cue settle the referent:

* *syntax*: only one reading is grammatical. A reflexive means the subject of its own verb, an object pronoun never
  does (*asked the b to drive him*: not b), and an elided verb takes its subject along (*as he had promised to*).
* *meaning*: the words fit only one person, such as who asks, thanks or forgives whom, and for what.
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
class Frame:
    """A sentence with slots for two occupations and one pronoun.

    The text holds ``{first}`` and ``{second}`` for the occupations, in the order in which they are mentioned, and one
    slot named after a case, such as ``{accusative}``.
    """

    frame_id: str
    text: str
    referent: Position | None
    """Position of the occupation that the pronoun means; None if both readings are natural."""
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


class Twin(NamedTuple):
    """Two settled frames of the same cue and case: one means the occupation mentioned first, the other the second."""

    first: Frame
    second: Frame

    def of(self, position: Position) -> Frame:
        """Return the frame whose pronoun means the occupation at a position."""
        return self.first if position == "first" else self.second


@cache
def open_groups() -> tuple[tuple[Frame, ...], ...]:
    """Return the frames of type 1 in their groups.

    Raises:
        DataError: the file breaks the format.
    """
    frames = tuple(_frame(row, where, settled=False) for row, where in _rows(OPEN))
    return _grouped(frames, OPEN)


@cache
def settled_groups() -> tuple[tuple[Twin, ...], ...]:
    """Return the frames of type 2 as twins, in their groups.

    Raises:
        DataError: the file breaks the format.
    """
    frames = [_frame(row, where, settled=True) for row, where in _rows(SETTLED)]
    twins = tuple(Twin(*pair) for pair in zip(frames[::2], frames[1::2], strict=True))
    for first, second in twins:
        same = (first.cue, first.case) == (second.cue, second.case)
        if (first.referent, second.referent) != ("first", "second") or not same:
            raise DataError(
                f"{SETTLED}: {first.frame_id} and {second.frame_id} are no twins; give them one cue and case, and the "
                "referents first and second"
            )
    return _grouped(twins, SETTLED)


def open_frames() -> list[Frame]:
    """Return all frames of type 1."""
    return [frame for group in open_groups() for frame in group]


def settled_frames() -> list[Frame]:
    """Return all frames of type 2."""
    return [frame for group in settled_groups() for twin in group for frame in twin]


def text_of(name: str) -> str:
    """Return the content of a file in the folder of the frames."""
    return resources.files("builders.synthbias").joinpath("texts", name).read_text(encoding="utf-8")


def _rows(name: str) -> list[tuple[Mapping[str, Any], str]]:
    rows = cast(list[Mapping[str, Any]], tomllib.loads(text_of(name))["frame"])
    return [(row, f"{name}: frame {number}") for number, row in enumerate(rows, start=1)]


def _frame(row: Mapping[str, Any], where: str, *, settled: bool) -> Frame:
    expected = {"id", "setting", "text"} | ({"referent", "cue"} if settled else set())
    if set(row) != expected:
        raise DataError(f"{where}: has the fields {', '.join(sorted(row))}; write {', '.join(sorted(expected))}")
    if row["setting"] not in SETTINGS or row.get("cue", CUES[0]) not in CUES:
        raise DataError(f"{where}: write a setting of {', '.join(SETTINGS)} and a cue of {', '.join(CUES)}")
    return Frame(
        frame_id=row["id"],
        text=row["text"],
        referent=row.get("referent"),
        setting=row["setting"],
        cue=row.get("cue"),
    )


def _grouped(entries: Sequence[T], name: str) -> tuple[tuple[T, ...], ...]:
    if len(entries) % (3 * GROUP_SIZE):
        raise DataError(f"{name}: {len(entries)} entries; write a multiple of {3 * GROUP_SIZE}")
    return tuple(tuple(entries[start : start + GROUP_SIZE]) for start in range(0, len(entries), GROUP_SIZE))
