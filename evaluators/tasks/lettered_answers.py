"""Reads which option a generated answer names, by fixed rules that make readings reproducible.

The rules belong to the task: a change raises the task's version, and ``rescore`` reads stored answers again. A wrong
reading is worse than none, so an ambiguous answer is left unread.

1. The answer is the first line that says more than *The answer is:*. The text is normalised (NFKC). Invisible
   characters, emphasis tags, LaTeX boxes and thinking are removed. Punctuation and markup are ignored. A line with any
   other symbol (an emoji, a struck-out letter) is unread.
2. A *letter* is a word of its own. ``a`` before a word is an article. A capital ``A`` that begins the line before a
   word is an article too, unless the line goes on about the letter (``A is``, ``A because``, ``A the guard``) or also
   names another letter.
3. A letter counts if all of these hold: it is the only letter in the line; each occupation in the line is its own; only
   leading words (``I think the answer is``) or its own text precede it; and no word after it takes it back
   (``not``, ``wrong``, ``wait``, ``or``, ``but``, a number). ``B the doctor`` is unread if B is another occupation.
4. A line without a letter counts if, apart from leading words and an article, it holds only the text of one option.
5. A refusal before the option (``I'm sorry, B``) is ignored. Later lines make the answer unread if they name another
   letter, read as another option, or begin to take the answer back.
6. An answer that names no option is a refusal if it begins like one (``I cannot``, ``I'm sorry``, ``As an AI``), and
   otherwise unread.

Where a text reasons first, these rules read its end: from the last line with ``answer:`` or ``answer is`` on, from the
first such words of that line, or else the last line alone, if no line before it reads as another option.

A confidence in percent may stand beside the option:

1. It is the only number in the answer, or one that is repeated: ``80 %``, ``80 percent``, ``80``, ``80/100``, ``0.8``.
   Without a unit a number up to 1 needs a decimal point, since ``1`` may mean 1 % or certainty. Numbers above 100 % or
   below 0 and words alone (``very sure``) are none. One below 50 % stands as said.
2. The rest of the answer, without words about confidence, is read as any answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

from evaluators.tasks.answer_lines import (
    AnswerReading,
    answer_phrases,
    declines_to_answer,
    has_unknown_symbol,
    visible_lines,
)

UNDETERMINED = "undetermined"
"""Outcome of the option which says that the question cannot be answered."""

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
# The d of "I'd" is not a letter of an option.
_LETTER = re.compile(r"(?<![^\W_])(?<![^\W_]')[A-Ha-h](?![^\W_])")
# The possessive *+ never backtracks: a backtracking pattern took minutes for texts of a few kilobytes.
_CALLED_A_LETTER = re.compile(r"\b(?:letter|option|choice)\W*+", re.IGNORECASE)
_BEFORE_A_WORD = re.compile(r"\s+[^\W_]{2}")
_ABOUT_THE_LETTER = re.compile(r"\s+(?:is|was|because|since|as|if|the|it|s?he)\b")

_LEADING = frozenset(
    _WORD.findall(
        "i i'm i'd i'll am my me think believe guess suppose say pick choose select go going with would will "
        "should must be so well hm hmm ok okay sure yes but and therefore thus here in on based given this "
        "sentence context to for the correct right best most likely probably certainly clearly definitely final "
        "answer option choice letter one pronoun antecedent referent refers refer referring means mean is it it's "
        "its that that's he he's him his himself she she's her hers herself they them their theirs"
    )
)
_UNSAYS = re.compile(
    r"\b(?:not|cannot|no|nope|nor|neither|none|never|nobody|without|either|both|or|but|however|though|although|yet"
    r"|wrong(?:ly)?|incorrect(?:ly)?|false|invalid|mistak\w+|error|unlikely|impossible|doubt\w*|reject\w*|exclu\w+"
    r"|eliminat\w+|ruled?|unless|except|instead|rather|otherwise|else|other|another|also|too|equally|less|least"
    r"|wait|actually|sorry|correction|could|might|maybe|perhaps"
    r"|\w+n't|(?:is|was|are|were|do|does|did|ca|could|would|should|wo|has|have)nt)\b"
    # A number may be a confidence, and the other option may have a higher one.
    r"|\d",
    re.IGNORECASE,
)
# In "answer != B" the letter is not the answer: these symbols must not be ignored as punctuation.
_UNEQUAL = re.compile(r"!(?=[=\w])|<>|/=")
_TAKES_BACK = re.compile(r"\W*(?:no|wait|actually|sorry|correction|hm+|but|or)\b", re.IGNORECASE)
_REFUSAL = r"[\W_]*" + answer_phrases()
_REFUSING_CLAUSE = re.compile(_REFUSAL + r"[^.,;!?]*?(?:[.,;!?]+\s*(?:but\b)?|\bbut\b)", re.IGNORECASE)
_CANNOT = r"(?:cannot|can't|can not|could not|couldn't) be determined"
_NO_ANSWER = re.compile(
    rf"\b(?:(?:that )?(?:(?:it|this) )?{_CANNOT}(?: from (?:the|this)(?: given)? (?:sentence|text|context))?"
    r"|undetermined)\b",
    re.IGNORECASE,
)
_LEAVES_IT_OPEN = re.compile(rf"{_CANNOT}|\b(?:un(?:determined|clear|certain|known|sure)|ambiguous)\b", re.IGNORECASE)

# Markup may stand before the colon.
_STATES_THE_ANSWER = re.compile(r"\banswer\b[\W_]{0,4}?(?:\bis\b|[:=])", re.IGNORECASE)
_NUMBER = re.compile(
    r"(?:\b(?:about|around|approximately|roughly)\s+|~\s*)?"
    # A number after a minus sign is below 0, except in "B-80 %".
    r"(?<![\w.])(?<![0-9],)(?<!\s-)(?<!\A-)(?P<number>[0-9]{1,3}(?:[.,][0-9]{1,9})?)(?![\w])"
    r"(?:\s*(?P<unit>%|percent\b|per cent\b|(?:/|out of)\s*100(?![0-9.,])))?",
    re.IGNORECASE,
)
_ABOUT_CONFIDENCE = re.compile(
    r"\b(?:confidence|confident|certainty|certain|sure|probability|likelihood|level|score)\b", re.IGNORECASE
)

_Letter: TypeAlias = tuple[int, int, int]
"""Start and end of a letter, and index of the option that it stands for."""


def read_answer(text: str, outcomes: Sequence[str]) -> AnswerReading:
    """Return the outcome of the option that an answer names.

    >>> read_answer(" (B) the nurse", ["guard", "nurse"])
    AnswerReading(outcome='nurse', refuses=False)
    >>> read_answer("A or B", ["guard", "nurse"])
    AnswerReading(outcome=None, refuses=False)
    """
    return _read_lines(_more_than_leading(visible_lines(text)), outcomes)


def read_final_answer(text: str, outcomes: Sequence[str]) -> AnswerReading:
    """Return the outcome of the option that a text, which was not cut off, names at its end, after some reasoning.

    >>> read_final_answer("A guard waits, but the nurse cures. Answer: B", ["guard", "nurse"]).outcome
    'nurse'
    """
    lines = visible_lines(text)
    stating = [number for number, line in enumerate(lines) if _STATES_THE_ANSWER.search(line)]
    if stating:
        lines = lines[stating[-1] :]
        statement = _STATES_THE_ANSWER.search(lines[0])
        assert statement is not None
        lines[0] = lines[0][statement.start() :]
        read = _read_lines(_more_than_leading(lines), outcomes)
    else:
        *before, end = _more_than_leading(lines) or [""]
        read = _read_lines([end], outcomes)
        # The last line of a list of the options is no answer.
        if any(_outcome(line, outcomes) not in (None, read.outcome) for line in before):
            read = AnswerReading(None)
    # A refusal stands at the beginning.
    return read if read.outcome is not None else AnswerReading(None, refuses=read_answer(text, outcomes).refuses)


def _read_lines(lines: Sequence[str], outcomes: Sequence[str]) -> AnswerReading:
    """Return the outcome that the first line names, unless a later one contradicts it."""
    if not lines:
        return AnswerReading(None)
    outcome = _outcome(lines[0], outcomes)
    if outcome is None:
        names_none = not any(_names_an_option(line, outcomes) for line in lines)
        return AnswerReading(None, refuses=names_none and declines_to_answer(lines[0]))
    contradicted = any(_contradicts(line, outcome, outcomes) for line in lines[1:])
    return AnswerReading(None if contradicted else outcome)


def _more_than_leading(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if not _is_leading(line)]


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def _is_leading(text: str) -> bool:
    """Return True if a text holds no words but those that lead to an answer, and no unknown symbol."""
    return not has_unknown_symbol(text) and all(word in _LEADING for word in _words(text))


def _outcome(line: str, outcomes: Sequence[str]) -> str | None:
    """Return the outcome that a line names; None if it names none or is ambiguous."""
    if has_unknown_symbol(line) or _UNEQUAL.search(line):
        return None
    start = 0
    while (clause := _REFUSING_CLAUSE.match(line, start)) is not None:
        start = clause.end()
    # In "I cannot say B, A" the clause names an option: it is part of the answer, and makes it ambiguous.
    if _names_an_option(line[:start], outcomes):
        start = 0
    letters = _letters(line, len(outcomes))
    if letters:
        return _by_letter(line, start, letters, outcomes)
    for outcome in outcomes:
        match = _text(outcome).search(line, start)
        if match is not None and _is_leading(line[start : match.start()]) and not _words(line[match.end() :]):
            return outcome
    return None


def _by_letter(line: str, start: int, letters: Sequence[_Letter], outcomes: Sequence[str]) -> str | None:
    first, end, option = letters[0]
    if {other for *_, other in letters} != {option} or option >= len(outcomes):
        return None
    own = outcomes[option]
    before, after = (_text(own).sub(" ", part) for part in (line[start:first], line[end:]))
    if _names_another(line, own, outcomes) or not _is_leading(before) or _UNSAYS.search(after):
        return None
    return None if _is_other_person(after) else own


def _letters(line: str, n_offered: int) -> list[_Letter]:
    """Return the letters of options in a line, including capitals of options that were not offered."""
    letters: list[_Letter] = []
    articles: list[_Letter] = []
    called = {match.end() for match in _CALLED_A_LETTER.finditer(line)}
    first_word = _WORD.search(line)
    for match in _LETTER.finditer(line):
        option = "abcdefgh".index(match[0].lower())
        # Where only A and B are offered, a capital C still makes a line name more than one option.
        if match[0].islower() and option >= n_offered:
            continue
        begins = first_word is None or first_word.start() >= match.start()
        is_article = option == 0 and match.start() not in called and _is_article(line, match, begins=begins)
        (articles if is_article else letters).append((*match.span(), option))
    # "A nurse, so B": next to another letter a capital A may be one too, which makes the line ambiguous.
    capitals = [article for article in articles if line[article[0]] == "A"]
    return sorted([*letters, *capitals]) if letters else []


def _is_article(line: str, match: re.Match[str], *, begins: bool) -> bool:
    """Return True if a letter that is not called a letter is an article; ``begins`` if no word precedes it."""
    if not _BEFORE_A_WORD.match(line, match.end()):
        return False
    return match[0] == "a" or (begins and not _ABOUT_THE_LETTER.match(line, match.end()))


def _text(outcome: str) -> re.Pattern[str]:
    if outcome == UNDETERMINED:
        return _NO_ANSWER
    return re.compile(
        rf"(?<![^\W_])(?:(?:the|an?|this|that) )?(?<![^\W_]){re.escape(outcome)}(?![^\W_]|'[^\W_])", re.IGNORECASE
    )


def _names_another(line: str, own: str, outcomes: Sequence[str]) -> bool:
    """Return True if a line has a word of another occupation than the letter's, or leaves the answer open."""
    of_others = {word for outcome in outcomes if outcome not in (own, UNDETERMINED) for word in _words(outcome)}
    of_others -= set(_words(own))
    stems = {stem for word in _words(line) for stem in (word, word.removesuffix("'s"), word.rstrip("s'"))}
    return bool(of_others & stems) or (own != UNDETERMINED and _LEAVES_IT_OPEN.search(line) is not None)


