"""Checks files against the contract: ``python -m schemas.validate PATH...``.

A path is the folder of a dataset or of a run, or its ``dataset.json`` or ``result.json``; a ``register.json`` or
``adapters.json``; or any folder above them. Each problem is printed as one line: file, row, field, value, remedy.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from biasboard.ground.command_line import EXIT_ERROR, EXIT_STATUS, one_line_errors
from biasboard.ground.errors import DataError
from biasboard.ground.progress import Report, steps
from schemas.documents.adapters import Adapters
from schemas.documents.base import Document
from schemas.documents.board import Register
from schemas.files import contract
from schemas.folders.dataset_folder import MANIFEST, dataset_problems
from schemas.folders.run_folder import ADAPTERS, REGISTER, RESULT, run_problems
from schemas.outputs.documents import Printed, Validation, with_format

_ALONE: Mapping[str, type[Document]] = {REGISTER: Register, ADAPTERS: Adapters}
"""Documents that stand by themselves, by the names of their files."""


def targets(path: Path) -> list[Path]:
    """Return the dataset folders, run folders and single documents at or below a path, sorted.

    Hidden files and folders are skipped, because they are left by writes that did not finish.

    Raises:
        DataError: the path does not exist, or there is nothing to check at or below it.
    """
    if not path.exists():
        raise DataError(f"{path}: no such file or folder; correct the path")
    folder = path.parent if path.name in (MANIFEST, RESULT) else path
    below = [path] if path.name in _ALONE else list(_targets_below(folder)) if folder.is_dir() else []
    if not below:
        looked_for = ", ".join((MANIFEST, RESULT, *_ALONE))
        raise DataError(f"{path}: nothing to validate here; looked for: {looked_for}")
    return below


def _targets_below(folder: Path) -> Iterator[Path]:
    if (folder / MANIFEST).is_file() or (folder / RESULT).is_file():
        yield folder
        return
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            yield from _targets_below(entry)
        elif entry.name in _ALONE:
            yield entry


def problems(target: Path) -> Iterator[str]:
    """Yield every problem of one dataset folder, run folder or single document."""
    if target.name in _ALONE:
        yield from contract.checked(target, _ALONE[target.name])
    if (target / MANIFEST).is_file():
        yield from dataset_problems(target)
    if (target / RESULT).is_file():
        yield from run_problems(target)


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(epilog=EXIT_STATUS)
@one_line_errors("stopped")
@with_format(Validation)
def validate(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files, or folders to search.")],
    limit: Annotated[int, typer.Option(min=1, help="Stop after this many problems.")] = 100,
) -> Printed:
    """Check datasets, runs and results against the contract; exit with 1 if anything is wrong."""
    checked: list[Path] = []
    unusable: list[str] = []
    for path in paths:
        try:
            checked.extend(targets(path))
        except DataError as error:
            unusable.append(str(error))
    shown: list[str] = []
    with steps() as step:
        lines = itertools.chain(unusable, _problems_of(checked, step))
        for line in itertools.islice(lines, limit):
            shown.append(line)
            typer.echo(line)
        has_more = next(lines, None) is not None
    if shown:
        rest = f" and more; show them with --limit {10 * limit}" if has_more else ""
        typer.echo(f"error: {len(shown)} problem{'s' * (len(shown) > 1)}{rest}", err=True)
    else:
        what = "dataset, run or file" if len(checked) == 1 else "datasets, runs and files"
        typer.echo(f"{len(checked)} {what} checked, no problems", err=True)
    document = Validation(n_checked=len(checked), problem_lines=tuple(shown), has_more=has_more)
    return Printed(document, EXIT_ERROR if shown else 0)


def _problems_of(checked: Sequence[Path], step: Report) -> Iterator[str]:
    for number, target in enumerate(checked):
        step("checking", number, len(checked))
        yield from problems(target)


if __name__ == "__main__":
    app()
