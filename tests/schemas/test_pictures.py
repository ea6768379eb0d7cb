"""What pixels the bytes of an image are, and which files are refused."""

from __future__ import annotations

import hashlib
import io
import json
import struct
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from biasboard.ground.errors import DataError
from schemas.documents.base import EncodedImage
from schemas.files import contract, row_files
from schemas.files.pictures import MOST_PIXELS, decoded, pixels_sha256, png
from schemas.items.image import ImageItem

RED, GREEN, CLEAR = (255, 0, 0, 255), (0, 255, 0, 255), (0, 0, 255, 0)


def file_of(image: Image.Image, form: str = "PNG", **options: Any) -> bytes:
    content = io.BytesIO()
    image.save(content, form, **options)
    return content.getvalue()


def pixels(content: bytes) -> list[list[tuple[int, ...]]]:
    return [[tuple(pixel) for pixel in row] for row in np.asarray(decoded(content)).tolist()]


def test_a_file_larger_than_one_block_is_the_same_on_every_machine() -> None:
    values = np.arange(200 * 150 * 3, dtype=np.uint32).reshape(200, 150, 3).astype(np.uint8)
    content = png(values)
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(content))), values)
    assert hashlib.sha256(content).hexdigest() == "0b9f3a50195183263198e9bbb026949af106a6d9866beff511c1d5a011d434ce"


def test_any_picture_has_three_channels_of_eight_bits_and_stands_on_white() -> None:
    grey = Image.fromarray(np.array([[0, 100, 255]], dtype=np.uint8))
    assert pixels(file_of(grey)) == [[(0, 0, 0), (100, 100, 100), (255, 255, 255)]]
    assert pixels(file_of(grey.convert("1", dither=Image.Dither.NONE))) == [[(0, 0, 0), (0, 0, 0), (255, 255, 255)]]
    wide = Image.fromarray(np.array([[0, 255, 256, 65535]], dtype=np.uint16))
    assert pixels(file_of(wide)) == [[(0, 0, 0), (0, 0, 0), (1, 1, 1), (255, 255, 255)]]
    image = Image.new("RGBA", (3, 1))
    for place, colour in enumerate((RED, CLEAR, (0, 0, 0, 51))):
        image.putpixel((place, 0), colour)
    white, faint = (255, 255, 255), (204, 204, 204)
    assert pixels(file_of(image)) == [[RED[:3], white, faint]]
    palette = Image.new("P", (2, 1))
    palette.putpalette([255, 0, 0, 0, 255, 0])
    palette.putpixel((1, 0), 1)
    assert pixels(file_of(palette)) == [[RED[:3], GREEN[:3]]]
    assert pixels(file_of(palette, transparency=0)) == [[white, GREEN[:3]]]
    assert pixels(file_of(palette, transparency=bytes([255, 0]))) == [[RED[:3], white]]
    assert pixels(file_of(Image.new("LA", (1, 1), (0, 0)))) == [[white]]


def test_photographs_are_upright_and_of_three_channels() -> None:
    exif = Image.Exif()
    exif[0x112] = 6  # The camera was turned: the first row is the right side.
    wide = Image.new("RGB", (16, 8), "white")
    wide.paste((0, 0, 0), (0, 0, 8, 8))
    upright = decoded(file_of(wide, "JPEG", exif=exif, quality=95))
    assert upright.size == (8, 16)
    assert upright.getpixel((4, 2))[0] < 20 < 230 < upright.getpixel((4, 13))[0]
    assert decoded(file_of(Image.new("CMYK", (8, 8)), "JPEG")).mode == "RGB"


