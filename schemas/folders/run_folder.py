"""Finds, reads and checks the folder of a run: its result, its records and the scores of its texts.

All code that reads a run uses this module. Each file has one :data:`~schemas.files.contract.Check`: readers stop at its
first problem, and :func:`run_problems` lists all. Functions that open parquet files load pyarrow themselves, because
commands that only look for runs do not need it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from biasboard.ground import strict_json
from biasboard.ground.errors import DataError
from biasboard.ground.files import replacing, sha256_file
from schemas.documents.adapters import Adapters
from schemas.documents.base import repeated
from schemas.documents.board import Submission
from schemas.documents.result import AdaptersFile, CorrectionsFile, Counts, RecordsFile, Result, ScoresFile, SumsFile
from schemas.documents.run_files import ClusterSums, Corrections, TextScore
from schemas.files import contract, row_files
from schemas.files.contract import Check, D, sound
from schemas.files.row_files import checked_text_scores

if TYPE_CHECKING:
    from schemas.files.record_columns import RecordColumns

RESULT = "result.json"
RECORDS = "records.parquet"
SCORES = "scores.parquet"
SUMS = "sums.parquet"
ADAPTERS: Final = "adapters.json"
CORRECTIONS: Final = "corrections.json"
SUBMISSION = "submission.json"
REGISTER = "register.json"
"""Register of accepted results, in the folder that holds them."""

RESCORE_TEXTS = "score the texts again: biasboard rescore RUN --scorer default"
SUBMIT_AGAIN = "submit the complete run again"

TableOfRun: TypeAlias = RecordsFile | ScoresFile | SumsFile
FileOfRun: TypeAlias = TableOfRun | AdaptersFile | CorrectionsFile
_MOST_KEPT = 32 << 20
"""Largest number of bytes of a suite's records that stay in memory; a suite of 10 tasks with 219 items takes 3.5 MB."""
_OF_FILES: Mapping[type[FileOfRun], tuple[str, str]] = {
    RecordsFile: ("records", "run or import the model again"),
    ScoresFile: ("scores", RESCORE_TEXTS),
    SumsFile: ("withheld.sums", SUBMIT_AGAIN),
    AdaptersFile: ("adapters", "run the model again"),
    CorrectionsFile: ("corrections", "rescore the run"),
}
"""Field of a result that names the file, and how to replace one that the result was not written with."""


class Run(NamedTuple):
    """The result and all records of a finished run."""

    result: Result
    records: RecordColumns


def find_runs(folder: Path) -> list[Path]:
    """Return the folders of all finished runs in a folder and below it, sorted.

    Hidden folders, whose names begin with a dot, are skipped, because they are still being written. Links to folders
    are not followed.
    """
    runs = []
    for below, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        runs += [Path(below)] if RESULT in files else []
    return sorted(runs)


def finished_runs(path: Path) -> list[Path]:
    """Return the folders of the finished runs at a path that the user gave, sorted.

    It is that of a run, of its ``result.json``, or of a folder that contains runs at any depth.

    Raises:
        DataError: the path does not exist, or there is no finished run.
    """
    folder = path.parent if path.name == RESULT else path
    runs = [folder] if (folder / RESULT).is_file() else find_runs(folder)
    if not path.exists():
        raise DataError(f"{path}: no such file or folder; name that of a finished run")
    if not runs:
        raise DataError(f"{path}: no {RESULT} here; name the folder of a finished run")
    return runs


def read_result(folder: Path) -> Result:
    """Read and check the result of a run, without its records.

    Raises:
        DataError: the folder holds no finished run, or its result is invalid.
    """
    if not (folder / RESULT).is_file():
        raise DataError(f"{folder}: no {RESULT} here; name the folder of a finished run")
    return contract.read(folder / RESULT, Result)


def read_complete_result(folder: Path) -> Result:
    """Read and check the result of a run whose texts are in its records.

    Raises:
        DataError: the folder holds no such run, or its result is invalid.
    """
    result = read_result(folder)
    if result.withheld is not None:
        raise DataError(f"{folder}: its texts are kept elsewhere; name the folder of the complete run")
    return result


