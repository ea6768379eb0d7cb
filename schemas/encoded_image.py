"""The bytes of an image in a row of a dataset, in the layout that the library datasets shows as an image.

In parquet a value is a structure of binary ``bytes`` and a ``path``. In JSON, of which contents are hashed and which
schemas check, the bytes are Base64.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, PlainSerializer

FEATURE = {"_type": "Image"}
"""Description of such a column in the metadata of a parquet file, by which the library datasets knows it."""


def to_text(content: bytes) -> str:
    """Return bytes as Base64, which JSON can hold."""
    return base64.b64encode(content).decode("ascii")


def to_bytes(value: Any) -> Any:
    """Return the bytes of Base64; any other value than a text stays as it is.

    Raises:
        ValueError: the text is no Base64.
    """
    if not isinstance(value, str):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise ValueError(f"is no Base64 ({error})") from error


_Binary: TypeAlias = Annotated[bytes, BeforeValidator(to_bytes), PlainSerializer(to_text, return_type=str)]


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedImage:
    """The bytes of an image file."""

    bytes: _Binary
    path: str | None
    """Name of the file; None if it does not matter, since the bytes are here."""
