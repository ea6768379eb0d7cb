"""Finds what the other files of a dataset folder say otherwise than its manifest, which somebody may have edited."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import yaml

from builders.dataset.card import front_matter_facts, stated_parts
from builders.dataset.hub_benchmark import BENCHMARK_FILE, render_benchmark
from schemas.documents.dataset import Manifest
from schemas.folders.dataset_folder import CARD, MANIFEST

_MARK = "---\n"
_REMEDY = f"{MANIFEST} or this file was changed after the build: build the dataset again"


def statement_problems(folder: Path, manifest: Manifest) -> Iterator[str]:
    """Yield a message for each fact that the card or the benchmark file of a folder states otherwise."""
    card = (folder / CARD).read_text(encoding="utf-8")
    told = _front_matter(card)
    for key, wanted in front_matter_facts(manifest).items():
        if told.get(key) != wanted:
            yield f"{folder / CARD}: {key} {told.get(key)!r} is not the {wanted!r} of {MANIFEST}; {_REMEDY}"
    for name, text in stated_parts(manifest).items():
        if text not in card:
            yield f"{folder / CARD}: does not say what {MANIFEST} says about {name}; {_REMEDY}"
    benchmark = folder / BENCHMARK_FILE
    if benchmark.is_file() and benchmark.read_text(encoding="utf-8") != render_benchmark(manifest):
        yield f"{benchmark}: does not say what {MANIFEST} says; {_REMEDY}"


def _front_matter(card: str) -> dict[str, object]:
    head, mark, _ = card.removeprefix(_MARK).partition(f"\n{_MARK}")
    try:
        told = yaml.safe_load(head) if card.startswith(_MARK) and mark else None
    except yaml.YAMLError:
        return {}
    return told if isinstance(told, dict) else {}
