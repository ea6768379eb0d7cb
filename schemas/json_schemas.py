"""Writes the JSON Schemas of all documents, which people outside this project validate files with.

``python -m schemas.json_schemas`` writes them next to the code, and a test fails if they are out of date. Our own
readers do not use them: they check files by the annotations from which these schemas are made. A schema says what each
field may hold, but not the rules that join several fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from biasboard.ground import strict_json
from biasboard.ground.strict_json import JsonValue
from schemas.documents.adapters import Adapters
from schemas.documents.base import Document
from schemas.documents.board import AnswerKey, Register, Submission
from schemas.documents.dataset import Manifest, Reject, item_shapes
from schemas.documents.model_facts import ModelFacts
from schemas.documents.model_summary import ModelSummary
from schemas.documents.papers import ReportedTable, Reproduction
from schemas.documents.record import Record
from schemas.documents.result import Result
from schemas.documents.reweighting import Reweighting
from schemas.documents.run_files import ClusterSums, Corrections, TextScore
from schemas.files import contract
from schemas.outputs.documents import (
    BuiltBoard,
    FinishedRuns,
    Listing,
    PublishedFiles,
    RunEstimates,
    Validation,
    Verdicts,
)

_DATASETS = (Manifest, Reject)
_RUNS = (Record, TextScore, ClusterSums, Result, Adapters, Corrections, Reweighting)
_BOARD = (AnswerKey, Register, Submission, ModelFacts, ReportedTable, Reproduction, ModelSummary)
_OUTPUTS = (Listing, Validation, FinishedRuns, RunEstimates, Verdicts, BuiltBoard, PublishedFiles)


def schema_paths() -> Mapping[type[Document], str]:
    """Return the path of the JSON Schema of each published document and of each item shape."""
    shapes = [shape.row_type for shape in item_shapes().values()]
    documents: list[type[Document]] = [*_DATASETS, *_RUNS, *_BOARD, *_OUTPUTS, *shapes]
    return {document_type: contract.schema_path(document_type) for document_type in documents}


class _Untitled(GenerateJsonSchema):
    """JSON Schema without a title for each field, which would repeat its name."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def json_schema(document_type: type[Document]) -> dict[str, JsonValue]:
    """Return the JSON Schema of a kind of document."""
    settings = Document.__pydantic_config__
    # Descriptions come from the docstrings of fields. Only the source code holds those, so no other adapter asks.
    Document.__pydantic_config__ = ConfigDict(**settings, use_attribute_docstrings=True)
    try:
        adapter = TypeAdapter(document_type)
    finally:
        Document.__pydantic_config__ = settings
    schema: dict[str, JsonValue] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"biasboard/{Path(contract.schema_path(document_type)).name}",
    }
    return schema | adapter.json_schema(schema_generator=_Untitled)


def main() -> None:
    """Write all files; a shape whose code has none yet gets its first."""
    for document_type, path in schema_paths().items():
        file = Path(__file__).parents[1] / path
        strict_json.write(
            file.with_suffix(".schema.json") if file.suffix == ".py" else file, json_schema(document_type)
        )


if __name__ == "__main__":
    main()
