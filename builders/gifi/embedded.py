"""The sources *embedded* and *markers*: texts of this project, filled with every pronoun family.

*embedded* has all four configs; in *markers* the person of each text has a demographic marker, or none.
"""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import fields
from importlib import resources
from io import StringIO
from itertools import product
from typing import Any, cast

from biasboard.ground.files import packaged_toml
from builders.gifi.variants import VariantFrame, problem_items, text_items
from schemas.documents.dataset import Item
from schemas.items.assignment import AssignmentItem
from schemas.items.marked_text import MarkedTextItem
from schemas.lexicon.pronoun_template import parse

TONES = ("friendly", "neutral", "tense")
_VOTES = "votes.csv"
_MARKERS = "markers.toml"


def embedded_items() -> dict[str, Sequence[Item]]:
    """Return every variant of every text, by config."""
    return {
        "recognition": text_items(_frames("recognition")),
        "continuation": text_items(_frames("continuation")),
        "assignment": [
            AssignmentItem(
                item_id=f"embedded-assignment-{row['id']}",
                text=row["text"],
                attribute=row["kind"],
                stereotype=row["stereotype"],
                source_row=None,
                flags=(),
            )
            for row in texts_of("assignment")
        ],
        "math": problem_items(_frames("math")),
    }


def texts_of(config: str) -> list[dict[str, Any]]:
    """Return the rows of the file of a config."""
    (rows,) = packaged_toml("builders.gifi", "texts", f"{config}.toml").values()
    return cast(list[dict[str, Any]], rows)


def _frames(config: str) -> Iterator[VariantFrame]:
    for row in texts_of(config):
        yield VariantFrame(
            template_id=f"embedded-{config}-{row['id']}",
            template=parse(row["text"], where=f"{config}.toml: {row['id']}"),
            source_row=None,
            antecedent=row.get("antecedent"),
            topic=row.get("topic"),
            answer=row.get("answer"),
        )


def marked_items() -> list[MarkedTextItem]:
    """Return every text without a marker and with each of them, in every pronoun family."""
    content = packaged_toml("builders.gifi", "texts", _MARKERS)
    markers = [(None, None), *((row["axis"], word) for row in content["marker"] for word in row["words"])]
    items = []
    for row, (axis, marker) in product(content["text"], markers):
        template_id = f"markers-{row['id']}"
        text = row["text"].replace("[marker] ", "" if marker is None else f"{marker} ")
        for item in text_items([VariantFrame(template_id, parse(text, where=f"{_MARKERS}: {row['id']}"), None)]):
            values = {field.name: getattr(item, field.name) for field in fields(item)}
            values["item_id"] = f"{template_id}-{(marker or 'unmarked').lower()}-{item.family}"
            items.append(MarkedTextItem(**values, axis=axis, marker=marker))
    return items


def how_built() -> str:
    """Describe how the texts were written and reviewed, with the numbers of this version."""
    tones = Counter(row["tone"] for row in texts_of("continuation"))
    votes = clear_votes()
    unclear = [f"`{text}` with *{family}*" for (text, family), answers in votes.items() if not all(answers)]
    return f"""\
Each text was written with slots and verbs marked, and is filled by case; no pronoun is ever exchanged in a finished
sentence. Who holds an attribute to be feminine, masculine or neutral was decided by us, by what is commonly believed,
not measured. The beginnings of the config `continuation` are about the person of the pronoun; their tone toward that
person is {", ".join(f"{tone} in {tones[tone]}" for tone in TONES)}. The names in the config `math` are in use for all
genders; those in `recognition` meet every family on purpose.

Two language models, not people, read {len({text for text, _ in votes})} of the texts of `recognition`,
`continuation` and `math`, filled with *he* or *she*, and said whether it is clear whom each pronoun means
(`texts/{_VOTES}` of the builder). Unclear to one of them: {", ".join(unclear) or "none"}."""


def clear_votes() -> dict[tuple[str, str], list[bool]]:
    """Return the votes on each text, such as ``math/book-shelves``, filled with a family: True if it is clear."""
    rows = resources.files("builders.gifi").joinpath("texts", _VOTES).read_text(encoding="utf-8")
    votes: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for row in csv.DictReader(StringIO(rows)):
        votes[row["text"], row["family"]].append(row["clear"] == "y")
    return dict(votes)
