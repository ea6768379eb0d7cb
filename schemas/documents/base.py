"""The base of all documents: frozen dataclasses whose annotations alone define which values their fields may take.

Everything else is derived from the annotations::

    class Record(Document):            ┌─> JSON Schema, published beside the code   (schemas.json_schemas)
        item_id: Text              ────┼─> Arrow types of a parquet file             (schemas.files.arrow_files)
        probabilities: ...             ├─> checks of a JSON file or a single row     (schemas.files.contract)
                                       └─> checks of millions of rows, as columns    (schemas.files.record_columns)

No annotation can express a rule that joins several fields: a document checks it in :meth:`Document.problems`, or, if
its files have millions of rows, over whole columns (:mod:`schemas.files.record_columns`).
:func:`schemas.files.contract.problems_of` calls whichever applies.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeAlias, TypeVar, cast

from annotated_types import Ge, Le, Lt, MinLen
from pydantic import (
    AllowInfNan,
    BeforeValidator,
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    StringConstraints,
    TypeAdapter,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

H = TypeVar("H", bound=Hashable)
D = TypeVar("D", bound="Document")


class Document:
    """A value with named fields that lies in a file. Subclasses are frozen dataclasses with slots and keywords only."""

    __slots__ = ()
    # Without annotations, which would make them fields.
    schema_file = ""
    """Path of the published JSON Schema, to which messages point; only what is a whole file or row has one."""
    has_later_fields = False
    """True for a JSON document to which optional fields were added later. These are left out while they have their
    defaults, so that older files stay valid and new ones equal them; the columns of a parquet file are always
    complete."""
    # Strict: "3" is not a number and 1 is not true. An unknown field is a typo or comes from a newer version. Without
    # the last setting pydantic would silently write NaN, which strict JSON does not allow, as null.
    __pydantic_config__ = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, ser_json_inf_nan="constants")

    def problems(self) -> Iterator[str]:
        """Yield a line (field, value, remedy) for each rule that joins several fields and that the document breaks."""
        yield from ()


SCHEMA_VERSION: Final = "1.0"
"""The ``schema_version`` that documents are written with."""
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$"

Text: TypeAlias = Annotated[str, StringConstraints(min_length=1)]
Name: TypeAlias = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
"""A name that can be part of a path or a URL."""
Sha256: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Version: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9]+\.[0-9]+(\.[0-9]+)?$")]
# Nine digits at most, because Python refuses to parse an integer of thousands of digits.
SemanticVersion: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,9}$")]
Day: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
PathInFolder: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$")
]
INTEGERS = 2**63
"""Integers of a parquet column are below this (int64)."""
Count: TypeAlias = Annotated[int, Ge(0), Lt(INTEGERS)]
Positive: TypeAlias = Annotated[int, Ge(1), Lt(INTEGERS)]
Share: TypeAlias = Annotated[float, Ge(0), Le(1)]


def _log_probability(value: Any) -> Any:
    if value == "-inf":
        return float("-inf")
    if value != value:
        raise PydanticCustomError("not_a_number", "is not a number; write null and a reason")
    return value


def _as_json(value: float) -> float | str:
    # Left to the library, NaN and infinities would become null, which means unknown. Only "-inf" is read back.
    return value if math.isfinite(value) else str(value)


LogProbability: TypeAlias = Annotated[
    float,
    AllowInfNan(True),
    Le(0),
    BeforeValidator(_log_probability),
    PlainSerializer(_as_json, when_used="json"),
    WithJsonSchema({"anyOf": [{"type": "number", "maximum": 0}, {"const": "-inf"}]}),
]
"""A log-probability in nats. That of probability 0 is minus infinity, which strict JSON can only hold as a string."""


def shown(value: object) -> str:
    """Return a value as messages show it: on one line, and cut to 60 characters."""
    text = "null" if value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def repeated(values: Iterable[H]) -> dict[H, int]:
    """Return the values that occur more than once, in order of first occurrence, each with its count.

    >>> repeated(["a", "b", "a"])
    {'a': 2}
    """
    return {value: n for value, n in Counter(values).items() if n > 1}


class Distinct:
    """Marks a list in an annotation as one without repeated values."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Check the list after each of its values was checked."""
        return core_schema.no_info_after_validator_function(_distinct, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Add ``uniqueItems``."""
        return {**handler(schema), "uniqueItems": True}


def _distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(set(values)) < len(values):
        raise PydanticCustomError("not_distinct", "has non-unique elements")
    return values


# Making an adapter takes milliseconds, and every row of a file needs the one of its type. A dictionary instead of
# functools.cache, which mypy refuses: it confuses the hash of a class with that of its instances.
_ADAPTERS: dict[type[Document], TypeAdapter[Any]] = {}


def adapter_of(document_type: type[Document]) -> TypeAdapter[Any]:
    """Return the pydantic adapter that converts and checks a type of document."""
    if document_type not in _ADAPTERS:
        _ADAPTERS[document_type] = TypeAdapter(document_type)
    return _ADAPTERS[document_type]


def as_row(document: Document) -> dict[str, Any]:
    """Return a document as nested dictionaries and sequences for a parquet file."""
    # Several times faster than dataclasses.asdict, which copies every string. Warnings about wrong types are off, since
    # Arrow and the writers refuse those.
    return cast(dict[str, Any], adapter_of(type(document)).dump_python(document, warnings=False))


def from_values(values: Any, document_type: type[D]) -> D:
    """Return a document, without checking the rules that join several fields.

    Values are nested dictionaries and sequences: a row of a parquet file, or a value of the machine's memory.

    Raises:
        ValidationError: a value breaks the annotation of its field.
    """
    # Not strict, since tuples come as lists and documents as dictionaries; Arrow has checked the types of scalars.
    return cast(D, adapter_of(document_type).validate_python(values, strict=False))


def to_base64(content: bytes) -> str:
    """Return bytes as Base64 text, which JSON can hold."""
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
    PlainSerializer(to_base64, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "contentEncoding": "base64", "contentMediaType": "image/png", "minLength": 1}),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedImage(Document):
    """The bytes of an image file."""

    # The field names and their order are those of an image in parquet files of the library datasets.
    bytes: _Binary
    path: Text | None
    """Name of the file; None if it does not matter, since the bytes are here."""
