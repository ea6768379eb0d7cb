"""Which licences allow sharing converted copies of data that a user brings, and why others must not be published."""

from __future__ import annotations

import re

from biasboard.ground.errors import ConfigError
from biasboard.ground.plain_text import printable

OPEN_LICENCES = (
    *("CC0-1.0", "PDDL-1.0", "CC-BY-4.0", "CC-BY-3.0", "CC-BY-SA-4.0", "CC-BY-SA-3.0", "ODC-By-1.0"),
    *("MIT", "Apache-2.0", "BSD-3-Clause"),
)
"""Licences that allow sharing converted copies, by their SPDX identifiers."""
UNKNOWN = "unknown"
"""Licence of data whose user states none."""


_EXPRESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+() -]{0,99}")


def checked_licence(licence: str | None) -> str | None:
    """Return a licence that a user states.

    Raises:
        ConfigError: it is neither an SPDX identifier nor an expression of some.
    """
    if licence is not None and not _EXPRESSION.fullmatch(licence):
        raise ConfigError(
            f"--licence {printable(licence, most=60)}: is no SPDX identifier; write one, such as CC-BY-4.0"
        )
    return licence


def licence_terms(licence: str | None, what: str) -> str:
    """Return what a card says of the licence that the user states; None if it is not known."""
    if licence is None:
        return f"The licence of the {what} is not known: whoever built this dataset did not state it."
    return f"Whoever built this dataset states that the {what} are licensed under {licence}."


def publish_refusal(licence: str | None, what: str) -> str | None:
    """Return the reason why data must not be published; None if its licence allows sharing converted copies.

    ``what`` is a noun in the plural for the data, such as ``images``.
    """
    if licence is None:
        return f"the licence of the {what} is not known; build with --licence if it allows sharing copies"
    if licence not in OPEN_LICENCES:
        return (
            f"the licence {licence} is not known to allow sharing copies (known are {', '.join(OPEN_LICENCES)}); "
            f"publish scores and hashes in place of the {what}"
        )
    return None
