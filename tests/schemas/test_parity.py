"""Every dataclass and its JSON Schema say the same: fields, order, required, types, nullability, enumerations."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import jsonschema
import pytest

from schemas import contract
from schemas.answer_key import AnswerKey
from schemas.dataset import Manifest
from schemas.register import Register
from schemas.result import Result

DOCUMENTS = sorted(contract.schemas(), key=lambda document_type: document_type.__name__)
JSON_TYPES: Mapping[type, str] = {str: "string", bytes: "string", int: "integer", float: "number", bool: "boolean"}


@dataclasses.dataclass(frozen=True)
class Shape:
    """What both sides can say about a value."""

    types: frozenset[str]
    enumeration: frozenset[object] = frozenset()
    entries: Shape | None = None
    """Of a list, or of a mapping."""
    fields: tuple[tuple[str, Shape], ...] = ()

    def nullable(self) -> Shape:
        return dataclasses.replace(
            self,
            types=self.types | {"null"},
            enumeration=self.enumeration | {None} if self.enumeration else self.enumeration,
        )


def shape_of_hint(hint: Any) -> Shape:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        alternatives = [argument for argument in get_args(hint) if argument is not types.NoneType]
        if len(alternatives) == 1:
            return shape_of_hint(alternatives[0]).nullable()
        return Shape(frozenset(JSON_TYPES[argument] for argument in alternatives) | {"null"})
    if origin is Literal:
        return Shape(frozenset({"string"}), enumeration=frozenset(get_args(hint)))
    if origin is tuple:
        return Shape(frozenset({"array"}), entries=shape_of_hint(get_args(hint)[0]))
    if origin is dict:
        return Shape(frozenset({"object"}), entries=shape_of_hint(get_args(hint)[1]))
    if dataclasses.is_dataclass(hint):
        assert isinstance(hint, type)
        return shape_of_dataclass(hint)
    return Shape(frozenset({JSON_TYPES[hint]}))


def shape_of_dataclass(document_type: type) -> Shape:
    hints = get_type_hints(document_type)
    fields = dataclasses.fields(document_type)
    return Shape(frozenset({"object"}), fields=tuple((f.name, shape_of_hint(hints[f.name])) for f in fields))


def shape_of_schema(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Shape:
    if "$ref" in schema:
        return shape_of_schema(definitions[schema["$ref"].removeprefix("#/$defs/")], definitions)
    if "anyOf" in schema:
        # -inf is how strict JSON spells a number, so that it adds no type.
        kept = [part for part in schema["anyOf"] if part != {"const": "-inf"}]
        nullable = {"type": "null"} in kept
        shapes = [shape_of_schema(part, definitions) for part in kept if part != {"type": "null"}]
        assert len(shapes) == 1, f"more than one alternative: {schema}"
        return shapes[0].nullable() if nullable else shapes[0]
    kinds = frozenset([schema["type"]] if isinstance(schema["type"], str) else schema["type"])
    entries = schema.get("items", schema.get("additionalProperties") or None)
    if "properties" in schema:
        fields = tuple((name, shape_of_schema(part, definitions)) for name, part in schema["properties"].items())
        return Shape(kinds, fields=fields)
    # A number may be spelled without a fraction, so that JSON Schema needs no "integer" beside "number".
    return Shape(
        kinds,
        enumeration=frozenset(schema.get("enum", ())),
        entries=shape_of_schema(entries, definitions) if entries else None,
    )


def objects(schema: Mapping[str, Any], where: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield where, schema
    for name, definition in schema.get("$defs", {}).items():
        yield f"{where}#{name}", definition


@pytest.mark.parametrize("document_type", DOCUMENTS)
def test_dataclass_and_schema_have_the_same_shape(document_type: type[Any]) -> None:
    schema: Mapping[str, Any] = contract.schemas()[document_type].json_schema
    expected = shape_of_schema(schema, schema.get("$defs", {}))
    assert shape_of_dataclass(document_type) == expected


def with_parts(document_type: type[Any]) -> Iterator[type[Any]]:
    yield document_type
    for hint in get_type_hints(document_type).values():
        for part in (hint, *get_args(hint)):
            if dataclasses.is_dataclass(part):
                assert isinstance(part, type)
                yield from with_parts(part)


@pytest.mark.parametrize("document_type", DOCUMENTS)
def test_fields_without_a_default_are_required_and_no_others_are_allowed(document_type: type[Any]) -> None:
    checked = 0
    types_by_name = {one.__name__: one for one in with_parts(document_type)}
    for where, part in objects(contract.schemas()[document_type].json_schema, contract.schemas()[document_type].place):
        described = types_by_name[where.partition("#")[2] or document_type.__name__]
        fields = dataclasses.fields(described)
        assert part["required"] == [one.name for one in fields if one.default is dataclasses.MISSING], where
        if document_type not in (Manifest, Result, AnswerKey, Register):
            assert part["required"] == list(part["properties"]), f"{where}: a row of a table has all columns"
        assert part["additionalProperties"] is False, where
        checked += 1
    assert checked >= 1


@pytest.mark.parametrize("document_type", DOCUMENTS)
def test_schema_is_sound_and_every_definition_is_used(document_type: type[Any]) -> None:
    schema = contract.schemas()[document_type].json_schema
    jsonschema.Draft202012Validator.check_schema(schema)
    text = str(schema)
    definitions = schema.get("$defs", {})
    assert isinstance(definitions, dict)
    assert [name for name in definitions if f"'#/$defs/{name}'" not in text] == []


def test_every_schema_file_belongs_to_a_dataclass(repository: Path) -> None:
    files = set((repository / "schemas").rglob("*.schema.json"))
    assert files == {schema.path for schema in contract.schemas().values()}
    assert {str(path.relative_to(repository)) for path in files} == {s.place for s in contract.schemas().values()}


@pytest.mark.parametrize("document_type", DOCUMENTS)
def test_dataclasses_are_frozen(document_type: type[Any]) -> None:
    document = object.__new__(document_type)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(document, dataclasses.fields(document_type)[0].name, "other")


def test_a_difference_is_seen() -> None:
    @dataclasses.dataclass(frozen=True)
    class Narrow:
        rule: str

    schema = {"type": "object", "properties": {"rule": {"type": ["string", "null"]}}}
    assert shape_of_dataclass(Narrow) != shape_of_schema(schema, {})
    assert shape_of_dataclass(Narrow) == shape_of_schema({**schema, "properties": {"rule": {"type": "string"}}}, {})
