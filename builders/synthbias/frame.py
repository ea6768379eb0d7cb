"""Sentence frames with one slot for a pronoun in a given case."""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from schemas.lexicon import CASES, PronounCase, PronounGender, pronoun_families

Position: TypeAlias = Literal["first", "second"]

FAMILY_OF_GENDER: dict[PronounGender, str] = {"masculine": "he", "feminine": "she"}


class Filled(NamedTuple):
    """A sentence and where its pronoun stands."""

    sentence: str
    pronoun: str
    pronoun_start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A sentence with gaps.

    The text holds ``{first}`` and ``{second}``, the occupations in the order in which they are mentioned, and one
    slot named after a case, such as ``{accusative}``: the pronoun is filled in by case and never exchanged
    afterwards, because *her* does not say whether it stands for *him* or for *his*.
    """

    frame_id: str
    text: str
    referent: Position | None
    """Which occupation the pronoun means; null where both readings are natural."""

    @property
    def case(self) -> PronounCase:
        """The case of the pronoun's slot.

        Raises:
            ValueError: the text has no such slot, or several.
        """
        slots = [name for _, name, _, _ in string.Formatter().parse(self.text) if name in CASES]
        if len(slots) != 1:
            raise ValueError(f"frame {self.frame_id}: {len(slots)} pronoun slots in '{self.text}'; write exactly one")
        return slots[0]

    def fill(self, first: str, second: str, gender: PronounGender) -> Filled:
        """The sentence with both occupations and the pronoun of a gender."""
        case = self.case
        pronoun = pronoun_families()[FAMILY_OF_GENDER[gender]].forms[case]
        before, after = (part.format(first=first, second=second) for part in self.text.split("{" + case + "}"))
        return Filled(f"{before}{pronoun}{after}", pronoun, len(before))
