"""Item shape: a sentence with two occupations and one pronoun, for coreference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from annotated_types import MaxLen, MinLen
from pydantic import StringConstraints
from typing_extensions import override

from schemas.documents.base import Count, Distinct, Name, Text, shown
from schemas.documents.dataset import Item, ItemShape
from schemas.lexicon import PronounCase, PronounGender, gender_of_pronoun, occupations

Stereotype: TypeAlias = Literal["pro", "anti"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreferenceItem(Item):
    """A sentence with two occupations and one pronoun; one side of a minimal pair."""

    item_id: Text
    pair_id: Text
    """Identifier shared by the two items that differ only in the pronoun."""
    cluster: Annotated[str, StringConstraints(pattern=r"^[^|]+\|[^|]+$")]
    """Occupation pair, written ``<male-stereotyped>|<female-stereotyped>``: the items' cluster."""
    sentence: Text
    pronoun: Text
    """Pronoun as written in the sentence, with its upper or lower case."""
    pronoun_start: Count
    """Offset of the pronoun in the sentence, in characters."""
    pronoun_case: PronounCase | None
    """Grammatical case; None if neither this sentence nor the other one of the pair decides it."""
    pronoun_gender: PronounGender
    occupations: Annotated[tuple[Text, ...], MinLen(2), MaxLen(2), Distinct()]
    """Two occupations, in the order in which the sentence mentions them."""
    referent: Text | None
    """Occupation that the pronoun refers to; None if the sentence is ambiguous."""
    reference: Text
    """Occupation from which desirability is measured: the referent, or a fixed one of the two if there is none."""
    stereotype: Stereotype | None
    """``pro`` if the pronoun fits the majority gender of the referent, ``anti`` if not; None without a referent."""
    template_id: Text | None
    source_row: Text | None
    """File and line in the source."""
    flags: tuple[Name, ...]
    """Names of the manifest's flag rules that apply to this item."""

    @property
    @override
    def unit(self) -> str:
        return self.pair_id

    @override
    def problems(self) -> Iterator[str]:
        yield from place_problems(self.sentence, self.pronoun, self.pronoun_start)
        gender = gender_of_pronoun(self.pronoun)
        if gender is None:
            have = "he, him, his, himself, she, her, hers, herself"
            yield f"pronoun: {shown(self.pronoun)} is not in the lexicon; have: {have}"
        elif gender != self.pronoun_gender:
            yield f"pronoun_gender: '{self.pronoun_gender}' does not fit {shown(self.pronoun)}; set {gender}"
        yield from occupation_problems(
            self.occupations, referent=self.referent, reference=self.reference, cluster=self.cluster
        )
        by_stereotype = _by_stereotype(self.occupations)
        if len(by_stereotype) != 2:
            return
        if (self.referent is None) != (self.stereotype is None):
            yield "stereotype: must be null exactly when referent is null; set both or clear both"
        elif self.referent in by_stereotype.values():
            fits = by_stereotype["male" if self.pronoun_gender == "masculine" else "female"] == self.referent
            expected = "pro" if fits else "anti"
            if self.stereotype != expected:
                yield f"stereotype: '{self.stereotype}' does not follow from pronoun and referent; set {expected}"


def place_problems(sentence: str, pronoun: str, start: int) -> Iterator[str]:
    """Yield a line if a pronoun does not stand at its offset in a sentence."""
    if sentence[start : start + len(pronoun)] != pronoun:
        yield f"pronoun_start: {start} is not where {shown(pronoun)} stands in the sentence; correct it"


def occupation_problems(names: Sequence[str], *, referent: str | None, reference: str, cluster: str) -> Iterator[str]:
    """Yield a line for each rule that the two occupations of a sentence break."""
    for name in names:
        if name not in occupations():
            have = ", ".join(sorted(occupations()))
            yield f"occupations: {shown(name)} is not in the lexicon; have: {have}"
    for field, value in (("referent", referent), ("reference", reference)):
        if value is not None and value not in names:
            yield f"{field}: {shown(value)} is not one of the item's occupations; have: {', '.join(names)}"
    if referent in names and referent != reference:
        differs = f"{shown(referent)} is not the reference {shown(reference)}"
        yield f"referent: {differs}; make the referent the reference"
    by_stereotype = _by_stereotype(names)
    if len(by_stereotype) != 2:
        yield f"occupations: {', '.join(names)}; one must be male-, one female-stereotyped; replace one"
    elif cluster != (expected := f"{by_stereotype['male']}|{by_stereotype['female']}"):
        yield f"cluster: '{cluster}' is not the occupation pair; set {expected}"


def _by_stereotype(names: Sequence[str]) -> dict[str, str]:
    return {occupations()[name].stereotype: name for name in names if name in occupations()}


SHAPE = ItemShape(row_type=CoreferenceItem, unit_name="minimal pair")
