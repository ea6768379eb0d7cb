"""Detects the first pronoun of a text, or all, and the pronoun families that each belongs to.

Neopronouns are easily mistaken. In 28,547 published answers to prompts without a pronoun, the published detector
reports a neopronoun 32 times, and each is something else: *e.g.*, *co-founder*, an HTML tag, a Spanish word. Ours was
tested on 749 answers labelled by hand, 255 of them unseen while it was written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from typing import NamedTuple, TypeAlias

from evaluators.tasks.pronouns.detectors.echo import FamiliesOf, echo_end, without_echo
from schemas.lexicon import families_of, pronoun_families

_NEVER_NEO = frozenset({"he", "she", "they"})
_APOSTROPHES = "'\N{RIGHT SINGLE QUOTATION MARK}`"
_QUOTES = f'{_APOSTROPHES}"\N{LEFT SINGLE QUOTATION MARK}\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}'
_MARKUP = re.compile(r"</?[a-zA-Z][^<>]{0,80}>|&[a-z]{2,6};")
# Each pattern takes time linear in the text: a possessive quantifier (*+, ++) never backtracks, and what precedes a
# word is matched in the few characters before it.
_MAY_BE_ADDRESS = re.compile(r"(?<!\S)[^\s@.:]*+[@.:]\S*+")
_MAIL = re.compile(r"(?<!^)@(?!$)")
_LINK = re.compile(r"(?:https?://|www\.)\S")
_LABELS = re.compile(r"[\w-]++(?:\.[\w-]++)*+")
_HOST = re.compile(r"[.-]*+(?P<name>\w)[\w.-]*?\.(?:com|org|net|edu|gov|io|uk|us|co)\b")
_EMPHASIS = re.compile(r"[*_]{1,3}")
_WORD = re.compile(r"[^\W\d_]+")
_OPENING = re.compile(rf"[\s{_QUOTES}(\[-]*+")
_ELISION = re.compile(rf"(?<![^\s(])[{_APOSTROPHES}]$")
_OR = re.compile(r"\s?/\s?|\s++(?i:or)\s++")
_NEXT_WORD = re.compile(rf"(?:[{_APOSTROPHES}][a-z]+)?[\s,]*([^\W\d_]+)")
_NO_WORD = re.compile(r"\W*+")
_REST = re.compile(r"\s*+\Z")
_NEAR = 40
"""Number of characters before and after a word that count as its context; every pronoun form is shorter."""
_SPANISH = {"el", "la", "los", "las", "que", "en", "un", "una", "por", "para", "no", "se", "de", "y", "lo", "del", "al"}
_AMBIGUOUS = frozenset({"e", "es", "em", "ems", "co", "cos", "vi", "vis", "ze"})
"""Forms that can also be letters, names, numerals or other words; all other forms are always pronouns."""
_BECAUSE = frozenset({"he", "she", "they", "it", "i", "we", "you", "the", "of"})
"""Words that follow *cos* if it means *because* or cosine."""
_NOT_AFTER = {"em": {"dash", "dashes"}, "vis": {"a"}, "co": {"founder", "founders", "worker", "workers", "author"}}
"""Words that show, directly after a form, that it is part of something else, such as *em dash*."""
_LONG = 150
"""Number of characters beyond which a text that ends in mid-sentence was probably cut off."""


@cache
def _published_forms() -> tuple[dict[str, str], re.Pattern[str]]:
    """Return the family of each form in the published code, and the pattern of all forms.

    If two families share a form, the later one wins.
    """
    family_of = {
        (family.gifi_repo.get(case) or form): family.name
        for family in pronoun_families().values()
        for case, form in family.forms.items()
    }
    return family_of, re.compile(rf"\b({'|'.join(map(re.escape, family_of))})\b", re.IGNORECASE)


def first_family_published(text: str) -> str | None:
    """Return the family of the first form in a text as the paper's code detects it; None if there is none.

    That code mistakes letters for pronouns (*e.g.*, *co-founder*, ``<em>``, *VI*), does not know *ae* and *themselves*,
    and counts *em* and *emself* for *ey* alone. It is kept for comparison with published values.

    >>> first_family_published("The co-founder left. She laughed.")
    'co'
    """
    family_of, pattern = _published_forms()
    match = pattern.search(text)
    return None if match is None else family_of[match[1].lower()]


def all_families(text: str, prompt: str | None = None) -> list[tuple[float, tuple[str, ...]]]:
    """Return where each pronoun begins that a model added to its prompt, and its families, in order.

    Places are shares of the text that is left without markup, addresses and a repeated prompt, in [0, 1). Two families
    named in one place, as in *he or she*, are one pronoun.

    Args:
        text: Generated text.
        prompt: Prompt that the text continues; None if unknown.

    >>> all_families("Xe left. He or she saw em.")
    [(0.0, ('xe',)), (0.34615384615384615, ('he', 'she')), (0.8846153846153846, ('e', 'ey'))]
    """
    plain = plain_text(without_echo(text, prompt))
    found: list[tuple[float, tuple[str, ...]]] = []
    told = 0
    for match, families in _detected(plain, _families_at):
        if match.start() >= told:
            found.append((match.start() / len(plain), families))
        if families == ("he", "she") and (other := _OR.match(plain, match.end())) is not None:
            told = other.end() + 1
    return found


class Pronoun(NamedTuple):
    """A pronoun that a model added to its prompt."""

    start: int
    """Offset in characters in the whole text, like the next."""
    end: int
    families: tuple[str, ...]
    doubt: str | None
    """Words that say what else it can be; None if it can be nothing else."""


FamiliesAt: TypeAlias = Callable[[str, re.Match[str]], tuple[str, ...]]


class Detector(NamedTuple):
    """What finds the pronouns of a language that a model added to its prompt."""

    families_of: FamiliesOf
    """The pronouns of the language, of which a repeated prompt has the same."""
    families_at: FamiliesAt
    """Function that returns the families to which a word in a plain text belongs; empty if it is no pronoun there."""
    doubt: Callable[[str, tuple[str, ...]], str | None]
    """Function that says what else a word that was detected can be; None if it can be nothing else."""

    def first_families(self, text: str, prompt: str | None = None) -> tuple[str, ...]:
        """Return the families of the first pronoun; empty if there is none.

        Markup, addresses and a repeated prompt are removed first. Words that only look like a pronoun are skipped:
        parts of compounds and abbreviations, Roman numerals and acronyms, names, and forms that are quoted or listed.

        Args:
            text: Generated text.
            prompt: Prompt that the text continues; None if unknown.

        Returns:
            Names of the families: usually one, but two for *em*, *emself* and *he or she*.

        >>> ENGLISH.first_families("The co-founder left. She laughed.")
        ('she',)
        >>> ENGLISH.first_families("Somebody saw em.")
        ('e', 'ey')
        """
        return _first_families(without_echo(text, prompt, self.families_of), self.families_at)

    def pronouns(self, text: str, prompt: str | None = None) -> Iterator[Pronoun]:
        """Yield the pronouns in order, with their places in the text as it is.

        The first has the families that :meth:`first_families` returns.

        >>> [(found.start, found.families) for found in ENGLISH.pronouns("<em>Kim</em> saw **xem**.")]
        [(19, ('xe',))]
        """
        begin = echo_end(text, prompt, self.families_of)
        plain, places = plain_text_and_places(text[begin:])
        for match, families in _detected(plain, self.families_at):
            doubt = self.doubt(match[0], families)
            start, end = (begin + places[offset] for offset in (match.start(), match.end() - 1))
            yield Pronoun(start, end + 1, families, None if doubt is None else f"“{match[0]}” {doubt}")


@lru_cache(maxsize=8192)  # Baselines give the same answer thousands of times.
def _first_families(text: str, families_at: FamiliesAt) -> tuple[str, ...]:
    return next((families for _, families in _detected(plain_text(text), families_at)), ())


def _detected(text: str, families_at: FamiliesAt) -> Iterator[tuple[re.Match[str], tuple[str, ...]]]:
    for match in _WORD.finditer(text):
        if families := families_at(text, match):
            yield match, families


def plain_text(text: str) -> str:
    """Return a text without tags, addresses and emphasis marks."""
    for pattern, replacement in _REPLACED:
        text = pattern.sub(replacement, text)
    return text


def plain_text_and_places(text: str) -> tuple[str, Sequence[int]]:
    """Return the same, and the offset in the whole text of each of its characters, shape (n_characters,)."""
    places: Sequence[int] = range(len(text))
    for pattern, replacement in _REPLACED:
        pieces, kept, done = list[str](), list[int](), 0
        for match in pattern.finditer(text):
            # What replaces a match is never longer, and the beginning of a match stays where it was.
            new = replacement if isinstance(replacement, str) else replacement(match)
            pieces += [text[done : match.start()], new]
            kept += [*places[done : match.start()], *places[match.start() : match.start() + len(new)]]
            done = match.end()
        if pieces:
            text, places = "".join(pieces) + text[done:], [*kept, *places[done:]]
    return text, places


def _without_address(match: re.Match[str]) -> str:
    """Return a run of non-space characters without the address that it ends with."""
    token = match[0]
    start = _address_start(token)
    return token if start is None else token[:start] + " "


def _address_start(token: str) -> int | None:
    """Return the offset of the first mail address, link or host name in a run of non-space characters."""
    if _MAIL.search(token):
        return 0
    starts = [link.start() for link in (_LINK.search(token),) if link is not None]
    for labels in _LABELS.finditer(token):
        host = _HOST.match(labels[0])
        if host is not None:
            starts.append(labels.start() + host.start("name"))
            break
    return min(starts, default=None)


_REPLACED: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (_MARKUP, " "),
    (_MAY_BE_ADDRESS, _without_address),
    (_EMPHASIS, ""),
)
"""What is removed from a text before it is read, in this order, and what comes in its place."""


class _Context:
    """A word and its context in a text, which is not copied."""

    def __init__(self, text: str, match: re.Match[str]) -> None:
        self.text = text
        self.start, self.end = match.span()
        self.word = match[0]
        self.before = text[max(0, self.start - _NEAR) : self.start]
        self.after = text[self.end : self.end + _NEAR]

    @property
    def starts_sentence(self) -> bool:
        """True if only quotation marks, brackets and white space separate the word from the previous sentence."""
        opening = _backwards(self.text, self.start, _OPENING)
        first = self.start - len(opening)
        return first == 0 or "\n" in opening or self.text[first - 1] in ".!?:;"

    @property
    def previous_word(self) -> str:
        """The previous word, unless a digit comes between; otherwise empty."""
        end = self.start - len(_backwards(self.text, self.start, _NO_WORD))
        return _backwards(self.text, end, _WORD)


def _backwards(text: str, end: int, pattern: re.Pattern[str]) -> str:
    """Return the run of characters before an offset that fit a pattern of single characters."""
    # Python cannot search backwards. Doubling the slice keeps the time proportional to the length of the match.
    size = _NEAR
    while True:
        reversed_text = text[max(0, end - size) : end][::-1]
        match = pattern.match(reversed_text)
        reversed_fit = match[0] if match is not None else ""
        if len(reversed_fit) < size:
            return reversed_fit[::-1]
        size *= 2


def _families_at(text: str, match: re.Match[str]) -> tuple[str, ...]:
    form = match[0].lower()
    if form == "theyre":
        return ("they",)  # No family has this form, which is they're without its apostrophe.
    families = families_of(form)
    if not families:
        return ()
    context = _Context(text, match)
    # "Tell 'em" is *them*.
    if form == "em" and _ELISION.search(context.before):
        return ("they",)
    if _is_quoted_or_listed(context, families) or _is_joined(context):
        return ()
    if set(families) <= _NEVER_NEO:
        return _with_alternative(context, families)
    return () if form in _AMBIGUOUS and _only_looks_like_it(context) else families


def _is_joined(context: _Context) -> bool:
    """Return True if a word is part of a compound, an address or an abbreviation: she-wolf, e-mail, e.g., .co.uk."""
    before, after = context.before, context.after
    joints = ("-", "\N{EN DASH}", "@")
    if before[-1:] in (".", *joints) and before[-2:-1].isalnum():
        return True
    return (after[:1] in joints and after[1:2].isalnum()) or re.match(r"\.\w", after) is not None


def _is_quoted_or_listed(context: _Context, families: tuple[str, ...]) -> bool:
    """Return True if a form is quoted, or part of a list of forms such as xe/xem: it is mentioned, not used."""
    before, after = context.before, context.after
    if before[-1:] in _QUOTES and before and re.match(rf"[{_QUOTES}](?![a-z])", after):
        return True
    for text, pattern in ((after, r"\s?/\s?([a-z]+)"), (before[::-1], r"\s?/\s?([a-z]+)")):
        match = re.match(pattern, text.lower())
        if match is not None:
            other = match[1] if text is after else match[1][::-1]
            if set(families_of(other)) & set(families):
                return True
    return False


def _with_alternative(context: _Context, families: tuple[str, ...]) -> tuple[str, ...]:
    """Return both families for *he or she*, *s/he* and *his/her*, and otherwise the families of the form."""
    joined = _OR.match(context.text, context.end)
    beyond = context.text[joined.end() : joined.end() + _NEAR] if joined is not None else ""
    other = re.match(r"([a-z]+)\b", beyond.lower())
    alternative = families_of(other[1]) if other is not None else ()
    if set(alternative) | set(families) == {"he", "she"}:
        return ("he", "she")
    if families == ("he",) and re.search(r"(?:\bs/|\(s\))$", context.before.lower()):
        return ("he", "she")
    return families


def _only_looks_like_it(context: _Context) -> bool:
    """Return True if letters that spell a neopronoun mean something else."""
    word, before, after = context.word, context.before, context.after
    last, following = before[-1:], after[:1]
    # Joined to a digit or symbol: e5, R&co.
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
    # VI is a numeral, EMS an ambulance.
    if len(word) > 1 and word.isupper():
        return True
    # Empty if more than white space and commas precede it.
    match = _NEXT_WORD.match(context.text, context.end)
    following_word = match[1] if match is not None else ""
    # A capitalised form is a name, unless it begins a sentence that goes on in lower case.
    if word[0].isupper() and not (following_word[:1].islower() and context.starts_sentence):
        return True
    # The last word of a long text without a full stop may be cut off.
    if _REST.match(context.text, context.end) and context.start > _LONG:
        return True
    if following_word.lower() in _NOT_AFTER.get(form, ()) or (form == "cos" and following_word.lower() in _BECAUSE):
        return True
    return form == "es" and bool({following_word.lower(), context.previous_word.lower()} & _SPANISH)


def _doubt(word: str, families: tuple[str, ...]) -> str | None:
    if families == ("they",):
        return "can also mean several people or things, which nothing here tells apart from one person"
    is_ambiguous = word.lower() in _AMBIGUOUS and not set(families) <= _NEVER_NEO
    return "can also be a letter, a name or another word" if is_ambiguous else None


ENGLISH = Detector(families_of, _families_at, _doubt)
first_families, pronouns_of = ENGLISH.first_families, ENGLISH.pronouns
