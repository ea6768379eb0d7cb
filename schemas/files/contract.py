"""Reads documents from JSON and parquet rows, reports each problem on one line, and writes documents as JSON.

:func:`checked` and :func:`load` read JSON, :func:`from_row` reads a row of a parquet file. All report errors in the
same form: file, field, value, remedy.
"""

from __future__ import annotations

import json
import re
import typing
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from biasboard.ground import strict_json
from biasboard.ground.errors import DataError
from biasboard.ground.strict_json import JsonValue
from schemas.documents.base import Document, adapter_of, from_values, shown, to_base64
from schemas.documents.dataset import Item
from schemas.documents.record import Record
from schemas.documents.run_files import TextScore

D = TypeVar("D", bound=Document)
T = TypeVar("T")

MOST_BYTES = 16 << 20
"""Maximum size of a document: values of JSON take twenty times as much memory as their text."""
_ATOMS = frozenset({str, int, bool, type(None)})
"""Types of values that are JSON as they are."""
_TYPES = {
    "int_type": "integer",
    "float_type": "number",
    "string_type": "string",
    "bool_type": "boolean",
    "tuple_type": "array",
    "dict_type": "object",
    "dataclass_type": "object",
}
"""JSON's name of the type that a value should have, by pydantic's type of error."""
_SUBJECT = re.compile("^(Value error, |Input |String |Tuple |Dictionary )")
"""The subject with which pydantic's messages begin; ours begin with the value."""


def schema_path(document_type: type[Document]) -> str:
    """Return the path of a document's JSON Schema, to which messages point; of a plug-in's item shape, its code."""
    if not issubclass(document_type, Item):
        return document_type.schema_file
    stem = f"schemas/items/{document_type.__module__.rpartition('.')[2]}"
    path = f"{stem}.schema.json"
    return path if Path(__file__).parents[2].joinpath(path).is_file() else f"{stem}.py"


Check: TypeAlias = Generator[str, None, T]
"""Yields one line per problem of a file or folder, and returns its contents, or None if there are problems.

So one check serves two kinds of callers: those that list all problems take every line, and those that need the contents
stop at the first problem with :func:`sound`.
"""


def sound(check: Check[T | None]) -> T:
    """Return the contents that a check read.

    Raises:
        DataError: there is a problem; the message is the first one.
    """
    try:
        problem = next(check)
    except StopIteration as done:
        return cast(T, done.value)
    raise DataError(problem)


def lines_of(problems: Iterator[str], where: str) -> Check[bool]:
    """Yield problems, each prefixed with its location, and return True if there are none."""
    is_sound = True
    for problem in problems:
        is_sound = False
        yield f"{where}: {problem}"
    return is_sound


def read(path: Path, document_type: type[D]) -> D:
    """Read and check a JSON file.

    Raises:
        DataError: the file is missing, is not strict JSON, or breaks a rule.
    """
    return sound(checked(path, document_type))


def checked(path: Path, document_type: type[D]) -> Check[D | None]:
    """Check a JSON file, and return its document."""
    try:
        value = strict_json.read(path, most=MOST_BYTES)
    except DataError as error:
        yield str(error)
        return None
    document, problems = converted(value, document_type)
    return document if (yield from lines_of(problems, str(path))) else None


def load(value: JsonValue, document_type: type[D], *, where: str) -> D:
    """Check a JSON value and convert it to its document.

    Raises:
        DataError: a field is missing, unknown or of another type, or the document breaks a rule.
    """
    document, problems = converted(value, document_type)
    sound(lines_of(problems, where))
    return cast(D, document)


