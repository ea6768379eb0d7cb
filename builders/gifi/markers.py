"""The source *markers*: texts of this project whose person has a demographic marker, or none, in every family."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from biasboard.ground.toml_files import packaged_toml
from builders.gifi.variants import VariantFrame, text_items
from schemas.items.marked_text import MarkedTextItem
from schemas.lexicon.pronoun_template import parse

_FILE = "markers.toml"
_SLOT = "[marker] "


def marked_items() -> list[MarkedTextItem]:
    """Return every text without a marker and with each of them, in every pronoun family."""
    content = packaged_toml("builders.gifi", "texts", _FILE)
    markers = [(None, None), *((row["axis"], word) for row in content["marker"] for word in row["words"])]
    return [item for row in content["text"] for axis, marker in markers for item in _variants(row, axis, marker)]


def _variants(row: dict[str, Any], axis: Any, marker: str | None) -> Iterator[MarkedTextItem]:
    template_id = f"markers-{row['id']}"
    text = row["text"].replace(_SLOT, "" if marker is None else f"{marker} ")
    for item in text_items([VariantFrame(template_id, parse(text, where=f"{_FILE}: {row['id']}"), None)]):
        values = {field.name: getattr(item, field.name) for field in fields(item)}
        values["item_id"] = f"{template_id}-{(marker or 'unmarked').lower()}-{item.family}"
        yield MarkedTextItem(**values, axis=axis, marker=marker)
