"""Turns answers that were given elsewhere into records and results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from evaluators.backend import Runtime, model_identity
from evaluators.benchmark import AnswerFile, AnswerImporter, ImportedAnswers
from evaluators.runs.ask.environment import environment
from evaluators.runs.ask.pipeline import Finished
from evaluators.runs.measure.finish import Origin, finish_run, held, scoring_after, write_parts
from evaluators.runs.measure.records import records_of
from evaluators.runs.plan.plan import Plan, run_folder
from evaluators.scorer import TextScorer
from schemas.documents.record import Record
from schemas.documents.result import Model, Usage

BACKEND = "import"
"""Name that stands in results for the backend of answers that were given elsewhere."""


class Imported(NamedTuple):
    """A file of published answers, and the records read from it."""

    file: AnswerFile
    plan: Plan
    answers: ImportedAnswers
    records: list[Record]


def import_file(file: AnswerFile, importer: AnswerImporter, plan: Plan) -> Imported:
    """Read the answers in a file and return them with one record per item of its config.

    Args:
        file: A file that the importer found.
        importer: The reader of such files.
        plan: The items of the config, with the prompt that marks imported answers.

    Raises:
        DataError: the file cannot be read, or one of its rows belongs to no item.
    """
    (part,) = plan.parts
    answers = importer.read(file, [item for _, item in part.items], plan.prompt, plan.selection.manifest.name)
    return Imported(file, plan, answers, records_of(plan, part, answers.requests, answers.responses, chat=False))


def imported_model(
    name: str, identity: Mapping[str, str | None], *, revision: str | None = None, precision: str | None = None
) -> Model:
    """Return the model that answered elsewhere.

    Args:
        name: The id of the model in results.
        identity: Everything known about the model that can change an answer.
        revision: The commit of its weights; None if it is unknown.
        precision: The data type of its weights; None if it is unknown.
    """
    return Model(
        id=name,
        revision=revision,
        backend=BACKEND,
        precision=precision,
        chat_template_sha256=None,
        endpoint="replay",
        identity_sha256=model_identity(identity),
        identity=dict(identity),
    )


def write_imported(
    plan: Plan,
    model: Model,
    parts: Iterable[Sequence[Record]],
    runtime: Runtime,
    *,
    root: Path,
    command: str,
    scorers: Sequence[TextScorer],
    keep_scores: bool,
) -> Finished:
    """Write imported records and their result, as a run writes them.

    Args:
        plan: The items, and how they were asked and are read.
        model: The model that answered elsewhere.
        parts: The records of each part.
        runtime: The device, packages and settings of the answers, as far as they are known.
        root: The folder of all runs.
        command: The command line that reproduces the import, after ``python -m evaluators``.
        scorers: The scorers of the texts, for tasks whose metrics read scores.
        keep_scores: True to keep all scores of an earlier result, even of other scorers, and score only missing kinds.

    Raises:
        DataError: a record is invalid; nothing is written.
        RunError: another process holds the folder of the run.
    """
    records = [list(part) for part in parts]
    origin = Origin(
        model=model,
        signature=plan.signature,
        command=f"python -m evaluators {command}",
        usage=Usage(
            n_requests=sum(len(record.exchanges) for part in records for record in part),
            n_attempts=0,
            n_prompt_tokens=None,
            n_completion_tokens=None,
            seconds=None,
            cost_usd=None,
        ),
        environment=environment([runtime]),
    )
    folder = run_folder(root, plan.signature, model)
    with held(folder):
        scoring = scoring_after(folder, scorers, keep=keep_scores)
        return Finished(folder, finish_run(folder, write_parts(folder, records), origin, scoring))
