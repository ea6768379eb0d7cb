"""The images of a source and the words of their labels; unreadable and duplicate images are rejected."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from biasboard.ground.errors import DataError
from biasboard.ground.plain_text import invisible_sign
from biasboard.ground.progress import Report
from builders.dataset.output import Rule
from schemas.documents.dataset import Reject, Source, offered_fault
from schemas.files.pictures import decoded, pixels_sha256

MOST_LABELS = 128
"""Largest number of labels that the schema of the items allows."""
OTHER_FILE = Rule(name="other_file", description="The file is no image by its name.")
UNREADABLE = Rule(
    name="unreadable",
    description="The file is no whole PNG or JPEG file, is an animation, or has too many pixels.",
)
DUPLICATE = Rule(name="duplicate", description="Another image of the same label and part has the same pixels.")
TWO_LABELS = Rule(name="two_labels", description="An image of another label has the same pixels; both are dropped.")
EVALUATED = Rule(name="evaluated", description="An image that is evaluated has the same pixels.")
RULES = (OTHER_FILE, UNREADABLE, DUPLICATE, TWO_LABELS, EVALUATED)


class ImageFile(NamedTuple):
    """A file that may become an item."""

    path: str
    """Path in the source, such as ``test/cat/0001.png``; unique."""
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
    """Words of all labels, sorted; each must have images, so that none disappears unnoticed."""
    train: Sequence[ImageFile]
    """Images that may support the measurement; all images if the source has no test images."""
    test: Sequence[ImageFile] | None
    """Images to evaluate on; None if the source has no test images."""
    rejects: tuple[Reject, ...]
    """Files whose names are not those of images."""
    sources: tuple[Source, ...]
    where: str
    """Name of the source in errors."""
    is_published: bool | None = None
    """True if the files are the published ones, False if not; None if there are no published ones."""


def label_words(name: str, where: str) -> str:
    """Return the words of a label: its name with spaces in place of underscores.

    Raises:
        DataError: the name has no letter or digit, or a control character.

    >>> label_words("lawn_mower", "labels")
    'lawn mower'
    """
    words = " ".join(unicodedata.normalize("NFC", name).replace("_", " ").split(" ")).strip()
    words = re.sub(" +", " ", words)
    if not any(character.isalnum() for character in words):
        raise DataError(f"{where}: label {name!r} has no letter or digit, so that no text can name it; rename it")
    if (sign := invisible_sign(words)) is not None:
        raise DataError(f"{where}: label {name!r} has the control character {sign!r}; rename it")
    return words


def check_labels(names: Iterable[str], where: str) -> tuple[str, ...]:
    """Return the words of the labels, sorted, after a check that a model can tell them apart.

    Raises:
        DataError: there are fewer than two labels or too many, or two of them read alike.
    """
    by_words: dict[str, str] = {}
    for name in names:
        other = by_words.setdefault(label_words(name, where).casefold(), name)
        if other != name:
            raise DataError(f"{where}: labels {other!r} and {name!r} differ in case or underscores alone; rename one")
    if len(by_words) < 2:
        labels = f"only the label {next(iter(by_words.values()))!r}" if by_words else "no label"
        raise DataError(f"{where}: has {labels}; give at least two folders of images, one for each label")
    if len(by_words) > MOST_LABELS:
        raise DataError(f"{where}: has {len(by_words)} labels, and a dataset has at most {MOST_LABELS}; leave some out")
    words = tuple(sorted(label_words(name, where) for name in by_words.values()))
    if (fault := offered_fault(words)) is not None:
        raise DataError(f"{where}: label {fault}")
    return words


class Sound(NamedTuple):
    """An image that can be read."""

    candidate: ImageFile
    sha256: str
    """SHA-256 of the file."""
    pixels: str
    """Hash of the pixels, independent of the format of the file."""
    width: int
    height: int


def check_images(content: Content, report: Report) -> tuple[dict[str, list[Sound]], list[Reject]]:
    """Open all images of a source, and reject unreadable and duplicate ones.

    Returns:
        The usable images of the parts test and train, of which test is empty if the source has none; and the rejects.
    """
    candidates = [("test", candidate) for candidate in content.test or ()]
    candidates += [("train", candidate) for candidate in content.train]
    opened: list[tuple[str, Sound]] = []
    rejects = list(content.rejects)
    labels: dict[str, dict[str, None]] = {}
    for number, (part, candidate) in enumerate(candidates):
        report("opening images", number, len(candidates))
        try:
            file = candidate.read()
            picture = decoded(file)
            image = Sound(candidate, hashlib.sha256(file).hexdigest(), pixels_sha256(picture), *picture.size)
        except DataError as error:
            rejects.append(_reject(candidate, UNREADABLE, str(error)))
            continue
        opened.append((part, image))
        labels.setdefault(image.pixels, {})[candidate.label] = None
    usable: dict[str, list[Sound]] = {"test": [], "train": []}
    first_of_pixels: dict[str, tuple[str, str]] = {}
    for part, image in opened:
        first_part, first = first_of_pixels.setdefault(image.pixels, (part, image.candidate.path))
        if len(labels[image.pixels]) > 1:
            names = " and ".join(f"'{name}'" for name in labels[image.pixels])
            rejects.append(_reject(image.candidate, TWO_LABELS, f"its pixels stand under the labels {names}"))
        elif first != image.candidate.path:
            rule = DUPLICATE if first_part == part else EVALUATED
            rejects.append(_reject(image.candidate, rule, f"has the pixels of {first}"))
        else:
            usable[part].append(image)
    return usable, rejects


def _reject(candidate: ImageFile, rule: Rule, reason: str) -> Reject:
    return Reject(candidate=candidate.path, source_row=candidate.path, rule=rule.name, reason=reason)
