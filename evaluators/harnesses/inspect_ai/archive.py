"""Reads the entries of an ``.eval`` log: a zip archive whose entries are JSON, mostly compressed with Zstandard.

The standard library supports that compression from Python 3.14 on. Nothing is unpacked to disk, and entries are read
only up to a limit, whatever size the archive claims.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from copy import copy
from pathlib import Path

from biasboard.ground import strict_json
from biasboard.ground.errors import DataError
from biasboard.ground.files import check_readable
from biasboard.ground.strict_json import JsonValue

AGAIN = "import the log as inspect_ai wrote it"
_ZSTANDARD = 93
_MOST_BYTES = 128 << 20
"""Maximum size of an entry; a sample is a few kilobytes."""
_MOST_TOTAL_BYTES = 16 << 30
"""Maximum total size of the entries."""


class Archive(zipfile.ZipFile):
    """The entries of a log."""

    def __init__(self, path: Path) -> None:
        """Open an archive.

        Raises:
            DataError: the file is no zip archive, or its entries are too large in total.
        """
        check_readable(path)
        self._path = path
        try:
            super().__init__(path)
        except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError, struct.error) as error:
            raise DataError(f"{path.name}: is no zip archive ({error}); {AGAIN}") from error
        # A repeated evaluation appends its samples to earlier ones, so the last entry of a name counts.
        self.entries = {entry.filename: entry for entry in self.infolist()}
        n_bytes = sum(entry.file_size for entry in self.entries.values())
        if n_bytes > _MOST_TOTAL_BYTES:
            self.close()
            raise DataError(
                f"{path.name}: unpacks to {n_bytes:,} bytes, more than the {_MOST_TOTAL_BYTES:,} that are read"
            )

    def json(self, name: str) -> JsonValue:
        """Return the JSON of an entry.

        Raises:
            DataError: there is no such entry, or it is damaged, too large, or not strict JSON.
        """
        where = f"{self._path.name}: entry {name!r}"
        entry = self.entries.get(name)
        if entry is None:
            raise DataError(f"{where} is missing; {AGAIN}")
        if max(entry.file_size, entry.compress_size) > _MOST_BYTES:
            raise DataError(
                f"{where} has {entry.file_size:,} bytes, more than the {_MOST_BYTES:,} that are read; {AGAIN}"
            )
        try:
            content = self._content(entry)
        except (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError, ValueError) as error:
            raise DataError(f"{where} cannot be read ({error}); {AGAIN}") from error
        if len(content) != entry.file_size or zlib.crc32(content) != entry.CRC:
            raise DataError(f"{where} is damaged: its size or checksum is another; {AGAIN}")
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            raise DataError(f"{where}: byte {error.start} is not UTF-8; {AGAIN}") from error
        return strict_json.loads(text, where=where, remedy=AGAIN)

    def _content(self, entry: zipfile.ZipInfo) -> bytes:
        """Return the content of an entry, or one byte more than announced of one that unpacks to more."""
        if entry.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            with self.open(entry) as file:
                return file.read(entry.file_size + 1)
        if entry.compress_type != _ZSTANDARD:
            raise NotImplementedError("it is compressed in a way that inspect_ai does not use")
        # Imported here, because exports and other logs do not need it.
        import pyarrow

        # What is stored in the archive, whose checksum is that of the unpacked content.
        stored = copy(entry)
        stored.compress_type, stored.file_size = zipfile.ZIP_STORED, entry.compress_size
        del stored.CRC
        with self.open(stored) as file:
            compressed = file.read()
        # As a stream, because inspect_ai writes a large entry as several frames.
        with pyarrow.input_stream(pyarrow.BufferReader(compressed), compression="zstd") as stream:
            return bytes(stream.read(entry.file_size + 1))
