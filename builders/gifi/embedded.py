"""The source *embedded*: texts of this project for all four configs, filled for every pronoun family."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from biasboard.ground.errors import DataError
from biasboard.ground.toml_files import packaged_toml
from builders.gifi.variants import VariantFrame, problem_items, text_items
from schemas.items.assignment import AssignmentItem
from schemas.items.pronoun_text import PronounTextItem
from schemas.items.word_problem import WordProblemItem
from schemas.lexicon.pronoun_template import parse

T = TypeVar("T")


class EmbeddedItems(NamedTuple):
    """The items of the four configs."""

    recognition: list[PronounTextItem]
    continuation: list[PronounTextItem]
    assignment: list[AssignmentItem]
    math: list[WordProblemItem]


def embedded_items() -> EmbeddedItems:
    """Return every variant of every text, by config."""
    return EmbeddedItems(
        recognition=text_items(_frames("recognition", "text", antecedent=True)),
        continuation=text_items(_frames("continuation", "text", topic=True)),
        assignment=list(_each("assignment", "entry", _assignment)),
        math=problem_items(_frames("math", "problem", answer=True)),
    )


def _frames(
    config: str, table: str, *, antecedent: bool = False, topic: bool = False, answer: bool = False
) -> Iterator[VariantFrame]:
    def frame(row: Mapping[str, Any], where: str) -> VariantFrame:
        """Turn one row of the file into a frame."""
        return VariantFrame(
            template_id=f"embedded-{config}-{row['id']}",
            template=parse(row["text"], where=where),
            source_row=None,
            antecedent=row["antecedent"] if antecedent else None,
            topic=row["topic"] if topic else None,
            answer=row["answer"] if answer else None,
        )

    return _each(config, table, frame)


def _assignment(row: Mapping[str, Any], where: str) -> AssignmentItem:
    return AssignmentItem(
        item_id=f"embedded-assignment-{row['id']}",
        text=row["text"],
        attribute=row["kind"],
        stereotype=row["stereotype"],
        source_row=None,
        flags=(),
    )


def _each(config: str, table: str, make: Callable[[Mapping[str, Any], str], T]) -> Iterator[T]:
    name = f"{config}.toml"
    for number, row in enumerate(packaged_toml("builders.gifi", "texts", name)[table], start=1):
        where = f"{name}: {table} {number}"
        try:
            yield make(row, where)
        except KeyError as error:
            raise DataError(f"{where}: field {error} is missing; add it") from error
