"""Checks what a result claims about its model, its task and its prompt."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.plain_text import printable
from evaluators.backend import check_model_id, model_identity
from evaluators.task import load_task, prompt_of
from schemas.documents.result import Model, Result

_NO_EXAMPLES = hashlib.sha256().hexdigest()
_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/+@-]*")
_BASELINE = "baseline/"


def check_claims(path: Path, result: Result) -> None:
    """Check that the names in a result are unambiguous, and that task and prompt are those of this code.

    Args:
        path: Path of the ``result.json``.
        result: The result in it.

    Raises:
        DataError: no run gives such a name, the identity does not follow from its parts, or the task version or the
            prompt is not that of this code.
    """
    _check_model(path, result.model)
    _check_signature(path, result)


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
