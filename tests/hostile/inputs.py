"""Contents that no reader expects, each made at a path: for any command that takes a file or a folder."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

Make = Callable[[Path], object]


def holding(content: bytes | str) -> Make:
    """Return what makes a file with this content, and the folders above it."""
    bytes_of = content if isinstance(content, bytes) else content.encode()

    def make(path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes_of)

    return make


NO_FILES: dict[str, Make] = {
    "missing": lambda path: None,
    "a folder": lambda path: path.mkdir(),
    "a pipe": os.mkfifo,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a link to nothing": lambda path: path.symlink_to("nowhere"),
    "a link to itself": lambda path: path.symlink_to(path),
    # Opens for anybody, also for root, and fails when it is read.
    "not to be read": lambda path: path.symlink_to("/proc/self/mem"),
}
"""Paths that are no files; none may block, or be read without end."""

NO_TEXTS: dict[str, Make] = {
    "empty": holding(b""),
    "white space": holding(b" \r\n\t\n" * 3),
    "Latin-1": holding("caf\xe9;na\xefve\n".encode("latin-1") * 3),
    "UTF-16": holding("id,text\na,b\n".encode("utf-16")),
    "NUL bytes": holding(b"id,text\n\x00\x00,\x00\n"),
    "random bytes": holding(bytes(range(256)) * 40),
    "a ZIP archive": holding(b"PK\x03\x04" + bytes(60)),
    "the magic of Parquet": holding(b"PAR1" + bytes(40) + b"PAR1"),
    "one line of a million letters": holding(b"x" * 1_000_000),
    "only a BOM": holding(b"\xef\xbb\xbf"),
}
"""Files that are no texts, or texts of no form."""

NO_JSON: dict[str, Make] = {
    "lists 100,000 deep": holding("[" * 100_000),
    "objects 100,000 deep": holding('{"a":' * 100_000),
    "a number of 5,000 digits": holding('{"a": ' + "9" * 5_000 + "}\n"),
    "1e999": holding('{"a": 1e999}\n'),
    "NaN": holding('{"a": NaN}\n'),
    "a key that stands twice": holding('{"a": 1, "a": 2}\n'),
    "a lone surrogate": holding('{"a": "\\ud800"}\n'),
    "cut off": holding('{"a": [1, 2'),
    "two values": holding("{} {}\n"),
    "a list": holding("[]\n"),
    "null": holding("null\n"),
    "a text": holding('"text"\n'),
    "an empty object": holding("{}\n"),
    "JSON with a BOM": holding(b'\xef\xbb\xbf{"a": 1}\n'),
    "comments": holding('{"a": 1} // one\n'),
}
"""Files that are no strict JSON, or JSON of another form than any of ours."""

NO_CSV: dict[str, Make] = {
    "a header alone": holding("id,text\n"),
    "a quote that stays open": holding('id,text\n1,"a\n2,b\n'),
    "more cells than columns": holding("id,text\n1,a,b,c\n"),
    "a column twice": holding("id,id,text\n1,2,a\n"),
    "a nameless column": holding("id,,text\n1,2,a\n"),
    "a cell of 200,000 letters": holding(f"id,text\n1,{'y' * 200_000}\n"),
    "100,000 columns": holding(",".join(f"c{number}" for number in range(100_000)) + "\n"),
    "old line ends": holding("id,text\r1,a\r2,b\r"),
    "escapes of a terminal": holding("id,text\n\x1b[31m1,\x07a\n"),
    "semicolons": holding("id;text\n1;a\n"),
}
"""Files that are no CSV, or CSV without the columns of any of ours."""

NO_TOML: dict[str, Make] = {
    "a key alone": holding("a\n"),
    "a TOML key twice": holding("a = 1\na = 2\n"),
    "brackets 100,000 deep": holding("a = " + "[" * 100_000),
    "a TOML number of 5,000 digits": holding("a = " + "9" * 5_000),
}
"""Files that are no TOML."""


def parquet(columns: Mapping[str, Any], metadata: Mapping[str, str] | None = None) -> Make:
    """Return what makes a Parquet file of these columns."""

    def make(path: Path) -> None:
        content = io.BytesIO()
        pq.write_table(pa.table(dict(columns)).replace_schema_metadata(metadata), content, compression="zstd")
        holding(content.getvalue())(path)

    return make


def _made(columns: Callable[[], Mapping[str, Any]]) -> Make:
    return lambda path: parquet(columns())(path)


def _repeated(n: int, text: str) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), [text])


def _nested(depth: int) -> pa.DataType:
    return pa.list_(_nested(depth - 1)) if depth else pa.int8()


_OF_A_BUILDER = {name: ["a"] for name in ("text", "label", "question", "answer", "option a", "option b")}
NO_PARQUET: dict[str, Make] = {
    "30,000,000 empty rows": _made(lambda: dict.fromkeys(_OF_A_BUILDER, pa.nulls(30_000_000))),
    "a text in 1,000,000 rows": _made(lambda: dict.fromkeys(_OF_A_BUILDER, _repeated(1_000_000, "x" * 2_000))),
    "1,000,000 rows of 100 columns": _made(
        lambda: (
            {f"c{number}": pa.nulls(1_000_000) for number in range(100)}
            | dict.fromkeys(_OF_A_BUILDER, _repeated(1_000_000, "x"))
        )
    ),
    "a list of 30,000,000 values": _made(
        lambda: {**_OF_A_BUILDER, "img": pa.ListArray.from_arrays([0, 30_000_000], pa.nulls(30_000_000))}
    ),
    "lists 200 deep": parquet({**_OF_A_BUILDER, "more": pa.array([None], _nested(200))}),
    "3,000 columns": parquet({**_OF_A_BUILDER, **{f"c{number}": ["x"] for number in range(3_000)}}),
    "metadata that is nested deeply": parquet(_OF_A_BUILDER, {"huggingface": "[" * 100_000, "pandas": "[" * 100_000}),
    "metadata with a number of 5,000 digits": parquet(
        _OF_A_BUILDER, {"huggingface": json.dumps({"info": 1})[:-2] + "9" * 5_000 + "}", "pandas": "9" * 5_000}
    ),
    "times of no zone": parquet({**_OF_A_BUILDER, "more": pa.array([0], pa.timestamp("s", "Mars/Olympus"))}),
    "times before all times": parquet({**_OF_A_BUILDER, "more": pa.array([-(2**62)], pa.timestamp("us"))}),
    "no columns": parquet({}),
    "no rows": parquet({name: pa.array([], pa.string()) for name in _OF_A_BUILDER}),
}
"""Parquet files that are small and take a hundred times the memory or more, or that few programs can read."""
