"""The bytes of an image in a row of a dataset, in the layout that the library datasets shows as an image.

In parquet a value is a structure of binary ``bytes`` and a ``path``. In JSON, of which contents are hashed, the bytes
are Base64.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from annotated_types import MinLen
from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from schemas.documents.base import Document, Text

FEATURE = {"_type": "Image"}
"""Description of such a column in the metadata of a parquet file, by which the library datasets knows it."""


def to_text(content: bytes) -> str:
    """Return bytes as Base64, which JSON can hold."""
    return base64.b64encode(content).decode("ascii")


def _to_bytes(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise ValueError(f"is no Base64 ({error})") from error


_Binary: TypeAlias = Annotated[
    bytes,
    MinLen(1),
    BeforeValidator(_to_bytes),
    PlainSerializer(to_text, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "contentEncoding": "base64", "contentMediaType": "image/png", "minLength": 1}),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedImage(Document):
    """The bytes of an image file."""

    bytes: _Binary
    path: Text | None
    """Name of the file; None if it does not matter, since the bytes are here."""
