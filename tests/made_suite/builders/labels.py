"""Builds the dataset: ``python -m builders.labels FOLDER N_TEST...``, one part for each number of test items."""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from pathlib import Path

from builders.dataset.output import Draft, DraftSplit, write_dataset
from schemas.documents.dataset import Suite
from schemas.items.labelled import LabelledItem
from tests.evaluators.made_draft import made_draft

WORDS = (
    *("ash", "birch", "cedar", "elm", "fir", "gum", "hazel"),
    *("larch", "maple", "oak", "pine", "rowan", "teak", "willow"),
)
N_WORDS = 60
SUPPORT = {"bias": 32, "pool": 64, "content_free": 23}


def split_of(part: str, split: str, labels: tuple[str, ...], n: int) -> DraftSplit[LabelledItem]:
    """Make the items of one split; equal names give equal items."""
    rng = random.Random(f"{part}:{split}")
    items = []
    for number in range(n):
        target = labels[number % len(labels)]
        items.append(
            LabelledItem(
                item_id=f"{part}-{split}-{number:04}",
                instruction=f"Say which kind of wood the text of {part} is about: {', '.join(labels)}.",
                text="" if split == "content_free" else " ".join([*rng.choices(WORDS, k=N_WORDS), target]),
                labels=labels,
                target=None if split == "content_free" else target,
                flags=(),
            )
        )
    return DraftSplit(config=part, split=split, item_shape="labelled", items=items)


def draft(sizes: Sequence[int]) -> Draft[LabelledItem]:
    """Return a dataset with one part for each number of test items."""
    splits = []
    for number, n_test in enumerate(sizes):
        part, labels = f"wood{number:03}", tuple(WORDS[number % 7 : number % 7 + 2 + number % 4])
        splits += [split_of(part, name, labels, n) for name, n in {"test": n_test, **SUPPORT}.items()]
    configs = tuple(dict.fromkeys(split.config for split in splits))
    return made_draft(splits, name="labels", benchmark="labels", suites=(Suite(name="woods", configs=configs),))


if __name__ == "__main__":
    write_dataset(draft([int(n) for n in sys.argv[2:]]), Path(sys.argv[1]))
