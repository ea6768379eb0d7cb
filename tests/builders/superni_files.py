"""Task files in the schemas of Super-NaturalInstructions, which the tests make themselves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

WORDS = ("ash", "birch", "cedar", "elm", "fir", "hazel", "larch", "maple", "oak", "pine", "rowan", "willow")


def text_of(number: int) -> str:
    return f"Sentence 1: the {WORDS[number % 12]} has {number} leaves\nSentence 2: it is {WORDS[number // 12 % 12]}"


def instances(n: int, labels: Sequence[str], *, task: str = "task1") -> list[dict[str, Any]]:
    """Instances of the present schema, whose labels take turns."""
    return [
        {"id": f"{task}-{number:032x}", "input": text_of(number), "output": [labels[number % len(labels)]]}
        for number in range(n)
    ]


def write_task(
    folder: Path, name: str, rows: Sequence[dict[str, Any]], *, instruction: str = "Answer yes or no.", **fields: Any
) -> Path:
    value = {
        "Contributors": ["somebody"],
        "Source": ["made"],
        "Categories": ["Made Classification"],
        "Definition": [instruction],
        "Input_language": ["English"],
        "Output_language": ["English"],
        "Positive Examples": [],
        "Instances": list(rows),
        "Instance License": ["MIT"],
        **fields,
    }
    return _written(folder, f"{name}.json", json.dumps(value))


def write_old_task(folder: Path, name: str, rows: Sequence[tuple[str, Any]], *, instruction: str) -> Path:
    """Write a task file of the old schema: texts instead of lists, and no ids."""
    value = {
        "Contributors": "somebody",
        "Source": "made (2020)",
        "Categories": "Made Classification -> Old",
        "Definition": instruction,
        "Positive Examples": [],
        "Instances": [{"input": text, "output": output} for text, output in rows],
    }
    return _written(folder, f"{name}.json", json.dumps(value))


def _written(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name
