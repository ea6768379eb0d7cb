"""The version of a dataset: MAJOR.MINOR.PATCH, given when the dataset is built."""

from __future__ import annotations

import re

_FORM = re.compile(r"(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})")
EXAMPLE = "MAJOR.MINOR.PATCH, such as 1.2.0"


def version_key(version: str) -> tuple[int, ...] | None:
    """Return the numbers of a version, by which versions are ordered; None if it does not have the form.

    >>> version_key("1.10.0") > version_key("1.9.3")
    True
    >>> version_key("1.10") is None
    True
    """
    match = _FORM.fullmatch(version)
    return None if match is None else tuple(map(int, match.groups()))
