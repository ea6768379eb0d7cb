"""Checks what a result claims about its model, its task, its prompt and the training of its adapters."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.plain_text import printable
from evaluators.adapter_set import trained_items
from evaluators.backend import check_model_id, model_identity
from evaluators.runs.ask.importing import BACKEND
from evaluators.task import load_task, prompt_of
from schemas.documents.result import Model, Result
from schemas.files.record_columns import RecordColumns
from schemas.folders.run_folder import ADAPTERS, read_adapters

_NO_EXAMPLES = hashlib.sha256().hexdigest()
_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/+@-]*")
_BASELINE = "baseline/"


def check_claims(path: Path, result: Result, *, is_foreign: bool) -> None:
    """Check that the names in a result are unambiguous, and that task and prompt are those of this code.

    Args:
        path: Path of the ``result.json``.
        result: The result in it.
        is_foreign: True if a stranger may have written it; a user may name own runs as they like.

    Raises:
        DataError: no run gives such a name, the identity does not follow from its parts or is that of another model, or
            the task version or the prompt is not that of this code.
    """
    _check_model(path, result.model)
    if is_foreign:
        _check_foreign_model(path, result.model)
    _check_signature(path, result)


def _check_foreign_model(path: Path, model: Model) -> None:
    """Check that a result that a stranger hands in names the model that answered, which its identity describes."""
    if model.endpoint == "baseline":
        raise DataError(f"{path}: is of a baseline, and the board computes baselines itself; leave it out")
    if model.identity is None:
        # The address of an endpoint is part of its identity and is not shown, so that its hash has to be believed.
        if model.endpoint != "api":
            raise DataError(f"{path}: says only the hash of its model's identity, not its parts; run the model again")
        return
    for name, ours, theirs in _named_by_identity(model, model.identity):
        if ours != theirs:
            raise DataError(
                f"{path}: the identity says {name} '{printable(theirs)}', the model '{printable(str(ours))}'; run it "
                "again without --name, or name the folder that was loaded"
            )


def _named_by_identity(model: Model, identity: Mapping[str, str | None]) -> Iterator[tuple[str, str | None, str]]:
    """Yield each name that follows from an identity: what it is, as the model has it, and as the identity has it."""
    files = identity.get("adapter") or identity.get("model")
    if model.backend == BACKEND:
        # Harnesses log the name and the commit apart, and a published file is named by its hash alone.
        if commit := identity.get("commit"):
            yield "commit", model.revision, commit
    elif files is not None:
        name, _, revision = files.rpartition("@")
        yield "revision", model.revision, revision
        if name:
            # With one adapter per context, an id has this suffix.
            yield "id", model.id.removesuffix("-LoRA") if "adapters" in identity else model.id, name
    elif (own := identity.get("id")) is not None:
        yield "id", model.id, own


def _check_model(path: Path, model: Model) -> None:
    try:
        # Baselines are the only models whose ids users cannot choose.
        check_model_id(model.id.removeprefix(_BASELINE) if model.endpoint == "baseline" else model.id)
    except ConfigError as error:
        raise DataError(f"{path}: {printable(str(error))}") from error
    if model.revision is not None and not _REVISION.fullmatch(model.revision):
        raise DataError(
            f"{path}: revision '{printable(model.revision)}' is not of letters, digits and . _ : / + @ - alone; name "
            "a commit, a tag or a version"
        )
    identity = model.identity
    if identity is None:
        return
    if model_identity(identity) != model.identity_sha256:
        raise DataError(f"{path}: identity_sha256 is not the hash of the identity; run the model again")
    parts = {
        "backend": model.backend,
        "precision": model.precision,
        "chat_template": model.chat_template_sha256,
        "chat_template_sha256": model.chat_template_sha256,
    }
    for name, value in parts.items():
        if name in identity and identity[name] != value:
            raise DataError(
                f"{path}: the identity says {name} '{printable(str(identity[name]))}', the model '{value}'; run the "
                "model again"
            )


def _check_signature(path: Path, result: Result) -> None:
    """Check that the task version and the prompt of the signature are those of this code."""
    signature = result.signature
    task = load_task(signature.task)
    if task.measures_nothing:
        raise DataError(
            f"{path}: the answers of task {task.name} are data to build from, and no board shows them; name a run of "
            "another task"
        )
    if signature.task_version not in (task.version, *task.earlier_versions):
        raise DataError(
            f"{path}: read by task {task.name} {signature.task_version}, the code has {task.version}; rescore the run"
        )
    prompt = prompt_of(task, signature.prompt)
    if signature.prompt_sha256 != prompt.sha256() or signature.n_outcomes != prompt.n_outcomes:
        raise DataError(f"{path}: prompt '{signature.prompt}' differs from the one in this code; run the model again")
    shows = task.examples_split is not None
    if shows != (signature.examples_sha256 is not None):
        raise DataError(
            f"{path}: task {task.name} {'shows' if shows else 'shows no'} examples, and examples_sha256 is "
            f"{signature.examples_sha256}; run the model again"
        )
    if shows and not prompt.n_examples and signature.examples_sha256 != _NO_EXAMPLES:
        raise DataError(f"{path}: prompt '{prompt.id}' shows no examples, but the signature names some; run it again")


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
