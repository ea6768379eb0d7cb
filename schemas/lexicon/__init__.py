"""Occupations and pronoun families, as data with their sources; nobody else keeps a table of them.

A surface form can belong to several families (``em`` is of *e* and of *ey*) and to several cases (``her`` is
accusative and possessive), so that look-ups by form return tuples.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, cast

from schemas import strict_json

PronounCase: TypeAlias = Literal[
    "nominative", "accusative", "possessive_dependent", "possessive_independent", "reflexive"
]
PronounGender: TypeAlias = Literal["masculine", "feminine"]
PronounFamilyName: TypeAlias = Literal["he", "she", "they", "thon", "e", "ae", "co", "vi", "xe", "ey", "ze"]

CASES: tuple[PronounCase, ...] = (
    "nominative",
    "accusative",
    "possessive_dependent",
    "possessive_independent",
    "reflexive",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupation:
    """An occupation of WinoBias with the share of women in it."""

    name: str
    percent_women: float
    stereotype: Literal["male", "female"]
    """The list that it stands on in WinoBias: female where more than half are women."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PronounFamily:
    """A pronoun in its five cases."""

    name: str
    pronoun_class: Literal["binary", "neutral", "neo"]
    forms: MappingProxyType[PronounCase, str]
    variants: MappingProxyType[PronounCase, tuple[str, ...]]
    """Other spellings that count as the family when it is detected, but are never written."""
    gifi_repo: MappingProxyType[PronounCase, str]
    """Forms that the published GIFI templates use instead."""


def _data(name: str) -> dict[str, Any]:
    text = resources.files("schemas.lexicon").joinpath(name).read_text(encoding="utf-8")
    return cast(dict[str, Any], strict_json.loads(text, where=f"schemas/lexicon/{name}"))


@cache
def occupations() -> MappingProxyType[str, Occupation]:
    """The 40 occupations of WinoBias by name, in the order of its README."""
    rows = _data("occupations.json")["occupations"]
    return MappingProxyType({row["name"]: Occupation(**row) for row in rows})


@cache
def pronoun_families() -> MappingProxyType[str, PronounFamily]:
    """The 11 pronoun families of GIFI by name, in its order."""
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
def _families_by_form() -> MappingProxyType[str, tuple[str, ...]]:
    owners: dict[str, list[str]] = {}
    for family in pronoun_families().values():
        spellings = [*family.forms.values(), *family.gifi_repo.values()]
        for forms in family.variants.values():
            spellings.extend(forms)
        for form in spellings:
            names = owners.setdefault(form, [])
            if family.name not in names:
                names.append(family.name)
    return MappingProxyType({form: tuple(names) for form, names in owners.items()})


def families_of(form: str) -> tuple[str, ...]:
    """Every family that owns a surface form, case ignored; empty for a word that is no pronoun.

    >>> families_of("Em")
    ('e', 'ey')
    """
    return _families_by_form().get(form.casefold(), ())


def cases_of(form: str, family: str) -> tuple[PronounCase, ...]:
    """Every case in which a family has this form.

    >>> cases_of("her", "she")
    ('accusative', 'possessive_dependent')
    """
    forms = pronoun_families()[family].forms
    return tuple(case for case in CASES if forms[case] == form.casefold())


def gender_of_pronoun(form: str) -> PronounGender | None:
    """Grammatical gender of a binary pronoun; null for every other word.

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
