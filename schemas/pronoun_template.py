"""A text with slots: where a pronoun stands, in which case, and which verbs agree with it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from schemas.errors import DataError
from schemas.lexicon import PronounCase, pronoun_families

CASE_TAGS: Mapping[str, PronounCase] = {
    "nom": "nominative",
    "acc": "accusative",
    "pos": "possessive_dependent",
    "psi": "possessive_independent",
    "ref": "reflexive",
}
"""How the cases are written in the markup; with a capital letter where the pronoun begins a sentence."""

_PLURAL_VERBS = frozenset({"they"})
"""Families whose verbs are in the plural, also for one person."""

_MARK = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a pronoun stands."""

    case: PronounCase
    capital: bool = False


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb whose subject is the pronoun."""

    singular: str
    plural: str


Part: TypeAlias = str | Slot | Verb


@dataclass(frozen=True, slots=True)
class Template:
    """Text, slots and verbs in their order."""

    parts: tuple[Part, ...]

    @property
    def cases(self) -> tuple[PronounCase, ...]:
        """Of the slots."""
        return tuple(part.case for part in self.parts if isinstance(part, Slot))

    @property
    def ends_in_slot(self) -> bool:
        """Whether nothing comes after the last pronoun, not even a full stop."""
        return isinstance(self.parts[-1], Slot)

    def fill(self, family: str, *, as_published: bool = False) -> str:
        """The text in one pronoun family.

        Args:
            family: Of the lexicon.
            as_published: With the forms of the published GIFI templates, and all verbs in the singular.

        >>> parse("{Nom} {is|are} late, and the blame is {psi}.").fill("they")
        'They are late, and the blame is theirs.'
        """
        entry = pronoun_families()[family]
        plural = family in _PLURAL_VERBS and not as_published
        pieces = []
        for part in self.parts:
            if isinstance(part, Slot):
                form = entry.forms[part.case]
                if as_published:
                    form = entry.gifi_repo.get(part.case, form)
                pieces.append(form[:1].upper() + form[1:] if part.capital else form)
            elif isinstance(part, Verb):
                pieces.append(part.plural if plural else part.singular)
            else:
                pieces.append(part)
        return "".join(pieces)


def parse(text: str, *, where: str = "template") -> Template:
    """Read the markup of a text.

    Args:
        text: ``{nom}``, ``{acc}``, ``{pos}``, ``{psi}``, ``{ref}`` and their capitalised forms are slots,
            ``{singular|plural}`` is a verb.
        where: What errors call it.

    Raises:
        DataError: a mark is unknown or a brace stands alone, or the text has no slot.
    """
    parts = tuple(part for part in _parts(text, where) if part != "")
    if not any(isinstance(part, Slot) for part in parts):
        raise DataError(f"{where}: has no slot for a pronoun; write one, such as {{nom}}")
    return Template(parts)


def _parts(text: str, where: str) -> Iterator[Part]:
    end = 0
    for mark in _MARK.finditer(text):
        yield _plain(text[end : mark.start()], where)
        yield _marked(mark[1], where)
        end = mark.end()
    yield _plain(text[end:], where)


def _plain(text: str, where: str) -> str:
    if "{" in text or "}" in text:
        raise DataError(f"{where}: a brace stands alone in '{text[:60]}'; close it or remove it")
    return text


def _marked(mark: str, where: str) -> Part:
    singular, bar, plural = mark.partition("|")
    if bar and singular and plural:
        return Verb(singular, plural)
    case = CASE_TAGS.get(mark.lower())
    if case is None or mark not in (mark.lower(), mark.capitalize()):
        raise DataError(f"{where}: mark '{{{mark}}}' is unknown; have: {', '.join(CASE_TAGS)}, singular|plural")
    return Slot(case, capital=mark[0].isupper())
