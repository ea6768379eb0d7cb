"""Item shape: an instruction to write something, whose answer is data to build from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from schemas import strict_json
from schemas.errors import DataError
from schemas.item_shape import ItemShape


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionItem:
    """An instruction to write something, and the form that the answer must have."""

    item_id: str
    text: str
    """Instruction, as the model gets it."""
    json_schema: str | None
    """JSON Schema of the answer, as a text; None if any text is an answer."""
    cell: str
    """Name of what the instruction asks for; items of one cell ask for the same."""
    sample: int
    """Number of this item among those with the same instruction, from 0, so that each is answered by itself."""
    flags: tuple[str, ...]

    @property
    def unit(self) -> str:
        """The id of the item, because items are drawn one by one when only a part of the data is asked."""
        return self.item_id


def _problems(item: InstructionItem) -> Iterator[str]:
    if item.json_schema is None:
        return
    try:
        value = strict_json.loads(item.json_schema, where="json_schema")
    except DataError as error:
        yield f"{error}; write a JSON Schema, or null"
        return
    if not isinstance(value, dict):
        yield "json_schema: is no JSON object; write a JSON Schema, or null"


SHAPE = ItemShape(row_type=InstructionItem, problems=_problems, unit_name="instruction")
