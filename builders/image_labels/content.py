"""The images of a source before they are checked, and the words of their labels."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from biasboard.ground.errors import DataError
from schemas.documents.dataset import Reject, Source

MOST_LABELS = 128
"""Largest number of labels, as the schema of the items has it."""


class Candidate(NamedTuple):
    """A file that may become an item."""

    place: str
    """Place in the source, such as ``test/cat/0001.png``, unique in it."""
    label: str
    category: str | None
    """Group of labels to which it belongs; None if the source has no such groups."""
    read: Callable[[], bytes]
    """Function that returns the content of the file."""


class Content(NamedTuple):
    """The images of a source."""

    name: str
    """Name of the config."""
    labels: tuple[str, ...]
    """Words of all labels, sorted; each must have images, so that none is lost in silence."""
    train: Sequence[Candidate]
    """Images that may support the measurement; all images if the source has no images apart to evaluate on."""
    test: Sequence[Candidate] | None
    """Images to evaluate on; None if the source does not set any apart."""
    rejects: tuple[Reject, ...]
    """Files that are no images by their names."""
    sources: tuple[Source, ...]
    where: str
    """Place to name in errors."""
    is_published: bool | None = None
    """True if the files are the published ones, False if they are others; None if there are no published ones."""


def label_words(name: str, where: str) -> str:
    """Return the words of a label: its name with spaces in place of underscores.

    Args:
        name: Name of the label in the source.
        where: Place to name in errors.

    Raises:
        DataError: the name has no letter or digit, or a control character.

    >>> label_words("lawn_mower", "labels")
    'lawn mower'
    """
    words = " ".join(unicodedata.normalize("NFC", name).replace("_", " ").split(" ")).strip()
    words = re.sub(" +", " ", words)
    if not any(character.isalnum() for character in words):
        raise DataError(f"{where}: label {name!r} has no letter or digit, so that no text can name it; rename it")
    strange = [character for character in words if unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp", "Cs")]
    if strange:
        raise DataError(f"{where}: label {name!r} has the control character {strange[0]!r}; rename it")
    return words


def check_labels(names: Iterable[str], where: str) -> tuple[str, ...]:
    """Return the words of the labels, sorted, after a check that a model can tell them apart.

    Args:
        names: Names of the labels in the source.
        where: Place to name in errors.

    Raises:
        DataError: there are fewer than two labels or too many, or two of them read alike.
    """
    found: dict[str, str] = {}
    for name in names:
        other = found.setdefault(label_words(name, where).casefold(), name)
        if other != name:
            raise DataError(f"{where}: labels {other!r} and {name!r} differ in case or underscores alone; rename one")
    if len(found) < 2:
        one = f"only the label {next(iter(found.values()))!r}" if found else "no label"
        raise DataError(f"{where}: has {one}; give at least two folders of images, one for each label")
    if len(found) > MOST_LABELS:
        raise DataError(f"{where}: has {len(found)} labels, and a dataset has at most {MOST_LABELS}; leave some out")
    return tuple(sorted(label_words(name, where) for name in found.values()))
