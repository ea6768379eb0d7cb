"""Item shape: a sentence with two occupations and one pronoun, for coreference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from schemas.item_shape import ItemShape
from schemas.lexicon import PronounCase, PronounGender, gender_of_pronoun, occupations

Stereotype: TypeAlias = Literal["pro", "anti"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreferenceItem:
    """A sentence with two occupations and one pronoun; one side of a minimal pair."""

    item_id: str
    pair_id: str
    """Identifier shared by the two items that differ only in the pronoun."""
    cluster: str
    """Occupation pair, written ``<male-stereotyped>|<female-stereotyped>``: the unit of resampling."""
    sentence: str
    pronoun: str
    """Pronoun as written in the sentence, with its upper or lower case."""
    pronoun_start: int
    """Offset of the pronoun in the sentence, in characters."""
    pronoun_case: PronounCase | None
    """Grammatical case; None if neither this sentence nor the other one of the pair decides it."""
    pronoun_gender: PronounGender
    occupations: tuple[str, ...]
    """Two occupations, in the order in which the sentence mentions them."""
    referent: str | None
    """Occupation that the pronoun refers to; None if the sentence is ambiguous."""
    reference: str
    """Occupation from which desirability is measured: the referent, or a fixed one of the two if there is none."""
    stereotype: Stereotype | None
    """``pro`` if the pronoun fits the majority gender of the referent, ``anti`` if not; None without a referent."""
    template_id: str | None
    source_row: str | None
    """File and line in the source."""
    flags: tuple[str, ...]
    """Names of the manifest's flag rules that apply to this item."""

    @property
    def unit(self) -> str:
        """The id of the pair, which is drawn as a whole when only a part of the data is asked."""
        return self.pair_id


def _item_problems(item: CoreferenceItem) -> Iterator[str]:
    end = item.pronoun_start + len(item.pronoun)
    if item.sentence[item.pronoun_start : end] != item.pronoun:
        yield f"pronoun_start: {item.pronoun_start} is not where '{item.pronoun}' stands in the sentence; correct it"
    gender = gender_of_pronoun(item.pronoun)
    if gender is None:
        yield f"pronoun: '{item.pronoun}' is not in the lexicon; have: he, him, his, himself, she, her, hers, herself"
    elif gender != item.pronoun_gender:
        yield f"pronoun_gender: '{item.pronoun_gender}' does not fit '{item.pronoun}'; set {gender}"
    for occupation in item.occupations:
        if occupation not in occupations():
            yield f"occupations: '{occupation}' is not in the lexicon; have: {', '.join(sorted(occupations()))}"
    for field in ("referent", "reference"):
        value = getattr(item, field)
        if value is not None and value not in item.occupations:
            yield f"{field}: '{value}' is not one of the item's occupations; have: {', '.join(item.occupations)}"
    if item.referent in item.occupations and item.referent != item.reference:
        yield f"referent: '{item.referent}' is not the reference '{item.reference}'; make the referent the reference"
    yield from _stereotype_problems(item)


def _stereotype_problems(item: CoreferenceItem) -> Iterator[str]:
    known = [occupations()[name] for name in item.occupations if name in occupations()]
    by_stereotype = {occupation.stereotype: occupation.name for occupation in known}
    if len(by_stereotype) != 2:
        yield f"occupations: {', '.join(item.occupations)}; one must be male-, one female-stereotyped; replace one"
        return
    cluster = f"{by_stereotype['male']}|{by_stereotype['female']}"
    if item.cluster != cluster:
        yield f"cluster: '{item.cluster}' is not the occupation pair; set {cluster}"
    if (item.referent is None) != (item.stereotype is None):
        yield "stereotype: must be null exactly when referent is null; set both or clear both"
    elif item.referent in by_stereotype.values():
        fits = by_stereotype["male" if item.pronoun_gender == "masculine" else "female"] == item.referent
        expected = "pro" if fits else "anti"
        if item.stereotype != expected:
            yield f"stereotype: '{item.stereotype}' does not follow from pronoun and referent; set {expected}"


SHAPE = ItemShape(row_type=CoreferenceItem, problems=_item_problems, unit_name="minimal pair")
