"""Turns the bytes of PNG and JPEG files into pixels, the same for whoever builds data and for whoever asks a model.

A picture is upright (as its EXIF orientation says), has three channels of 8 bits, and stands on white where the file is
transparent. Channels of 16 bits lose their lower half. Of a file that holds several pictures, as an animation does,
nobody knows which one is meant, so that it is refused.
"""

from __future__ import annotations

import hashlib
import io
import struct
import warnings
import zlib
from typing import Any

import numpy as np

from biasboard.ground.errors import BiasboardError, DataError, import_extra
from biasboard.ground.plain_text import one_line

MOST_PIXELS = 64_000_000
"""Largest number of pixels of a picture; a file of a few bytes can claim any."""
MOST_STRETCHED = 100
"""Largest ratio of the sides of a picture: models scale the shorter one up to a fixed length, and the other with it."""
FORMATS = ("PNG", "JPEG")
_EXTRA = "hf"
_SIGNATURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff")
_WIDE_GREY = ("I", "I;16", "I;16B", "I;16L", "I;16N", "F")
"""Modes in which grey values have more than 8 bits."""


def has_known_format(content: bytes) -> bool:
    """Return True if bytes begin like a PNG or a JPEG file."""
    return content.startswith(_SIGNATURES)


def check_library() -> None:
    """Check that the library that decodes images is installed.

    Raises:
        MissingExtraError: it is not.
    """
    import_extra("PIL.Image", _EXTRA)


def decoded(content: bytes) -> Any:
    """Return the picture of a file as an ``Image`` of Pillow, in mode RGB.

    Raises:
        DataError: the bytes are no whole PNG or JPEG file, the picture is too large, or the file holds several.
        MissingExtraError: Pillow is not installed.
    """
    images = import_extra("PIL.Image", _EXTRA)
    if not has_known_format(content):
        raise DataError(f"is neither PNG nor JPEG (begins with {content[:4]!r}); convert it")
    try:
        with warnings.catch_warnings():
            # Pillow warns of large pictures; their size is checked below.
            warnings.simplefilter("ignore")
            image = images.open(io.BytesIO(content), formats=FORMATS)
            _check(image)
            image.load()
            return _plain(images, image)
    except BiasboardError:
        raise
    # The library may raise any exception here, and each concerns the file.
    except Exception as error:
        raise DataError(f"cannot be decoded ({one_line(error, most=200)}); take it out, or get it again") from error


def _check(image: Any) -> None:
    width, height = image.size
    if width * height > MOST_PIXELS:
        raise DataError(f"has {width} x {height} pixels, more than {MOST_PIXELS:,}; make it smaller")
    if max(width, height) > MOST_STRETCHED * min(width, height):
        raise DataError(
            f"has {width} x {height} pixels, and one side is over {MOST_STRETCHED} times the other; crop it"
        )
    # Photographs may hold a second, smaller view after the first; only an animation has no single picture.
    if image.format == "PNG" and getattr(image, "n_frames", 1) > 1:
        raise DataError(f"is an animation of {image.n_frames} pictures; take one of them")


def _plain(images: Any, image: Any) -> Any:
    upright = import_extra("PIL.ImageOps", _EXTRA).exif_transpose(image)
    if upright.mode in _WIDE_GREY:
        return images.fromarray((np.asarray(upright).astype(np.int64) >> 8).clip(0, 255).astype(np.uint8)).convert(
            "RGB"
        )
    if "transparency" in upright.info or upright.mode in ("LA", "La", "PA", "RGBA", "RGBa"):
        clear = upright.convert("RGBA")
        white = images.new("RGBA", clear.size, "white")
        return images.alpha_composite(white, clear).convert("RGB")
    return upright.convert("RGB")


def pixels_sha256(picture: Any) -> str:
    """Return a hash of the size and the pixels of a picture, which files of different formats may share."""
    width, height = picture.size
    return hashlib.sha256(f"{width}x{height}:".encode() + picture.tobytes()).hexdigest()


def png(pixels: np.ndarray[Any, np.dtype[np.uint8]]) -> bytes:
    """Return a PNG file of pixels that has the same bytes on every machine: nothing in it is compressed.

    Args:
        pixels: Values of the channels red, green and blue, shape (height, width, 3).
    """
    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", _stored(rows)), (b"IEND", b""))
    return _SIGNATURES[0] + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in parts
    )


def _stored(data: bytes) -> bytes:
    """Return a zlib stream of blocks that are stored as they are."""
    most = 0xFFFF
    blocks = [data[start : start + most] for start in range(0, len(data), most)]
    lengths = [
        struct.pack("<BHH", number == len(blocks), len(block), len(block) ^ most)
        for number, block in enumerate(blocks, 1)
    ]
    body = b"".join(length + block for length, block in zip(lengths, blocks, strict=True))
    return b"\x78\x01" + body + struct.pack(">I", zlib.adler32(data))
