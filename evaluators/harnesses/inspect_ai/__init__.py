"""The harness inspect_ai: questions as tasks of its own (*python_tasks*), answers from its logs.

*eval_logs* reads a log, *eval_samples* the samples in it, and *archive* the entries of an ``.eval`` file.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from typing_extensions import override

from biasboard.ground.strict_json import JsonValue
from evaluators.harness import ExportedTask, Harness, HarnessLog
from evaluators.harnesses.inspect_ai.eval_logs import HOW_TO_ASK, read_log
from evaluators.harnesses.inspect_ai.python_tasks import write_task
from evaluators.task import Prompt

_TIMED = re.compile(r"\d{4}-\d\d-\d\dT.*\.json")


class InspectAI(Harness):
    """Files exchanged with inspect_ai, whose logs have version 2."""

    name = "inspect-ai"
    summary = "inspect_ai: questions that are answered in text, asked as messages of a chat by its command inspect eval"
    how_to_ask = HOW_TO_ASK
    log_names = "log that ends in .eval or .json"

    def obstacle(self, prompt: Prompt) -> str | None:
        """Return why a prompt cannot be asked; None if it is answered in text and suits a chat."""
        if prompt.requires != "generation":
            return "scores options, and inspect_ai has log-probabilities of generated tokens only"
        return None if prompt.chat else "is a text to continue, and inspect_ai sends messages of a chat"

    @override
    def write_task(self, task: ExportedTask, folder: Path) -> dict[str, JsonValue]:
        return write_task(task, folder)

    @override
    def usage(self, tasks: Sequence[ExportedTask], folder: Path) -> str:
        # With the name of the function, because inspect_ai accepts absolute paths only with it.
        files = " ".join(shlex.quote(f"{folder / task.name}.py@biasboard") for task in tasks)
        return f"inspect eval {files} --model PROVIDER/MODEL --log-dir OUT"

    def is_log(self, path: Path) -> bool:
        """Return True for an archive, and for JSON named like a log: the folder may hold other JSON."""
        return path.suffix == ".eval" or _TIMED.fullmatch(path.name) is not None

    @override
    def read_log(self, path: Path) -> HarnessLog | None:
        return read_log(path)


HARNESS = InspectAI()
