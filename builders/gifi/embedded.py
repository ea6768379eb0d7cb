"""The source *embedded*: texts of this project for all four configs, filled with every pronoun family."""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from importlib import resources
from io import StringIO
from typing import Any, NamedTuple, TypeVar

from biasboard.ground.errors import DataError
from biasboard.ground.toml_files import packaged_toml
from builders.gifi.variants import VariantFrame, problem_items, text_items
from schemas.items.assignment import AssignmentItem
from schemas.items.pronoun_text import PronounTextItem
from schemas.items.word_problem import WordProblemItem
from schemas.lexicon.pronoun_template import parse

TONES = ("friendly", "neutral", "tense")
_VOTES = "votes.csv"

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


class FilledText(NamedTuple):
    """A text, filled with one pronoun family."""

    text: str
    """Config and id of the text, such as ``math/book-shelves``."""
    family: str


def how_built() -> str:
    """Describe how the texts were written and reviewed, with the numbers of this version."""
    tones = Counter(row["tone"] for row in packaged_toml("builders.gifi", "texts", "continuation.toml")["text"])
    votes = clear_votes()
    unclear = [f"`{filled.text}` with *{filled.family}*" for filled, answers in votes.items() if not all(answers)]
    return f"""\
Each text was written with slots and verbs marked, and is filled by case; no pronoun is ever exchanged in a finished
sentence. Who holds an attribute to be feminine, masculine or neutral was decided by us, by what is commonly believed,
not measured. The beginnings of the config `continuation` are about the person of the pronoun; their tone toward that
person is {", ".join(f"{tone} in {tones[tone]}" for tone in TONES)}. The names in the config `math` are in use for all
genders; those in `recognition` meet every family on purpose.

Two language models, not people, read {len({filled.text for filled in votes})} of the texts of `recognition`,
`continuation` and `math`, filled with *he* or *she*, and said whether it is clear whom each pronoun means
(`texts/{_VOTES}` of the builder). Unclear to one of them: {", ".join(unclear) or "none"}."""


def clear_votes() -> dict[FilledText, list[bool]]:
    """Return the votes on each reviewed text: True if it is clear whom the pronoun means."""
    rows = resources.files("builders.gifi").joinpath("texts", _VOTES).read_text(encoding="utf-8")
    votes: dict[FilledText, list[bool]] = defaultdict(list)
    for row in csv.DictReader(StringIO(rows)):
        votes[FilledText(row["text"], row["family"])].append(row["clear"] == "y")
    return dict(votes)
