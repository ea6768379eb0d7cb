"""The harness lm-evaluation-harness: questions as tasks of its own, answers from the samples that it logs.

Contexts and options are given as names of document fields, which the harness takes unchanged. Anything else it would
render as a template, in which braces have a meaning. *loader* is copied next to the questions, and reads them for the
harness. *sample_logs* reads the answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from biasboard.ground.errors import ConfigError
from biasboard.ground.strict_json import JsonValue
from evaluators.backend import ChoiceRequest
from evaluators.harness import FACTS, ExportedQuestion, ExportedTask, Harness, write_manifest, write_questions
from evaluators.harnesses.lm_eval.sample_logs import HOW_TO_ASK, NAME, read_log

_LOADER = "biasboard_questions"


class _Function(str):
    """A function that the harness imports from a file next to the task."""


class _Dumper(yaml.SafeDumper):
    """A YAML dumper that supports the harness's tag for functions."""


_Dumper.add_representer(_Function, lambda dumper, name: dumper.represent_scalar("!function", str(name)))


def _write_tasks(tasks: Sequence[ExportedTask], folder: Path) -> str:
    """Write a YAML file and a file of questions for each task, and the loader that reads them."""
    facts = {}
    for task in tasks:
        facts[task.name] = write_questions(task, [_document(task, question) for question in task.questions], folder)
        settings = yaml.dump(
            _settings(task, facts[task.name]), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120
        )
        (folder / f"{task.name}.yaml").write_text(settings, encoding="utf-8")
    (folder / f"{_LOADER}.py").write_bytes(Path(__file__).with_name("loader.py").read_bytes())
    write_manifest(HARNESS, facts, folder)
    return (
        f"lm_eval run --model hf --model_args pretrained=MODEL --tasks {','.join(facts)} --include_path {folder} "
        "--log_samples --output_path OUT"
    )


def _document(task: ExportedTask, question: ExportedQuestion) -> dict[str, JsonValue]:
    """Return a question as a document of the harness."""
    request, where = question.shown, f"question {question.id} of {task.name}"
    assert isinstance(request, ChoiceRequest)
    if not request.prompt.strip():
        raise ConfigError(f"{where} has no text before its options, where lm-eval would put a token; ask it with run")
    if not all(request.options):
        raise ConfigError(f"{where} has an empty option, which lm-eval cannot score; ask it with run")
    return {
        "id": question.id,
        "context": request.prompt,
        "options": list(request.options),
        # The harness requires an index, also for an item without a right option.
        "target": -1 if question.target is None else question.target,
        "request_sha256": question.request.sha256,
    }


def _settings(task: ExportedTask, facts: dict[str, JsonValue]) -> dict[str, Any]:
    # An accuracy over items without a right option would count each of them as wrong.
    all_have_targets = all(question.target is not None for question in task.questions)
    metric = {"metric": "acc", "aggregation": "mean", "higher_is_better": True}
    none = {"metric": "bypass", "aggregation": "bypass", "higher_is_better": True}
    return {
        "task": task.name,
        "custom_dataset": _Function(f"{_LOADER}.load"),
        "test_split": "test",
        "output_type": "multiple_choice",
        "doc_to_text": "context",
        "doc_to_choice": "options",
        "doc_to_target": "target",
        "description": "",
        # The default, a blank, would be added before options that begin with one (lm-evaluation-harness #2346).
        "target_delimiter": "",
        "num_fewshot": 0,
        "metric_list": [metric if all_have_targets else none],
        "metadata": {"version": task.exported.signature.dataset_version, FACTS: facts},
    }


# With whitespace moved like this, log-probabilities of a small model agreed with those of run within 2.5e-5 on both
# configs of synthbias, 3,160 items each.
def _as_scored(request: ChoiceRequest) -> ChoiceRequest:
    """Move trailing whitespace of the prompt to the options, as the harness does."""
    context = request.prompt.rstrip()
    whitespace = request.prompt[len(context) :]
    return replace(request, prompt=context, options=tuple(whitespace + option for option in request.options))


HARNESS = Harness(
    name="lm-eval",
    summary="lm-evaluation-harness: tasks with options, asked by its command lm_eval run --log_samples",
    how_to_ask=HOW_TO_ASK,
    log_form="file samples_TASK_TIME.jsonl",
    log_name=NAME,
    write_tasks=_write_tasks,
    read_log=read_log,
    as_scored=_as_scored,
    no_texts="asks for a text, and lm-eval does not log why a text ended, so that answers that were cut off could not "
    "be told from whole ones",
)
