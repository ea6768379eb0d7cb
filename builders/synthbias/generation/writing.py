"""Writes the instructions that ask a model for sentences, and the form that its answers must have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from biasboard.ground import strict_json
from biasboard.ground.strict_json import JsonValue
from builders.packaged import packaged_toml
from builders.synthbias.generation.cells import Cell
from schemas.lexicon import CASES


class Example(NamedTuple):
    """A sentence in the form of an answer, and why it is good or bad."""

    before: str
    case: str
    after: str
    why: str


@cache
def _data() -> Mapping[str, Any]:
    return packaged_toml("builders.synthbias", "texts", "writing.toml")


def version() -> str:
    """Return the version of the instructions."""
    return str(_data()["version"])


def examples(config: str) -> dict[str, tuple[Example, ...]]:
    """Return the examples of a type, ``positive`` and ``negative``."""
    told = _data()[config]
    return {kind: tuple(Example(**entry) for entry in told[kind]) for kind in ("positive", "negative")}


def instruction(cell: Cell, sample: int, n_sentences: int) -> str:
    """Return the instruction to write sentences for a cell.

    Args:
        cell: The cell.
        sample: Number of the instruction of this cell, from 0, which chooses the scene.
        n_sentences: Number of sentences to ask for.
    """
    data, told = _data(), _data()[cell.config]
    scenes = data["scenes"]
    slots = {
        "n": n_sentences,
        "first": cell.first,
        "second": cell.second,
        # Cells start at different scenes, so that no scene belongs to the first instruction of every cell.
        "scene": scenes[(int(strict_json.sha256(cell.key)[:8], 16) + sample) % len(scenes)],
        "referent": cell.second if cell.referent == "second" else cell.first,
        "other": cell.first if cell.referent == "second" else cell.second,
    }
    parts = [
        told["task"].strip().format(**slots),
        told["definition"].strip().format(**slots),
        "\n".join(["Rules:", *(f"- {rule.format(**slots)}" for rule in data["rules"])]),
        "\n".join(["Good examples, about two others:", *map(_shown, examples(cell.config)["positive"])]),
        "\n".join(["Bad examples:", *map(_shown, examples(cell.config)["negative"])]),
        _form(n_sentences),
    ]
    return "\n\n".join(parts)


def _shown(example: Example) -> str:
    answer = json.dumps({"before": example.before, "case": example.case, "after": example.after})
    return f"- {answer} ({example.why})"


def _form(n_sentences: int) -> str:
    data = _data()
    # The text holds braces of JSON, so that its two slots are not those of a format string.
    text = str(data["form"]).strip().replace("{n}", str(n_sentences))
    return text.replace("{case_names}", str(data["case_names"]).strip())


def answer_schema(n_sentences: int) -> str:
    """Return the JSON Schema of an answer with that many sentences, as canonical JSON."""
    sentence: JsonValue = {
        "type": "object",
        "properties": {
            "before": {"type": "string"},
            "case": {"type": "string", "enum": list(CASES)},
            "after": {"type": "string"},
        },
        "required": ["before", "case", "after"],
        "additionalProperties": False,
    }
    schema: JsonValue = {
        "type": "object",
        "properties": {
            "sentences": {"type": "array", "items": sentence, "minItems": n_sentences, "maxItems": n_sentences}
        },
        "required": ["sentences"],
        "additionalProperties": False,
    }
    return strict_json.canonical(schema).decode()