def test_the_hash_of_pixels_ignores_the_format_and_knows_the_shape() -> None:
    row = Image.new("RGB", (4, 1), "red")
    same = pixels_sha256(decoded(file_of(row, optimize=True)))
    assert same == pixels_sha256(decoded(file_of(row.quantize(2))))
    assert same != pixels_sha256(decoded(file_of(row.resize((2, 2)))))


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def claiming(width: int, height: int) -> bytes:
    """A PNG file of a few bytes that says it has many pixels."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"0" * 100)) + chunk(b"IEND", b"")


def animated() -> bytes:
    frames = [Image.new("RGB", (4, 4), colour) for colour in ("red", "green", "blue")]
    return file_of(frames[0], save_all=True, append_images=frames[1:])


def of_many_scans() -> bytes:
    """A small progressive JPEG file whose last scan is repeated, which takes a second for ten."""
    whole = file_of(Image.new("L", (4_000, 4_000), 128), "JPEG", progressive=True)
    return whole[:-2] + whole[whole.rfind(b"\xff\xda") : -2] * 100 + whole[-2:]


def of_much_exif() -> bytes:
    """A JPEG file of many parts of EXIF data; 800 of them with 64 kB each took 90 seconds."""
    whole = file_of(Image.new("L", (4, 4)), "JPEG")
    return whole[:2] + (b"\xff\xe1\x00\x10Exif\0\0" + bytes(8)) * 101 + whole[2:]


GOOD = png(np.random.default_rng(0).integers(0, 256, (9, 7, 3), dtype=np.uint8))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"GIF89a" + b"0" * 40, "is neither PNG nor JPEG (begins with b'GIF8'); convert it"),
        (GOOD[: len(GOOD) // 2], "cannot be decoded ("),
        (GOOD[:60] + bytes([GOOD[60] ^ 255]) + GOOD[61:], "cannot be decoded ("),
        (b"\xff\xd8\xff\xe0 no photograph", "cannot be decoded ("),
        (b"\xff\xd8\xff", "cannot be decoded (is damaged at its beginning); take it out, or get it again"),
        (claiming(100_000, 100_000), "has more than 64,000,000 pixels; make it smaller"),
        (claiming(10_000, 7_000), f"has 10000 x 7000 pixels, more than {MOST_PIXELS:,}; make it smaller"),
        (claiming(20_000, 100), "has 20000 x 100 pixels, and one side is over 100 times the other; crop it"),
        (of_many_scans(), "has 4000 x 4000 pixels in 106 scans, which takes minutes; save it again"),
        (of_much_exif(), "has 101 parts of EXIF data, which takes minutes; save it again"),
        (animated(), "is an animation of 3 pictures; take one of them"),
    ],
)
def test_what_is_no_single_picture_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(DataError) as error:
        decoded(content)
    assert str(error.value).startswith(message)


GIF = EncodedImage(bytes=b"GIF89a", path=None)
ITEM = ImageItem(
    item_id="one",
    image=EncodedImage(bytes=GOOD, path=None),
    image_sha256=hashlib.sha256(GOOD).hexdigest(),
    width=7,
    height=9,
    labels=("cat", "dog"),
    target="cat",
    category=None,
    content_free=None,
    source_row=None,
    flags=(),
)


def test_an_item_survives_json_and_parquet_and_its_bytes_are_base64(tmp_path: Path) -> None:
    row_files.write_rows(tmp_path / "a.parquet", [ITEM], ImageItem)
    assert row_files.read_rows(tmp_path / "a.parquet", ImageItem) == [ITEM]
    value = contract.dump(ITEM)
    assert contract.load(json.loads(json.dumps(value)), ImageItem, where="here") == ITEM
    value["image"] = {"bytes": "&&&", "path": None}
    with pytest.raises(DataError, match="is no Base64"):
        contract.load(value, ImageItem, where="here")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"image_sha256": "0" * 64}, "is not the "),
        ({"target": "cow"}, "'cow' is none of the 2 labels"),
        ({"target": None}, "only an image without content has no right label"),
        ({"content_free": "grey"}, "an image without content has no right label; set it to null"),
        ({"labels": ("cat",)}, "labels"),
        ({"image": GIF, "image_sha256": hashlib.sha256(GIF.bytes).hexdigest()}, "neither PNG"),
    ],
)
def test_an_item_that_contradicts_itself_is_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        row_files.write_rows(tmp_path / "a.parquet", [replace(ITEM, **changes)], ImageItem)
    assert not (tmp_path / "a.parquet").exists()
