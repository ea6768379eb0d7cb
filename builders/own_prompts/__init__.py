"""Builder of the benchmark own_prompts: a researcher's prompts by group, to which models write texts.

``builders/dataset/own_csv.py`` reads tables; *prompts* fills the slots of templates, makes an item or a reject of each
row, and the draft of the dataset. *sources.toml* has a table of settings for each kind of file.
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
    name="own_prompts",
    summary="prompts of your own, by group: are texts about all alike in tone, toxicity, refusals and length?",
    sources=sources_of(settings()),
)
