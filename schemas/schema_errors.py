"""Words the errors of a JSON Schema: which field, its value, and the remedy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

import jsonschema
from jsonschema.exceptions import ValidationError, best_match

from schemas.strict_json import JsonValue


def schema_errors(value: JsonValue, schema: dict[str, JsonValue], place: str) -> Iterator[str]:
    """Yield one line for each way in which a value breaks a JSON Schema: field, value and remedy.

    Args:
        value: A value that the compiled validator refuses.
        schema: The JSON Schema.
        place: Path of the schema in the repository.
    """
    found = list(jsonschema.Draft202012Validator(schema).iter_errors(value))
    found.sort(key=lambda error: (len(error.absolute_path), error.json_path))
    # Of several alternatives that all fail, the deepest failure says most. Several missing fields are one error each.
    lines = dict.fromkeys(_worded(cast(ValidationError, best_match(iter([error]))), place) for error in found)
    # The compiled validator refuses numbers that strict JSON cannot spell; the reference one lets them pass.
    yield from lines or ["holds NaN or an infinity; write null and a reason"]


def _worded(error: ValidationError, schema_file: str) -> str:
    where = error.json_path.removeprefix("$").removeprefix(".") or "top level"
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