def converted(value: JsonValue, document_type: type[D]) -> tuple[D | None, Iterator[str]]:
    """Convert a JSON value to its document, as :func:`from_row` does a row.

    Rules that join several fields are checked only if every field is valid by itself.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError:
        return None, iter(["holds NaN or an infinity; write null and a reason"])
    try:
        # From text: only there does strict mode take a list for a tuple and an object for a dataclass.
        document = cast(D, adapter_of(document_type).validate_json(text))
    except ValidationError as error:
        return None, _worded(error, document_type)
    return document, problems_of(document)


def from_row(row: Mapping[str, Any], row_type: type[D]) -> tuple[D | None, Iterator[str]]:
    """Convert a row of a parquet file to its document.

    Returns:
        The document, or None if a field is invalid by itself; and a line (field, value, remedy) for each problem.
    """
    try:
        document = from_values(row, row_type)
    except ValidationError as error:
        return None, _worded(error, row_type)
    return document, problems_of(document)


def problems_of(document: Document) -> Iterator[str]:
    """Return the lines for the rules that join several fields and that a document breaks."""
    # Rows that come by the million are checked over columns; this loads pyarrow, which other documents do not need.
    if isinstance(document, Record | TextScore):
        from schemas.files import record_columns

        if isinstance(document, Record):
            return record_columns.record_problems(document)
        return record_columns.score_problems(document)
    return chain(document.text_problems(), document.problems()) if isinstance(document, Item) else document.problems()


def check(document: Document, *, where: str) -> None:
    """Check a document before it is written.

    Raises:
        DataError: the document breaks a rule.
    """
    adapter = adapter_of(type(document))
    try:
        # Constructing a dataclass checks nothing, so the document may hold values of wrong types.
        adapter.validate_json(adapter.dump_json(document, **_settings_of_dump(document)))
    except ValidationError as error:
        raise DataError(f"{where}: {next(_worded(error, type(document)))}") from None
    for problem in problems_of(document):
        raise DataError(f"{where}: {problem}")


def dump(document: Document) -> dict[str, JsonValue]:
    """Return a document as a JSON value: tuples become lists, minus infinity ``-inf``, and bytes Base64."""
    adapter = adapter_of(type(document))
    return cast(dict[str, JsonValue], adapter.dump_python(document, mode="json", **_settings_of_dump(document)))


def _settings_of_dump(document: Document) -> dict[str, Any]:
    return {"exclude_defaults": document.has_later_fields, "warnings": False}


def plain(value: object) -> JsonValue:
    """Convert nested dictionaries, lists and tuples to a JSON value.

    Minus infinity becomes the text ``-inf``, and bytes become Base64.
    """
    if isinstance(value, dict):
        return {key: item if type(item) in _ATOMS else plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        # Embeddings are long lists of floats: copy them whole instead of visiting each number.
        if set(map(type, value)) == {float} and float("-inf") not in value:
            return cast(JsonValue, list(value))
        return [item if type(item) in _ATOMS else plain(item) for item in value]
    if isinstance(value, float) and value == float("-inf"):
        return "-inf"
    if isinstance(value, bytes):
        return to_base64(value)
    return cast(JsonValue, value)


def _worded(error: ValidationError, document_type: type[Document]) -> Iterator[str]:
    """Yield a line for each fault, the shallow ones first; the missing fields of an object share one line."""
    faults = error.errors(include_url=False)
    # Pydantic also reports a list with invalid entries as too short: the deeper fault says more.
    explained = {fault["loc"][:depth] for fault in faults for depth in range(len(fault["loc"]))}
    faults = [fault for fault in faults if fault["loc"] not in explained]
    faults.sort(key=lambda fault: (len(fault["loc"]), [(isinstance(step, int), step) for step in fault["loc"]]))
    missing: dict[tuple[str | int, ...], list[str]] = {}
    for fault in faults:
        if fault["type"] == "missing":
            missing.setdefault(fault["loc"][:-1], []).append(repr(fault["loc"][-1]))
    for parents, names in missing.items():
        schema = schema_path(document_type)
        yield f"{_path(parents)}: field {', '.join(sorted(names))} is missing; add it ({schema})"
    for fault in faults:
        if fault["type"] != "missing":
            yield _words_of(fault, document_type)


def _words_of(fault: ErrorDetails, document_type: type[Document]) -> str:
    fault_type, steps, context, message = fault["type"], fault["loc"], fault.get("ctx", {}), fault["msg"]
    if fault_type == "json_invalid":
        # We serialised the text ourselves, so it can only be nested too deeply.
        return "nested too deeply; flatten it"
    schema = schema_path(document_type)
    path, value, remedy = _path(steps), shown(fault["input"]), f"correct it ({schema})"
    match fault_type:
        case "unexpected_keyword_argument":
            have = ", ".join(field.name for field in fields(_type_at(document_type, steps[:-1])))
            return f"{_path(steps[:-1])}: field {shown(steps[-1])} is not in {schema}; remove it, have: {have}"
        case "literal_error":
            # Pydantic lists the values in quotation marks, the last after "or".
            have = context["expected"].replace(" or ", ", ").replace("'", "")
            return f"{path}: {value} is not allowed; have: {have}"
        case "string_pattern_mismatch":
            return f"{path}: {value} does not match {context['pattern']!r}; {remedy}"
        case "not_a_number":
            return f"{path}: {message}"
        case "finite_number":
            return f"{path}: holds NaN or an infinity; write null and a reason"
        case "string_too_short" | "too_short" if not fault["input"]:
            return f"{path}: {value} should be non-empty; {remedy}"
        case _ if fault_type in _TYPES:
            return f"{path}: {value} is not of type {_TYPES[fault_type]}; {remedy}"
    return f"{path}: {value} {_SUBJECT.sub('', message).replace(' after validation', '')[:200]}; {remedy}"


def _path(steps: Sequence[str | int]) -> str:
    """Return a path inside a document in the usual notation, such as ``metrics[0].value``."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{_named(step)}" for step in steps)
    return text.removeprefix(".") or "top level"


def _named(step: str) -> str:
    # A mapping may have any text as a key, however long.
    return step if re.fullmatch(r"[A-Za-z0-9_.+-]{1,60}", step) else shown(step)


def _type_at(document_type: type, steps: Sequence[str | int]) -> Any:
    """Return the dataclass at a path inside a document."""
    for step in steps:
        if isinstance(step, str) and step in (hints := typing.get_type_hints(document_type)):
            document_type = next(_dataclasses(hints[step]), document_type)
    return document_type


def _dataclasses(hint: Any) -> Iterator[type]:
    if is_dataclass(hint):
        yield cast(type, hint)
    for argument in typing.get_args(hint):
        yield from _dataclasses(argument)
