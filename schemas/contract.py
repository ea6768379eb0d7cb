"""Checks values against their JSON Schemas and converts them to the dataclasses that mirror the schemas, and back."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

import jsonschema_rs
from pydantic import TypeAdapter
from pydantic import ValidationError as PydanticError

from schemas import strict_json
from schemas.adapters import Adapters
from schemas.answer_key import AnswerKey
from schemas.checks import problems
from schemas.cluster_sums import ClusterSums
from schemas.corrections import Corrections
from schemas.dataset import Manifest, Reject
from schemas.encoded_image import to_text
from schemas.errors import DataError
from schemas.item_shape import Item, item_shapes
from schemas.record import Record
from schemas.register import Register
from schemas.result import Result
from schemas.reweighting import Reweighting
from schemas.score import TextScore
from schemas.scoring_request import ScoringRequest
from schemas.strict_json import JsonValue
from schemas.submission import Submission

Document: TypeAlias = (
    Manifest
    | Reject
    | Item
    | Record
    | TextScore
    | ClusterSums
    | Result
    | Adapters
    | Corrections
    | AnswerKey
    | Register
    | Submission
    | ScoringRequest
    | Reweighting
)
D = TypeVar("D", bound=Document)

_FILES: Mapping[type[Any], str] = {
    Manifest: "dataset",
    Reject: "reject",
    Record: "record",
    TextScore: "score",
    ClusterSums: "cluster_sums",
    Result: "result",
    Adapters: "adapters",
    Corrections: "corrections",
    AnswerKey: "answer_key",
    Register: "register",
    Submission: "submission",
    ScoringRequest: "scoring_request",
    Reweighting: "reweighting",
}


@dataclass(frozen=True)
class Schema:
    """The JSON Schema of one kind of document, with the rules that a schema cannot express."""

    document_type: type[Any]
    place: str
    """Path of the schema relative to the repository, for messages."""
    path: Path
    problems: Callable[[Any], Iterator[str]]
    """Generator of messages, one for each further rule that a schema-valid document breaks."""

    @cached_property
    def json_schema(self) -> dict[str, JsonValue]:
        """The contents of the schema file."""
        return cast(dict[str, JsonValue], strict_json.loads(self.path.read_text(encoding="utf-8"), where=self.place))

    @cached_property
    def fast_validator(self) -> jsonschema_rs.Draft202012Validator:
        """The compiled validator, a hundred times faster than the validator that words the errors."""
        return jsonschema_rs.Draft202012Validator(self.json_schema)

    @cached_property
    def adapter(self) -> TypeAdapter[Any]:
        """The converter between JSON values and the dataclass."""
        return TypeAdapter(self.document_type)


@cache
def schemas() -> Mapping[type[Any], Schema]:
    """Return the schemas of all dataclasses of the contract, including those of the item shapes."""
    folder = Path(__file__).parent
    own = {
        document_type: Schema(document_type, f"schemas/{name}.schema.json", folder / f"{name}.schema.json", problems)
        for document_type, name in _FILES.items()
    }
    items = {
        shape.row_type: Schema(
            shape.row_type, f"schemas/items/{shape.name}.schema.json", shape.schema_path, shape.problems
        )
        for shape in item_shapes().values()
    }
    return {**own, **items}


def load(value: JsonValue, document_type: type[D], *, where: str) -> D:
    """Check a value and convert it to its dataclass.

    Args:
        value: Value parsed from strict JSON, or a row of a parquet file.
        document_type: Dataclass to convert it to.
        where: File, and row if there is one, for the error message.

    Raises:
        DataError: the value breaks its schema or a rule that a schema cannot express.
    """
    schema = schemas()[document_type]
    if not schema.fast_validator.is_valid(value):
        raise DataError(f"{where}: {_first_problem(value, schema)}")
    try:
        document = cast(D, schema.adapter.validate_python(value))
    except PydanticError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise DataError(f"{where}: {field}: {first['msg']}; correct it ({schema.place})") from error
    for problem in schema.problems(document):
        raise DataError(f"{where}: {problem}")
    return document


_MOST_WORDED = 20_000
"""Number of values in a document up to which the validator that words errors well is fast enough."""


def _first_problem(value: JsonValue, schema: Schema) -> str:
    if sum(1 for _ in itertools.islice(_values(value), _MOST_WORDED + 1)) <= _MOST_WORDED:
        return next(_worded(value, schema))
    error = next(iter(schema.fast_validator.iter_errors(value)))
    place = ".".join(map(str, error.instance_path)) or "top level"
    return f"{place}: {error.message[:300]}; correct it ({schema.place})"


def _values(value: JsonValue) -> Iterator[JsonValue]:
    """Yield a value and all values in it."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        yield one
        if isinstance(one, dict):
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)


def dump(document: Document) -> dict[str, JsonValue]:
    """Return a dataclass as a JSON value: tuples become lists, and minus infinity becomes the text ``-inf``."""
    return cast(dict[str, JsonValue], plain(as_python(document)))


def as_python(document: Document) -> dict[str, Any]:
    """Return a dataclass as nested dictionaries and lists for a parquet file, with minus infinity as a float."""
    # Several times faster than dataclasses.asdict, which copies every string. Fields with a default came to manifests
    # and results later; files without them stay as they were. The columns of a parquet file are always complete.
    optional = isinstance(document, Manifest | Result | AnswerKey | Register)
    adapter = schemas()[type(document)].adapter
    return cast(dict[str, Any], adapter.dump_python(document, mode="json", exclude_defaults=optional))


def check(document: Document, *, where: str) -> dict[str, Any]:
    """Check a document before it is written.

    Returns:
        The document as nested dictionaries and lists, as :func:`as_python` returns it.

    Raises:
        DataError: the document breaks its schema or a rule that a schema cannot express.
    """
    schema = schemas()[type(document)]
    value = as_python(document)
    if not schema.fast_validator.is_valid(plain(value)):
        raise DataError(f"{where}: {next(_worded(plain(value), schema))}")
    for problem in schema.problems(document):
        raise DataError(f"{where}: {problem}")
    return value


_ATOMS = frozenset({str, int, bool, type(None)})


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
        return to_text(value)
    return cast(JsonValue, value)


def errors(value: JsonValue, document_type: type[D]) -> Iterator[str]:
    """Yield a message (field, value, remedy) for everything that is wrong with a value.

    The rules that a schema cannot express are checked only if the value satisfies the schema.
    """
    schema = schemas()[document_type]
    if schema.fast_validator.is_valid(value):
        yield from schema.problems(schema.adapter.validate_python(value))
    else:
        yield from _worded(value, schema)


def _worded(value: JsonValue, schema: Schema) -> Iterator[str]:
    # The validator that words errors is loaded when there is one: it takes as long as many a command needs in all.
    wording = importlib.import_module("schemas.schema_errors")
    yield from wording.schema_errors(value, schema.json_schema, schema.place)
