"""The pronoun families of German, Spanish and French, each read from a data file that names its sources.

These languages have other cases than English, and a family lacks the cases whose form no source states.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Literal, TypeAlias

from biasboard.ground.errors import DataError
from biasboard.ground.files import packaged_toml

Language: TypeAlias = Literal["german", "spanish", "french"]
LANGUAGE_CODES: Mapping[Language, str] = MappingProxyType({"german": "de", "spanish": "es", "french": "fr"})
"""The languages with their ISO 639-1 codes."""

_SLOT = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageFamily:
    """A family of pronouns for one person in a language other than English."""

    name: str
    """Its nominative."""
    pronoun_class: Literal["binary", "neo"]
    sources: tuple[str, ...]
    """Keys of the sources that state its forms."""
    forms: Mapping[str, str]
    """Form of each case that texts are filled with."""
    variants: tuple[str, ...] = ()
    """Other spellings and forms that count as this family when pronouns are detected."""


@cache
def sources_in(language: Language) -> tuple[Mapping[str, str], ...]:
    """Return the sources of a language's families: their keys, addresses, dates, and what they state."""
    return tuple(packaged_toml("schemas.lexicon", f"{language}.toml")["source"])


@cache
def families_in(language: Language) -> Mapping[str, LanguageFamily]:
    """Return the families of a language by name: the masculine, the feminine, then the others, most used first."""
    return MappingProxyType(
        {
            row["name"]: LanguageFamily(
                **{**row, "sources": tuple(row["sources"]), "variants": tuple(row.get("variants", ()))}
            )
            for row in packaged_toml("schemas.lexicon", f"{language}.toml")["family"]
        }
    )


@cache
def _families_by_form(language: Language) -> Mapping[str, tuple[str, ...]]:
    owners: dict[str, dict[str, None]] = {}
    for family in families_in(language).values():
        for form in (*family.forms.values(), *family.variants):
            owners.setdefault(form, {})[family.name] = None
    return {form: tuple(names) for form, names in owners.items()}


def families_with(form: str, language: Language) -> tuple[str, ...]:
    """Return the names of all families of a language that have a form, ignoring case; empty for any other word.

    >>> families_with("Ihm", "german"), families_with("soi", "french")
    (('er',), ())
    """
    return _families_by_form(language).get(form.casefold(), ())


def cases_of_slots(text: str) -> tuple[str, ...]:
    """Return the cases of the slots of a text, in their order.

    >>> cases_of_slots("{Nominative} liest, und es gefällt {dative}, weil")
    ('nominative', 'dative')
    """
    return tuple(match[1].lower() for match in _SLOT.finditer(text))


def fill(text: str, family: LanguageFamily, *, where: str) -> str:
    """Return a text with its slots filled with the forms of a family; a capitalised slot begins a sentence.

    Raises:
        DataError: the family has no form for a slot.
    """

    def form(match: re.Match[str]) -> str:
        case = match[1].lower()
        if case not in family.forms:
            have = ", ".join(family.forms)
            raise DataError(f"{where}: family '{family.name}' has no form for '{{{match[1]}}}'; have: {have}")
        filled = family.forms[case]
        return filled[0].upper() + filled[1:] if match[1][0].isupper() else filled

    return _SLOT.sub(form, text)
