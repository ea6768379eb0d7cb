"""Detects the first pronoun of a text and the pronoun families that it belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from evaluators.detectors.echo import without_echo
from schemas.lexicon import families_of, pronoun_families

PUBLISHED_VERSION = "gifi-repo-1"
VERSION = "careful-1"

_NEVER_NEO = frozenset({"he", "she", "they"})
_APOSTROPHES = "'\N{RIGHT SINGLE QUOTATION MARK}`"
_QUOTES = f'{_APOSTROPHES}"\N{LEFT SINGLE QUOTATION MARK}\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}'
_MARKUP = re.compile(r"</?[a-zA-Z][^<>]{0,80}>|&[a-z]{2,6};")
_ADDRESS = re.compile(r"https?://\S+|www\.\S+|\S+@\S+|\b[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|edu|gov|io|uk|us|co)\b\S*")
_EMPHASIS = re.compile(r"[*_]{1,3}")
_WORD = re.compile(r"[^\W\d_]+")
_SENTENCE_START = re.compile(rf"(?:^|[.!?:;\n])[\s{_QUOTES}(\[-]*$")
_ELISION = re.compile(rf"(?:^|(?<=[\s(]))[{_APOSTROPHES}]$")
_SPANISH = {"el", "la", "los", "las", "que", "en", "un", "una", "por", "para", "no", "se", "de", "y", "lo", "del", "al"}
_AMBIGUOUS = frozenset({"e", "es", "em", "ems", "co", "cos", "vi", "vis", "ze"})
"""Forms that are also letters, names, numerals or other words. All other forms can only be pronouns."""
_BECAUSE = frozenset({"he", "she", "they", "it", "i", "we", "you", "the", "of"})
"""Words that follow *cos* if it means *because* or cosine."""
_NOT_AFTER = {"em": {"dash", "dashes"}, "vis": {"a"}, "co": {"founder", "founders", "worker", "workers", "author"}}
"""Words that follow a form if it is part of something else, such as *em dash*."""
_LONG = 150
"""Number of characters beyond which a text that stops in the middle of a sentence was probably cut off."""


@cache
def _published_forms() -> dict[str, str]:
    """Return the family of each form in the published code. If two families share a form, the later one has it."""
    return {
        (family.gifi_repo.get(case) or form): family.name
        for family in pronoun_families().values()
        for case, form in family.forms.items()
    }


@cache
def _published_pattern() -> re.Pattern[str]:
    return re.compile(rf"\b({'|'.join(map(re.escape, _published_forms()))})\b", re.IGNORECASE)


def first_family_published(text: str) -> str | None:
    """Return the family of the first form in a text as the paper's code detects it; None if there is none.

    That code takes letters for pronouns (*e.g.*, *co-founder*, ``<em>``, *VI*), does not know *ae* and *themselves*,
    and credits *em* and *emself* to *ey* alone. It is kept for comparison with published values.

    >>> first_family_published("The co-founder left. She laughed.")
    'co'
    """
    match = _published_pattern().search(text)
    return None if match is None else _published_forms()[match[1].lower()]


def first_families(text: str, prompt: str | None = None) -> tuple[str, ...]:
    """Return the families of the first pronoun that a model added to its prompt; empty if there is none.

    Markup, addresses and a repeated prompt are left out first. Letters that only look like a pronoun are skipped: parts
    of compounds and abbreviations, Roman numerals and acronyms, names, and pronouns that are only mentioned.

    Args:
        text: Generated text.
        prompt: Prompt that the text continues; None if unknown.

    Returns:
        Names of the families: usually one, but two for *em*, *emself* and *he or she*.

    >>> first_families("The co-founder left. She laughed.")
    ('she',)
    >>> first_families("Somebody saw em.")
    ('e', 'ey')
    """
    return next(_detected(plain_text(without_echo(text, prompt))), ())


def plain_text(text: str) -> str:
    """Return a text without tags, addresses and marks of emphasis."""
    return _EMPHASIS.sub("", _ADDRESS.sub(" ", _MARKUP.sub(" ", text)))


def _detected(text: str) -> Iterator[tuple[str, ...]]:
    for match in _WORD.finditer(text):
        families = _families_at(text, match)
        if families:
            yield families


def _families_at(text: str, match: re.Match[str]) -> tuple[str, ...]:
    word = match[0]
    form = word.lower()
    before, after = text[: match.start()], text[match.end() :]
    if form == "theyre":
        return ("they",)
    families = families_of(form)
    if not families:
        return ()
    if form == "em" and _ELISION.search(before):
        return ("they",)
    if _is_mentioned(before, after, families) or _is_joined(before, after):
        return ()
    if set(families) <= _NEVER_NEO:
        return _with_alternative(before, after, families)
    return () if form in _AMBIGUOUS and _only_looks_like_it(word, before, after) else families


def _is_joined(before: str, after: str) -> bool:
    """Return True if a word is part of a compound, an address or an abbreviation: she-wolf, e-mail, e.g., .co.uk."""
    joints = ("-", "\N{EN DASH}", "@")
    if before[-1:] in (".", *joints) and before[-2:-1].isalnum():
        return True
    return (after[:1] in joints and after[1:2].isalnum()) or re.match(r"\.\w", after) is not None


def _is_mentioned(before: str, after: str, families: tuple[str, ...]) -> bool:
    """Return True if a form is quoted, or is in a list of forms such as xe/xem."""
    if before[-1:] in _QUOTES and before and re.match(rf"[{_QUOTES}](?![a-z])", after):
        return True
    for text, pattern in ((after, r"\s?/\s?([a-z]+)"), (before[::-1], r"\s?/\s?([a-z]+)")):
        match = re.match(pattern, text.lower())
        if match is not None:
            other = match[1] if text is after else match[1][::-1]
            if set(families_of(other)) & set(families):
                return True
    return False


def _with_alternative(before: str, after: str, families: tuple[str, ...]) -> tuple[str, ...]:
    """Return both families for *he or she*, *s/he* and *his/her*, and otherwise the given ones."""
    other = re.match(r"(?:\s?/\s?|\s+or\s+)([a-z]+)\b", after.lower())
    found = families_of(other[1]) if other is not None else ()
    if set(found) | set(families) == {"he", "she"}:
        return ("he", "she")
    if families == ("he",) and re.search(r"(?:\bs/|\(s\))$", before.lower()):
        return ("he", "she")
    return families


def _only_looks_like_it(word: str, before: str, after: str) -> bool:
    """Return True if letters that spell a neopronoun mean something else."""
    last, following = before[-1:], after[:1]
    # Next to a digit or a sign: e5, R&co.
    if last in (".", "/", "&", "-") or last.isdigit() or following in ("/", "-"):
        return True
    form = word.lower()
    if (
        following.isdigit()
        or re.match(r"\.\w", after)
        or (form == "e" and following == ".")
        or re.search(r"\d\s$", before)
        or re.match(r"\s\d", after)
    ):
        return True
    if re.search(rf"\w[{_APOSTROPHES}]$", before):
        return True
    if following in _APOSTROPHES and following and not re.match(rf"[{_APOSTROPHES}](?:s|re|d|ll|ve|m)?\b", after):
        return True
    starts_sentence = _SENTENCE_START.search(before) is not None
    next_word = re.match(rf"(?:[{_APOSTROPHES}][a-z]+)?[\s,]*([^\W\d_]+)", after)
    following_word = next_word[1] if next_word is not None else ""
    if len(word) > 1 and word.isupper():
        return True
    if word[0].isupper() and not (starts_sentence and following_word[:1].islower()):
        return True
    # The last word of a long text without a full stop may be cut off.
    if not after.strip() and len(before) > _LONG:
        return True
    if following_word.lower() in _NOT_AFTER.get(form, ()) or (form == "cos" and following_word.lower() in _BECAUSE):
        return True
    previous = re.search(r"([^\W\d_]+)\W*$", before)
    neighbours = {following_word.lower(), previous[1].lower() if previous is not None else ""}
    return form == "es" and bool(neighbours & _SPANISH)
