"""Makes the two items of a minimal pair from a sentence whose pronoun is a slot in a given case."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias

from builders.dataset.output import DraftSplit
from builders.synthbias.frame import FAMILY_OF_GENDER, Position
from builders.synthbias.mentions import mask_pronouns
from builders.synthbias.pairing import cluster_of, item_id, pair_key, stereotype_of
from schemas.items.coreference import CoreferenceItem
from schemas.lexicon import PronounCase, PronounGender, pronoun_families

Config: TypeAlias = Literal["type1", "type2"]
"""Type of a sentence: open, or settled."""
GENDERS: tuple[PronounGender, ...] = ("masculine", "feminine")


class Slotted(NamedTuple):
    """A sentence about two occupations, with a slot for a pronoun."""

    config: Config
    before: str
    """Text up to the slot, with the space before it."""
    case: PronounCase
    after: str
    """Text after the slot, with the space or sign that follows it."""
    first: str
    """Occupation that is mentioned first."""
    second: str
    referent: Position | None
    """Position of the occupation that is meant; None if that is open."""

    @property
    def meant(self) -> str | None:
        """The occupation that the pronoun means; None if that is open."""
        return {"first": self.first, "second": self.second, None: None}[self.referent]

    def filled(self, gender: PronounGender) -> str:
        """Return the sentence with the pronoun of a gender."""
        return f"{self.before}{pronoun_of(self.case, gender)}{self.after}"


def pronoun_of(case: PronounCase, gender: PronounGender) -> str:
    """Return the pronoun of a gender in a case."""
    return pronoun_families()[FAMILY_OF_GENDER[gender]].forms[case]


def items_of(slotted: Slotted, *, template_id: str | None, source_row: str | None) -> tuple[CoreferenceItem, ...]:
    """Return both sides of a minimal pair, the masculine one first."""
    reference = slotted.meant or slotted.first
    other = slotted.second if reference == slotted.first else slotted.first
    pair_id = pair_key(slotted.config, mask_pronouns(slotted.filled("masculine")), (reference, other))
    return tuple(
        CoreferenceItem(
            item_id=item_id(pair_id, gender),
            pair_id=pair_id,
            cluster=cluster_of(slotted.first, slotted.second),
            sentence=slotted.filled(gender),
            pronoun=pronoun_of(slotted.case, gender),
            pronoun_start=len(slotted.before),
            pronoun_case=slotted.case,
            pronoun_gender=gender,
            occupations=(slotted.first, slotted.second),
            referent=slotted.meant,
            reference=reference,
            stereotype=None if slotted.meant is None else stereotype_of(slotted.meant, gender),
            template_id=template_id,
            source_row=source_row,
            flags=(),
        )
        for gender in GENDERS
    )


def split_of(config: Config, items: Iterable[CoreferenceItem]) -> DraftSplit[CoreferenceItem]:
    """Return the items of a config as its split *test*."""
    return DraftSplit(
        config=config,
        split="test",
        item_shape="coreference",
        items=[item for item in items if item.pair_id.startswith(config)],
    )
