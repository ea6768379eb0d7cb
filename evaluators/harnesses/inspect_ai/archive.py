"""Reads the entries of an ``.eval`` log: a zip archive whose entries are JSON, mostly compressed with Zstandard.

The standard library knows that compression from Python 3.14 on. Nothing is unpacked to disk, and an entry is only read
up to a size, whatever the archive claims.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from pathlib import Path
from types import TracebackType
from typing import Self

from biasboard.ground import strict_json
from biasboard.ground.errors import DataError
from biasboard.ground.files import check_readable
from biasboard.ground.strict_json import JsonValue

AGAIN = "import the log as inspect_ai wrote it"
_ZSTANDARD = 93
_LOCAL_HEADER = struct.Struct("<4s22xHH")
"""Header before the content of an entry: its signature and the lengths of the name and the extra field behind it."""
_MOST_BYTES = 128 << 20
"""Maximum size of an entry; a sample is a few kilobytes."""
_MOST_IN_ALL = 16 << 30
"""Maximum size of all entries together."""


class Archive:
    """The entries of a log by name; a context manager."""

    def __init__(self, path: Path) -> None:
        """Open an archive.

        Raises:
            DataError: the file is no zip archive, or its entries are too large together.
        """
        check_readable(path)
        self._path = path
        self._where = path.name
        try:
            self._zip = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError, struct.error) as error:
            raise DataError(f"{self._where}: is no zip archive ({error}); {AGAIN}") from error
        # A repeated evaluation appends its samples to those of the first one, so that the last of a name counts.
        self._entries = {entry.filename: entry for entry in self._zip.infolist()}
        n_bytes = sum(entry.file_size for entry in self._entries.values())
        if n_bytes > _MOST_IN_ALL:
            self._zip.close()
            raise DataError(
                f"{self._where}: unpacks to {n_bytes:,} bytes, more than the {_MOST_IN_ALL:,} that are read"
            )

    def __enter__(self) -> Self:
        """Return the archive."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        self._zip.close()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all entries, in the order of the archive."""
        return tuple(self._entries)

    def read(self, name: str) -> JsonValue:
        """Return the JSON of an entry.

        Raises:
            DataError: there is no such entry, or it is damaged, too large, or not strict JSON.
        """
        where = f"{self._where}: entry {name!r}"
        entry = self._entries.get(name)
        if entry is None:
            raise DataError(f"{where} is missing; {AGAIN}")
        if max(entry.file_size, entry.compress_size) > _MOST_BYTES:
            raise DataError(
                f"{where} has {entry.file_size:,} bytes, more than the {_MOST_BYTES:,} that are read; {AGAIN}"
            )
        try:
            content = self._zstandard(entry) if entry.compress_type == _ZSTANDARD else self._known(entry)
        except (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError, NotImplementedError) as error:
            raise DataError(f"{where} cannot be read ({error}); {AGAIN}") from error
        if len(content) != entry.file_size or zlib.crc32(content) != entry.CRC:
            raise DataError(f"{where} is damaged: its size or checksum is another; {AGAIN}")
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            raise DataError(f"{where}: byte {error.start} is not UTF-8; {AGAIN}") from error
        return strict_json.loads(text, where=where, remedy=AGAIN)

    def _known(self, entry: zipfile.ZipInfo) -> bytes:
        # One byte more than announced, which tells an entry that unpacks to more.
        with self._zip.open(entry) as file:
            return file.read(entry.file_size + 1)

    def _zstandard(self, entry: zipfile.ZipInfo) -> bytes:
        """Return the content of an entry that is compressed with Zstandard."""
        # Imported here: exports and other logs need nothing of it.
        import pyarrow

        if entry.flag_bits & 1:
            raise RuntimeError("it is encrypted")
        with self._path.open("rb") as file:
            file.seek(entry.header_offset)
            head = file.read(_LOCAL_HEADER.size)
            if len(head) < _LOCAL_HEADER.size or not head.startswith(b"PK\x03\x04"):
                raise zipfile.BadZipFile("it has no header")
            _, n_name, n_extra = _LOCAL_HEADER.unpack(head)
            file.seek(n_name + n_extra, 1)
            packed = file.read(entry.compress_size)
        # As a stream, because inspect_ai writes a large entry as several frames.
        with pyarrow.input_stream(pyarrow.BufferReader(packed), compression="zstd") as stream:
            return bytes(stream.read(entry.file_size + 1))
