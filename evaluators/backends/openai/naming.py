"""Tells other names of the model that was asked from the names of other models."""

from __future__ import annotations

import re

# Providers answer with the dated snapshot behind a name, and servers with the name of a file or with a tag.
_ENDS = re.compile(r"(\.gguf|[-:@]latest|[-:@_]v?\d{4}-\d{2}(-\d{2})?|[-:@_]\d{8}|-\d{4})$")


def is_same_model(asked: str, said: str) -> bool:
    """Return True if an endpoint's name for a model may stand for the one that was asked.

    >>> is_same_model("gpt-4o", "openai/gpt-4o-2024-08-06")
    True
    >>> is_same_model("org/llama3", "/srv/models/llama3.gguf")
    True
    >>> is_same_model("gpt-4o", "gpt-4o-mini")
    False
    """
    # A server may leave out the organisation, or put a provider's name before it.
    names = [_parts(asked), _parts(said)]
    n_common = min(map(len, names))
    return names[0][-n_common:] == names[1][-n_common:]


def _parts(name: str) -> list[str]:
    """Return the parts of a name between slashes; of a path only the last."""
    *before, last = name.strip().lower().rstrip("/").split("/")
    return [*([] if name.startswith("/") else before), _ENDS.sub("", last)]
