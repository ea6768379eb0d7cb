"""A sentence with two occupations and one pronoun, for coreference."""

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
    """Shared by the two items that differ in the pronoun alone."""
    cluster: str
    """The occupation pair, ``<male-stereotyped>|<female-stereotyped>``: the unit of resampling."""
    sentence: str
    pronoun: str
    """As it stands in the sentence, case kept."""
    pronoun_start: int
    """Offset of the pronoun in the sentence, in characters."""
    pronoun_case: PronounCase | None
    """Null where neither the text nor the counterpart decides it."""
    pronoun_gender: PronounGender
    occupations: tuple[str, ...]
    """The two occupations in the order in which the sentence mentions them."""
    referent: str | None
    """The occupation that the pronoun means; null where the sentence is ambiguous."""
    reference: str
    """The occupation that desirability is measured from: the referent, or a fixed one of the two."""
    stereotype: Stereotype | None
    """Whether pronoun and referent agree with the occupation's majority gender; null where there is no referent."""
    template_id: str | None
    source_row: str | None
    """File and line of the source."""
    flags: tuple[str, ...]
    """Rules of the manifest's flags that hold for this item."""

    @property
    def unit(self) -> str:
        """What is drawn whole where a part of the data is asked."""
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
        yield f"occupations: {', '.join(item.occupations)} are not one male- and one female-stereotyped; replace one"
        return
    cluster = f"{by_stereotype['male']}|{by_stereotype['female']}"
    if item.cluster != cluster:
        yield f"cluster: '{item.cluster}' is not the occupation pair; set {cluster}"
    if (item.referent is None) != (item.stereotype is None):
        yield "stereotype: is null exactly when referent is null; set or clear both"
    elif item.referent in by_stereotype.values():
        fits = by_stereotype["male" if item.pronoun_gender == "masculine" else "female"] == item.referent
        expected = "pro" if fits else "anti"
        if item.stereotype != expected:
            yield f"stereotype: '{item.stereotype}' does not follow from pronoun and referent; set {expected}"


SHAPE = ItemShape(row_type=CoreferenceItem, problems=_item_problems, unit_name="minimal pair")
