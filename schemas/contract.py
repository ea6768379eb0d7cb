"""Checks a value against its JSON Schema and turns it into the frozen dataclass that mirrors the schema, and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Any, TypeAlias, TypeVar, cast

import jsonschema
import jsonschema_rs
from jsonschema.exceptions import ValidationError
from pydantic import TypeAdapter

from schemas import strict_json
from schemas.checks import problems
from schemas.dataset import CoreferenceItem, Manifest, Reject
from schemas.errors import DataError
from schemas.record import Record
from schemas.result import Result
from schemas.strict_json import JsonValue

Document: TypeAlias = Manifest | Reject | CoreferenceItem | Record | Result
D = TypeVar("D", Manifest, Reject, CoreferenceItem, Record, Result)

SCHEMA_NAMES: Mapping[type[Document], str] = {
    Manifest: "dataset",
    Reject: "reject",
    CoreferenceItem: "coreference",
    Record: "record",
    Result: "result",
}
"""The schema file of each dataclass, without ``.schema.json``."""

ITEM_SHAPES: Mapping[str, type[CoreferenceItem]] = {"coreference": CoreferenceItem}
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
def _adapter(document_type: type[Document]) -> TypeAdapter[Any]:
    return TypeAdapter(document_type)


def load(value: JsonValue, document_type: type[D], *, where: str) -> D:
    """Check a value and turn it into its dataclass.

    Args:
        value: Parsed strict JSON, or a row of a parquet file.
        document_type: The dataclass that it should be.
        where: File (and row), for the error.

    Raises:
        DataError: the value breaks the schema or a rule that a schema cannot say.
    """
    name = SCHEMA_NAMES[document_type]
    # The compiled validator decides, a hundred times faster; the reference one words the error.
    if not _fast_validator(name).is_valid(value):
        raise DataError(f"{where}: {_schema_error(value, name)}")
    document = cast(D, _adapter(document_type).validate_python(value))
    for problem in problems(document):
        raise DataError(f"{where}: {problem}")
    return document


def dump(document: Document) -> dict[str, JsonValue]:
    """The JSON value of a dataclass: tuples become lists, a log-probability of minus infinity the text ``-inf``."""
    return cast(dict[str, JsonValue], plain(dataclasses.asdict(document)))


def plain(value: object) -> JsonValue:
    """A JSON value out of tuples, lists, dictionaries and numbers."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and value == float("-inf"):
        return "-inf"
    return cast(JsonValue, value)


def _schema_error(value: JsonValue, name: str) -> str:
    errors = jsonschema.Draft202012Validator(schema(name)).iter_errors(value)
    error = jsonschema.exceptions.best_match(errors)
    if error is None:
        # The compiled one refuses numbers that strict JSON cannot spell; the reference one lets them pass.
        return "holds NaN or an infinity; write null and a reason"
    return _worded(error, name)


def _worded(error: ValidationError, name: str) -> str:
    where = error.json_path.removeprefix("$").removeprefix(".") or "top level"
    schema_file = f"schemas/{name}.schema.json"
    found = _shown(error.instance)
    match error.validator:
        case "required":
            missing = [key for key in cast(Iterable[str], error.validator_value) if key not in cast(Any, error.instance)]
            return f"{where}: field {_names(missing)} is missing; add it ({schema_file})"
        case "additionalProperties" if isinstance(error.instance, dict):
            known = cast(Mapping[str, object], error.schema).get("properties", {})
            extra = [key for key in error.instance if key not in cast(Mapping[str, object], known)]
            return f"{where}: field {_names(extra)} is not in {schema_file}; remove it, have: {', '.join(cast(Any, known))}"
        case "enum" | "const":
            allowed = error.validator_value if error.validator == "enum" else [error.validator_value]
            return f"{where}: {found} is not allowed; have: {', '.join(map(str, cast(Iterable[object], allowed)))}"
        case "type":
            return f"{where}: {found} is not of type {error.validator_value}; correct it ({schema_file})"
        case _:
            return f"{where}: {error.message[:200]}; correct it ({schema_file})"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _names(keys: Iterable[str]) -> str:
    return ", ".join(f"'{key}'" for key in keys)
