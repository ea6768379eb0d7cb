"""Writes questions as tasks of inspect_ai.

A row of a task's data set is a text to send. Several samples of a text become the epochs of its row.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from biasboard.ground.errors import ConfigError
from biasboard.ground.strict_json import JsonValue
from evaluators.backend import GenerateRequest
from evaluators.harness import ExportedTask, Question, write_questions

SETTINGS = {"max_tokens": "max_tokens", "temperature": "temperature", "top_p": "top_p", "stop": "stop_seqs"}
"""Names in inspect_ai of the settings of a request, by our names."""


def write_task(task: ExportedTask, folder: Path) -> dict[str, JsonValue]:
    """Write a Python file and a file of questions; return the facts with the epochs and settings of the task.

    Raises:
        ConfigError: the questions do not share their settings or their number of samples.
    """
    rows = _rows(task)
    epochs, settings = _epochs_and_settings(task, rows)
    facts = write_questions(task, map(_row, rows), folder)
    (folder / f"{task.name}.py").write_bytes(Path(__file__).with_name("task_file.txt").read_bytes())
    return {**facts, "epochs": epochs, "settings": settings}


def _rows(task: ExportedTask) -> list[list[Question]]:
    """Return the questions of each row: all samples of a text, in the order of their numbers."""
    rows: list[list[Question]] = []
    for question in task.questions:
        # The first sample, 0, or None if there is only one, begins a row.
        if not _generate_request(question).sample:
            rows.append([])
        rows[-1].append(question)
    return rows


def _epochs_and_settings(task: ExportedTask, rows: Sequence[Sequence[Question]]) -> tuple[int, dict[str, JsonValue]]:
    """Return the number of epochs and the settings, each of which must be the same for a whole task.

    Raises:
        ConfigError: the questions differ in them.
    """
    lengths, settings_of_questions = {len(row) for row in rows}, {_settings(question) for question in task.questions}
    if len(lengths) > 1 or len(settings_of_questions) > 1:
        raise ConfigError(
            f"the questions of {task.name} differ in their settings or numbers of samples, which inspect_ai has once "
            "per task; ask them with run"
        )
    (epochs,), (settings,) = lengths, settings_of_questions
    # An empty list of stop texts is left out, because inspect_ai would send it to the model.
    return epochs, {name: list(value) if isinstance(value, tuple) else value for name, value in settings if value != ()}


def _settings(question: Question) -> tuple[tuple[str, int | float | tuple[str, ...]], ...]:
    request = _generate_request(question)
    return tuple((setting, getattr(request, name)) for name, setting in SETTINGS.items())


def _row(questions: Sequence[Question]) -> dict[str, JsonValue]:
    request, target = _generate_request(questions[0]), questions[0].target
    row: dict[str, JsonValue] = {
        "id": questions[0].id,
        "input": request.prompt,
        "target": "" if target is None else request.outcomes[target],
        # The id of the question that each epoch asks.
        "metadata": {"questions": [question.id for question in questions]},
    }
    return {**row, "choices": list(request.outcomes)} if request.outcomes else row


def _generate_request(question: Question) -> GenerateRequest:
    assert isinstance(question.request, GenerateRequest)
    return question.request
