"""Item shape: an instruction to write something; builders make datasets from the answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from pydantic import StringConstraints
from typing_extensions import override

from biasboard.ground import strict_json
from biasboard.ground.errors import DataError
from schemas.documents.base import Count, Name, Text
from schemas.documents.dataset import Item, ItemShape


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionItem(Item):
    """An instruction to write something, and the form that the answer must have."""

    item_id: Text
    text: Text
    """Instruction, as the model gets it."""
    json_schema: Annotated[str, StringConstraints(min_length=2)] | None
    """JSON Schema of the answer, as a text; None if any text is an answer."""
    cell: Text
    """Name of what the instruction asks for; items of one cell ask for the same."""
    sample: Count
    """Number of this item among those with the same instruction, from 0, so that each is answered by itself."""
    flags: tuple[Name, ...]

    @override
    def problems(self) -> Iterator[str]:
        if self.json_schema is None:
            return
        # Loading it takes as long as many a whole command, and few datasets have such items.
        import jsonschema

        try:
            schema = strict_json.loads(self.json_schema, where="json_schema")
            if isinstance(schema, dict):
                jsonschema.Draft202012Validator.check_schema(schema)
            else:
                yield "json_schema: is no JSON object; write a JSON Schema, or null"
        except DataError as error:
            yield f"{error}; write a JSON Schema, or null"
        except jsonschema.SchemaError as error:
            yield f"json_schema: {error.message[:200]}; write a JSON Schema, or null"


SHAPE = ItemShape(row_type=InstructionItem, unit_name="instruction")