def write_result(folder: Path, result: Result) -> None:
    """Check a result and write it into the folder of its run.

    Raises:
        DataError: the result is invalid; nothing is written.
    """
    contract.check(result, where=str(folder / RESULT))
    # A metric has 15 fields: with a line for each, the file is half as large again, and no easier to compare.
    with replacing(folder / RESULT) as temporary:
        temporary.write_text(strict_json.dumps_in_lines(contract.dump(result)), encoding="utf-8")


def read_run(folder: Path) -> Run:
    """Read and check the result and all records of a run.

    Raises:
        DataError: a file is missing or invalid, or the records are not those that the result was computed from.
    """
    from schemas.files.record_columns import RecordColumns

    result = read_result(folder)
    return Run(result, RecordColumns.joined(read_parts(folder, result)))


def run_problems(folder: Path) -> Iterator[str]:
    """Yield everything that is wrong with the folder of a run."""
    if (folder / SUBMISSION).is_file():
        yield from contract.checked(folder / SUBMISSION, Submission)
    result = yield from contract.checked(folder / RESULT, Result)
    if result is None:
        return
    if not result.records.path.startswith("https://"):
        yield from _record_problems(folder, result)
    if result.scores is not None:
        yield from _checked_scores(folder, result.scores)
    if result.withheld is not None:
        yield from _checked_sums(folder, result.withheld.sums)
    if result.adapters is not None:
        yield from _checked_document(folder, result.adapters, Adapters)
    if result.corrections is not None:
        yield from _checked_document(folder, result.corrections, Corrections)


def _record_problems(folder: Path, result: Result) -> Iterator[str]:
    from schemas.files import record_files

    path = yield from _checked_file(folder, result.records)
    if path is None:
        return
    check, is_sound = RecordCheck(folder, result), True
    try:
        for records in record_files.read_parts_unchecked(path):
            is_sound &= yield from record_files.row_problems(path, records)
            # The check of a whole part reads columns of valid rows.
            if is_sound:
                yield from check.add(records)
    except DataError as error:
        yield str(error)
        return
    if is_sound:
        yield from check.at_end()


def read_parts(folder: Path, result: Result, *, recount: bool = True) -> Iterator[RecordColumns]:
    """Yield the checked records of each part of a run; a single config is one part.

    Args:
        folder: The folder of the run.
        result: The result in it.
        recount: False to skip the check of the counts, for a caller that counts the records itself.

    Raises:
        DataError: the file is missing or invalid, or the records are not those that the result was computed from.
            Problems of all records together are raised only after the last part.
    """
    from schemas.files import record_files

    read_adapters(folder, result)
    path = sound(_checked_file(folder, result.records))
    check = RecordCheck(folder, result, recount=recount)
    for records in record_files.read_parts(path):
        for problem in check.add(records):
            raise DataError(problem)
        yield records
    for problem in check.at_end():
        raise DataError(problem)


def verified_parts(folder: Path, result: Result) -> Iterator[RecordColumns]:
    """Yield the records of each part of a run that was verified before, which need not be checked again.

    Raises:
        DataError: the file is missing, or its hash is not the one in the result.
    """
    from schemas.files import record_files

    yield from record_files.read_parts_unchecked(sound(_checked_file(folder, result.records)))


class StoredParts:
    """The records of a run that was checked before, part by part, as often as they are needed."""

    def __init__(self, folder: Path, result: Result) -> None:
        """Look up the path of the records.

        Raises:
            DataError: the file is missing.
        """
        self._path = path_of(folder, result.records)
        self._n_parts = len(result.signature.parts) or 1
        self._n_bytes = 0
        self._kept: list[RecordColumns] = []

    def keep(self, records: RecordColumns) -> None:
        """Keep the next part in memory, unless it is of a suite whose parts together are too large."""
        # Baselines read the parts a dozen times, and unpacking them was a tenth of the verification of a suite.
        self._n_bytes += records.table.nbytes
        if self._n_parts == 1 or self._n_bytes <= _MOST_KEPT:
            self._kept.append(records)
        else:
            self._kept.clear()

    def __iter__(self) -> Iterator[RecordColumns]:
        """Yield the records of each part, which are read again if they were not kept."""
        return iter(self._kept) if len(self._kept) == self._n_parts else self._read()

    def _read(self) -> Iterator[RecordColumns]:
        from schemas.files import record_files

        self._n_bytes, self._kept = 0, []
        for records in record_files.read_parts_unchecked(self._path):
            self.keep(records)
            yield records


