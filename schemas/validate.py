"""Checks files against the contract: ``python -m schemas.validate PATH...``.

A path is a file (``dataset.json``, ``result.json``, ``records.parquet``, ``scores.parquet``, ``rejects.parquet`` or a
parquet file of items), the folder of a dataset or of a run, or any folder above them. Each problem is printed as one
line: file, row, field, value, remedy.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypeAlias, TypeVar

import typer

from biasboard.ground import strict_json
from biasboard.ground.command_line import EXIT_STATUS, one_line_errors
from biasboard.ground.errors import DataError
from biasboard.ground.progress import Report, steps
from schemas.documents.adapters import Adapters
from schemas.documents.cluster_sums import ClusterSums
from schemas.documents.corrections import Corrections
from schemas.documents.dataset import Manifest, Reject, SplitEntry
from schemas.documents.item_shape import Item, shape_of
from schemas.documents.register import Register
from schemas.documents.result import Result, ScoresFile
from schemas.documents.score import TextScore
from schemas.documents.submission import Submission
from schemas.files import contract, tables
from schemas.files.contract import D
from schemas.files.record_counts import RepeatedItems, repeated_items
from schemas.files.tables import Row
from schemas.folders.dataset_folder import MANIFEST, REJECTS, content_problems, file_problems
from schemas.folders.run_folder import (
    ADAPTERS,
    RECORDS,
    REGISTER,
    RESULT,
    SCORES,
    SUBMISSION,
    SUMS,
    FileOfRun,
    RecordCheck,
    hash_problems,
    place_of,
    score_problems,
    sums_problems,
)

if TYPE_CHECKING:
    from schemas.files.record_columns import RecordColumns

CARD = "README.md"
KNOWN_FILES = (
    f"{MANIFEST}, {RESULT}, {RECORDS}, {SCORES}, {SUMS}, {REJECTS}, {SUBMISSION}, {REGISTER}, {ADAPTERS}, "
    "data/<config>/<split>-*.parquet"
)

T = TypeVar("T")
Check: TypeAlias = Generator[str, None, T]
"""A generator that yields problems and returns the value that was read, or None if that is invalid."""


def targets(path: Path) -> list[Path]:
    """Return the dataset folders, run folders and single files at or below a path, sorted.

    Hidden files and folders are skipped, because they are left by writes that did not finish.

    Raises:
        DataError: the path does not exist, or there is nothing to check at or below it.
    """
    if not path.exists():
        raise DataError(f"{path}: no such file or folder")
    found = [path] if path.is_file() else list(_targets_below(path))
    if not found:
        raise DataError(f"{path}: nothing to validate here; looked for: {KNOWN_FILES}")
    return found


def _targets_below(folder: Path) -> Iterator[Path]:
    if (folder / MANIFEST).is_file() or (folder / RESULT).is_file():
        yield folder
        return
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            yield from _targets_below(entry)
        elif entry.name in (RECORDS, SCORES, SUMS, REJECTS, SUBMISSION, REGISTER, ADAPTERS):
            yield entry


def problems(target: Path) -> Iterator[str]:
    """Yield every problem of one dataset folder, run folder or file."""
    if target.is_dir():
        if (target / MANIFEST).is_file():
            yield from _dataset_problems(target)
        if (target / RESULT).is_file():
            yield from _run_problems(target)
    elif target.name == MANIFEST:
        yield from _document(target, Manifest)
    elif target.name == RESULT:
        yield from _document(target, Result)
    elif target.name == SUBMISSION:
        yield from _document(target, Submission)
    elif target.name == REGISTER:
        yield from _document(target, Register)
    elif target.name == ADAPTERS:
        yield from _document(target, Adapters)
    elif target.name == RECORDS:
        yield from _record_file_problems(target)
    elif target.name == SCORES:
        yield from _rows(target, TextScore)
    elif target.name == SUMS:
        yield from _rows(target, ClusterSums)
    elif target.name == REJECTS:
        yield from _rows(target, Reject)
    elif target.suffix == ".parquet":
        yield from _item_file_problems(target)
    else:
        yield f"{target}: not a file of the contract; have: {KNOWN_FILES}"


def _document(path: Path, document_type: type[D]) -> Check[D | None]:
    try:
        value = strict_json.read(path)
    except DataError as error:
        yield str(error)
        return None
    if (yield from _worded(contract.errors(value, document_type), str(path))):
        return None
    return contract.load(value, document_type, where=str(path))


def _rows(path: Path, row_type: type[Row]) -> Check[list[Row] | None]:
    try:
        values = tables.read_values(path, row_type)
    except DataError as error:
        yield str(error)
        return None
    rows: list[Row] = []
    sound = True
    for number, value in enumerate(values, start=1):
        where = f"{path}: row {number}"
        if (yield from _worded(contract.row_errors(value, row_type), where)):
            sound = False
        elif sound:
            rows.append(contract.from_row(value, row_type, where=where))
    return rows if sound else None


def _worded(found: Iterator[str], where: str) -> Check[bool]:
    any_found = False
    for problem in found:
        any_found = True
        yield f"{where}: {problem}"
    return any_found


def _dataset_problems(folder: Path) -> Iterator[str]:
    if not (folder / CARD).is_file():
        yield f"{folder / CARD}: no such file; a dataset has a card: build the dataset again"
    manifest = yield from _document(folder / MANIFEST, Manifest)
    if manifest is None:
        return
    for entry in manifest.splits:
        yield from _split_problems(folder, manifest, entry)
    yield from _reject_problems(folder, manifest)
    yield from file_problems(folder, manifest)
    if manifest.content_sha256 != strict_json.sha256([entry.content_sha256 for entry in manifest.splits]):
        yield f"{folder / MANIFEST}: content_sha256: is not the hash of the splits' hashes; build the dataset again"
    listed = {entry.path for entry in manifest.splits}
    for path in sorted(folder.glob("data/*/*.parquet")):
        if path.relative_to(folder).as_posix() not in listed:
            yield f"{path}: not in the splits of {MANIFEST}; remove it or build the dataset again"


def _split_problems(folder: Path, manifest: Manifest, entry: SplitEntry) -> Iterator[str]:
    try:
        row_type = shape_of(entry.item_shape, where=str(folder / MANIFEST)).row_type
    except DataError as error:
        yield str(error)
        return
    path = folder / entry.path
    items = yield from _rows(path, row_type)
    if items is None:
        return
    yield from repeated_items(path, [item.item_id for item in items])
    yield from content_problems(path, items, entry)
    yield from _flag_problems(path, manifest, items)


def _flag_problems(path: Path, manifest: Manifest, items: Sequence[Item]) -> Iterator[str]:
    known = {flag.rule for flag in manifest.flags}
    for number, item in enumerate(items, start=1):
        for flag in item.flags:
            if flag not in known:
                have = ", ".join(sorted(known)) or "none"
                yield f"{path}: row {number}: flags: '{flag}' is not in the flags of {MANIFEST}; have: {have}"


def _reject_problems(folder: Path, manifest: Manifest) -> Iterator[str]:
    path = folder / REJECTS
    rejects = yield from _rows(path, Reject)
    if rejects is None:
        return
    found = Counter(reject.rule for reject in rejects)
    listed = {entry.rule: entry.n for entry in manifest.rejects}
    for rule in sorted({*found, *listed}):
        said = listed.get(rule, 0)
        if found[rule] != said:
            yield f"{path}: {found[rule]} rows of rule '{rule}', {MANIFEST} says {said}; build the dataset again"


def _item_file_problems(path: Path) -> Iterator[str]:
    folder = next((parent for parent in path.absolute().parents[:4] if (parent / MANIFEST).is_file()), None)
    if folder is None:
        yield f"{path}: no {MANIFEST} above it, so its kind is unknown; name a dataset folder, or a file in one"
        return
    manifest = yield from _document(folder / MANIFEST, Manifest)
    if manifest is None:
        return
    place = path.absolute().relative_to(folder).as_posix()
    entry = next((entry for entry in manifest.splits if entry.path == place), None)
    if entry is None:
        yield f"{path}: not in the splits of {folder / MANIFEST}; have: {', '.join(e.path for e in manifest.splits)}"
        return
    yield from _split_problems(folder, manifest, entry)


class _Part(NamedTuple):
    """The records of a part, and the problems of its single rows."""

    records: RecordColumns
    problems: tuple[str, ...]


def _parts(path: Path) -> Iterator[_Part]:
    """Yield the parts of a file of records.

    Raises:
        DataError: the file, or what follows in it, cannot be read.
    """
    # Loading pyarrow takes as long as the help of this command needs in all.
    from schemas.files.record_files import read_parts_unchecked, row_problems

    for records in read_parts_unchecked(path):
        yield _Part(records, tuple(row_problems(path, records)))


def _record_problems(path: Path, each: Callable[[RecordColumns], Iterator[str]]) -> Check[bool]:
    """Yield the problems of a file of records part by part, and return True if every row is valid.

    Args:
        path: Path of the file.
        each: Function that yields the problems of all rows of a part together; it is called while all rows are valid.
    """
    is_sound = True
    try:
        for part in _parts(path):
            yield from part.problems
            is_sound = is_sound and not part.problems
            if is_sound:
                yield from each(part.records)
    except DataError as error:
        yield str(error)
        return False
    return is_sound


def _record_file_problems(path: Path) -> Iterator[str]:
    yield from _record_problems(path, RepeatedItems(path).add)


def _run_problems(folder: Path) -> Iterator[str]:
    if (folder / SUBMISSION).is_file():
        yield from _document(folder / SUBMISSION, Submission)
    result = yield from _document(folder / RESULT, Result)
    if result is None:
        return
    if not result.records.path.startswith("https://"):
        yield from _listed(folder, result.records, lambda path: _run_record_problems(path, folder, result))
    if (said := result.scores) is not None:
        yield from _listed(folder, said, lambda path: _run_score_problems(path, folder, said))
    if result.withheld is not None:
        yield from _listed(folder, result.withheld.sums, _run_sums_problems)
    if result.adapters is not None:
        yield from _listed(folder, result.adapters, lambda path: _sound(path, Adapters))
    if result.corrections is not None:
        yield from _listed(folder, result.corrections, lambda path: _sound(path, Corrections))


def _sound(path: Path, document_type: type[D]) -> Iterator[str]:
    yield from _document(path, document_type)


def _run_record_problems(path: Path, folder: Path, result: Result) -> Iterator[str]:
    check = RecordCheck(folder, result)
    if (yield from _record_problems(path, check.add)):
        yield from check.at_end()


def _run_score_problems(path: Path, folder: Path, said: ScoresFile) -> Iterator[str]:
    rows = yield from _rows(path, TextScore)
    if rows is not None:
        yield from score_problems(folder, said, rows)


def _run_sums_problems(path: Path) -> Iterator[str]:
    rows = yield from _rows(path, ClusterSums)
    if rows is not None:
        yield from sums_problems(path, rows)


def _listed(folder: Path, said: FileOfRun, problems_of: Callable[[Path], Iterator[str]]) -> Iterator[str]:
    """Yield the problems of a file that a result names."""
    try:
        path = place_of(folder, said)
    except DataError as error:
        yield str(error)
        return
    yield from hash_problems(folder, said)
    yield from problems_of(path)


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(epilog=EXIT_STATUS)
@one_line_errors("stopped")
def validate(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files, or folders to search.")],
    limit: Annotated[int, typer.Option(min=1, help="Stop after this many problems.")] = 100,
) -> None:
    """Check datasets, runs and results against the contract; exit with 1 if anything is wrong."""
    found: list[Path] = []
    unusable: list[str] = []
    for path in paths:
        try:
            found.extend(targets(path))
        except DataError as error:
            unusable.append(str(error))
    n_shown = 0
    with steps() as step:
        lines = itertools.chain(unusable, _problems_of(found, step))
        for line in itertools.islice(lines, limit):
            n_shown += 1
            typer.echo(line)
    if n_shown:
        rest = f" and more; show them with --limit {10 * limit}" if next(lines, None) is not None else ""
        typer.echo(f"error: {_n(n_shown, 'problem')}{rest}", err=True)
        raise typer.Exit(1)
    typer.echo(f"{_n(len(found), 'dataset, run or file', 'datasets, runs and files')} checked, no problems", err=True)


def _problems_of(found: Sequence[Path], step: Report) -> Iterator[str]:
    for number, target in enumerate(found):
        step("checking", number, len(found))
        yield from problems(target)


def _n(count: int, one: str, many: str | None = None) -> str:
    return f"{count} {one}" if count == 1 else f"{count} {many or one + 's'}"


if __name__ == "__main__":
    app()
