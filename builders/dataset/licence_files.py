"""The licences of a dataset, and the files that hold the terms of a source, which stay with its data."""

from __future__ import annotations

import re

_NAME = re.compile(r"(LICEN[CS]E|COPYING|NOTICE)(_DATA)?(\.md|\.txt)?", re.ASCII)


def is_licence_file(name: str) -> bool:
    """Return True if a file holds the terms of a source, by its path in the folder of the dataset.

    >>> is_licence_file("LICENSE"), is_licence_file("notes.txt")
    (True, False)
    """
    return _NAME.fullmatch(name) is not None


def licences_of(expression: str) -> list[str]:
    """Return the SPDX identifiers of a licence; there are several if the configs have different ones.

    >>> licences_of("MIT AND Apache-2.0")
    ['MIT', 'Apache-2.0']
    """
    return expression.split(" AND ")
