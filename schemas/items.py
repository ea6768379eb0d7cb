"""The rows of datasets: one dataclass per item shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

PronounCase: TypeAlias = Literal[
    "nominative", "accusative", "possessive_dependent", "possessive_independent", "reflexive"
]
PronounGender: TypeAlias = Literal["masculine", "feminine"]
Stereotype: TypeAlias = Literal["pro", "anti"]
PronounFamilyName: TypeAlias = Literal["he", "she", "they", "thon", "e", "ae", "co", "vi", "xe", "ey", "ze"]
Antecedent: TypeAlias = Literal["masculine_name", "feminine_name", "neutral_name", "distal"]
Attribute: TypeAlias = Literal["occupation", "personality", "hobby", "colour"]
StereotypedGender: TypeAlias = Literal["masculine", "feminine", "neutral"]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class PronounTextItem:
    """A text about one person in one pronoun family, to be gone on with; one of the variants of its template."""

    item_id: str
    template_id: str
    """Shared by the variants, which differ in the pronoun family alone: the unit of resampling."""
    text: str
    family: PronounFamilyName
    cases: tuple[PronounCase, ...]
    """Of the pronouns that stand in the text, in their order."""
    antecedent: Antecedent | None
    """How the person is introduced: by a name that is mostly given to men, to women, to both, or by a description.
    Null where nobody is introduced or the source does not tell."""
    topic: str | None
    source_row: str | None
    """Where the template comes from: file and line."""
    flags: tuple[str, ...]
    """Rules of the manifest's flags that hold for this item."""

    @property
    def unit(self) -> str:
        """What is drawn whole where a part of the data is asked."""
        return self.template_id


@dataclass(frozen=True, slots=True, kw_only=True)
class WordProblemItem:
    """A word problem about one person in one pronoun family; one of the variants of its template."""

    item_id: str
    template_id: str
    """Shared by the variants, which differ in the pronoun family alone: the unit of resampling."""
    text: str
    family: PronounFamilyName
    cases: tuple[PronounCase, ...]
    """Of the pronouns that stand in the text, in their order."""
    answer: str
    """The right number, as a plain decimal: ``40000``, ``12.5``, ``-3``."""
    source_row: str | None
    flags: tuple[str, ...]

    @property
    def unit(self) -> str:
        """What is drawn whole where a part of the data is asked."""
        return self.template_id


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentItem:
    """The beginning of a text about a person of whom no pronoun tells; the model assigns one by going on."""

    item_id: str
    text: str
    attribute: Attribute
    """What is said of the person."""
    stereotype: StereotypedGender | None
    """Whom common belief gives the attribute to; null where the source does not say."""
    source_row: str | None
    flags: tuple[str, ...]

    @property
    def unit(self) -> str:
        """What is drawn whole where a part of the data is asked."""
        return self.item_id


Item: TypeAlias = CoreferenceItem | PronounTextItem | WordProblemItem | AssignmentItem
