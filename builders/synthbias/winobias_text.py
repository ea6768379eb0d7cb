"""Reads the text files of WinoBias: one sentence per line, with its referent and its pronouns in brackets."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from biasboard.ground.errors import DataError
from builders.synthbias.checks.catalogue import SentencesRead, finding_of, sentences_to_build
from builders.synthbias.checks.sentence import Claims, SampleType, Sentence
from builders.synthbias.mentions import Mention, mentions_in
from schemas.lexicon import gender_of_pronoun, occupations

Side: TypeAlias = Literal["pro", "anti"]

REMEDY = "use WinoBias/wino/data of https://github.com/uclanlp/corefBias as it was published"

_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_ARTICLE = re.compile(r"^(?:the|an?) +", re.IGNORECASE)


class PlainText(NamedTuple):
    """A line without its markup."""

    sentence: str
    pronouns: tuple[Mention, ...]
    """Pronouns that were in brackets, with their offsets in the sentence."""
    named: tuple[str, ...]
    """Other words that were in brackets, without their articles."""
    repaired: bool
    """True if an article or a space that was doubled around a bracket was removed."""


def read_lines(
    raw: bytes, *, name: str, side: Side | None = None, sample_type: SampleType | None = None
) -> SentencesRead:
    """Read the lines of a file, whatever their content; each must begin with its number.

    Args:
        raw: Content of the file.
        name: Name of the file in messages.
        side: ``pro`` if the sentences of the file agree with the stereotype, ``anti`` if they do not, None if unknown.
        sample_type: Type of the sentences; None if unknown. WinoBias names a referent in both types.

    Returns:
        A sentence for each line that can be read.
    """
    if not raw.strip():
        return SentencesRead([], [finding_of("broken_file", "is empty", name)])
    reading = SentencesRead([], [])
    for number, line in enumerate(raw.splitlines(), 1):
        try:
            reading.sentences.append(_sentence(line.decode("utf-8"), number, name, side, sample_type))
        except UnicodeDecodeError as error:
            fault = f"byte {line[error.start]:#04x} is not UTF-8"
            reading.findings.append(finding_of("broken_row", fault, name, number))
        except _BrokenLineError as error:
            reading.findings.append(finding_of("broken_row", str(error), name, number))
    return reading


def parse_file(raw: bytes, *, name: str, side: Side, sample_type: SampleType | None = None) -> list[Sentence]:
    """Parse the lines of a file to build a dataset from.

    Raises:
        DataError: the file is empty or not UTF-8, or a line cannot be read or contradicts the lexicon.
    """
    reading = read_lines(raw, name=name, side=side, sample_type=sample_type)
    return sentences_to_build(reading, REFUSED_LINES, remedy=REMEDY)


REFUSED_LINES = ("same_list", "wrong_label")
"""Contradictions for which a line is refused; repeated occupations and pronouns are not, since WinoBias has them."""


class _BrokenLineError(Exception):
    """A line that cannot be read."""


def _sentence(line: str, number: int, name: str, side: Side | None, sample_type: SampleType | None) -> Sentence:
    start, _, marked = line.partition(" ")
    if start != str(number):
        raise _BrokenLineError(f"starts with '{start[:20]}', not with its line number {number}")
    text = without_markup(marked)
    if not text.pronouns:
        raise _BrokenLineError("no form of he or she stands in brackets")
    if len(text.named) != 1 or text.named[0] not in occupations():
        named = ", ".join(f"'{name}'" for name in text.named) or "none"
        raise _BrokenLineError(f"exactly one of the 40 occupations has to stand in brackets, not {named}")
    pronoun, referent = text.pronouns[0], text.named[0]
    return Sentence(
        text=text.sentence,
        meant=(referent, _distractor(text, referent)),
        type=sample_type,
        referent=referent,
        gender=gender_of_pronoun(pronoun.text),
        pronoun=pronoun,
        claimed=Claims(label=side, marked=text.pronouns, is_repaired=text.repaired),
        line=number,
        id=f"{name}:{number}",
    )


def without_markup(marked: str) -> PlainText:
    """Remove the brackets from a text, and any article or space that is doubled around them.

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
            # The files write "[the nurse]", but also "the [nurse]" and "the [the physician]".
            if bare != inside and re.search(r"\b(?:the|an?) $", sentence[-6:], re.IGNORECASE):
                inside = bare
                repaired = True
        sentence += inside
    return PlainText(sentence + marked[end:], tuple(pronouns), tuple(named), repaired)


def _distractor(text: PlainText, referent: str) -> str:
    """Return the other occupation that the pronoun could mean, since the files mark only the referent."""
    # It is not always the referent of the neighbouring line: that guess is wrong in 4 of 3,168 lines. A third
    # occupation, which 2 lines have, follows the pronoun.
    pronoun = text.pronouns[0]
    before = {mention.text for mention in mentions_in(text.sentence).occupations if mention.start < pronoun.start}
    others = before - {referent}
    if referent not in before or len(others) != 1:
        named = ", ".join(sorted(before)) or "none"
        raise _BrokenLineError(f"two occupations have to stand before '{pronoun.text}', not {named}")
    (distractor,) = others
    return distractor


def check_same_length(lines: Mapping[str, Sequence[Sentence]]) -> None:
    """Check that files have equally many lines, since line i of one belongs to line i of the other.

    Raises:
        DataError: the files differ in length.
    """
    lengths = {name: len(sentences) for name, sentences in lines.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise DataError(
            f"line i of each file belongs to line i of the other, but their lengths differ: {listed}; {REMEDY}"
        )
