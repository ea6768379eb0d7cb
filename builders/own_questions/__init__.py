"""Builder of the benchmark own_questions: a researcher's questions with options, from CSV files.

``builders/dataset/own_csv.py`` reads CSV files and *published_json* those of benchmarks that are published as JSON,
into rows alike; *roles* tells which options a stereotype names, and *questions* makes an item or a reject of each row,
and the draft of the dataset. *sources.toml* has a table of settings for each kind of file.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from builders.description import Builder, sources_of


@cache
def settings() -> dict[str, dict[str, Any]]:
    """Return the settings of each kind of file, by the value of ``--source``."""
    return tomllib.loads(Path(__file__).with_name("sources.toml").read_text(encoding="utf-8"))


BUILDER = Builder(
    name="own_questions",
    summary="questions with options of your own, by group: answered alike?",
    sources=sources_of(settings()),
)
