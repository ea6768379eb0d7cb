"""Chooses which files of a run may be published, and where they belong among results."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from evaluators.benchmark import load_benchmark
from evaluators.runs.measure.stored_results import write_without_prompts, write_without_texts
from evaluators.runs.plan.plan import run_folder
from evaluators.task import load_task, prompt_of
from leaderboard.verify.intake import files_of
from schemas.documents.result import Result, Signature
from schemas.folders.run_folder import RESULT, path_of, read_result

_MOST_MODELS = 3


class PublicFiles(NamedTuple):
    """The files of a run that may be published."""

    run: Path
    """Folder of the run."""
    result: Result
    """The result to publish; without texts or prompts it is another than that of the run."""
    files: tuple[Path, ...]
    """Files to publish, ``result.json`` first; everything else in the folder of the run stays behind."""
    withheld: str | None
    """Why hashes are published instead of generated texts, or of the prompts of options; None if nothing is hashed."""

    @property
    def withheld_words(self) -> str | None:
        """What is published as hashes, and why; None if nothing is."""
        hashed = "texts" if has_texts(self.result.signature) else "prompts"
        return None if self.withheld is None else f"hashes in place of the {hashed}: {self.withheld}"

    @property
    def place(self) -> Path:
        """Folder of the result relative to that of all results, determined by dataset, model and signature."""
        return place_for(self.result)


def public_files(run: Path, scratch: Path, *, withhold: bool) -> PublicFiles:
    """Choose which files of a run to publish.

    Args:
        run: Folder of a finished run.
        scratch: Existing folder for files that are made anew; the caller removes it after they are used.
        withhold: True to publish hashes instead of the generated texts, even if the benchmark does not ask for that;
            where options are scored, instead of the prompts.

    Raises:
        DataError: the run is incomplete, or its texts are kept elsewhere already.
    """
    result = read_result(run)
    reason = load_benchmark(result.signature.benchmark).withheld.get(result.signature.dataset)
    source = run
    if reason is not None or withhold:
        reason = reason or "as --withhold-texts asks"
        source = Path(tempfile.mkdtemp(dir=scratch))
        if has_texts(result.signature):
            result = write_without_texts(run, source, with_prompts=not hides_prompts(result.signature))
        else:
            result = write_without_prompts(run, source)
    files = (source / RESULT, *(path_of(source, file) for file in files_of(result).values()))
    return PublicFiles(run, result, files, reason)


def has_texts(signature: Signature) -> bool:
    """Return True if the answers of a result are or begin with generated texts."""
    return prompt_of(load_task(signature.task), signature.prompt).has_texts


def hides_prompts(signature: Signature) -> bool:
    """Return True if the prompts of a dataset must be withheld like the texts that answer them."""
    return signature.dataset in load_benchmark(signature.benchmark).withheld


def place_for(result: Result) -> Path:
    """Return the folder of a result below that of all results."""
    return run_folder(Path(), result.signature, result.model)


def models_of(public: Sequence[PublicFiles]) -> str:
    """Return the ids of the models of some results, or of more than a few their number."""
    ids = sorted({one.result.model.id for one in public})
    return ", ".join(ids) if len(ids) <= _MOST_MODELS else f"{len(ids)} models"
