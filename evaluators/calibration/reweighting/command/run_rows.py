"""Reads the answer distributions in a finished run as rows of class probabilities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from biasboard.ground.columns import BoolArray, FloatArray
from biasboard.ground.errors import ConfigError, DataError
from evaluators.adapter_set import trained_items
from evaluators.calibration.reweighting.command.rows import InputChoice, LabelledRows, are_numbers, listed
from evaluators.task import load_task
from evaluators.task_abilities import ShowsExamples
from schemas.files.record_columns import RecordColumns
from schemas.folders.run_folder import finished_runs, read_complete_result, read_parts


def read_run(choice: InputChoice, wanted: tuple[str, ...] | None, needs_labels: bool) -> LabelledRows:
    """Read the answer distributions of one config of a run of any task.

    Records without a distribution are left out and, if labels are needed, those without a right answer. So are items
    whose labels the model has seen: examples of its prompts, and items that it was trained on.
    """
    import pandas as pd

    folders = finished_runs(choice.path)
    if len(folders) > 1:
        raise DataError(
            f"{choice.path}: holds {len(folders)} runs; name one: {listed([str(folder) for folder in folders])}"
        )
    folder, result = folders[0], read_complete_result(folders[0])
    configs = result.signature.configs
    if choice.config is None and len(configs) > 1:
        raise ConfigError(f"{choice.path}: has {len(configs)} configs; name one with --config: {listed(configs)}")
    config = configs[0] if choice.config is None else choice.config
    if config not in configs:
        raise ConfigError(f"--config {config}: the run has no such config; have: {listed(configs)}")
    source = f"{folder}, {config}"
    parts = read_parts(folder, result)
    records = RecordColumns.joined(part for part in parts if part.columns["config"].coded.texts == (config,))
    splits = Counter(split for split in records.columns["split"].texts if split is not None)
    for name in choice.splits:
        if name not in splits:
            raise ConfigError(f"--split {name}: config '{config}' has no such split; have: {', '.join(splits)}")
    if choice.splits:
        records = RecordColumns(records.table.filter(records.columns["split"].coded.is_one_of(*choice.splits)))
    task = load_task(result.signature.task)
    seen = task.shown_items(records) if isinstance(task, ShowsExamples) else frozenset()
    seen |= trained_items(folder, result).get(config, frozenset())
    is_seen = np.array([item_id in seen for item_id in records.columns["item_id"].texts], dtype=np.bool_)
    unseen = RecordColumns(records.table.filter(~is_seen))
    is_read = unseen.has_reading & (unseen.readings["probabilities"].lists.lengths > 0)
    is_labelled = unseen.columns["target"].known | (not needs_labels)
    kept = RecordColumns(unseen.table.filter(is_read & is_labelled))
    if not len(kept):
        lacking = "a right answer" if is_read.any() else "a distribution over answers"
        raise DataError(
            f"{source}: none of {len(unseen)} records has {lacking}; choose other splits, or a run of a task that "
            "scores options"
        )
    outcomes = kept.readings["outcomes"].lists.values.coded.texts
    names = choice.classes or wanted or tuple(sorted(outcomes, key=int if are_numbers(outcomes) else str))
    for outcome in outcomes:
        if outcome not in names:
            raise DataError(
                f"{source}: outcome '{outcome}' is no class; have: {listed(names)}; name all classes with --classes"
            )
    columns = {name: kept.columns[name].texts for name in ("item_id", "config", "split", "target")}
    left_out = (
        (~is_read, "without a distribution are left out (refused, failed or unread answers)"),
        (is_read & ~is_labelled, "without a right answer are left out"),
        (is_seen, "of items that the model was shown or trained on with labels are left out"),
    )
    return LabelledRows(
        source=source,
        title=f"{config} of {folder.name}",
        classes=names,
        probabilities=_distributions(kept, names),
        labels=columns["target"],
        items=columns["item_id"],
        columns=pd.DataFrame(columns).rename(columns={"target": "label"}),
        notes=tuple(_notes(kept, left_out)),
    )


def _distributions(records: RecordColumns, names: Sequence[str]) -> FloatArray:
    """Return the probability of each outcome, shape (n, n_classes); 0 where an item does not offer it."""
    outcomes, shares = (records.readings[name].lists for name in ("outcomes", "probabilities"))
    if not np.array_equal(outcomes.lengths, shares.lengths):
        raise DataError("a reading has not one probability for each of its outcomes; run the model again")
    coded = outcomes.values.coded
    columns = np.array([names.index(text) for text in coded.texts], dtype=np.int64)
    probabilities = np.zeros((len(records), len(names)))
    probabilities[outcomes.owners, columns[coded.codes]] = shares.values.numbers
    return probabilities


def _notes(records: RecordColumns, left_out: Iterable[tuple[BoolArray, str]]) -> Iterator[str]:
    splits = Counter(map(str, records.columns["split"].texts))
    yield f"splits: {', '.join(f'{name} {n:,}' for name, n in splits.items())}"
    for mask, reason in left_out:
        if mask.any():
            yield f"{int(mask.sum()):,} records {reason}"
    lengths = records.readings["outcomes"].lists.lengths
    if lengths.min() < lengths.max():
        yield (
            f"items offer between {lengths.min()} and {lengths.max()} outcomes; one that is not offered has the "
            "probability 0"
        )
