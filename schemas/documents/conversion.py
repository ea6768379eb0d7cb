"""Turns documents into rows of parquet files and back."""

from __future__ import annotations

from typing import Any, TypeVar, cast

from pydantic import TypeAdapter

from schemas.documents.base import Document

D = TypeVar("D", bound=Document)


_ADAPTERS: dict[type[Document], TypeAdapter[Any]] = {}
"""One for each type that was needed: making one takes milliseconds."""


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
