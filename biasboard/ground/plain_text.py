"""Makes untrusted texts safe to print and to open in a spreadsheet, hides keys, and shows invisible characters.

``str.isprintable`` decides what is escaped: it is False for control characters, for those that reverse the direction of
writing, for line breaks, and for every space except U+0020.
"""

from __future__ import annotations

import base64
import os
import re
import unicodedata
from collections.abc import Iterator, Sequence
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache

# The last four are the wide forms of the signs.
_SIGN = "[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]"
_FORMULA = re.compile(f"'*{_SIGN}")
_PROTECTED = re.compile(f"'+{_SIGN}")
_MOST_CHARACTERS = 1_200
"""Length of a message beyond which its middle is left out: a value that it quotes may be a whole file."""
_END = 400
_ESCAPES = re.compile(r"[\\%&\x00-\x08\x0e-\x1f\x7f]")
_UNSEEN = {"\u034f", "\u115f", "\u1160", "\u17b4", "\u17b5", "\u2800", "\u3164", "\uffa0"}
"""Signs without ink that Unicode counts as letters, marks or symbols; selectors of variants are recognised by name."""
_LOOKS = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u03bf\u03b1\u03bd", "aeopcyxijsoav"
)
"""Small letters of Cyrillic and Greek that look like Latin ones."""


def protected(cell: str) -> str:
    """Return a cell of a CSV file as it is written, so that no spreadsheet takes it for a formula.

    An apostrophe goes before a cell that begins with ``=``, ``+``, ``-``, ``@``, a tab or a line break, also after
    apostrophes; :func:`unprotected` removes exactly that one.

    >>> protected("=1+1"), protected("'=1+1"), protected("the nurse")
    ("'=1+1", "''=1+1", 'the nurse')
    """
    return f"'{cell}" if _FORMULA.match(cell) else cell


def unprotected(cell: str) -> str:
    """Return a cell as it was before :func:`protected`."""
    return cell[1:] if _PROTECTED.match(cell) else cell


def escaped(text: str) -> str:
    r"""Return a text on one line, with escapes instead of invisible characters.

    >>> escaped("a\x1b[31m\nb")
    'a\\x1b[31m\\nb'
    """
    return text if text.isprintable() else "".join(map(_seen, text))


def one_line(error: object, *, most: int = 300) -> str:
    r"""Return the beginning of a library's error message on one line; the type of the error if the message is empty.

    >>> one_line("cannot be read:\n   no such file", most=20)
    'cannot be read: no s'
    >>> one_line(MemoryError())
    'MemoryError'
    """
    return " ".join(str(error).split())[:most] or (type(error).__name__ if isinstance(error, Exception) else "")


def printable(text: str, *, most: int = 400) -> str:
    """Return the beginning of a text on one line, with escapes instead of invisible characters.

    >>> printable("a b c", most=3)
    'a b … (2 more characters)'
    """
    shown = escaped(text[:most])
    return shown if len(text) <= most else f"{shown} … ({len(text) - most:,} more characters)"


def without_middle(message: str) -> str:
    """Return a message without its middle if it is too long to be read; what to do stands at its end."""
    n_left_out = len(message) - _MOST_CHARACTERS
    if n_left_out <= 0:
        return message
    return f"{message[: _MOST_CHARACTERS - _END]} … ({n_left_out:,} characters) … {message[-_END:]}"


def listed(names: Sequence[str], *, most: int) -> str:
    """Return the first names of a list, separated by commas, and the number of the others.

    >>> listed(["a", "b", "c"], most=2), listed(["a"], most=2)
    ('a, b and 1 more', 'a')
    """
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def key_fault(name: str, key: str) -> str | None:
    r"""Return why a key or token cannot be sent in the header of a request, without the key; None if it can.

    >>> key_fault("HF_TOKEN", "hf_caf\xe9")
    'HF_TOKEN holds a space, a line break or a letter that no key has; copy the key again'
    >>> key_fault("HF_TOKEN", "hf_abc")
    """
    if key.isascii() and key.isprintable() and " " not in key:
        return None
    return f"{name} holds a space, a line break or a letter that no key has; copy the key again"


def is_key(value: str) -> bool:
    """Return True if a value is a key by its looks, and no word such as ``EMPTY`` that stands where one is expected."""
    return len(value) >= (16 if value.isalpha() or not re.search("[A-Za-z]", value) else 6)


def without_keys(text: str) -> str:
    """Return a text without the keys in the environment, which are known by the names of their variables."""
    ends = ("KEY", "TOKEN", "SECRET", "PASSWORD")
    keys = (value for name, value in os.environ.items() if name.endswith(ends) and is_key(value))
    return masked(text, frozenset(keys))


def masked(text: str, secrets: frozenset[str]) -> str:
    """Return a text with ``***`` in place of secrets, in whatever case or usual encoding they stand there.

    >>> masked("it is made-%6bey", frozenset({"made-key"}))
    'it is ***'
    """
    if not secrets:
        return text
    pattern, literals = _finder_of(secrets)
    # Nearly all texts hold none, and the pattern takes 50 times as long.
    if text.isascii() and not _ESCAPES.search(text):
        squeezed = "".join(text.split()).lower()
        if not any(literal in squeezed for literal in literals):
            return text
    return pattern.sub("***", text)


