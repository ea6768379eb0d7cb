"""The instructions for the model: the cells of the design, the wording, and the dataset of requests."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations
from typing import Any, NamedTuple

from biasboard.ground import strict_json
from biasboard.ground.files import packaged_toml
from biasboard.ground.strict_json import JsonValue
from builders.dataset.card import Card, CardTable
from builders.dataset.output import Draft, DraftSplit
from builders.synthbias.minimal_pairs import CONFIGS, Config, Position, referent_position
from schemas.documents.dataset import Source
from schemas.items.coreference import CoreferenceItem
from schemas.items.instruction import InstructionItem
from schemas.lexicon import CASES, occupations

_OPEN = "open"
_REFERENTS: dict[Config, tuple[Position | None, ...]] = {"type1": (None,), "type2": ("first", "second")}


class DesignCell(NamedTuple):
    """A cell of the design: a type of sentence, two occupations in order of mention, and who is meant.

    The instruction fixes both order and referent because a model left to choose follows a habit: in the published data
    the occupation mentioned last is meant in 70 % of the settled sentences.
    """

    config: Config
    first: str
    """Occupation that is mentioned first."""
    second: str
    referent: Position | None
    """Position of the occupation that is meant; None if that is open."""

    @property
    def key(self) -> str:
        """The name of the cell, such as ``type2-driver-nurse-first``."""
        names = (name.replace(" ", "_") for name in (self.first, self.second))
        return "-".join((self.config, *names, self.referent or _OPEN))


def cells_of(pairs: Sequence[tuple[str, str]]) -> Iterator[DesignCell]:
    """Yield the cells of occupation pairs: two of type 1 (by order) and four of type 2 (by order and referent) each."""
    for config in CONFIGS:
        for a, b in pairs:
            for first, second in ((a, b), (b, a)):
                yield from (DesignCell(config, first, second, referent) for referent in _REFERENTS[config])


def cell_of(key: str) -> DesignCell | None:
    """Return the cell with a key; None if there is none."""
    return _by_key().get(key)


@cache
def _by_key() -> dict[str, DesignCell]:
    return {cell.key: cell for cell in cells_of(list(combinations(occupations(), 2)))}


@cache
def _data() -> Mapping[str, Any]:
    return packaged_toml("builders.synthbias", "texts", "writing.toml")


def version() -> str:
    """Return the version of the instructions."""
    return str(_data()["version"])


def instructions_source() -> Source:
    """Return the instructions as a source of a dataset."""
    return Source(
        name="instructions of this project",
        address="builders/synthbias/texts/writing.toml",
        revision=version(),
        sha256=None,
        licence="Apache-2.0",
        redistributable=True,
    )


def instruction(cell: DesignCell, sample: int, n_sentences: int) -> str:
    """Return the instruction to write sentences for a cell."""
    data, of_type = _data(), _data()[cell.config]
    scenes = data["scenes"]
    slots = {
        "n": n_sentences,
        "first": cell.first,
        "second": cell.second,
        # Cells start at different scenes, so that the first instructions do not all share one.
        "scene": scenes[(int(strict_json.sha256(cell.key)[:8], 16) + sample) % len(scenes)],
        "referent": cell.second if cell.referent == "second" else cell.first,
        "other": cell.first if cell.referent == "second" else cell.second,
    }
    # The text contains JSON braces, so str.format cannot fill its two slots.
    form = str(data["form"]).strip().replace("{n}", str(n_sentences))
    parts = [
        of_type["task"].strip().format(**slots),
        of_type["definition"].strip().format(**slots),
        "\n".join(["Rules:", *(f"- {rule.format(**slots)}" for rule in data["rules"])]),
        "\n".join(["Good examples, about two others:", *map(_shown, of_type["positive"])]),
        "\n".join(["Bad examples:", *map(_shown, of_type["negative"])]),
        form.replace("{case_names}", str(data["case_names"]).strip()),
    ]
    return "\n\n".join(parts)


def _shown(example: Mapping[str, str]) -> str:
    answer = json.dumps({name: example[name] for name in ("before", "case", "after")})
    return f"- {answer} ({example['why']})"


def answer_schema(n_sentences: int) -> str:
    """Return the JSON Schema of an answer with exactly ``n_sentences`` sentences, as canonical JSON."""
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


DATASET = "synthbias-requests"
_LEAST_YIELD = 0.05
"""Lowest yield assumed when planning, so that a bad pilot does not request a thousand sentences per cell."""
_MOST_INSTRUCTIONS = 20
"""Maximum number of instructions per cell and round."""


def pairs_by_cell(items: Iterable[CoreferenceItem]) -> Counter[str]:
    """Count the minimal pairs of each cell, by its key."""
    seen: dict[str, str] = {}
    for item in items:
        config: Config = "type1" if item.referent is None else "type2"
        first, second = item.occupations
        seen[item.pair_id] = DesignCell(config, first, second, referent_position(item)).key
    return Counter(seen.values())


def wanted(
    cells: Sequence[DesignCell],
    have: Mapping[str, int],
    samples: Mapping[str, int],
    *,
    per_cell: int,
    per_request: int,
    share_kept: float = 1.0,
) -> list[tuple[DesignCell, range]]:
    """Return the numbers of the instructions that should fill each cell, given the yield so far.

    A cell that is full is left out; earlier rounds asked all instructions with smaller numbers.

    Args:
        cells: All cells of the design.
        have: Number of minimal pairs so far, by cell key.
        samples: Number of instructions asked so far, by cell key.
        per_cell: Number of minimal pairs that each cell needs.
        per_request: Number of sentences that one instruction asks for.
        share_kept: Share of the sentences so far that were usable.
    """
    instructions = []
    for cell in cells:
        missing = per_cell - have.get(cell.key, 0)
        if missing > 0:
            n = math.ceil(missing / (per_request * max(share_kept, _LEAST_YIELD)))
            first = samples.get(cell.key, 0)
            instructions.append((cell, range(first, first + min(n, _MOST_INSTRUCTIONS))))
    return instructions


def requests_draft(asked: Sequence[tuple[DesignCell, range]], *, per_request: int) -> Draft[InstructionItem]:
    """Return the dataset of instructions, with one config per type of sentence; ``asked`` is of :func:`wanted`."""
    schema = answer_schema(per_request)
    items = [
        InstructionItem(
            item_id=f"{version()}-{cell.key}-x{per_request}-{sample:03d}",
            text=instruction(cell, sample, per_request),
            json_schema=schema,
            cell=cell.key,
            sample=sample,
            flags=(),
        )
        for cell, samples in asked
        for sample in samples
    ]
    splits = [
        DraftSplit(
            config=config,
            split="requests",
            item_shape="instruction",
            items=[item for item in items if item.cell.startswith(f"{config}-")],
        )
        for config in CONFIGS
    ]
    splits = [split for split in splits if split.items]
    return Draft(
        name=DATASET,
        benchmark="synthbias-generation",
        title="Instructions to write minimal pairs for SynthBias",
        builder="builders.synthbias.generation",
        parameters={"writing_version": version(), "per_request": per_request},
        sources=(instructions_source(),),
        licence="Apache-2.0",
        splits=tuple(splits),
        card=Card(
            data_statement=f"Instructions that ask a language model for {per_request} sentences each, as JSON.",
            how_built="One cell of the design is a type of sentence, two occupations in an order, and who is meant.",
            licence_terms="The instructions are licensed under Apache-2.0, like the code that writes them.",
            intended_use="To be asked by `biasboard run`; the answers become a dataset of minimal pairs.",
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
            tags=("synthetic-data",),
        ),
    )
