"""Decodes PNG and JPEG files, so that builders and backends see the same pixels.

A picture is turned upright as its EXIF orientation says, put on white where it is transparent, and converted to three
channels of 8 bits: channels of 16 bits lose their lower half. An animation is refused, since it does not say which of
its pictures is meant.
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
"""Largest number of pixels of a picture; a file of a few bytes can claim any number."""
MOST_STRETCHED = 100
"""Largest ratio of a picture's sides: models scale the shorter one to a fixed length, and the longer one with it."""
_SCAN = b"\xff\xda"
_MOST_SCANNED = 20 * MOST_PIXELS
"""Largest number of pixels over all scans of a JPEG file, of which progressive ones have about ten."""
_EXIF = b"Exif\0\0"
_MOST_EXIF = 100
"""Largest number of parts of the EXIF data of a file, which has one; Pillow copies all earlier ones with each."""
FORMATS = ("PNG", "JPEG")
_EXTRA = "hf"
_SIGNATURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff")
_WIDE_GREY = ("I", "I;16", "I;16B", "I;16L", "I;16N", "F")
"""Pillow's modes in which grey values have more than 8 bits."""


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
    """Return the picture of a file as a model sees it: an ``Image`` of Pillow, in mode RGB.

    Raises:
        DataError: the bytes are no whole PNG or JPEG file, the picture is too large, or the file holds several.
        MissingExtraError: Pillow is not installed.
    """
    images = import_extra("PIL.Image", _EXTRA)
    if not has_known_format(content):
        raise DataError(f"is neither PNG nor JPEG (begins with {content[:4]!r}); convert it")
    if (n_parts := content.count(_EXIF)) > _MOST_EXIF:
        raise DataError(f"has {n_parts} parts of EXIF data, which takes minutes; save it again")
    try:
        with warnings.catch_warnings():
            # Pillow warns of large pictures; _check refuses those by limits of our own.
            warnings.simplefilter("ignore")
            image = images.open(io.BytesIO(content), formats=FORMATS)
            _check(image, content)
            image.load()
            return _plain(images, image)
    except BiasboardError:
        raise
    # Its words name an address in memory, which would differ in each build.
    except images.UnidentifiedImageError as error:
        raise DataError("cannot be decoded (is damaged at its beginning); take it out, or get it again") from error
    except images.DecompressionBombError as error:
        raise DataError(f"has more than {MOST_PIXELS:,} pixels; make it smaller") from error
    # Pillow may raise any exception here; each means that the file is bad.
    except Exception as error:
        raise DataError(f"cannot be decoded ({one_line(error, most=200)}); take it out, or get it again") from error


def _check(image: Any, content: bytes) -> None:
    width, height = image.size
    if width * height > MOST_PIXELS:
        raise DataError(f"has {width} x {height} pixels, more than {MOST_PIXELS:,}; make it smaller")
    if max(width, height) > MOST_STRETCHED * min(width, height):
        raise DataError(
            f"has {width} x {height} pixels, and one side is over {MOST_STRETCHED} times the other; crop it"
        )
    n_scans = content.count(_SCAN) if image.format == "JPEG" else 0
    if n_scans * width * height > _MOST_SCANNED:
        raise DataError(f"has {width} x {height} pixels in {n_scans} scans, which takes minutes; save it again")
    # JPEG photographs may hold a second, smaller view after the first; only a PNG with several frames is an animation.
    if image.format == "PNG" and getattr(image, "n_frames", 1) > 1:
        raise DataError(f"is an animation of {image.n_frames} pictures; take one of them")


def _plain(images: Any, image: Any) -> Any:
    upright = import_extra("PIL.ImageOps", _EXTRA).exif_transpose(image)
    if upright.mode in _WIDE_GREY:
        return images.fromarray((np.asarray(upright).astype(np.int32) >> 8).clip(0, 255).astype(np.uint8)).convert(
            "RGB"
        )
    if "transparency" in upright.info or upright.mode in ("LA", "La", "PA", "RGBA", "RGBa"):
        clear = upright.convert("RGBA")
        white = images.new("RGBA", clear.size, "white")
        return images.alpha_composite(white, clear).convert("RGB")
    return upright.convert("RGB")


def pixels_sha256(picture: Any) -> str:
    """Return a hash of a picture's size and pixels, independent of the format of its file."""
    width, height = picture.size
    return hashlib.sha256(f"{width}x{height}:".encode() + picture.tobytes()).hexdigest()


def png(pixels: np.ndarray[Any, np.dtype[np.uint8]]) -> bytes:
    """Return an uncompressed PNG file, whose bytes are the same on every machine (compressors differ).

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
    """Return a zlib stream of stored (uncompressed) blocks, as RFC 1950 and 1951 define them."""
    block_size = 0xFFFF
    blocks = [data[start : start + block_size] for start in range(0, len(data), block_size)]
    lengths = [
        struct.pack("<BHH", number == len(blocks), len(block), len(block) ^ 0xFFFF)
        for number, block in enumerate(blocks, 1)
    ]
    body = b"".join(length + block for length, block in zip(lengths, blocks, strict=True))
    return b"\x78\x01" + body + struct.pack(">I", zlib.adler32(data))
