"""The harness inspect_ai: questions as tasks of its own, answers from its logs."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from evaluators.harness import ExportedTask, FoundLogs, Harness
from evaluators.harnesses.inspect_ai.logs import read_logs
from evaluators.harnesses.inspect_ai.tasks import write_tasks
from evaluators.task import Prompt


class InspectAI(Harness):
    """Files exchanged with inspect_ai, whose logs have version 2."""

    name = "inspect-ai"
    summary = "inspect_ai: questions that are answered in text, asked as messages of a chat by its command inspect eval"

    def obstacle(self, prompt: Prompt) -> str | None:
        """Return why a prompt cannot be asked; None for one that is answered in text and makes sense in a chat."""
        if prompt.requires != "generation":
            return "scores options, and inspect_ai has log-probabilities of generated tokens only"
        return None if prompt.chat else "is a text to continue, and inspect_ai sends messages of a chat"

    def write(self, tasks: Sequence[ExportedTask], folder: Path) -> None:
        """Write a file of Python and the questions as JSON lines for each task; see ``Harness.write``."""
        write_tasks(tasks, folder)

    def usage(self, tasks: Sequence[ExportedTask], folder: Path) -> str:
        """Return the command that asks a model the exported questions."""
        # With the name of the function, since inspect_ai takes no other absolute paths.
        files = " ".join(shlex.quote(f"{folder / task.name}.py@biasboard") for task in tasks)
        return f"inspect eval {files} --model PROVIDER/MODEL --log-dir OUT"

    def read(self, path: Path) -> FoundLogs:
        """Read the logs of one model; see ``Harness.read``."""
        return read_logs(path)


HARNESS = InspectAI()
