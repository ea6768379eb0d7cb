"""Occupations and pronoun families, read from data files that name their sources.

This is the project's only table of either. Sentences pair the 20 male-stereotyped occupations with the 20
female-stereotyped ones, so adding a single occupation would break the design of pairs. A surface form can belong to
several families (``em`` belongs to *e* and to *ey*) and to several cases (``her`` is accusative and possessive), so
look-ups by form return tuples.

*pronoun_template* fills texts with pronouns; *coreference_cues* predicts answers, and whom a
pronoun means, from the wording alone.
*languages* has the families of German, Spanish and French; all else here is English.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import chain
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, cast, get_args

from biasboard.ground import strict_json

PronounCase: TypeAlias = Literal[
    "nominative", "accusative", "possessive_dependent", "possessive_independent", "reflexive"
]
PronounGender: TypeAlias = Literal["masculine", "feminine"]
PronounFamilyName: TypeAlias = Literal["he", "she", "they", "thon", "e", "ae", "co", "vi", "xe", "ey", "ze"]

CASES: tuple[PronounCase, ...] = get_args(PronounCase)

PRONOUN_CLASSES = {
    "binary": "binary, such as he and she",
    "neutral": "neutral, such as they",
    "neo": "neopronouns, such as xe",
}
"""Names for readers of the classes of pronoun families."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupation:
    """An occupation from WinoBias, with the percentage of women who work in it."""

    name: str
    percent_women: float
    stereotype: Literal["male", "female"]
    """The WinoBias list that the occupation is on: female if more than half of its workers are women."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PronounFamily:
    """A family of pronouns: one form for each of the five grammatical cases."""

    name: str
    pronoun_class: Literal["binary", "neutral", "neo"]
    forms: MappingProxyType[PronounCase, str]
    variants: MappingProxyType[PronounCase, tuple[str, ...]]
    """Other spellings that count as this family when pronouns are detected, such as *themselves*; no template is filled
    with them."""
    gifi_repo: MappingProxyType[PronounCase, str]
    """Forms that the published GIFI templates use instead, where they differ from ``forms``: *aer* for the nominative
    *ae*."""


def _data(name: str) -> dict[str, Any]:
    text = resources.files("schemas.lexicon").joinpath(name).read_text(encoding="utf-8")
    return cast(dict[str, Any], strict_json.loads(text, where=f"schemas/lexicon/{name}"))


@cache
def occupations() -> MappingProxyType[str, Occupation]:
    """Return the 40 occupations of WinoBias by name, in the order of the WinoBias README."""
    rows = _data("occupations.json")["occupations"]
    return MappingProxyType({row["name"]: Occupation(**row) for row in rows})


@cache
def pronoun_families() -> MappingProxyType[str, PronounFamily]:
    """Return the 11 pronoun families of GIFI by name, in the order that GIFI uses."""
    return MappingProxyType(
        {
            row["name"]: PronounFamily(
                name=row["name"],
                pronoun_class=row["pronoun_class"],
                forms=MappingProxyType(row["forms"]),
                variants=MappingProxyType({case: tuple(forms) for case, forms in row["variants"].items()}),
                gifi_repo=MappingProxyType(row["gifi_repo"]),
            )
            for row in _data("pronouns.json")["families"]
        }
    )


@cache
def _families_by_form() -> dict[str, tuple[str, ...]]:
    owners: dict[str, dict[str, None]] = {}
    for family in pronoun_families().values():
        variants = chain.from_iterable(family.variants.values())
        for form in (*family.forms.values(), *family.gifi_repo.values(), *variants):
            owners.setdefault(form, {})[family.name] = None
    return {form: tuple(names) for form, names in owners.items()}


def families_of(form: str) -> tuple[str, ...]:
    """Return the names of all families that have a surface form, ignoring case; empty if the word is not a pronoun.

    >>> families_of("Em")
    ('e', 'ey')
    """
    return _families_by_form().get(form.casefold(), ())


def cases_of(form: str, family: str) -> tuple[PronounCase, ...]:
    """Return every grammatical case in which a family uses a form.

    >>> cases_of("her", "she")
    ('accusative', 'possessive_dependent')
    """
    forms = pronoun_families()[family].forms
    return tuple(case for case in CASES if forms[case] == form.casefold())


def gender_of_pronoun(form: str) -> PronounGender | None:
    """Return the grammatical gender of a form of *he* or *she*, and None for any other word.

    >>> gender_of_pronoun("Hers"), gender_of_pronoun("they")
    ('feminine', None)
    """
    match families_of(form):
        case ("he",):
            return "masculine"
        case ("she",):
            return "feminine"
        case _:
            return None
