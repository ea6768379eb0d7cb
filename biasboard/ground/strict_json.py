"""Reads, writes and hashes strict JSON: no NaN, no infinities, no duplicate keys.

Files are written atomically. Hashes are taken of a canonical form, so that equal values have equal hashes.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from biasboard.ground.errors import DataError
from biasboard.ground.files import MOST_BYTES, check_readable, replacing

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"

_REMEDY = "correct it, or take the file from where it was made"
_MOST_DIGITS = 300
"""Maximum number of digits of an integer, so that it is also a finite floating-point number."""
_MOST_VALUES = 10_000_000
"""Maximum number of values: two bytes, as of an empty list, take 64 in memory."""
_CANONICAL = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


class _FaultError(ValueError):
    """A fault of a text, with the remedy for its author."""

    def __init__(self, fault: str, remedy: str) -> None:
        super().__init__(fault)
        self.remedy = remedy


def _refuse_constant(name: str) -> JsonValue:
    raise _FaultError(f"{name} is not JSON", "write null and a reason")


def _integer(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise _FaultError(f"a number has {len(text):,} digits", f"write one of up to {_MOST_DIGITS}")
    return int(text)


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _FaultError(f"{text} is too large for a number", "write null and a reason")
    return number


def _unique_keys(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    value: dict[str, JsonValue] = {}
    for key, item in pairs:
        if key in value:
            raise _FaultError(f"key '{key}' stands twice", "keep one")
        value[key] = item
    return value


def loads(text: str, *, where: str, remedy: str | None = None) -> JsonValue:
    """Parse strict JSON.

    Args:
        text: The JSON text.
        where: File name or address, used in error messages.
        remedy: Remedy for a user who did not write the text, for error messages; None to say how to correct the text.

    Raises:
        DataError: the text is not JSON, is nested too deeply, or holds NaN, an infinity, a duplicate key or a lone
            surrogate.
    """
    try:
        n_values = sum(map(text.count, ",[{"))
        if n_values > _MOST_VALUES:
            raise _FaultError(f"it has {n_values:,} values, more than {_MOST_VALUES:,}", "give a smaller one")
        value: JsonValue = json.loads(
            text,
            parse_int=_integer,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            object_pairs_hook=_unique_keys,
        )
        # A lone surrogate cannot be encoded as UTF-8, so the value could never be written to a file.
        json.dumps(value, ensure_ascii=False).encode()
    except RecursionError as error:
        raise DataError(f"{where}: not strict JSON: nested too deeply; {remedy or 'flatten it'}") from error
    except ValueError as error:
        way_out = remedy or getattr(error, "remedy", _REMEDY)
        raise DataError(f"{where}: not strict JSON: {error}; {way_out}") from error
    return value


def read(path: Path, *, most: int = MOST_BYTES, remedy: str | None = None) -> JsonValue:
    """Read a strict JSON file.

    Args:
        path: Path of the file.
        most: Maximum size in bytes.
        remedy: As that of :func:`loads`.

    Raises:
        DataError: the file is missing, is too large, is not UTF-8, or is not strict JSON.
    """
    try:
        if path.exists():
            check_readable(path, most=most, remedy=remedy)
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file; {remedy or 'correct the path'}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8: {error}; {remedy or _REMEDY}") from error
    return loads(text, where=str(path), remedy=remedy)


def dumps(value: JsonValue) -> str:
    """Return indented JSON that ends with a newline.

    Raises:
        ValueError: the value holds NaN or an infinity.
    """
    return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def dumps_in_lines(value: Mapping[str, JsonValue]) -> str:
    """Return JSON with a line for each field, and for each entry of a list, that ends with a newline.

    Raises:
        ValueError: the value holds NaN or an infinity.
    """

    def on_one_line(inner: JsonValue) -> str:
        return json.dumps(inner, ensure_ascii=False, separators=(",", ":"), allow_nan=False)

    def listed(field: JsonValue) -> str:
        if not isinstance(field, list) or not field:
            return on_one_line(field)
        return "[\n    " + ",\n    ".join(map(on_one_line, field)) + "\n  ]"

    fields = (f"  {on_one_line(name)}: {listed(field)}" for name, field in value.items())
    return "{\n" + ",\n".join(fields) + "\n}\n"


def write(path: Path, value: JsonValue) -> None:
    """Write indented JSON to a file atomically."""
    with replacing(path) as temporary:
        temporary.write_text(dumps(value), encoding="utf-8")


def canonical(value: JsonValue) -> bytes:
    r"""Return the canonical JSON of a value, which is what hashes are taken of: sorted keys, no spaces, UTF-8.

    >>> canonical({"b": 1, "a": "é"})
    b'{"a":"\xc3\xa9","b":1}'
    """
    return _CANONICAL.encode(value).encode()


def sha256(value: JsonValue) -> str:
    """Return the SHA-256 of the canonical JSON of a value, in hexadecimal."""
    return hashlib.sha256(canonical(value)).hexdigest()
