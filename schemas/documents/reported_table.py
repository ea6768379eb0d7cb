"""The file about one table of a paper, whose numbers the board quotes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Le, MinLen
from typing_extensions import override

from schemas.documents.base import Count, Document, Name, Positive, repeated
from schemas.documents.model_facts import Line, ModelId, WebAddress


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedColumn(Document):
    """A measure of the table."""

    key: Name
    label: Line
    text: Line
    """What the measure says, and which values are good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedRow(Document):
    """The published values of one model."""

    label: Line
    """Name that the paper gives the model."""
    model: ModelId | None = None
    """Id of the model on this board; None if the paper's name leaves it open, or nothing here is about the model."""
    place: Line | None = None
    """Table or figure with this row; None if all rows are in that of the whole table."""
    values: dict[Name, float]
    """Values by the keys of the columns; what is not printed is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedTable(Document):
    """Published numbers, with where they stand. They are quoted: nothing here can compute them, and they never rank."""

    schema_file = "schemas/documents/reported_table.schema.json"

    benchmark: Name
    title: Line
    paper: Line
    """Title of the paper."""
    address: WebAddress
    """Page on which the numbers or the paper can be read."""
    place: Line
    """Table or figure of the paper."""
    page: Positive | None = None
    page_reason: Line | None = None
    """Why the page is unknown; None if it is known."""
    measured: Annotated[tuple[Line, ...], MinLen(1)]
    """What was measured, on which data and with which prompt, in sentences."""
    digits: Annotated[Count, Le(6)] = 3
    """Number of digits that the paper prints after the point."""
    columns: tuple[ReportedColumn, ...] = ()
    rows: tuple[ReportedRow, ...] = ()
    missing: Line | None = None
    """Why no number can be quoted; None if there are rows."""

    @override
    def problems(self) -> Iterator[str]:
        if (self.page is None) == (self.page_reason is None):
            yield "page: give the page, or say in page_reason why it is unknown; not both"
        if bool(self.rows) == (self.missing is not None):
            yield "rows: give the published rows, or say in missing why there are none; not both"
        keys = [column.key for column in self.columns]
        for key in repeated(keys):
            yield f"columns: {key} stands twice; keep one"
        for row in self.rows:
            if unknown := sorted(row.values.keys() - set(keys)):
                yield f"rows: {row.label}: '{unknown[0]}' is no key of a column; have: {', '.join(keys)}"
            if not row.values:
                yield f"rows: {row.label} has no value; remove the row"
        for label in repeated((row.label, row.place) for row in self.rows):
            yield f"rows: {label[0]} stands twice; keep one"
