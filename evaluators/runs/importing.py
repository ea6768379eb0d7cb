"""Turns answers that somebody else published into records."""

from __future__ import annotations

from typing import NamedTuple

from evaluators.benchmark import AnswerFile, AnswerImporter, ImportedAnswers
from evaluators.runs.plan import Plan
from evaluators.runs.records import records_of
from schemas.record import Record


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
