"""Checks files against the contract: ``python -m schemas.validate PATH...``.

A path is a file (``dataset.json``, ``result.json``, ``records.parquet``, ``scores.parquet``, ``rejects.parquet`` or a
parquet file of items), the folder of a dataset or of a run, or any folder above them. Each problem is printed as one
line: file, row, field, value, remedy.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from biasboard.ground.command_line import EXIT_ERROR, EXIT_STATUS, one_line_errors
from biasboard.ground.errors import DataError
from biasboard.ground.progress import Report, steps
from schemas.documents.adapters import Adapters
from schemas.documents.board import Register, Submission
from schemas.documents.dataset import Manifest, Reject
from schemas.documents.result import Result
from schemas.documents.run_files import ClusterSums, Corrections
from schemas.files import contract, row_files
from schemas.files.row_files import checked_text_scores
from schemas.folders.dataset_folder import MANIFEST, REJECTS, dataset_problems, split_problems
from schemas.folders.run_folder import (
    ADAPTERS,
    CORRECTIONS,
    RECORDS,
    REGISTER,
    RESULT,
    SCORES,
    SUBMISSION,
    SUMS,
    record_file_problems,
    run_problems,
)
from schemas.outputs.documents import Validation
from schemas.printed import Printed, with_format


def _record_file_problems(path: Path) -> Iterator[str]:
    # Loading pyarrow takes longer than checking a JSON file.
    from schemas.files.record_columns import RepeatedItems

    yield from record_file_problems(path, RepeatedItems(path).add)


_CHECKS: Mapping[str, Callable[[Path], Iterator[str]]] = {
    MANIFEST: lambda path: contract.checked(path, Manifest),
    RESULT: lambda path: contract.checked(path, Result),
    RECORDS: _record_file_problems,
    SCORES: checked_text_scores,
    SUMS: lambda path: row_files.checked_rows(path, ClusterSums),
    REJECTS: lambda path: row_files.checked_rows(path, Reject),
    SUBMISSION: lambda path: contract.checked(path, Submission),
    REGISTER: lambda path: contract.checked(path, Register),
    ADAPTERS: lambda path: contract.checked(path, Adapters),
    CORRECTIONS: lambda path: contract.checked(path, Corrections),
}
"""Check of a single file, by the file's name."""
KNOWN_FILES = f"{', '.join(_CHECKS)}, data/<config>/<split>-*.parquet"


def targets(path: Path) -> list[Path]:
    """Return the dataset folders, run folders and single files at or below a path, sorted.

    Hidden files and folders are skipped, because they are left by writes that did not finish.

    Raises:
        DataError: the path does not exist, or there is nothing to check at or below it.
    """
    if not path.exists():
        raise DataError(f"{path}: no such file or folder; correct the path")
    below = [path] if path.is_file() else list(_targets_below(path))
    if not below:
        raise DataError(f"{path}: nothing to validate here; looked for: {KNOWN_FILES}")
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
        elif entry.name in _CHECKS:
            yield entry


def problems(target: Path) -> Iterator[str]:
    """Yield every problem of one dataset folder, run folder or file."""
    if target.is_dir():
        if (target / MANIFEST).is_file():
            yield from dataset_problems(target)
        if (target / RESULT).is_file():
            yield from run_problems(target)
    elif target.name in _CHECKS:
        yield from _CHECKS[target.name](target)
    elif target.suffix == ".parquet":
        yield from _item_file_problems(target)
    else:
        yield f"{target}: not a file of the contract; have: {KNOWN_FILES}"


def _item_file_problems(path: Path) -> Iterator[str]:
    folder = next((parent for parent in path.absolute().parents[:4] if (parent / MANIFEST).is_file()), None)
    if folder is None:
        yield f"{path}: no {MANIFEST} above it, so its kind is unknown; name a dataset folder, or a file in one"
        return
    manifest = yield from contract.checked(folder / MANIFEST, Manifest)
    if manifest is None:
        return
    name = path.absolute().relative_to(folder).as_posix()
    entry = next((entry for entry in manifest.splits if entry.path == name), None)
    if entry is None:
        yield f"{path}: not in the splits of {folder / MANIFEST}; have: {', '.join(e.path for e in manifest.splits)}"
        return
    yield from split_problems(folder, manifest, entry)


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
        typer.echo(f"error: {_n(len(shown), 'problem')}{rest}", err=True)
    else:
        counted = _n(len(checked), "dataset, run or file", "datasets, runs and files")
        typer.echo(f"{counted} checked, no problems", err=True)
    document = Validation(n_checked=len(checked), problem_lines=tuple(shown), has_more=has_more)
    return Printed(document, EXIT_ERROR if shown else 0)


def _problems_of(checked: Sequence[Path], step: Report) -> Iterator[str]:
    for number, target in enumerate(checked):
        step("checking", number, len(checked))
        yield from problems(target)


def _n(count: int, singular: str, plural: str | None = None) -> str:
    return f"{count} {singular}" if count == 1 else f"{count} {plural or singular + 's'}"


if __name__ == "__main__":
    app()
