"""The harness inspect_ai: questions as tasks of its own, answers from its logs.

A row of a task is a text to send. Several samples of a text become the epochs of its row. *eval_logs* reads a log.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from biasboard.ground.errors import ConfigError
from biasboard.ground.strict_json import JsonValue
from evaluators.backend import GenerateRequest
from evaluators.harness import ExportedQuestion, ExportedTask, Harness, write_manifest, write_questions
from evaluators.harnesses.inspect_ai.eval_logs import HOW_TO_ASK, SETTINGS, read_log


def _write_tasks(tasks: Sequence[ExportedTask], folder: Path) -> str:
    """Write a Python file and a file of questions for each task; its facts have its epochs and settings too."""
    facts: dict[str, dict[str, JsonValue]] = {}
    for task in tasks:
        # All samples of a text, in the order of their numbers: the first, 0, or None of a single one, begins a row.
        rows: list[list[ExportedQuestion]] = []
        for question in task.questions:
            if not _generate_request(question).sample:
                rows.append([])
            rows[-1].append(question)
        epochs, settings = _epochs_and_settings(task, rows)
        written = write_questions(task, map(_row, rows), folder)
        facts[task.name] = {**written, "epochs": epochs, "settings": settings}
        (folder / f"{task.name}.py").write_bytes(Path(__file__).with_name("task_file.txt").read_bytes())
    write_manifest(HARNESS, facts, folder)
    # With the name of the function, because inspect_ai accepts absolute paths only with it.
    files = " ".join(shlex.quote(f"{folder / name}.py@biasboard") for name in facts)
    return f"inspect eval {files} --model PROVIDER/MODEL --log-format json --log-dir OUT"


def _epochs_and_settings(
    task: ExportedTask, rows: Sequence[Sequence[ExportedQuestion]]
) -> tuple[int, dict[str, JsonValue]]:
    """Return the number of epochs and the settings, each of which must be the same for a whole task."""
    lengths = {len(row) for row in rows}
    of_questions = {tuple(getattr(question.request, name) for name in SETTINGS) for row in rows for question in row}
    if len(lengths) > 1 or len(of_questions) > 1:
        raise ConfigError(
            f"the questions of {task.name} differ in their settings or numbers of samples, which inspect_ai has once "
            "per task; ask them with run"
        )
    (epochs,), (values,) = lengths, of_questions
    settings = zip(SETTINGS.values(), values, strict=True)
    # An empty list of stop texts is left out, because inspect_ai would send it to the model.
    return epochs, {name: list(value) if isinstance(value, tuple) else value for name, value in settings if value != ()}


def _row(questions: Sequence[ExportedQuestion]) -> dict[str, JsonValue]:
    request, target = _generate_request(questions[0]), questions[0].target
    row: dict[str, JsonValue] = {
        "id": questions[0].id,
        "input": request.prompt,
        "target": "" if target is None else request.outcomes[target],
        # The id of the question that each epoch asks.
        "metadata": {"questions": [question.id for question in questions]},
    }
    return {**row, "choices": list(request.outcomes)} if request.outcomes else row


def _generate_request(question: ExportedQuestion) -> GenerateRequest:
    assert isinstance(question.request, GenerateRequest)
    return question.request


HARNESS = Harness(
    name="inspect-ai",
    summary="inspect_ai: questions that are answered in text, asked as messages of a chat by its command inspect eval",
    how_to_ask=HOW_TO_ASK,
    log_form="log that ends in .json",
    # A folder may hold other JSON.
    log_name=re.compile(r".*\.eval|\d{4}-\d\d-\d\dT.*\.json"),
    write_tasks=_write_tasks,
    read_log=read_log,
    no_options="scores options, and inspect_ai has log-probabilities of generated tokens only",
    no_continuations="is a text to continue, and inspect_ai sends messages of a chat",
)
