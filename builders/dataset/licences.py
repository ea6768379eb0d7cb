"""What licences allow: which let converted copies be shared, and texts that no published dataset may hold.

The protected texts themselves may not be in this repository, but their digests may. A digest ignores case, punctuation
and the choice of third-person pronouns, so that it also recognises an adapted copy: the other side of a minimal pair,
or a variant in another pronoun family.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from biasboard.ground.errors import ConfigError
from biasboard.ground.plain_text import printable
from schemas.lexicon import pronoun_families

OPEN_LICENCES = (
    *("CC0-1.0", "PDDL-1.0", "CC-BY-4.0", "CC-BY-3.0", "CC-BY-SA-4.0", "CC-BY-SA-3.0", "ODC-By-1.0"),
    *("MIT", "Apache-2.0", "BSD-3-Clause"),
)
"""Licences that allow sharing converted copies, by their SPDX identifiers."""
UNKNOWN = "unknown"
"""Licence of data whose user states none."""
_EXPRESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+() -]{0,99}")


def checked_licence(licence: str | None) -> str | None:
    """Return a licence that a user states.

    Raises:
        ConfigError: it is neither an SPDX identifier nor an expression of some.
    """
    if licence is not None and not _EXPRESSION.fullmatch(licence):
        raise ConfigError(
            f"--licence {printable(licence, most=60)}: is no SPDX identifier; write one, such as CC-BY-4.0"
        )
    return licence


def licence_terms(licence: str | None, what: str) -> str:
    """Return what a card says of the licence that the user states; None if it is not known."""
    if licence is None:
        return f"The licence of the {what} is not known: whoever built this dataset did not state it."
    return f"Whoever built this dataset states that the {what} are licensed under {licence}."


def publish_refusal(licence: str | None, what: str) -> str | None:
    """Return the reason why data must not be published; None if its licence allows sharing converted copies.

    ``what`` is a noun in the plural for the data, such as ``images``.
    """
    if licence is None:
        return f"the licence of the {what} is not known; build with --licence if it allows sharing copies"
    if licence not in OPEN_LICENCES:
        return (
            f"the licence {licence} is not known to allow sharing copies (known are {', '.join(OPEN_LICENCES)}); "
            f"publish scores and hashes in place of the {what}"
        )
    return None


N_BYTES = 8
"""Length of a digest: the chance that any of a million other texts has one of 16,000 digests is one in a billion."""
_PERSON = b"biasboard texts"
_MASK = "_"
_WORD = re.compile(r"[^\W_]+")
_BORDER = re.compile(r'[\n\t|"“”<>]|:\s|(?<=[.!?])\s')
"""Borders of a quoted text inside a longer one, such as a prompt or a table."""
_OBJECT = re.compile(r"\{[^{}]*\}")
_BEFORE, _AFTER = "before", "after"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectedSource:
    """Published data whose texts must not be shared, not even adapted or in extracts."""

    name: str
    refusal: str
    """Why not, and what may be published instead."""
    file_sha256s: tuple[str, ...]
    """SHA-256 of the published files."""
    digests: Path
    """File with the digests of all its texts, made by :func:`packed`."""


def packed(texts: Iterable[str]) -> bytes:
    """Return the content of a file of digests: those of the texts, sorted, without duplicates."""
    return b"".join(sorted({digest(text) for text in texts}))


@cache
def digests_of(path: Path) -> frozenset[bytes]:
    """Read a file of digests."""
    content = path.read_bytes()
    return frozenset(content[start : start + N_BYTES] for start in range(0, len(content), N_BYTES))


def digest(text: str) -> bytes:
    """Return the digest of a text, shared by texts that differ only in case, punctuation and pronouns."""
    forms = _pronouns()
    words = (_MASK if word in forms else word for word in _WORD.findall(text.casefold()))
    return hashlib.blake2b(" ".join(words).encode(), digest_size=N_BYTES, person=_PERSON).digest()


@cache
def _pronouns() -> frozenset[str]:
    return frozenset(form.casefold() for family in pronoun_families().values() for form in family.forms.values())


def holds_protected(text: str, digests: frozenset[bytes]) -> bool:
    """Return True if a text is protected, or quotes a protected one.

    A quotation is enclosed by borders such as line breaks, or is stored in pieces in a JSON object.
    """
    return any(digest(part) in digests for part in _parts(text))


def _parts(text: str) -> Iterator[str]:
    yield text
    # A model that is asked for sentences may recite a protected one; prompts, tables and JSON embed it in other text.
    if _BORDER.search(text) is not None:
        yield from text.splitlines()
        yield from _BORDER.split(text)
    if _BEFORE in text:
        for match in _OBJECT.findall(text):
            yield from _parts_of_object(match)


def _parts_of_object(text: str) -> Iterator[str]:
    # JSON inside a JSON string has a backslash before each quotation mark.
    for spelling in (text, text.replace('\\"', '"')):
        try:
            sentence = sentence_in_parts(json.loads(spelling, strict=False))
        except ValueError:
            continue
        if sentence is not None:
            yield sentence
            yield from _BORDER.split(sentence)


def sentence_in_parts(value: object) -> str | None:
    """Return the sentence of a JSON object that stores the texts before and after a pronoun; None for other values.

    Any pronoun is put between, since all give the same digest.
    """
    if not isinstance(value, dict):
        return None
    before, after = value.get(_BEFORE), value.get(_AFTER)
    if not isinstance(before, str) or not isinstance(after, str):
        return None
    return f"{before} {min(_pronouns())} {after}"
