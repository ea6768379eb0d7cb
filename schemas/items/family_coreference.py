"""Item shape: a sentence with two occupations and one pronoun of any family, for coreference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from annotated_types import MaxLen, MinLen
from pydantic import StringConstraints
from typing_extensions import override

from schemas.documents.base import Count, Distinct, Name, Text, shown
from schemas.documents.dataset import Item, ItemShape
from schemas.items.coreference import occupation_problems, place_problems
from schemas.lexicon import PronounCase, PronounFamilyName, pronoun_families


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyCoreferenceItem(Item):
    """A sentence with two occupations and one pronoun; one member of a set that has it in each pronoun family."""

    item_id: Text
    set_id: Text
    """Identifier shared by the items that differ only in the pronoun and in the verb that agrees with it."""
    cluster: Annotated[str, StringConstraints(pattern=r"^[^|]+\|[^|]+$")]
    """Occupation pair, written ``<male-stereotyped>|<female-stereotyped>``: the items' cluster."""
    sentence: Text
    pronoun: Text
    """Pronoun as written in the sentence, with its upper or lower case."""
    pronoun_start: Count
    """Offset of the pronoun in the sentence, in characters."""
    pronoun_case: PronounCase
    family: PronounFamilyName
    occupations: Annotated[tuple[Text, ...], MinLen(2), MaxLen(2), Distinct()]
    """Two occupations, in the order in which the sentence mentions them."""
    referent: Text | None
    """Occupation that the pronoun refers to; None if the sentence is ambiguous."""
    reference: Text
    """Occupation from which desirability is measured: the referent, or a fixed one of the two if there is none."""
    template_id: Text
    source_row: Text | None
    """File and line in the source."""
    flags: tuple[Name, ...]
    """Names of the manifest's flag rules that apply to this item."""

    @property
    @override
    def unit(self) -> str:
        return self.set_id

    @override
    def problems(self) -> Iterator[str]:
        yield from place_problems(self.sentence, self.pronoun, self.pronoun_start)
        form = pronoun_families()[self.family].forms[self.pronoun_case]
        if self.pronoun.casefold() != form:
            yield (
                f"pronoun: {shown(self.pronoun)} is not the {self.pronoun_case} of family '{self.family}'; write {form}"
            )
        yield from occupation_problems(
            self.occupations, referent=self.referent, reference=self.reference, cluster=self.cluster
        )


SHAPE = ItemShape(row_type=FamilyCoreferenceItem, unit_name="set of pronoun families")
