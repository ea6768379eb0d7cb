"""Reads rows of probabilities from the folder of a finished run: the distributions that a task read over its outcomes.

Any task will do whose readings hold a distribution. What the outcomes are is not looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from evaluators.adapters import trained_items
from evaluators.commands.reweight.rows import InputChoice, Rows, Wanted, shortened, sorted_names
from evaluators.task import load_task
from schemas.columns import FloatArray
from schemas.errors import ConfigError, DataError
from schemas.finding_runs import finished_runs
from schemas.record_columns import RecordColumns
from schemas.result import Result
from schemas.run_folder import read_complete_result, read_parts


def read_run(choice: InputChoice, wanted: Wanted) -> Rows:
    """Read the records of one config of a run.

    Records without a distribution are left out, and where labels are wanted those without a right answer too.

    Raises:
        ConfigError: the config or a split does not exist, or one of several has to be named.
        DataError: the folder holds no finished run or several, or no record with a distribution.
    """
    folders = finished_runs(choice.path)
    if len(folders) > 1:
        raise DataError(
            f"{choice.path}: holds {len(folders)} runs; name one: {shortened([str(folder) for folder in folders])}"
        )
    result = read_complete_result(folders[0])
    config = _config(choice, result)
    parts = read_parts(folders[0], result)
    records = RecordColumns.joined(part for part in parts if part.columns["config"].coded.texts == (config,))
    splits = Counter(split for split in records.columns["split"].texts if split is not None)
    for name in choice.splits:
        if name not in splits:
            raise ConfigError(f"--split {name}: config '{config}' has no such split; have: {', '.join(splits)}")
    source = f"{folders[0]}, {config}"
    if choice.splits:
        records = _taken(records, records.columns["split"].coded.is_one_of(*choice.splits))
    records, n_seen = _unseen(records, folders[0], result, config)
    return _rows(source, f"{config} of {folders[0].name}", records, choice.classes or wanted.classes, wanted, n_seen)


def _unseen(records: RecordColumns, folder: Path, result: Result, config: str) -> tuple[RecordColumns, int]:
    """Leave out the items that the model has seen with their labels: examples of its prompts, and items of training."""
    task = load_task(result.signature.task)
    shown = task.shown_items(records)
    seen = shown | trained_items(folder, result).get(config, frozenset())
    mask = np.array([item_id not in seen for item_id in records.columns["item_id"].texts], dtype=np.bool_)
    return _taken(records, mask), int((~mask).sum())


def _config(choice: InputChoice, result: Result) -> str:
    configs = result.signature.configs
    if choice.config is None and len(configs) == 1:
        return configs[0]
    if choice.config is None:
        raise ConfigError(f"{choice.path}: has {len(configs)} configs; name one with --config: {shortened(configs)}")
    if choice.config not in configs:
        raise ConfigError(f"--config {choice.config}: the run has no such config; have: {shortened(configs)}")
    return choice.config


def _taken(records: RecordColumns, mask: np.ndarray) -> RecordColumns:
    return RecordColumns(records.table.filter(mask))


class _LeftOut(NamedTuple):
    """Numbers of records that are no rows."""

    unread: int
    unlabelled: int
    seen: int
    """Number of records of items that the model has seen with their labels."""


def _rows(
    source: str, title: str, records: RecordColumns, classes: Sequence[str] | None, wanted: Wanted, n_seen: int
) -> Rows:
    has_distribution = records.has_reading & (records.readings["probabilities"].lists.lengths > 0)
    is_labelled = records.columns["target"].known | (not wanted.labels)
    left_out = _LeftOut(int((~has_distribution).sum()), int((has_distribution & ~is_labelled).sum()), n_seen)
    kept = _taken(records, has_distribution & is_labelled)
    if not len(kept):
        lacking = "a right answer" if has_distribution.any() else "a distribution over answers"
        raise DataError(
            f"{source}: none of {len(records)} records has {lacking}; choose other splits, or a run of a task that "
            "scores options"
        )
    told = kept.readings["outcomes"].lists.values.coded
    names = tuple(sorted_names(told.texts)) if classes is None else tuple(classes)
    strange = [text for text in told.texts if text not in names]
    if strange:
        raise DataError(
            f"{source}: outcome '{strange[0]}' is no class; have: {shortened(names)}; name all classes with --classes"
        )
    ids = kept.columns["item_id"].texts
    labels = kept.columns["target"].texts
    splits = kept.columns["split"].texts
    return Rows(
        source=source,
        title=title,
        classes=names,
        probabilities=_distributions(kept, names),
        labels=labels,
        place_of=lambda row: f"item '{ids[row]}'",
        columns={"item_id": ids, "config": kept.columns["config"].texts, "split": splits, "label": labels},
        notes=tuple(_notes(kept, Counter(map(str, splits)), left_out)),
    )


def _distributions(records: RecordColumns, names: Sequence[str]) -> FloatArray:
    """Return the probability of each outcome, shape (n, n_classes); 0 for those that an item does not offer."""
    outcomes, shares = (records.readings[name].lists for name in ("outcomes", "probabilities"))
    if not np.array_equal(outcomes.lengths, shares.lengths):
        raise DataError("a reading has not one probability for each of its outcomes; run the model again")
    coded = outcomes.values.coded
    columns = np.array([names.index(text) for text in coded.texts], dtype=np.int64)
    found = np.zeros((len(records), len(names)))
    found[outcomes.owners, columns[coded.codes]] = shares.values.numbers
    return found


def _notes(records: RecordColumns, splits: Counter[str], left_out: _LeftOut) -> Iterator[str]:
    yield f"splits: {', '.join(f'{name} {n:,}' for name, n in splits.items())}"
    if left_out.unread:
        yield f"{left_out.unread:,} records without a distribution are left out (refused, failed or unread answers)"
    if left_out.unlabelled:
        yield f"{left_out.unlabelled:,} records without a right answer are left out"
    if left_out.seen:
        yield f"{left_out.seen:,} records of items that the model was shown or trained on with labels are left out"
    lengths = records.readings["outcomes"].lists.lengths
    if lengths.min() < lengths.max():
        yield (
            f"items offer between {lengths.min()} and {lengths.max()} outcomes; one that is not offered has the "
            "probability 0"
        )
