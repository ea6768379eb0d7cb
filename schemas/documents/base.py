"""What every document of the contract is: a frozen dataclass whose annotations alone say which values its fields take.

Everything else follows from the annotations::

    class Record(Document):            ┌─> JSON Schema, published beside the code   (schemas.json_schemas)
        item_id: Text              ────┼─> Arrow types of a parquet file             (schemas.files.arrow_files)
        probabilities: ...             ├─> checks of a JSON file or a single row     (schemas.files.contract)
                                       └─> checks of millions of rows, as columns    (schemas.files.column_checks)

A rule that joins several fields is no matter of a type: a document says it in :meth:`Document.problems`, but those with
millions of rows say it over whole columns (:mod:`schemas.files.column_checks`).
:func:`schemas.files.contract.problems_of` asks whichever it is.
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
    # A "3" is no number and a 1 is not true. Unknown fields are typing errors, or come from a newer version. NaN is not
    # strict JSON: without the last setting pydantic would write null for it, and nobody would see that it was lost.
    __pydantic_config__ = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, ser_json_inf_nan="constants")

    def problems(self) -> Iterator[str]:
        """Yield a line (field, value, remedy) for each rule that joins several fields and that the document breaks."""
        yield from ()


SCHEMA_VERSION: Final = "1.0"
"""Version that every document with the field ``schema_version`` is written with."""
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"

Text: TypeAlias = Annotated[str, StringConstraints(min_length=1)]
Name: TypeAlias = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
"""A name that can be part of a path and of an address."""
Sha256: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Version: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9]+\.[0-9]+(\.[0-9]+)?$")]
# Numbers have an end, because Python refuses to read one of thousands of digits.
SemanticVersion: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,9}$")]
Day: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
PathInFolder: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$")
]
INTEGERS = 2**63
"""Where the integers of a parquet column end."""
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
    # A library that is given NaN or an infinity here would write null, which means unknown. Only "-inf" is read back.
    return value if math.isfinite(value) else str(value)


LogProbability: TypeAlias = Annotated[
    float,
    AllowInfNan(True),
    Le(0),
    BeforeValidator(_log_probability),
    PlainSerializer(_as_json, when_used="json"),
    WithJsonSchema({"anyOf": [{"type": "number", "maximum": 0}, {"const": "-inf"}]}),
]
"""A logarithm of a probability in nats. That of 0 is minus infinity, which strict JSON cannot spell but as a text."""


def shown(value: object) -> str:
    """Return a value as a message shows it: in one line, and not all of a long one."""
    text = "null" if value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def repeated(values: Iterable[H]) -> dict[H, int]:
    """Return the values that stand more than once, in order, each with its number.

    >>> repeated(["a", "b", "a"])
    {'a': 2}
    """
    return {value: n for value, n in Counter(values).items() if n > 1}


class Distinct:
    """Says of a list in an annotation that no value stands in it twice."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Check the list after its values."""
        return core_schema.no_info_after_validator_function(_distinct, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Say it in the words of JSON Schema."""
        return {**handler(schema), "uniqueItems": True}


def _distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(set(values)) < len(values):
        raise PydanticCustomError("not_distinct", "has non-unique elements")
    return values


# Making an adapter takes milliseconds, and every row of a file asks for that of its type. A dictionary: mypy takes the
# hash of a class for that of its instances, which may have none, and refuses functools.cache.
_ADAPTERS: dict[type[Document], TypeAdapter[Any]] = {}


def adapter_of(document_type: type[Document]) -> TypeAdapter[Any]:
    """Return what converts and checks a type of document."""
    if document_type not in _ADAPTERS:
        _ADAPTERS[document_type] = TypeAdapter(document_type)
    return _ADAPTERS[document_type]


def as_row(document: Document) -> dict[str, Any]:
    """Return a document as nested dictionaries and sequences for a parquet file."""
    # Several times faster than dataclasses.asdict, which copies every string. Wrong types are refused elsewhere:
    # by Arrow, and by whoever writes.
    return cast(dict[str, Any], adapter_of(type(document)).dump_python(document, warnings=False))


def from_values(values: Any, document_type: type[D]) -> D:
    """Return a document without looking at the rules that join several fields.

    Args:
        values: Nested dictionaries and sequences, as a row of a parquet file or what this machine remembers has them.
        document_type: Document to make.

    Raises:
        ValidationError: a value breaks the annotation of its field.
    """
    # Tuples come as lists and documents as dictionaries; Arrow has said that a number is one.
    return cast(D, adapter_of(document_type).validate_python(values, strict=False))


def to_base64(content: bytes) -> str:
    """Return bytes as a text, which JSON can hold."""
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

    # The names and their order are those that the library datasets gives an image in parquet.
    bytes: _Binary
    path: Text | None
    """Name of the file; None if it does not matter, since the bytes are here."""
