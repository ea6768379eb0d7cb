"""Prints finished runs as JSON, for programs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

from biasboard.ground import strict_json
from biasboard.ground.strict_json import JsonValue
from evaluators.runs.measure.unread_answers import is_unreadable
from schemas.documents.result import Result
from schemas.files import contract


@contextmanager
def json_alone(wanted: bool) -> Iterator[Callable[[JsonValue], None]]:
    """Keep standard output for JSON: everything else that is printed goes to standard error.

    Args:
        wanted: False to leave standard output as it is.

    Yields:
        Function that prints a value as JSON on standard output.
    """
    stdout = sys.stdout

    def print_json(value: JsonValue) -> None:
        print(strict_json.dumps(value), end="", file=stdout, flush=True)

    if not wanted:
        yield print_json
        return
    with redirect_stdout(sys.stderr):
        yield print_json


def run_as_json(folder: Path, result: Result) -> JsonValue:
    """Return the folder of a finished run, what was asked, the counts and the metrics."""
    signature = result.signature
    whole = contract.dump(result)
    return {
        "folder": str(folder),
        "status": "unreadable" if is_unreadable(result) else "finished",
        "model": result.model.id,
        "benchmark": signature.benchmark,
        "dataset": signature.dataset,
        "dataset_version": signature.dataset_version,
        "config": signature.config,
        "task": signature.task,
        "prompt": signature.prompt,
        "signature": str(signature),
        "signature_sha256": result.signature_sha256,
        "counts": whole["counts"],
        "metrics": whole["metrics"],
        "usage": whole["usage"],
    }
