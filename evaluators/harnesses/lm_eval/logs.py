"""Reads what lm-evaluation-harness writes with --log_samples: a file of samples per task, and one of results.

Both have the time of the evaluation in their names. The results say which model was asked and how, and hold the
metadata of each task, in which an exported task carries our facts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.files import check_readable
from evaluators.harness import FACTS, FoundLogs, HarnessLog, check_logs, exported_facts
from evaluators.harnesses.lm_eval.models import logged_model, logged_runtime
from evaluators.harnesses.lm_eval.samples import read_samples

_SAMPLES = re.compile(r"samples_(?P<task>.+)_(?P<time>\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d+)?)\.jsonl")
_ASK = "ask with lm_eval run --log_samples --output_path FOLDER"


class _Files(NamedTuple):
    """The samples of a task and the results that belong to them."""

    task: str
    samples: Path
    results: Path


def read_logs(path: Path) -> FoundLogs:
    """Read the logs of one model; see ``Harness.read``."""
    found: list[HarnessLog] = []
    left_out: list[str] = []
    results: dict[Path, dict[str, Any]] = {}
    for files in _files(path):
        if files.results not in results:
            results[files.results] = _read_results(files.results)
        told = results[files.results]
        facts = _facts(files, told)
        if facts is None:
            left_out.append(files.samples.name)
            continue
        _check_asked_plainly(files, told)
        answers = read_samples(files.samples, told.get("task_hashes", {}).get(files.task))
        found.append(
            HarnessLog(
                name=files.samples.name,
                task=files.task,
                exported=exported_facts(facts, files.samples.name),
                answers=answers.answers,
                doubt=answers.doubt,
                model=logged_model(files.results, told),
                runtime=logged_runtime(files.samples, files.results, told),
            )
        )
    check_logs(path, found, left_out, "lm-eval")
    return FoundLogs(found, left_out)


def _files(path: Path) -> Sequence[_Files]:
    """Find the files of samples, each with its file of results."""
    if not path.exists():
        raise ConfigError(f"--input {path}: no such file or folder; {_ASK}, and name what it wrote")
    paths = sorted(path.rglob("samples_*.jsonl")) if path.is_dir() else [path]
    found = []
    for samples in paths:
        match = _SAMPLES.fullmatch(samples.name)
        if match is None:
            if path.is_dir():
                continue
            raise ConfigError(
                f"--input {path}: is not called samples_TASK_TIME.jsonl, as lm-eval names its logs; {_ASK}"
            )
        results = sorted(samples.parent.glob(f"*_{match['time']}.json"))
        if len(results) != 1:
            raise ConfigError(
                f"{samples}: needs one file results_{match['time']}.json beside it, which says who answered; found "
                f"{len(results)}; import the folder as lm-eval wrote it"
            )
        found.append(_Files(match["task"], samples, results[0]))
    if not found:
        raise ConfigError(f"--input {path}: no file samples_TASK_TIME.jsonl here; {_ASK}")
    return found


def _read_results(path: Path) -> dict[str, Any]:
    """Read a file of results. NaN is allowed: the harness writes it for values that it could not compute."""
    check_readable(path)
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: is not JSON ({error}); import the folder as lm-eval wrote it") from error
    if not isinstance(value, dict):
        raise DataError(f"{path}: is no JSON object; import the folder as lm-eval wrote it")
    for name, kind in (("configs", dict), ("config", dict), ("task_hashes", dict), ("n-shot", dict)):
        if not isinstance(value.get(name), kind):
            raise DataError(f"{path}: has no '{name}', which lm-eval writes; import the folder as lm-eval wrote it")
    return value


def _facts(files: _Files, told: Mapping[str, Any]) -> object | None:
    """Return our facts in the metadata of a task; None if we did not export it."""
    config = told["configs"].get(files.task)
    metadata = config.get("metadata") if isinstance(config, dict) else None
    return metadata.get(FACTS) if isinstance(metadata, dict) else None


def _check_asked_plainly(files: _Files, told: Mapping[str, Any]) -> None:
    """Check that the questions were asked as they are.

    Raises:
        DataError: something was put around them.
    """
    name = files.samples.name
    if told.get("chat_template_sha") is not None or told.get("chat_template") is not None:
        raise DataError(f"{name}: asked through a chat template; ask again without --apply_chat_template")
    if told.get("system_instruction_sha") is not None or told.get("system_instruction") is not None:
        raise DataError(f"{name}: asked with a system instruction; ask again without --system_instruction")
    shots = told["n-shot"].get(files.task)
    if shots != 0:
        raise DataError(f"{name}: asked with {shots} examples before each question; ask again without --num_fewshot")
