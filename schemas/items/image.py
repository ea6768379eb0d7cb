"""Item shape: an image, with the labels that it may get."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from schemas.encoded_image import EncodedImage
from schemas.item_shape import ItemShape
from schemas.pictures import has_known_format

NoContent: TypeAlias = Literal["grey", "black", "white", "noise"]
"""Kinds of images without content: of one colour, or of random pixels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageItem:
    """An image, with the labels that it may get."""

    item_id: str
    image: EncodedImage
    """A PNG or JPEG file, byte for byte as the source has it."""
    image_sha256: str
    """SHA-256 of the bytes of the file, by which prompts and records name the image."""
    width: int
    """Width of the upright picture in pixels."""
    height: int
    labels: tuple[str, ...]
    """Labels that the image may get, as words, in the same order for all items of a config."""
    target: str | None
    """Right label; None for an image without content."""
    category: str | None
    """Group of labels to which the right one belongs, such as a superclass; None if the source has no such groups."""
    content_free: NoContent | None
    """Kind of image if it has no content; None for all others."""
    source_row: str | None
    flags: tuple[str, ...]

    @property
    def unit(self) -> str:
        """The id of the item, because items are drawn one by one when only a part of the data is asked."""
        return self.item_id


def _problems(item: ImageItem) -> Iterator[str]:
    found = hashlib.sha256(item.image.bytes).hexdigest()
    if found != item.image_sha256:
        yield f"image_sha256: {item.image_sha256} is not the {found} of the image; correct it"
    if not has_known_format(item.image.bytes):
        yield f"image: begins with {item.image.bytes[:4]!r}, as neither PNG nor JPEG does; convert it"
    if item.content_free is None and item.target is None:
        yield "target: null, and only an image without content has no right label; add it"
    elif item.content_free is not None and item.target is not None:
        yield f"target: '{item.target}', and an image without content has no right label; set it to null"
    if item.target is not None and item.target not in item.labels:
        yield f"target: '{item.target}' is none of the {len(item.labels)} labels; correct one of them"


SHAPE = ItemShape(row_type=ImageItem, problems=_problems, unit_name="image")
