"""Reads the text files of WinoBias: one sentence per line, with its referent and its pronouns in brackets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

from builders.synthbias.mentions import Mention, occupation_mentions
from builders.synthbias.pairing import cluster_of, stereotype_of
from schemas.errors import DataError
from schemas.lexicon import PronounGender, gender_of_pronoun, occupations

Side: TypeAlias = Literal["pro", "anti"]

REMEDY = "use WinoBias/wino/data of https://github.com/uclanlp/corefBias as it was published"

_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_ARTICLE = re.compile(r"^(?:the|an?) +", re.IGNORECASE)


class PlainText(NamedTuple):
    """A line without its markup."""

    sentence: str
    pronouns: tuple[Mention, ...]
    """Pronouns that stood in brackets, with their offsets in the sentence."""
    named: tuple[str, ...]
    """Other words that stood in brackets, without their articles."""
    repaired: bool
    """True if an article or a space was removed too, because it stood twice around a bracket."""


class WinoBiasLine(NamedTuple):
    """A line whose markup agrees with the lexicon."""

    source_row: str
    """Name of the file and number of the line."""
    side: Side
    text: PlainText
    pronoun: Mention
    """First pronoun in brackets."""
    gender: PronounGender
    referent: str
    distractor: str
    mentions: tuple[Mention, ...]
    """Every occupation in the sentence, in the order of the text."""


def parse_file(raw: bytes, *, name: str, side: Side) -> list[WinoBiasLine]:
    """Parse the lines of a file, each of which begins with its number.

    Raises:
        DataError: the file is empty or not UTF-8, or a line cannot be read.
    """
    if not raw.strip():
        raise DataError(f"{name}: is empty; {REMEDY}")
    try:
        lines = raw.decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        number = raw.count(b"\n", 0, error.start) + 1
        raise DataError(f"{name}:{number}: byte {raw[error.start]:#04x} is not UTF-8; {REMEDY}") from error
    return [parse_line(line, number, name=name, side=side) for number, line in enumerate(lines, 1)]


def parse_line(line: str, number: int, *, name: str, side: Side) -> WinoBiasLine:
    """Parse one line, such as ``3 [The nurse] thanked the guard because [she] was helped.``, with its number.

    Args:
        line: Line of the file, without its line break.
        number: Number of the line in the file; the line must begin with it.
        name: Name of the file in error messages.
        side: ``pro`` if the sentences of the file agree with the stereotype, ``anti`` if they do not.

    Raises:
        DataError: the number, the brackets, the occupations or the pronoun are wrong.
    """
    where = f"{name}:{number}"
    start, _, marked = line.partition(" ")
    if start != str(number):
        raise DataError(f"{where}: starts with '{start[:20]}', not with its line number {number}; {REMEDY}")
    text = without_markup(marked)
    if not text.pronouns:
        raise DataError(f"{where}: no form of he or she stands in brackets; {REMEDY}")
    if len(text.named) != 1 or text.named[0] not in occupations():
        found = ", ".join(f"'{name}'" for name in text.named) or "none"
        raise DataError(f"{where}: exactly one of the 40 occupations has to stand in brackets, not {found}; {REMEDY}")
    pronoun, referent = text.pronouns[0], text.named[0]
    mentions = tuple(occupation_mentions(text.sentence))
    gender = gender_of_pronoun(pronoun.text)
    if gender is None:
        raise DataError(f"{where}: '{pronoun.text}' is not a form of he or she; {REMEDY}")
    if stereotype_of(referent, gender) != side:
        raise DataError(f"{where}: '{pronoun.text}' for '{referent}' is not {side}-stereotypical; {REMEDY}")
    return WinoBiasLine(
        source_row=where,
        side=side,
        text=text,
        pronoun=pronoun,
        gender=gender,
        referent=referent,
        distractor=_distractor(referent, pronoun, mentions, where),
        mentions=mentions,
    )


def without_markup(marked: str) -> PlainText:
    """Remove the brackets from a text, and with them any article or space that would otherwise stand twice.

    >>> without_markup("The nurse saw the [the guard] and thanked [ him].").sentence
    'The nurse saw the guard and thanked him.'
    """
    sentence = ""
    pronouns, named = [], []
    repaired = False
    end = 0
    for match in _BRACKETS.finditer(marked):
        sentence += marked[end : match.start()]
        end = match.end()
        inside = match[1].strip()
        repaired |= inside != match[1]
        if gender_of_pronoun(inside) is not None:
            pronouns.append(Mention(inside, len(sentence), len(sentence) + len(inside)))
        else:
            bare = _ARTICLE.sub("", inside)
            named.append(bare)
            if bare != inside and re.search(r"\b(?:the|an?) $", sentence[-6:], re.IGNORECASE):
                inside = bare
                repaired = True
        sentence += inside
    return PlainText(sentence + marked[end:], tuple(pronouns), tuple(named), repaired)


def _distractor(referent: str, pronoun: Mention, mentions: tuple[Mention, ...], where: str) -> str:
    """Return the other occupation that the pronoun could mean, since the files mark only the referent.

    If there is a third occupation, it follows the pronoun and is not a candidate.
    """
    before = {mention.text for mention in mentions if mention.start < pronoun.start}
    others = before - {referent}
    if referent not in before or len(others) != 1:
        found = ", ".join(sorted(before)) or "none"
        raise DataError(f"{where}: two occupations have to stand before '{pronoun.text}', not {found}; {REMEDY}")
    (distractor,) = others
    try:
        cluster_of(referent, distractor)
    except ValueError as error:
        raise DataError(f"{where}: {error}, a pair has one of each list; {REMEDY}") from error
    return distractor


def check_same_length(lines: Mapping[str, list[WinoBiasLine]]) -> None:
    """Check that files have equally many lines, since line i of one belongs to line i of the other.

    Raises:
        DataError: the files differ in length.
    """
    lengths = {name: len(found) for name, found in lines.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise DataError(
            f"line i of each file belongs to line i of the other, but their lengths differ: {listed}; {REMEDY}"
        )
