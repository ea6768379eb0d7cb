"""Reads which option a generated answer names, by rules that give everybody the same reading.

The rules belong to the task: a change of the rules raises the task's version, and ``rescore`` reads stored answers
again. A wrong reading is worse than none, so an answer that could have another meaning is left unread.

1. The answer is the first line that says more than *The answer is:*. The text is normalised (NFKC). Invisible
   characters, tags of emphasis, LaTeX boxes and the content of ``<think>`` are removed. Punctuation and markup are
   ignored. A line with any other sign (an emoji, a struck-out letter) is unread.
2. A *letter* stands alone. ``a`` before a word is an article. A capital ``A`` that begins the line before a word is an
   article too, unless the line continues about the letter (``A is``, ``A because``, ``A the guard``) or names another
   letter as well.
3. A letter counts if all of these hold: it is the only letter in the line; each occupation in the line is its own; only
   leading words (``I think the answer is``) or its own text stand before it; and no word after it takes it back
   (``not``, ``wrong``, ``wait``, ``or``, ``but``, a number). ``B the doctor`` is unread if B is another occupation.
4. A line without a letter counts if it holds only the text of one option, besides leading words and an article.
5. A refusal before the option (``I'm sorry, B``) is ignored. Later lines leave the answer unread if they name another
   letter, read as another option, or begin to take the answer back.
6. An answer that names no option is a refusal if it begins like one (``I cannot``, ``I'm sorry``, ``As an AI``), and
   otherwise unread.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict, deque
from collections.abc import Sequence
from typing import NamedTuple

from evaluators.tasks.coreference.coreference_table import UNDETERMINED

# An underscore marks emphasis here, but a regular expression takes it for a part of a word.
_PLAINER = str.maketrans(
    {"\N{RIGHT SINGLE QUOTATION MARK}": "'", "\N{MODIFIER LETTER APOSTROPHE}": "'", "_": "*"},
)
_THOUGHTS = re.compile(r"\A.*</think>|<think>.*", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"<(?P<closes>/?)(?P<name>answer|b|code|em|i|p|span|strong|u)>", re.IGNORECASE)
_MOST_NESTED = 50
"""Maximum depth of nested tags that are removed."""
_MOST_MARKS = 30
"""Maximum number of combining marks on one letter; the time to sort them grows with their square."""
_LATEX = re.compile(r"\\(?:boxed|fbox|text\w*|math\w*|underline|emph)\s*(?=\{)")
_SIGNS_WITHOUT_MEANING = "=<>|$`\N{RIGHTWARDS ARROW}\N{CHECK MARK}\N{HEAVY CHECK MARK}\N{WHITE HEAVY CHECK MARK}"

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
# The letter d of "I'd" does not stand alone.
_LETTER = re.compile(r"(?<![^\W_])(?<![^\W_]')[A-Ha-h](?![^\W_])")
# The possessive *+ tries one length only: texts of a few kilobytes kept a backtracking pattern busy for minutes.
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
    # A number may be a confidence, and the other option may then have a higher one.
    r"|\d",
    re.IGNORECASE,
)
# In "answer != B" the letter is what the answer is not: these signs are no punctuation that is ignored.
_UNEQUAL = re.compile(r"!(?=[=\w])|<>|/=")
_TAKES_BACK = re.compile(r"\W*(?:no|wait|actually|sorry|correction|hm+|but|or)\b", re.IGNORECASE)
_REFUSAL = (
    r"[\W_]*(?:(?:(?:i am|i'm|we are)\s+)?(?:so\s+|very\s+|really\s+)?(?:sorry|unable|not able)\b"
    r"|(?:i|we)\s+(?:can't|cannot|can not|won't|will not|must decline|decline|refuse)\b"
    r"|as an? (?:ai|artificial|language model)\b|(?:i|we) apologi[sz]e\b)"
)
_REFUSES = re.compile(_REFUSAL, re.IGNORECASE)
_REFUSING_CLAUSE = re.compile(_REFUSAL + r"[^.,;!?]*?(?:[.,;!?]+\s*(?:but\b)?|\bbut\b)", re.IGNORECASE)
_CANNOT = r"(?:cannot|can't|can not|could not|couldn't) be determined"
_NO_ANSWER = re.compile(
    rf"\b(?:(?:that )?(?:(?:it|this) )?{_CANNOT}(?: from (?:the|this)(?: given)? (?:sentence|text|context))?"
    r"|undetermined)\b",
    re.IGNORECASE,
)
_LEAVES_IT_OPEN = re.compile(rf"{_CANNOT}|\b(?:un(?:determined|clear|certain|known|sure)|ambiguous)\b", re.IGNORECASE)


class AnswerReading(NamedTuple):
    """The reading of a generated answer."""

    outcome: str | None
    """Outcome of the option that the answer names; None if it names none or more than one."""
    refuses: bool = False
    """True if the answer names no option and begins like a refusal."""


class _Letter(NamedTuple):
    option: int
    """Index of the option that the letter stands for."""
    start: int
    end: int


def read_answer(text: str, outcomes: Sequence[str]) -> AnswerReading:
    """Return the outcome of the option that an answer names.

    Args:
        text: The generated text.
        outcomes: Outcomes that the options stand for, in the order of their letters.

    >>> read_answer(" (B) the nurse", ["guard", "nurse"])
    AnswerReading(outcome='nurse', refuses=False)
    >>> read_answer("A or B", ["guard", "nurse"])
    AnswerReading(outcome=None, refuses=False)
    """
    lines = _lines(text)
    if not lines:
        return AnswerReading(None)
    outcome = _outcome(lines[0], outcomes)
    if outcome is None:
        silent = not any(_names_an_option(line, outcomes) for line in lines)
        return AnswerReading(None, refuses=silent and _REFUSES.match(lines[0]) is not None)
    contradicted = any(_contradicts(line, outcome, outcomes) for line in lines[1:])
    return AnswerReading(None if contradicted else outcome)


def _lines(text: str) -> list[str]:
    """Return the lines that say more than leading words, without invisible characters and markup."""
    shown = _THOUGHTS.sub("", _normalised(text))
    lines = []
    for line in _LATEX.sub(" ", _without_tags(shown)).splitlines():
        visible = "".join(" " if sign.isspace() else sign for sign in line if not _is_invisible(sign))
        visible = " ".join(visible.translate(_PLAINER).split())
        if not _is_leading(visible):
            lines.append(visible)
    return lines


def _normalised(text: str) -> str:
    """Return the NFKC of a text, with a limited number of marks on each letter."""
    if text.isascii():
        return text
    kept = []
    n_marks = 0
    for sign in text:
        n_marks = n_marks + 1 if unicodedata.combining(sign) else 0
        if n_marks <= _MOST_MARKS:
            kept.append(sign)
    return unicodedata.normalize("NFKC", "".join(kept))


def _without_tags(text: str) -> str:
    """Return a text with a space in the place of each tag that has a partner."""
    tags = list(_TAG.finditer(text))
    for _ in range(_MOST_NESTED):
        removed = _outer_pairs(tags)
        if not removed:
            break
        tags = [tag for tag in tags if tag.start() not in removed]
    kept = {tag.start() for tag in tags}
    return _TAG.sub(lambda tag: tag[0] if tag.start() in kept else " ", text)


def _outer_pairs(tags: Sequence[re.Match[str]]) -> set[int]:
    """Return the offsets of the tags of the outermost pairs; what stands inside a pair is left for the next call.

    A pair is an opening tag and the next closing one of its name.
    """
    # Each list is read once from its beginning, so that the work grows with the number of tags and not with its square.
    closing: dict[str, deque[int]] = defaultdict(deque)
    for tag in tags:
        if tag["closes"]:
            closing[tag["name"].lower()].append(tag.start())
    removed: set[int] = set()
    resume = 0
    for tag in tags:
        if tag.start() < resume or tag["closes"]:
            continue
        partners = closing[tag["name"].lower()]
        while partners and partners[0] < tag.start():
            partners.popleft()
        if partners:
            resume = partners[0]
            removed |= {tag.start(), resume}
    return removed


def _is_invisible(sign: str) -> bool:
    is_variation = "\N{VARIATION SELECTOR-1}" <= sign <= "\N{VARIATION SELECTOR-16}"
    return is_variation or (unicodedata.category(sign) in {"Cf", "Cc"} and not sign.isspace())


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def _is_leading(text: str) -> bool:
    """Return True if a text holds only words that lead to an answer, or none, and no unknown sign."""
    return not _has_unknown_sign(text) and all(word in _LEADING for word in _words(text))


def _has_unknown_sign(text: str) -> bool:
    return any(
        not (sign.isalnum() or sign == " " or sign in _SIGNS_WITHOUT_MEANING)
        and not unicodedata.category(sign).startswith("P")
        for sign in text
    )


def _outcome(line: str, outcomes: Sequence[str]) -> str | None:
    """Return the outcome that one line names; None if it names none or is ambiguous."""
    if _has_unknown_sign(line) or _UNEQUAL.search(line):
        return None
    start = 0
    while (clause := _REFUSING_CLAUSE.match(line, start)) is not None:
        start = clause.end()
    # "I cannot say B, A": such a clause is part of the answer, and makes it ambiguous.
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
    option, first, end = letters[0]
    if {letter.option for letter in letters} != {option} or option >= len(outcomes):
        return None
    own = outcomes[option]
    before, after = (_text(own).sub(" ", part) for part in (line[start:first], line[end:]))
    if _names_another(line, own, outcomes) or not _is_leading(before) or _UNSAYS.search(after):
        return None
    return None if _is_somebody_else(after) else own


def _letters(line: str, n_offered: int) -> list[_Letter]:
    """Return the letters of options in a line, including capitals of options that were not offered."""
    letters: list[_Letter] = []
    articles: list[_Letter] = []
    called = {match.end() for match in _CALLED_A_LETTER.finditer(line)}
    first_word = _WORD.search(line)
    for match in _LETTER.finditer(line):
        option = "abcdefgh".index(match[0].lower())
        # A capital C was not offered beside A and B, but a line with it names more than one option.
        if match[0].islower() and option >= n_offered:
            continue
        begins = first_word is None or first_word.start() >= match.start()
        is_article = option == 0 and match.start() not in called and _is_article(line, match, begins=begins)
        (articles if is_article else letters).append(_Letter(option, match.start(), match.end()))
    # "A nurse, so B": beside another letter a capital A may be one too, and the line is then ambiguous.
    capitals = [article for article in articles if line[article.start] == "A"]
    return sorted([*letters, *capitals], key=lambda letter: letter.start) if letters else []


def _is_article(line: str, match: re.Match[str], *, begins: bool) -> bool:
    """Return True if a letter that is not called a letter is an article.

    Args:
        line: The line.
        match: The letter.
        begins: True if no word stands before the letter.
    """
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


def _is_somebody_else(after: str) -> bool:
    """Return True if a letter is followed by a short text that is not its option's."""
    match = re.fullmatch(r"[\W_]*(?:(?:is|as|for|means) )?(?:the|an?) (.+)", after, re.IGNORECASE)
    if match is None or len(words := _words(match[1])) > 3:
        return False
    # The letter may be repeated: "B. The answer is B".
    return any(word not in _LEADING and len(word) > 1 for word in words)


def _names_an_option(line: str, outcomes: Sequence[str]) -> bool:
    return bool(_letters(line, len(outcomes))) or any(_text(outcome).search(line) for outcome in outcomes)


def _contradicts(line: str, outcome: str, outcomes: Sequence[str]) -> bool:
    """Return True if a later line names another option than the outcome's, or begins to take it back."""
    if _TAKES_BACK.match(line) or _outcome(line, outcomes) not in (None, outcome):
        return True
    named = {letter.option for letter in _letters(line, len(outcomes))}
    return any(option >= len(outcomes) or outcomes[option] != outcome for option in named)
