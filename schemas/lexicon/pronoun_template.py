"""Texts that exist in several pronoun families: templates to fill, and the rules that hold for each filled variant.

A template has slots for pronouns in a given case, and verbs that agree with the pronoun.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from biasboard.ground.errors import DataError
from schemas.lexicon import PronounCase, PronounFamilyName, pronoun_families

CASE_TAGS: Mapping[str, PronounCase] = {
    "nom": "nominative",
    "acc": "accusative",
    "pos": "possessive_dependent",
    "psi": "possessive_independent",
    "ref": "reflexive",
}
"""Grammatical case of each tag in the markup. The tag of a pronoun that begins a sentence is capitalised."""

_PLURAL_VERBS = frozenset({"they"})
"""Families that take plural verbs even when they refer to one person."""

_MARK = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot of a template, to be filled with a pronoun."""

    case: PronounCase
    capital: bool = False


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb whose subject is the pronoun, in its singular and plural forms."""

    singular: str
    plural: str


Part: TypeAlias = str | Slot | Verb


@dataclass(frozen=True, slots=True)
class Template:
    """A text as a sequence of plain strings, pronoun slots and verbs."""

    parts: tuple[Part, ...]

    @property
    def cases(self) -> tuple[PronounCase, ...]:
        """The grammatical cases of the slots, in the order of the text."""
        return tuple(part.case for part in self.parts if isinstance(part, Slot))

    @property
    def ends_in_slot(self) -> bool:
        """True if the text ends with a pronoun, without even a full stop after it."""
        return isinstance(self.parts[-1], Slot)

    def fill(self, family: str, *, as_published: bool = False) -> str:
        """Return the text with its slots and verbs filled for one pronoun family.

        Args:
            family: Name of a pronoun family in the lexicon.
            as_published: True to use the forms of the published GIFI templates and keep all verbs in the singular.

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
    """Parse the markup of a text into a template.

    Args:
        text: Text with markup: ``{nom}``, ``{acc}``, ``{pos}``, ``{psi}``, ``{ref}`` and their capitalised forms are
            slots, and ``{singular|plural}`` is a verb.
        where: Name of the text in error messages.

    Raises:
        DataError: a mark is unknown, a brace has no partner, or the text has no slot.
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


@cache
def _pattern_of(family: PronounFamilyName) -> re.Pattern[str]:
    """Return the pattern of all forms of a family; cached, because the check of every item needs one."""
    entry = pronoun_families()[family]
    forms = "|".join(map(re.escape, {*entry.forms.values(), *entry.gifi_repo.values()}))
    return re.compile(rf"\b(?:{forms})\b", re.IGNORECASE)


def variant_problems(
    text: str, family: PronounFamilyName, cases: Sequence[PronounCase], *, item_id: str, template_id: str
) -> Iterator[str]:
    """Yield a line for each rule that a text in one pronoun family breaks.

    ``item_id`` begins with the ``template_id``, which all variants of one template share.
    """
    n_forms = len(_pattern_of(family).findall(text))
    if n_forms < len(cases):
        yield f"cases: lists {len(cases)} pronouns, the text has {n_forms} of family '{family}'; correct one"
    if not item_id.startswith(template_id):
        yield f"item_id: '{item_id}' does not begin with its template_id '{template_id}'; correct one"
