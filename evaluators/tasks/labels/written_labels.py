"""Reads which label a generated answer names, by fixed rules that make readings reproducible.

The rules belong to the task: a change raises the task's version, and ``rescore`` reads stored answers again. A wrong
reading is worse than none, so an ambiguous answer is left unread.

1. An answer that is a label, letter by letter, is that label.
2. Otherwise thoughts, markup and invisible characters are removed (evaluators/tasks/answer_lines.py), and case and
   punctuation are ignored. Labels that then look alike are never told apart.
3. The label must be the first words of the answer, or follow ``The correct label is`` and the like or one word with a
   colon (``Sentiment:``). After it the line ends, or a punctuation mark follows: *positive reviews* does not name the
   label *positive*.
4. The longest such label is taken: *not hateful* is not *not*.
5. The answer is unread if its rest names another label, takes the answer back (``no``, ``or``, ``wait``, ``wrong``) or
   declines to answer, or if a line holds an unknown symbol (an emoji, a struck-out letter).
6. Nor is a label read at the very end of an answer that was cut off: it may have gone on.
7. An answer that names no label in this way is a refusal if it begins like one (``I cannot``, ``I'm sorry``), and
   otherwise unread.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TypeAlias

from evaluators.tasks.answer_lines import AnswerReading, declines_to_answer, has_unknown_symbol, visible_lines

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_LEAD = re.compile(
    r"\W*(?:(?:so|thus|hence|therefore)\b\W*)?(?:(?:the|my)\W+)?(?:(?:correct|right|best|final|most likely)\W+)?"
    r"(?:answer|label|output|category|class|classification|choice|option)(?:\W+(?:is|would be|should be)\b)?\W*",
    re.IGNORECASE,
)
# "Sentiment: positive". What takes a label back is no such name: "Wrong: positive".
_NAME = re.compile(r"\W*[^\W\d_]+\W*?:\W*")
# A full stop, comma or colon inside a number or a word ends nothing: "1.5" does not name the label 1. An underscore is
# an asterisk here, and marks emphasis only at the end of a word.
_ENDS = re.compile(
    r"[)\]}\"'*`|>\N{RIGHT DOUBLE QUOTATION MARK}\N{RIGHT-POINTING DOUBLE ANGLE QUOTATION MARK}]*"
    r"\s*(?:$|[.,:;!](?!\w)|(?<=\s)[-\N{EN DASH}(]|\N{EM DASH})"
)
_ENDS_A_LETTER = re.compile(r"[)\]]")
# In "-1", "!positive" and "#1" the mark is part of what is said; a dash before a word marks a list. The pattern is for
# the reversed text before a label: searched for forwards, it takes time quadratic in the number of marks.
_SIGN = re.compile(r"\W*?[!#@/<\N{MINUS SIGN}]|-")
_LETTER = 2
"""Largest length of a label after which a bracket ends it, as in "B) the second"."""
_CLAUSE = re.compile(r"[^.,:;!?()\n]+")
_TAKES_BACK = re.compile(
    r"\W*(?:no|not|nope|or|but|wait|actually|sorry|correction|hm+|wrong|incorrect|rather|maybe|perhaps|neither|none"
    r"|both|however|is|was|isn't|wasn't|are|would|could|might)\b",
    re.IGNORECASE,
)
_Words: TypeAlias = tuple[str, ...]


def read_label(text: str, labels: Sequence[str], *, is_cut: bool = False) -> AnswerReading:
    """Return the label that an answer names.

    Args:
        text: The generated text.
        labels: The labels that the prompt offers.
        is_cut: True if the answer reached the largest number of tokens.

    >>> read_label("Label: **Not hateful.**", ["hateful", "not hateful"])
    AnswerReading(outcome='not hateful', refuses=False)
    >>> read_label("hateful or not hateful", ["hateful", "not hateful"])
    AnswerReading(outcome=None, refuses=False)
    """
    if text.strip() in labels and not is_cut:
        return AnswerReading(text.strip())
    lines = [line for line in visible_lines(text) if _WORD.search(line)]
    # "Answer:" and the label on the next line.
    while len(lines) > 1 and _LEAD.fullmatch(lines[0]) and not _named(lines[0], labels):
        lines = lines[1:]
    if not lines:
        return AnswerReading(None)
    label, end = _leading_label(lines[0], labels)
    if label is None:
        return AnswerReading(None, refuses=declines_to_answer(lines[0]))
    rest = "\n".join([lines[0][end:], *lines[1:]])
    if any(map(has_unknown_symbol, lines)) or _contradicts(rest, label, labels):
        return AnswerReading(None)
    return AnswerReading(None if is_cut and not _WORD.search(rest) else label)


def _leading_label(line: str, labels: Sequence[str]) -> tuple[str | None, int]:
    """Return the label at the beginning of a line, behind leading words or not, and the offset of its end."""
    lead = _LEAD.match(line) or (None if _TAKES_BACK.match(line) else _NAME.match(line))
    for start in (0,) if lead is None else (0, lead.end()):
        words = list(_WORD.finditer(line, start))
        found = {label: n for label in labels if (n := len(_words(label))) and _texts(words[:n]) == _words(label)}
        if not found:
            continue
        longest = [label for label, n in found.items() if n == max(found.values())]
        label, end = longest[0], words[found[longest[0]] - 1].end()
        ends = _ENDS.match(line, end) or (end - words[0].start() <= _LETTER and _ENDS_A_LETTER.match(line, end))
        sign = _SIGN.match(line[: words[0].start()][::-1])
        is_signed = sign is not None and (sign[0] != "-" or words[0][0][0].isdigit())
        # Labels that differ only in case or punctuation tie.
        return (label, end) if len(longest) == 1 and ends and not is_signed else (None, 0)
    return None, 0


def _contradicts(rest: str, label: str, labels: Sequence[str]) -> bool:
    """Return True if the text after a label names another one, takes the label back, or declines to answer."""
    if _named(rest, labels) - {label}:
        return True
    # Some models repeat their answer, which may be "no".
    clauses = [
        clause
        for clause in _CLAUSE.findall(rest)
        if _texts(_WORD.finditer(clause))[: len(_words(label))] != _words(label)
    ]
    return any(_TAKES_BACK.match(clause) or declines_to_answer(clause) for clause in clauses)


def _named(text: str, labels: Sequence[str]) -> set[str]:
    """Return the labels whose words stand in a text, without those that are only parts of longer ones there."""
    by_first: dict[str, list[str]] = defaultdict(list)
    for label in sorted(labels, key=lambda label: -len(_words(label))):
        if _words(label):
            by_first[_words(label)[0]].append(label)
    words = _texts(_WORD.finditer(text))
    found: set[str] = set()
    covered = 0
    for start, word in enumerate(words):
        for label in by_first.get(word, ()):
            end = start + len(_words(label))
            if end > covered and words[start:end] == _words(label):
                found.add(label)
                covered = end
    return found


def _texts(words: Iterable[re.Match[str]]) -> _Words:
    return tuple(word[0].casefold() for word in words)


@lru_cache(maxsize=4096)
def _words(label: str) -> _Words:
    """Return the words of a label as they stand in the visible lines of an answer."""
    return _texts(word for line in visible_lines(label) for word in _WORD.finditer(line))
