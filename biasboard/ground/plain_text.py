"""Makes texts from strangers safe to print, and names that are easily mistaken visible."""

from __future__ import annotations

import unicodedata

_UNSEEN = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp", "Cn"})
"""Categories of characters that are not seen or that change how others are shown: controls, formats, line breaks."""


def printable(text: str, *, most: int = 400) -> str:
    r"""Return a text in one line in which every character is seen as what it is.

    Characters that are not seen, and letters and signs outside ASCII that may pass for others, are written as escapes.

    Args:
        text: Text from outside.
        most: Number of characters from which the rest is left out.

    >>> printable("a\x1b[31m\nb")
    'a\\x1b[31m\\nb'
    """
    shown = "".join(map(_seen, text[:most]))
    return shown if len(text) <= most else f"{shown} … ({len(text) - most:,} more characters)"


def visible(text: str) -> str:
    r"""Return a text in which every character is seen as what it is; its line breaks, tabs and spaces stay.

    >>> visible("a\u202eb\n")
    'a\\u202eb\n'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(one if one in "\n\t" or unicodedata.category(one) == "Zs" else _seen(one) for one in text)


def _seen(character: str) -> str:
    if character.isascii() and character.isprintable():
        return character
    if unicodedata.category(character) in _UNSEEN or not character.isprintable() or character.isspace():
        return character.encode("unicode_escape").decode()
    return character
