"""Checks that the adapters of a result were trained on no item that the result measures or shows as an example."""

from __future__ import annotations

from pathlib import Path

from biasboard.ground.errors import DataError
from evaluators.adapter_set import trained_items
from evaluators.task import load_task
from schemas.documents.result import Result
from schemas.files.record_columns import RecordColumns
from schemas.folders.run_folder import ADAPTERS, read_adapters


class TrainingCheck:
    """Compares the records of a result with the items that its adapters were trained on, part by part."""

    def __init__(self, folder: Path, result: Result) -> None:
        """Read the list of the adapters, if the result has one.

        Args:
            folder: The folder of the result.
            result: The result in it.

        Raises:
            DataError: the list is damaged, is about another dataset or task, or lacks a config of the result.
        """
        self._path, self._task = folder / ADAPTERS, load_task(result.signature.task)
        adapters = read_adapters(folder, result)
        self._trained = trained_items(folder, result)
        if adapters is None:
            return
        signature = result.signature
        if not self._task.trains_adapters:
            raise DataError(f"{self._path}: task {self._task.name} trains no adapters; run the model without")
        asked = (signature.dataset, signature.dataset_version, signature.task)
        if (adapters.data.name, adapters.data.version, adapters.data.task) != asked:
            raise DataError(
                f"{self._path}: was trained on {adapters.data.name} {adapters.data.version} for task "
                f"{adapters.data.task}, the result is on "
                f"{' '.join(asked)}; train adapters on that dataset and run the model again"
            )

    def __call__(self, records: RecordColumns) -> None:
        """Check the next part.

        Raises:
            DataError: an adapter was trained on an item outside the split of the examples, on one without a record
                though the others of its split have one, or on an example that the prompt shows.
        """
        if not self._trained or not self._task.trains_adapters or not len(records):
            return
        trained = self._trained[records[0].config]
        support = self._task.examples_split
        splits = dict(zip(records.columns["item_id"].texts, records.columns["split"].texts, strict=True))
        for item_id in sorted(trained):
            split = splits.get(item_id)
            if split is None and support in splits.values():
                raise self._fault(records, item_id, f"is no item of split {support}")
            if split is not None and split != support:
                raise self._fault(records, item_id, f"is of split {split}, which is measured")
        for item_id in sorted(trained & self._task.shown_items(records)):
            raise self._fault(records, item_id, "is an example that the prompt shows")

    def _fault(self, records: RecordColumns, item_id: str, why: str) -> DataError:
        return DataError(
            f"{self._path}: the adapter of config {records[0].config} was trained on item '{item_id[:60]}', which "
            f"{why}; train it on other items and run the model again"
        )
