"""The dataset of instructions that a model is asked, and how many each cell still needs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from builders.dataset.card import Card, CardTable
from builders.dataset.output import Draft, DraftSplit
from builders.synthbias.generation.cells import CONFIGS, Cell, cell_of_item
from builders.synthbias.generation.writing import answer_schema, instruction, version
from schemas.documents.dataset import Source
from schemas.items.coreference import CoreferenceItem
from schemas.items.instruction import InstructionItem

DATASET = "synthbias-requests"
BENCHMARK = "synthbias-generation"
SPLIT = "requests"
_VERSION = "1.0.0"
_LEAST_YIELD = 0.05
"""Yield that is assumed at least, so that a bad pilot does not ask for a thousand sentences per cell."""
_MOST_INSTRUCTIONS = 20
"""Largest number of instructions for one cell in one round."""


class Wanted(NamedTuple):
    """The instructions to ask for a cell."""

    cell: Cell
    first_sample: int
    """Number of the first one, which no earlier round asked."""
    n: int


def pairs_by_cell(items: Iterable[CoreferenceItem]) -> Counter[str]:
    """Count the minimal pairs of each cell, by its key."""
    seen: dict[str, str] = {}
    for item in items:
        seen[item.pair_id] = cell_of_item(item).key
    return Counter(seen.values())


def wanted(
    cells: Sequence[Cell],
    have: Mapping[str, int],
    samples: Mapping[str, int],
    *,
    per_cell: int,
    per_request: int,
    share_kept: float = 1.0,
) -> list[Wanted]:
    """Return the instructions that may fill all cells.

    Args:
        cells: All cells of the design.
        have: Number of minimal pairs that each cell has, by its key.
        samples: Number of instructions that each cell was asked with, by its key.
        per_cell: Number of minimal pairs that each cell needs.
        per_request: Number of sentences that one instruction asks for.
        share_kept: Share of the sentences so far that became minimal pairs.
    """
    found = []
    for cell in cells:
        missing = per_cell - have.get(cell.key, 0)
        if missing > 0:
            n = math.ceil(missing / (per_request * max(share_kept, _LEAST_YIELD)))
            found.append(Wanted(cell, samples.get(cell.key, 0), min(n, _MOST_INSTRUCTIONS)))
    return found


def requests_draft(asked: Sequence[Wanted], *, per_request: int) -> Draft[InstructionItem]:
    """Return the dataset of instructions: a config for each type of sentence that is asked for."""
    schema = answer_schema(per_request)
    items = [
        InstructionItem(
            item_id=f"{version()}-{one.cell.key}-x{per_request}-{sample:03d}",
            text=instruction(one.cell, sample, per_request),
            json_schema=schema,
            cell=one.cell.key,
            sample=sample,
            flags=(),
        )
        for one in asked
        for sample in range(one.first_sample, one.first_sample + one.n)
    ]
    splits = [
        DraftSplit(
            config=config,
            split=SPLIT,
            item_shape="instruction",
            items=[item for item in items if item.cell.startswith(f"{config}-")],
        )
        for config in CONFIGS
    ]
    splits = [split for split in splits if split.items]
    return Draft(
        name=DATASET,
        benchmark=BENCHMARK,
        version=_VERSION,
        title="Instructions to write minimal pairs for SynthBias",
        builder="builders.synthbias.generation",
        builder_version="1.0",
        parameters={"writing_version": version(), "per_request": per_request},
        seed=None,
        sources=(
            Source(
                name="instructions of this project",
                address="builders/synthbias/texts/writing.toml",
                revision=version(),
                sha256=None,
                licence="Apache-2.0",
                redistributable=True,
            ),
        ),
        generator_model=None,
        licence="Apache-2.0",
        publish_refusal=None,
        human_validated=False,
        splits=tuple(splits),
        rejects=(),
        reject_rules=(),
        flag_rules=(),
        card=_card(splits, per_request),
    )


def _card(splits: Sequence[DraftSplit[InstructionItem]], per_request: int) -> Card:
    return Card(
        data_statement=f"Instructions that ask a language model for {per_request} sentences each, as JSON.",
        how_built="One cell of the design is a type of sentence, two occupations in an order, and who is meant.",
        licence_terms="The instructions are licensed under Apache-2.0, like the code that writes them.",
        intended_use="To be asked by `python -m evaluators run`; the answers become a dataset of minimal pairs.",
        out_of_scope_use="Nothing is measured with these instructions.",
        known_limits="What a model writes needs checks and readers before it is worth anything.",
        balance=CardTable(
            header=("", *(split.config for split in splits)),
            rows=(
                ("instructions", *(str(len(split.items)) for split in splits)),
                ("cells", *(str(len({item.cell for item in split.items})) for split in splits)),
            ),
        ),
        citation="Cite this project with the dataset version.",
        task_categories=("text-generation",),
        tags=("synthetic-data",),
    )


def default_folder(name: str) -> Path:
    """Return the folder in which the requests and the runs of a generated dataset are kept."""
    return Path("out/generation") / name
