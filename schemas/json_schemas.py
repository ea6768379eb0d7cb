"""Writes the JSON Schemas of all documents, which people outside this project validate files with.

``python -m schemas.json_schemas`` writes them next to the code, and a test fails if they are out of date. Our own
readers do not use them: they check files by the annotations from which these schemas are made. A schema says what each
field may hold, but not the rules that join several fields.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from biasboard.ground import strict_json
from biasboard.ground.strict_json import JsonValue
from schemas.documents.base import Document
from schemas.files import contract


class _Untitled(GenerateJsonSchema):
    """JSON Schema without a title for each field, which would repeat its name."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Return False."""
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
        "$id": f"biasboard/{Path(contract.schema_paths()[document_type]).name}",
    }
    return schema | adapter.json_schema(schema_generator=_Untitled)


def main() -> None:
    """Write all files; a shape whose code has none yet gets its first."""
    for document_type, path in contract.schema_paths().items():
        file = Path(__file__).parents[1] / path
        strict_json.write(
            file.with_suffix(".schema.json") if file.suffix == ".py" else file, json_schema(document_type)
        )


if __name__ == "__main__":
    main()
