"""The published JSON Schemas: made from the annotations, sound, and of one verdict with what reads the files."""

from __future__ import annotations

import copy
import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from biasboard.ground.strict_json import JsonValue
from schemas.documents.base import Document
from schemas.documents.model_facts import ModelFacts
from schemas.documents.reported_table import ReportedTable
from schemas.documents.run_files import ClusterSums, TextScore
from schemas.files import contract
from schemas.files.contract import D
from schemas.json_schemas import json_schema, schema_paths
from tests.schemas import examples

PATHS = schema_paths()


def published(path: str) -> Any:
    return json.loads((Path(__file__).parents[2] / path).read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize("document_type", PATHS, ids=PATHS.get)
def test_the_published_schema_is_what_the_annotations_say(document_type: type[Document]) -> None:
    schema = published(PATHS[document_type])
    assert schema == json_schema(document_type), "write it again: python -m schemas.json_schemas"
    jsonschema.Draft202012Validator.check_schema(schema)


def test_every_schema_file_belongs_to_a_document_and_describes_each_field_by_the_text_below_it(
    repository: Path,
) -> None:
    files = {path.relative_to(repository).as_posix() for path in (repository / "schemas").rglob("*.schema.json")}
    assert files == set(PATHS.values())
    properties = published("schemas/documents/record.schema.json")["properties"]
    assert properties["reason"]["description"] == "Reason why the record has no reading; None if it is scored."


def of_board(name: str, document_type: type[D]) -> D:
    text = (Path(__file__).parents[2] / "leaderboard" / name).read_text(encoding="utf-8")
    return contract.load(json.loads(json.dumps(tomllib.loads(text), default=str)), document_type, where=name)


SUMS: dict[str, JsonValue] = {
    "metric": "accuracy",
    "version": "1.0",
    "baseline": None,
    "group": {},
    "reason": None,
    "ideal": 1.0,
    "n": 2,
    "n_excluded": 0,
    "n_columns": 1,
    "sums": [1.0, 2.0],
}
DOCUMENTS: tuple[Document, ...] = (
    examples.manifest(examples.items(), [examples.reject()]),
    examples.reject(),
    examples.item(),
    examples.record(),
    examples.failed_record(),
    examples.result(),
    of_board("models/HuggingFaceTB__SmolLM2-135M-Instruct.toml", ModelFacts),
    of_board("reported/gifi-pronouns.toml", ReportedTable),
    TextScore(kind="embedding", scorer="minilm-1", text_sha256=examples.HASH, values=(0.6, 0.8)),
    contract.load(SUMS, ClusterSums, where="sums"),
)
ODD: tuple[Any, ...] = (None, True, "", "x", "-inf", "\n", 0, -1, 3, 0.5, 2.0, [], ["x", "x"], {}, {"x": 1})


def mutants(value: Any) -> Iterator[Any]:
    """Every value that differs from the given one at a single place."""
    yield from (copy.deepcopy(odd) for odd in ODD if odd != value or type(odd) is not type(value))
    if isinstance(value, dict):
        for key, inner in value.items():
            yield {name: other for name, other in value.items() if name != key}
            for other in mutants(inner):
                yield {**value, key: other}
        yield {**value, "surprise": 1}
    elif isinstance(value, list):
        for place, inner in enumerate(value[:2]):
            for other in mutants(inner):
                yield [*value[:place], other, *value[place + 1 :]]


@pytest.mark.slow
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: type(document).__name__)
def test_any_validator_of_json_schema_gives_the_verdict_of_the_contract(document: Document) -> None:
    validator = jsonschema.Draft202012Validator(published(PATHS[type(document)]))
    verdicts = {True: 0, False: 0}
    for value in mutants(contract.dump(document)):
        expected = validator.is_valid(value)
        # Each field by itself, whatever the rules that join several.
        made, _ = contract._converted(value, type(document))
        # To JSON Schema 2.0 is an integer; strict JSON files of ours are written by programs that know better.
        if (made is not None) != expected:
            assert expected, value
            assert "2.0 is not of type integer" in next(contract.errors(value, type(document))), value
        verdicts[expected] += 1
    assert min(verdicts.values()) > 3, verdicts
