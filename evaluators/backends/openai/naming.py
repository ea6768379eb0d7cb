"""Tells other names of the model that was asked from the names of other models."""

from __future__ import annotations

import re

# Providers answer with the dated snapshot behind a name, and servers with the name of a file or with a tag.
_ENDS = re.compile(r"(\.gguf|[-:@]latest|[-:@_]v?\d{4}-\d{2}(-\d{2})?|[-:@_]\d{8}|-\d{4})$")


def is_same_model(asked: str, said: str) -> bool:
    """Return True if an endpoint's name for a model may stand for the one that was asked.

    >>> is_same_model("gpt-4o", "openai/gpt-4o-2024-08-06")
    True
    >>> is_same_model("llama3", "llama3:latest")
    True
    >>> is_same_model("gpt-4o", "gpt-4o-mini")
    False
    """
    return _stem(asked) == _stem(said)


def _stem(name: str) -> str:
    last = name.strip().rstrip("/").rpartition("/")[2].lower()
    return _ENDS.sub("", last)
