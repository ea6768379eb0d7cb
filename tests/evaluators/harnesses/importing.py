"""Exports questions for a harness and imports its logs, by the commands that users call."""

from __future__ import annotations

from pathlib import Path

from typer.testing import Result

from schemas.folders.run_folder import Run, read_run
from tests.evaluators.invoking import evaluators


def export(harness: str, dataset: Path, folder: Path, *arguments: object) -> str:
    done = evaluators("export", harness, dataset, "--out", folder, *arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


def import_log(harness: str, dataset: Path, log: Path, out: Path, *arguments: object) -> Result:
    where = ("--input", log, "--model", "lab/made", "--dataset", dataset, "--out", out)
    return evaluators("import", harness, *where, *arguments)


def imported(harness: str, dataset: Path, log: Path, out: Path, *arguments: object) -> str:
    """Import a log that is sound; return what is printed."""
    done = import_log(harness, dataset, log, out, *arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


def refused(done: Result, message: str, out: Path) -> None:
    """Check that a command says one line, and writes nothing into a folder."""
    assert (done.exit_code, done.stdout) == (1, ""), done.output
    (line,) = done.stderr.splitlines()
    assert message in line
    assert "sk-secret" not in line
    assert not out.exists() or not any(out.iterdir())


def only_run(out: Path) -> Run:
    (path,) = out.rglob("result.json")
    return read_run(path.parent)
