"""Sentence frames with one slot for a pronoun in a given case."""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from schemas.lexicon import CASES, PronounCase, PronounGender, pronoun_families

Position: TypeAlias = Literal["first", "second"]
Setting: TypeAlias = Literal["work", "everyday"]
Cue: TypeAlias = Literal["syntax", "meaning", "world"]

SETTINGS: tuple[Setting, ...] = ("work", "everyday")
CUES: tuple[Cue, ...] = ("syntax", "meaning", "world")

FAMILY_OF_GENDER: dict[PronounGender, str] = {"masculine": "he", "feminine": "she"}


class Filled(NamedTuple):
    """A sentence with its pronoun and the pronoun's offset in characters."""

    sentence: str
    pronoun: str
    pronoun_start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A sentence with slots for two occupations and one pronoun.

    The text holds ``{first}`` and ``{second}`` for the occupations, in the order in which they are mentioned, and one
    slot named after a case, such as ``{accusative}``. Each pronoun is filled in by case. None is exchanged for another
    in a finished sentence, because *her* does not show whether it corresponds to *him* or to *his*.
    """

    frame_id: str
    text: str
    referent: Position | None
    """Position of the occupation that the pronoun means; None if both readings are natural."""
    setting: Setting | None = None
    """Kind of the scene; None if it is not told."""
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

    def fill(self, first: str, second: str, gender: PronounGender) -> Filled:
        """Fill the frame with two occupations and the pronoun of one gender."""
        case = self.case
        pronoun = pronoun_families()[FAMILY_OF_GENDER[gender]].forms[case]
        before, after = (part.format(first=first, second=second) for part in self.text.split("{" + case + "}"))
        return Filled(f"{before}{pronoun}{after}", pronoun, len(before))