@lru_cache(maxsize=8)
def _finder_of(secrets: frozenset[str]) -> tuple[re.Pattern[str], Sequence[str]]:
    """Return a pattern of secrets, and one text for each of its branches that a plain text must hold without spaces."""
    spellings = [spelt for secret in sorted(secrets, key=len, reverse=True) for spelt in _spellings(secret)]
    literals = ["".join(literal.split()).lower() for literal, _ in spellings]
    return re.compile("|".join(pattern for _, pattern in spellings), re.IGNORECASE), literals


def _spellings(secret: str) -> Iterator[tuple[str, str]]:
    """Yield each spelling of a secret and its pattern: its signs, escaped or with blanks between, and its bytes."""
    content = secret.encode("utf-8", "surrogatepass")

    def sign(one: str) -> str:
        in_url = "".join(f"%(?:25){{0,3}}{byte:02x}" for byte in one.encode("utf-8", "surrogatepass"))
        entity = f"&#(?:0{{0,6}}{ord(one)}|x0{{0,6}}{ord(one):x});?"
        return rf"\\{{0,4}}(?:{re.escape(one)}|[ux]\{{?0{{0,6}}{ord(one):x}\}}?)|{in_url}|{entity}"

    # Between its signs may stand all that is neither a letter nor a sign of ASCII: spaces, controls, what nobody sees.
    yield secret, r"[^!-~\w]*".join(f"(?:{sign(one)})" for one in secret)
    yield (content.hex(),) * 2
    # What stands before it moves the borders of base64; the signs at both ends also depend on its neighbours.
    for n_before in range(3):
        encoded = base64.b64encode(bytes(n_before) + content).decode()
        inner = encoded[-(-n_before * 8 // 6) : (n_before + len(content)) * 8 // 6]
        for spelt in (inner, inner.translate({43: "-", 47: "_"})) if len(inner) > 7 else ():
            yield spelt, re.escape(spelt)


def github_annotation(level: str, *, file: str, title: str, text: str, line: int | None = None) -> str:
    """Return a workflow command of GitHub, with what is not plain escaped, so that nothing else can be commanded.

    Args:
        level: ``error``, ``warning`` or ``notice``.
        file: Path of the file that the annotation is about.
        title: Its heading.
        text: Its message.
        line: Line of the file; None if it is about the whole.

    >>> github_annotation("error", file="a,b.csv", line=2, title="name", text="50 %")
    '::error file=a%2Cb.csv,line=2,title=name::50 %25'
    """
    of_text = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
    of_property = of_text | str.maketrans({":": "%3A", ",": "%2C"})
    properties = {"file": file, "line": line, "title": title}
    known = (f"{name}={str(value).translate(of_property)}" for name, value in properties.items() if value is not None)
    return f"::{level} {','.join(known)}::{text.translate(of_text)}"


def invisible_sign(text: str) -> str | None:
    r"""Return the first control character, sign of writing direction or lone surrogate of a text; None if it has none.

    The two joiners are none of these: words of Persian, Hindi and other languages are spelt with them.

    >>> invisible_sign("a\u202eb"), invisible_sign("Größe"), invisible_sign("\u0646\u0645\u06cc\u200c\u062f")
    ('\u202e', None, None)
    """
    if text.isprintable():
        return None
    hidden = (sign for sign in text if unicodedata.category(sign) in ("Cc", "Cf", "Zl", "Zp", "Cs"))
    return next((sign for sign in hidden if sign not in "\u200c\u200d"), None)


def seen(text: str) -> str:
    r"""Return what a reader can tell of a text: without case, signs that have no ink, and alphabets of equal letters.

    >>> seen("Ca\ufe0f\u200dt ") == seen("c\u0430t"), seen("\u3164\u200d")
    (True, '')
    """
    composed = unicodedata.normalize("NFC", text.casefold()).translate(_LOOKS)
    if composed.isascii():
        return " ".join(composed.split())
    inked = (
        sign
        for sign in composed
        if sign not in _UNSEEN
        and (sign.isspace() or unicodedata.category(sign) not in ("Cc", "Cf", "Cs"))
        and not unicodedata.name(sign, "").startswith("VARIATION SELECTOR")
    )
    return " ".join("".join(inked).split())


def visible(text: str) -> str:
    r"""Return a text like :func:`escaped`, but keep its line breaks, tabs and spaces.

    >>> visible("a\u202eb\n")
    'a\\u202eb\n'
    """
    if text.isprintable():
        return text
    return "".join(sign if sign in "\n\t" or unicodedata.category(sign) == "Zs" else _seen(sign) for sign in text)


def _seen(sign: str) -> str:
    return sign if sign.isprintable() else sign.encode("unicode_escape").decode()


def printed(value: float, digits: int) -> Decimal:
    """Round a value as pages print it: a half goes away from zero, as in the scripts of the pages.

    >>> printed(0.0625, 3), printed(-2.5, 0)
    (Decimal('0.063'), Decimal('-3'))
    """
    return Decimal(float(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