def read_score_rows(folder: Path, file: ScoresFile) -> list[TextScore]:
    """Read and check the scores of the texts of a run.

    Raises:
        DataError: the file is missing or invalid, or its rows are not those that the result was computed from.
    """
    return sound(_checked_scores(folder, file))


def _checked_scores(folder: Path, file: ScoresFile) -> Check[list[TextScore] | None]:
    path = yield from _checked_file(folder, file)
    if path is None:
        return None
    rows = yield from checked_text_scores(path)
    if rows is not None:
        yield from _score_problems(path, file, rows)
    return rows


def read_sums(folder: Path, file: SumsFile) -> list[ClusterSums]:
    """Read and check the sums that stand in for the texts of a result.

    Raises:
        DataError: the file is missing or invalid, or its rows are not those that the result was written with.
    """
    return sound(_checked_sums(folder, file))


def _checked_sums(folder: Path, file: SumsFile) -> Check[list[ClusterSums] | None]:
    path = yield from _checked_file(folder, file)
    if path is None:
        return None
    rows = yield from row_files.checked_rows(path, ClusterSums)
    if rows is not None:
        for metric, *_ in repeated((row.metric, row.baseline, *sorted(row.group.items())) for row in rows):
            yield f"{path}: metric {metric} has sums twice for one slice; {SUBMIT_AGAIN}"
        if len(n_clusters := sorted({len(row.sums) // row.n_columns for row in rows if row.n_columns})) > 1:
            yield f"{path}: has sums over {' and '.join(map(str, n_clusters[:3]))} clusters; {SUBMIT_AGAIN}"
    return rows


def read_adapters(folder: Path, result: Result) -> Adapters | None:
    """Read and check the list of the adapters with which the model of a run answered; None if it had none.

    Raises:
        DataError: the file is missing or invalid, or it is not the one that the result was written with.
    """
    return None if result.adapters is None else sound(_checked_document(folder, result.adapters, Adapters))


def read_corrections(folder: Path, result: Result) -> Corrections | None:
    """Read and check the stored corrections of a run; None if it has none.

    Raises:
        DataError: the file is missing or invalid, or it is not the one that the result was written with.
    """
    return None if result.corrections is None else sound(_checked_document(folder, result.corrections, Corrections))


def _checked_document(folder: Path, file: FileOfRun, document_type: type[D]) -> Check[D | None]:
    path = yield from _checked_file(folder, file)
    return None if path is None else (yield from contract.checked(path, document_type))


def _checked_file(folder: Path, file: FileOfRun) -> Check[Path | None]:
    """Compare a file's hash and number of rows with those in the result; return its path if it can be read."""
    try:
        path = path_of(folder, file)
        yield from hash_problems(folder, file)
        if isinstance(file, TableOfRun) and (n_rows := row_files.n_rows(path)) != file.n_rows:
            yield f"{path}: {n_rows} rows, {RESULT} says {file.n_rows}; {_OF_FILES[type(file)][1]}"
    except DataError as error:
        yield str(error)
        return None
    return path


def path_of(folder: Path, file: FileOfRun) -> Path:
    """Return the path of a file that a result names.

    Raises:
        DataError: the file is at an https address, outside the folder of the run, or missing.
    """
    path, (field, _) = folder / file.path, _OF_FILES[type(file)]
    # Names are compared instead of resolved paths, because a snapshot of the Hub holds links to files elsewhere.
    if Path(file.path).name != file.path:
        raise DataError(
            f"{folder / RESULT}: {field}.path '{file.path}' is not in this folder; put the file beside the result and "
            "name it there"
        )
    if not path.is_file():
        raise DataError(f"{path}: no such file, though {RESULT} names it; put it beside the result")
    return path


class RecordCheck:
    """Compares the records of a run with its result, part by part."""

    def __init__(self, folder: Path, result: Result, *, recount: bool = True) -> None:
        """Start before the first part.

        Args:
            folder: The folder of the run, for the messages.
            result: The result of the run.
            recount: False to skip the check of the counts.
        """
        from schemas.files.record_columns import Tally

        self._folder, self._result, self._recount = folder, result, recount
        self._path = folder / result.records.path
        self._first_rows: dict[str | None, int] = {}
        """First row of the records of each config."""
        self._tally = Tally()

    def add(self, records: RecordColumns) -> Iterator[str]:
        """Yield a message for each problem of the next part, each of whose rows is valid."""
        self._tally.add(records)
        for name in records.columns["config"].coded.texts:
            began = self._first_rows.setdefault(name, records.first_row)
            if began != records.first_row:
                yield (
                    f"{self._path}: row {records.first_row}: config '{name}' began in row {began} and was followed by "
                    "others; keep the records of a config together"
                )
        yield from row_files.repeated_items(self._path, records.columns["item_id"].texts, records.first_row)
        signature = self._result.signature
        columns = records.columns
        in_config = columns["config"].coded.is_one_of(*signature.configs)
        others = (~(in_config & columns["split"].coded.is_one_of(*signature.splits))).nonzero()[0].tolist()
        if others:
            first = records[others[0]]
            expected = f"{signature.config}/{'+'.join(signature.splits)}"
            yield (
                f"{self._path}: row {records.first_row + others[0]}: belongs to {first.config}/{first.split}, the "
                f"signature says {expected}{_and_more(len(others))}; run or import the model again"
            )

    def at_end(self) -> Iterator[str]:
        """Yield a message for each problem of all records together."""
        result, counts, coverage = self._result, self._tally.counts, self._tally.coverage
        parts = list(dict.fromkeys(entry.part for entry in coverage))
        expected = list(result.signature.parts)
        missing = [name for name in expected if name not in {*parts}]
        for name in missing:
            yield f"{self._path}: holds no record of part {name}, which the signature names; run the model again"
        if expected and not missing and parts != expected:
            # Parts of two results are compared by position.
            yield f"{self._path}: its parts stand in another order than in the signature; run the model again"
        if not self._recount:
            return
        for name in Counts.__dataclass_fields__:
            stored, counted = getattr(result.counts, name), getattr(counts, name)
            if stored != counted:
                yield (
                    f"{self._folder / RESULT}: counts.{name}: {stored}, but the records have {counted}; rescore the run"
                )
        if result.coverage and result.coverage != coverage:
            yield f"{self._folder / RESULT}: coverage: is not what the records have; rescore the run"


def _score_problems(path: Path, file: ScoresFile, rows: Sequence[TextScore]) -> Iterator[str]:
    labels = {scorer.kind: scorer.label for scorer in file.scorers}
    lengths: dict[str, int] = {}
    seen: set[tuple[str, str]] = set()
    unknown = [
        (number, f"{row.kind} by '{row.scorer}'")
        for number, row in enumerate(rows, start=1)
        if labels.get(row.kind) != row.scorer
    ]
    # If the result does not name a scorer, all rows of that scorer are wrong: they share one line.
    for name in dict.fromkeys(name for _, name in unknown):
        numbers = [number for number, other in unknown if other == name]
        more = _and_more(len(numbers))
        yield f"{path}: row {numbers[0]}: {name}, which {RESULT} does not name{more}; {RESCORE_TEXTS}"
    for number, row in enumerate(rows, start=1):
        where = f"{path}: row {number}"
        if (row.kind, row.text_sha256) in seen:
            yield f"{where}: text {row.text_sha256[:12]} has a {row.kind} twice; {RESCORE_TEXTS}"
        seen.add((row.kind, row.text_sha256))
        if lengths.setdefault(row.kind, len(row.values)) != len(row.values):
            yield f"{where}: {len(row.values)} values, the rows before have {lengths[row.kind]}; {RESCORE_TEXTS}"


def hash_problems(folder: Path, file: FileOfRun) -> Iterator[str]:
    """Yield a message if a file is not the one that the result was written with; its contents need not be readable."""
    path = folder / file.path
    sha256 = sha256_file(path)
    if sha256 != file.sha256:
        yield (
            f"{path}: sha256 {sha256[:12]} is not the {file.sha256[:12]} of {RESULT}; the file was changed after the "
            f"result was written: {_OF_FILES[type(file)][1]}"
        )


def _and_more(n_rows: int) -> str:
    return "" if n_rows == 1 else f" ({n_rows} such rows)"
