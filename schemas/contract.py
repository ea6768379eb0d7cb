"""Checks a value against its JSON Schema and turns it into the frozen dataclass that mirrors the schema, and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any, TypeAlias, TypeVar, cast

import jsonschema
import jsonschema_rs
from jsonschema.exceptions import ValidationError, best_match
from pydantic import TypeAdapter
from pydantic import ValidationError as PydanticError

from schemas import strict_json
from schemas.checks import problems
from schemas.dataset import Manifest, Reject
from schemas.errors import DataError
from schemas.items import AssignmentItem, CoreferenceItem, Item, PronounTextItem, WordProblemItem
from schemas.record import Record
from schemas.result import Result
from schemas.score import TextScore
from schemas.strict_json import JsonValue

Document: TypeAlias = Manifest | Reject | Item | Record | TextScore | Result
D = TypeVar("D", bound=Document)

SCHEMA_NAMES: Mapping[type[Document], str] = {
    Manifest: "dataset",
    Reject: "reject",
    CoreferenceItem: "coreference",
    PronounTextItem: "pronoun_text",
    WordProblemItem: "word_problem",
    AssignmentItem: "assignment",
    Record: "record",
    TextScore: "score",
    Result: "result",
}
"""The schema file of each dataclass, without ``.schema.json``."""

ITEM_SHAPES: Mapping[str, type[Item]] = {
    "coreference": CoreferenceItem,
    "recognition": PronounTextItem,
    "continuation": PronounTextItem,
    "word_problem": WordProblemItem,
    "assignment": AssignmentItem,
}
"""The row type of each item shape."""


@cache
def schema(name: str) -> dict[str, JsonValue]:
    """A JSON Schema of this package by name, such as ``result``."""
    text = resources.files("schemas").joinpath(f"{name}.schema.json").read_text(encoding="utf-8")
    return cast(dict[str, JsonValue], strict_json.loads(text, where=f"schemas/{name}.schema.json"))


@cache
def _fast_validator(name: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(schema(name))


@cache
def _adapter(name: str) -> TypeAdapter[Any]:
    return TypeAdapter(
        next(document_type for document_type, schema_name in SCHEMA_NAMES.items() if schema_name == name)
    )


def load(value: JsonValue, document_type: type[D], *, where: str) -> D:
    """Check a value and turn it into its dataclass.

    Args:
        value: Parsed strict JSON, or a row of a parquet file.
        document_type: The dataclass that it should be.
        where: File (and row), for the error.

    Raises:
        DataError: the value breaks the schema or a rule that a schema cannot say.
    """
    name = SCHEMA_NAMES[cast(type[Document], document_type)]
    # The compiled validator decides, a hundred times faster; the reference one words the error.
    if not _fast_validator(name).is_valid(value):
        raise DataError(f"{where}: {next(_schema_errors(value, name))}")
    try:
        document = cast(D, _adapter(name).validate_python(value))
    except PydanticError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise DataError(f"{where}: {field}: {first['msg']}; correct it (schemas/{name}.schema.json)") from error
    for problem in problems(document):
        raise DataError(f"{where}: {problem}")
    return document


def dump(document: Document) -> dict[str, JsonValue]:
    """The JSON value of a dataclass: tuples become lists, a log-probability of minus infinity the text ``-inf``."""
    return cast(dict[str, JsonValue], plain(as_python(document)))


def as_python(document: Document) -> dict[str, Any]:
    """Nested dictionaries and lists of a dataclass, with minus infinity as a float: what a parquet column takes."""
    # Several times faster than dataclasses.asdict, which copies every string.
    return cast(dict[str, Any], _adapter(SCHEMA_NAMES[type(document)]).dump_python(document, mode="json"))


def check(document: Document, *, where: str) -> dict[str, Any]:
    """Check a document that was made here, before it is written.

    Returns:
        What :func:`as_python` gives.

    Raises:
        DataError: it breaks its schema or a rule that a schema cannot say.
    """
    name = SCHEMA_NAMES[type(document)]
    value = as_python(document)
    if not _fast_validator(name).is_valid(plain(value)):
        raise DataError(f"{where}: {next(_schema_errors(plain(value), name))}")
    for problem in problems(document):
        raise DataError(f"{where}: {problem}")
    return value


_ATOMS = frozenset({str, int, bool, type(None)})


def plain(value: object) -> JsonValue:
    """A JSON value out of tuples, lists, dictionaries and numbers."""
    if isinstance(value, dict):
        return {key: item if type(item) in _ATOMS else plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        # Embeddings: what needs no change is not looked at number by number.
        if set(map(type, value)) == {float} and float("-inf") not in value:
            return cast(JsonValue, list(value))
        return [item if type(item) in _ATOMS else plain(item) for item in value]
    if isinstance(value, float) and value == float("-inf"):
        return "-inf"
    return cast(JsonValue, value)


def errors(value: JsonValue, document_type: type[D]) -> Iterator[str]:
    """Everything that is wrong with a value: field, value and remedy; nothing for a sound one.

    Rules that a schema cannot say are checked once the schema holds.
    """
    name = SCHEMA_NAMES[cast(type[Document], document_type)]
    if _fast_validator(name).is_valid(value):
        yield from problems(cast(D, _adapter(name).validate_python(value)))
    else:
        yield from _schema_errors(value, name)


def _schema_errors(value: JsonValue, name: str) -> Iterator[str]:
    found = list(jsonschema.Draft202012Validator(schema(name)).iter_errors(value))
    found.sort(key=lambda error: (len(error.absolute_path), error.json_path))
    # Of several alternatives that all fail, the deepest failure says most. Several missing fields are one error each.
    lines = dict.fromkeys(_worded(cast(ValidationError, best_match(iter([error]))), name) for error in found)
    # The compiled validator refuses numbers that strict JSON cannot spell; the reference one lets them pass.
    yield from lines or ["holds NaN or an infinity; write null and a reason"]


def _worded(error: ValidationError, name: str) -> str:
    where = error.json_path.removeprefix("$").removeprefix(".") or "top level"
    schema_file = f"schemas/{name}.schema.json"
    found = _shown(error.instance)
    match error.validator:
        case "required":
            missing = [
                key for key in cast(Iterable[str], error.validator_value) if key not in cast(Any, error.instance)
            ]
            return f"{where}: field {_names(missing)} is missing; add it ({schema_file})"
        case "additionalProperties" if isinstance(error.instance, dict):
            known = cast(Mapping[str, object], error.schema).get("properties", {})
            extra = [key for key in error.instance if key not in cast(Mapping[str, object], known)]
            have = ", ".join(cast(Any, known))
            return f"{where}: field {_names(extra)} is not in {schema_file}; remove it, have: {have}"
        case "enum" | "const":
            allowed = error.validator_value if error.validator == "enum" else [error.validator_value]
            return f"{where}: {found} is not allowed; have: {', '.join(map(str, cast(Iterable[object], allowed)))}"
        case "type":
            types = [error.validator_value] if isinstance(error.validator_value, str) else error.validator_value
            return f"{where}: {found} is not of type {' or '.join(cast(Any, types))}; correct it ({schema_file})"
        case _:
            return f"{where}: {error.message[:200]}; correct it ({schema_file})"


def _shown(value: object) -> str:
    text = "null" if value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _names(keys: Iterable[str]) -> str:
    return ", ".join(f"'{key}'" for key in keys)
