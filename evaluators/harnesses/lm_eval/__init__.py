"""The harness lm-evaluation-harness: questions as tasks of its own, answers from the samples that it logs.

*yaml_tasks* writes the questions, and *sample_logs* reads the answers. *loader* is copied next to the questions, and
reads them for the harness.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from typing_extensions import override

from biasboard.ground.strict_json import JsonValue
from evaluators.backend import ChoiceRequest
from evaluators.harness import ExportedTask, Harness, HarnessLog
from evaluators.harnesses.lm_eval.sample_logs import HOW_TO_ASK, NAME, read_log
from evaluators.harnesses.lm_eval.yaml_tasks import write_task
from evaluators.task import Prompt


class LmEval(Harness):
    """Files exchanged with lm-evaluation-harness, versions 0.4.9 and newer."""

    name = "lm-eval"
    scores_options = True
    summary = "lm-evaluation-harness: tasks with options, asked by its command lm_eval run --log_samples"
    how_to_ask = HOW_TO_ASK
    log_names = "file samples_TASK_TIME.jsonl"

    def obstacle(self, prompt: Prompt) -> str | None:
        """Return why a prompt cannot be asked; None if it scores options."""
        if prompt.scoring == "option_logprob":
            return None
        return (
            "asks for a text, and lm-eval does not log why a text ended, so that answers that were cut off could not "
            "be told from whole ones"
        )

    @override
    def write_task(self, task: ExportedTask, folder: Path) -> dict[str, JsonValue]:
        return write_task(task, folder)

    @override
    def usage(self, tasks: Sequence[ExportedTask], folder: Path) -> str:
        names = ",".join(task.name for task in tasks)
        return (
            f"lm_eval run --model hf --model_args pretrained=MODEL --tasks {names} --include_path {folder} "
            "--log_samples --output_path OUT"
        )

    @override
    def is_log(self, path: Path) -> bool:
        return NAME.fullmatch(path.name) is not None

    @override
    def read_log(self, path: Path) -> HarnessLog | None:
        return read_log(path)

    # With whitespace moved like this, log-probabilities of a small model agreed with those of run within 2.5e-5 on both
    # configs of synthbias, 3,160 items each.
    def as_scored(self, request: ChoiceRequest) -> ChoiceRequest:
        """Move trailing whitespace of the prompt to the options, as the harness does."""
        context = request.prompt.rstrip()
        whitespace = request.prompt[len(context) :]
        return replace(request, prompt=context, options=tuple(whitespace + option for option in request.options))


HARNESS = LmEval()