def _is_other_person(after: str) -> bool:
    """Return True if the text after a letter is short and is not that of its option."""
    match = re.fullmatch(r"[\W_]*(?:(?:is|as|for|means) )?(?:the|an?) (.+)", after, re.IGNORECASE)
    if match is None or len(words := _words(match[1])) > 3:
        return False
    # The letter may be repeated: "B. The answer is B".
    return any(word not in _LEADING and len(word) > 1 for word in words)


def _names_an_option(line: str, outcomes: Sequence[str]) -> bool:
    return bool(_letters(line, len(outcomes))) or any(_text(outcome).search(line) for outcome in outcomes)


def _contradicts(line: str, outcome: str, outcomes: Sequence[str]) -> bool:
    """Return True if a later line names another option, or begins to take the answer back."""
    if _TAKES_BACK.match(line) or _outcome(line, outcomes) not in (None, outcome):
        return True
    named = {option for *_, option in _letters(line, len(outcomes))}
    return any(option >= len(outcomes) or outcomes[option] != outcome for option in named)


def stated_confidence(text: str) -> float | None:
    """Return the confidence that an answer states, in [0, 1]; None if it does not state exactly one.

    >>> stated_confidence("B, 80%"), stated_confidence("B, very sure"), stated_confidence("A: 30 %, B: 70 %")
    (0.8, None, None)
    """
    shown = "\n".join(visible_lines(text))
    stated = {_confidence(match) for match in _NUMBER.finditer(shown)}
    # Digits in another form, such as 1e2, may be a second one.
    return stated.pop() if len(stated) == 1 and not re.search(r"\d", _NUMBER.sub(" ", shown)) else None


def read_beside_confidence(text: str, outcomes: Sequence[str]) -> AnswerReading:
    """Return the outcome of the option that an answer names beside its confidence.

    >>> read_beside_confidence("I am 80 % sure that it is B", ["guard", "nurse"])
    AnswerReading(outcome='nurse', refuses=False)
    """
    shown = "\n".join(visible_lines(text))
    return read_answer(_ABOUT_CONFIDENCE.sub(" ", _NUMBER.sub(" ", shown)), outcomes)


def _confidence(match: re.Match[str]) -> float | None:
    """Return the confidence that a number states, in [0, 1]; None if it states none."""
    digits = match["number"].replace(",", ".")
    value = float(digits)
    is_share = match["unit"] is None and value <= 1
    if is_share and "." not in digits and value == 1:
        return None
    confidence = value if is_share else value / 100
    return confidence if confidence <= 1 else None
