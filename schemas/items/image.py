"""Item shape: an image, with the labels that it may get."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from annotated_types import MaxLen, MinLen
from pydantic import StringConstraints
from typing_extensions import override

from schemas.documents.base import Distinct, EncodedImage, Name, Positive, Sha256, Text
from schemas.documents.dataset import Item, ItemShape
from schemas.files.pictures import has_known_format

NoContent: TypeAlias = Literal["grey", "black", "white", "noise"]
"""Kinds of images without content: of one colour, or of random pixels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageItem(Item):
    """An image, with the labels that it may get."""

    item_id: Text
    image: EncodedImage
    """A PNG or JPEG file, byte for byte as the source has it."""
    image_sha256: Sha256
    """SHA-256 of the bytes of the file, by which prompts and records name the image."""
    width: Positive
    """Width of the upright picture in pixels."""
    height: Positive
    labels: Annotated[tuple[Annotated[str, StringConstraints(pattern=r"\S")], ...], MinLen(2), MaxLen(128), Distinct()]
    """Labels that the image may get, as words, in the same order for all items of a config."""
    target: str | None
    """Right label; None for an image without content."""
    category: Text | None
    """Group of labels to which the right one belongs, such as a superclass; None if the source has no such groups."""
    content_free: NoContent | None
    """Kind of image if it has no content; None for all others."""
    source_row: Text | None
    flags: tuple[Name, ...]

    @override
    def problems(self) -> Iterator[str]:
        sha256 = hashlib.sha256(self.image.bytes).hexdigest()
        if sha256 != self.image_sha256:
            yield f"image_sha256: {self.image_sha256} is not the {sha256} of the image; correct it"
        if not has_known_format(self.image.bytes):
            yield f"image: begins with {self.image.bytes[:4]!r}, as neither PNG nor JPEG does; convert it"
        if self.content_free is None and self.target is None:
            yield "target: null, and only an image without content has no right label; add it"
        elif self.content_free is not None and self.target is not None:
            yield f"target: '{self.target}', and an image without content has no right label; set it to null"
        if self.target is not None and self.target not in self.labels:
            yield f"target: '{self.target}' is none of the {len(self.labels)} labels; correct one of them"


SHAPE = ItemShape(row_type=ImageItem, unit_name="image")
