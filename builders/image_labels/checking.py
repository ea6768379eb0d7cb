"""Opens every image of a source, and keeps out what cannot be read or stands twice."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from biasboard.ground.errors import DataError
from biasboard.ground.progress import Report
from builders.dataset.output import Rule
from builders.image_labels.content import Candidate, Content
from builders.image_labels.folder import OTHER_FILE
from schemas.documents.dataset import Reject
from schemas.files.pictures import decoded, pixels_sha256

UNREADABLE = Rule(
    name="unreadable",
    description="The file is no whole PNG or JPEG file, is an animation, or has too many pixels.",
)
DUPLICATE = Rule(name="duplicate", description="Another image of the same label and part has the same pixels.")
TWO_LABELS = Rule(name="two_labels", description="An image of another label has the same pixels; both are dropped.")
EVALUATED = Rule(name="evaluated", description="An image that is evaluated has the same pixels.")
RULES = (
    Rule(name=OTHER_FILE, description="The file is no image by its name."),
    *(UNREADABLE, DUPLICATE, TWO_LABELS, EVALUATED),
)


class Sound(NamedTuple):
    """An image that can be read, and that no other one repeats."""

    candidate: Candidate
    sha256: str
    """SHA-256 of the file."""
    pixels: str
    """Hash of the pixels, which files of other formats may share."""
    width: int
    height: int


class Checked(NamedTuple):
    """The images of a source that can be used."""

    train: Sequence[Sound]
    test: Sequence[Sound] | None
    rejects: tuple[Reject, ...]


def check_images(content: Content, report: Report) -> Checked:
    """Open all images of a source, and reject those that cannot be read or stand twice.

    Args:
        content: The images.
        report: Function that is told the progress.
    """
    parts = {"test": content.test or (), "train": content.train}
    n_in_all = sum(map(len, parts.values()))
    rejects = list(content.rejects)
    found: dict[str, list[Sound]] = {"test": [], "train": []}
    n_done = 0
    for name, candidates in parts.items():
        for candidate in candidates:
            report("opening images", n_done, n_in_all)
            n_done += 1
            try:
                found[name].append(_opened(candidate))
            except DataError as error:
                rejects.append(_reject(candidate, UNREADABLE, str(error)))
    ambiguous = _with_two_labels([*found["test"], *found["train"]])
    seen: dict[str, tuple[str, str]] = {}
    for name, images in found.items():
        kept = []
        for image in images:
            reject = _repeated(image, name, ambiguous, seen)
            if reject is None:
                seen[image.pixels] = (name, image.candidate.place)
                kept.append(image)
            else:
                rejects.append(reject)
        found[name] = kept
    return Checked(found["train"], None if content.test is None else found["test"], tuple(rejects))


def _opened(candidate: Candidate) -> Sound:
    content = candidate.read()
    picture = decoded(content)
    width, height = picture.size
    return Sound(candidate, hashlib.sha256(content).hexdigest(), pixels_sha256(picture), width, height)


def _with_two_labels(images: Sequence[Sound]) -> dict[str, tuple[str, ...]]:
    """Return the labels of the pixels that stand under several, by the hash of the pixels."""
    labels: dict[str, dict[str, None]] = {}
    for image in images:
        labels.setdefault(image.pixels, {})[image.candidate.label] = None
    return {pixels: tuple(names) for pixels, names in labels.items() if len(names) > 1}


def _repeated(
    image: Sound, part: str, ambiguous: dict[str, tuple[str, ...]], seen: dict[str, tuple[str, str]]
) -> Reject | None:
    """Return the reject of an image whose pixels stand elsewhere too; None if it is the first to have them."""
    if image.pixels in ambiguous:
        names = " and ".join(f"'{name}'" for name in ambiguous[image.pixels])
        return _reject(image.candidate, TWO_LABELS, f"its pixels stand under the labels {names}")
    if image.pixels not in seen:
        return None
    other_part, place = seen[image.pixels]
    rule = DUPLICATE if other_part == part else EVALUATED
    return _reject(image.candidate, rule, f"has the pixels of {place}")


def _reject(candidate: Candidate, rule: Rule, reason: str) -> Reject:
    return Reject(candidate=candidate.place, source_row=candidate.place, rule=rule.name, reason=reason)
