"""Reads files of strangers: nothing is opened before it is checked, and the work is done in processes apart."""

from __future__ import annotations

import multiprocessing
import os
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import TimeoutError as TimeLimitError
from concurrent.futures import wait
from contextlib import contextmanager
from functools import partial
from multiprocessing import forkserver
from pathlib import Path
from typing import NamedTuple, TypeVar

from pebble import ProcessExpired, ProcessFuture, ProcessPool

from biasboard.ground.errors import BiasboardError, DataError
from biasboard.ground.files import sha256_file
from biasboard.ground.plain_text import printable
from biasboard.ground.plugins import ALL_PACKAGES
from biasboard.ground.strict_json import JsonValue
from evaluators.runs.measure.measuring import under_present_names
from evaluators.stores.store import STORE
from schemas.documents.record import Record
from schemas.documents.result import RecordsFile, Result, ScoresFile, SumsFile
from schemas.documents.run_files import ClusterSums, TextScore
from schemas.files import arrow_files
from schemas.folders.run_folder import (
    ADAPTERS,
    CORRECTIONS,
    RECORDS,
    RESULT,
    SCORES,
    SUBMISSION,
    SUMS,
    FileOfRun,
    TableOfRun,
    path_of,
    read_result,
)

FAULTS = (BiasboardError, OSError, ValueError, ArithmeticError, LookupError, RecursionError)
"""What the files of a stranger may raise: a path in a result, for example, may be too long or hold a null character."""
MOST_RESULT_BYTES = 16 << 20
"""Maximum size of a ``result.json``; that of a suite of 279 parts has a quarter of a megabyte."""
MOST_TABLE_BYTES = 512 << 20
"""Maximum size of a file of records or scores; 300,000 records have 20 megabytes."""
_ROW_TYPES: Mapping[type[TableOfRun], type] = {RecordsFile: Record, ScoresFile: TextScore, SumsFile: ClusterSums}
FILES_OF_RESULTS = (RESULT, RECORDS, SCORES, SUMS, SUBMISSION, ADAPTERS, CORRECTIONS)
"""Names of the files that a published result may have."""
_KNOWN = {*FILES_OF_RESULTS, STORE, f"{STORE}-wal", f"{STORE}-shm", "pending.json"}
_BYTES_OF_ALL, _BYTES_PER_ROW = 32 << 20, 64 << 10
"""Maximum size of the columns of a file before compression: a constant, and 64 kB for each row."""
_MOST_DEPTH = 12
"""Maximum number of folders between the folder that is searched and a result."""


class Searched(NamedTuple):
    """A result in a searched folder, or something there that cannot be searched."""

    path: Path
    """Path of the ``result.json``, or of what cannot be searched."""
    problem: str | None
    """Reason why it cannot be searched; None if it is a result."""


def results_in(folder: Path) -> Iterator[Searched]:
    """Yield every result in a folder and below it, sorted, and every link and folder that is not followed.

    Hidden files and folders, whose names begin with a dot, are skipped, because they are still being written.
    """
    yield from sorted(_walk(folder, _MOST_DEPTH))


def results_at(path: Path) -> list[Searched]:
    """Return the results at a path that a user gave, or why there are none.

    The path is the folder of a result, its ``result.json``, or a folder that contains results at any depth.
    """
    if path.name == RESULT and os.path.lexists(path):
        return [Searched(path, None)]
    results = list(results_in(path)) if path.is_dir() else []
    what = f"no {RESULT} here" if path.is_dir() else "is a file and no result" if path.exists() else "no such folder"
    return results or [Searched(path, f"{what}; name the folder of a finished run")]


def _walk(folder: Path, depth: int) -> Iterator[Searched]:
    try:
        entries = [entry for entry in os.scandir(folder) if not entry.name.startswith(".")]
    except OSError as error:
        yield Searched(folder, f"{folder}: cannot be listed ({error.strerror}); make it readable")
        return
    holds_result = any(entry.name == RESULT for entry in entries)
    for entry in entries:
        path = Path(entry.path)
        if entry.name == RESULT:
            yield Searched(path, None)
        elif entry.is_dir(follow_symlinks=False):
            if depth:
                yield from _walk(path, depth - 1)
            else:
                yield Searched(path, f"{path}: lies more than {_MOST_DEPTH} folders deep; move it up")
        elif entry.is_symlink() and not holds_result and not path.is_file():
            yield Searched(path, f"{path}: is a link, which is not followed; put the folder itself there")


def check_own_file(path: Path, most_bytes: int) -> None:
    """Check that a path is a regular file of its folder, and not too large, before it is opened.

    Raises:
        DataError: there is no such file, it is a link that leaves the folder, a pipe, a device or a folder, or it is
            too large.
    """
    try:
        if path.is_symlink() and not path.resolve(strict=True).is_relative_to(path.parent.resolve()):
            raise DataError(f"{path}: is a link that leaves this folder; put the file itself there")
        status = path.stat()
    except (OSError, RuntimeError) as error:
        why = error.strerror or type(error).__name__ if isinstance(error, OSError) else "a loop of links"
        raise DataError(f"{path}: cannot be opened ({why}); put the file itself there") from error
    if not stat.S_ISREG(status.st_mode):
        raise DataError(f"{path}: is not a regular file; put the file itself there")
    if status.st_size > most_bytes:
        raise DataError(f"{path}: has {status.st_size:,} bytes, more than the {most_bytes:,} of any such file")


def files_of(result: Result) -> dict[str, FileOfRun]:
    """Return the files beside a result, by their contents."""
    files = {
        "records": result.records,
        "scores": result.scores,
        "sums": None if result.withheld is None else result.withheld.sums,
        "adapters": result.adapters,
        "corrections": result.corrections,
    }
    return {name: file for name, file in files.items() if file is not None}


def contents_of(result: Result, folder: Path | None = None) -> dict[str, JsonValue]:
    """Return what a value made from a result depends on: its signature and its files, whose hashes it states itself."""
    files = files_of(result).items()
    hashes = {name: sha256_file(path_of(folder, file)) if folder else file.sha256 for name, file in files}
    return {"signature": result.signature_sha256, **hashes}


def read_untrusted(path: Path) -> Result:
    """Read a ``result.json`` that a stranger may have written, after a check that it and the files beside it are sound.

    Of these files, only what tables say of their columns and size is read. Metrics that were renamed since then have
    their present names.

    Raises:
        DataError: the result is invalid, or a file is none of its folder, too large or of other columns.
    """
    check_own_file(path, MOST_RESULT_BYTES)
    result = read_result(path.parent)
    for file in files_of(result).values():
        own = path.parent / file.path
        # A missing file, or one outside the folder, is reported by the code that reads it.
        if Path(file.path).name != file.path or not os.path.lexists(own):
            continue
        check_own_file(own, MOST_TABLE_BYTES if isinstance(file, TableOfRun) else MOST_RESULT_BYTES)
        if not isinstance(file, TableOfRun):
            continue
        metadata, row_type = arrow_files.metadata(own), _ROW_TYPES[type(file)]
        wanted = arrow_files.arrow_schema(row_type).names
        strange = [name for name in metadata.schema.to_arrow_schema().names if name not in wanted]
        if strange:
            names = ", ".join(map(printable, strange[:5]))
            raise DataError(f"{own}: column {names} is none of {row_type.__name__}; leave it out")
        n_bytes = sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
        most = _BYTES_OF_ALL + _BYTES_PER_ROW * file.n_rows
        if n_bytes > most:
            raise DataError(
                f"{own}: its {file.n_rows:,} rows take {n_bytes:,} bytes, more than the {most:,} of any result of such "
                "a size"
            )
    return under_present_names(result)


def strange_files(path: Path) -> tuple[str, ...]:
    """Return the sorted names of files beside a ``result.json`` that belong to neither runs nor submissions.

    Hidden files are left out.
    """
    names = (entry.name for entry in os.scandir(path.parent))
    return tuple(sorted(name for name in names if name not in _KNOWN and not name.startswith(".")))


T = TypeVar("T")
R = TypeVar("R")


class ProcessLimits(NamedTuple):
    """The limits of one process."""

    n_bytes: int = 1 << 30
    """Maximum number of bytes of memory that it can write to."""
    seconds: float = 600.0
    """Maximum time for one piece of work."""


_LIMITS = ProcessLimits()
_BLAS_THREADS = "OPENBLAS_NUM_THREADS"
_LACKS_MEMORY, _LACKS_MEMORY_ALONE = 77, 78
"""Exit statuses of a process that ran out of memory: after earlier pieces had kept much of it, and otherwise."""
_MUCH = 176 << 20
"""Bytes kept, beyond those of a new process, from which a piece may fit into a new one. Fewer mean little: reading the
first file reserves about 150 MB."""
_HEAVY = frozenset({"sklearn", "torch", "transformers"})
_n_at_start = 0
_n_kept = 0


class StoppedWork(NamedTuple):
    """A piece of work that had to be stopped, and the reason."""

    reason: str
    may_fit_alone: bool = False
    """True if its process ran out of memory, and earlier work had kept much of it."""


def isolated(
    work: Callable[[T], R], pieces: Sequence[T], limits: ProcessLimits = _LIMITS, *, n_workers: int = 1
) -> Iterator[R | StoppedWork]:
    """Yield the result of each piece of work in order, or why there is none.

    A process that ends or takes too long is replaced by a new one, and the other pieces are not affected. A piece that
    takes too much memory where pieces before it kept some is tried once more by itself, so that its outcome does not
    depend on them.

    Args:
        work: Function that can be pickled; its exceptions but MemoryError must be caught in it.
        pieces: One argument for each call.
        limits: Limits of each process. The limit of memory is kept on Linux, where the system can keep it.
        n_workers: Number of processes.
    """
    # A copy of this process would inherit the locks of the threads that pyarrow has started. A server that has only
    # imported modules starts a process in milliseconds, where importing them takes as long as verifying a result.
    context = multiprocessing.get_context("forkserver")
    with _without_main():
        _start_server(work)
    with (
        _without_main(),
        ProcessPool(max_workers=n_workers, initializer=_limit, initargs=[limits.n_bytes], context=context) as pool,
    ):
        futures = [pool.schedule(_done, args=[work, piece], timeout=limits.seconds) for piece in pieces]
        try:
            for piece, future in zip(pieces, futures, strict=True):
                outcome = _outcome(future, limits)
                if isinstance(outcome, StoppedWork) and outcome.may_fit_alone and len(pieces) > 1:
                    wait(futures)  # One more process at the same time would exceed the memory of all together.
                    (outcome,) = isolated(work, [piece], limits)
                yield outcome
        finally:
            # If the caller stops early, nothing further is started.
            for future in futures:
                future.cancel()  # type: ignore[no-untyped-call]


def _outcome(future: ProcessFuture[R], limits: ProcessLimits) -> R | StoppedWork:
    try:
        return future.result()
    except TimeLimitError:
        return StoppedWork(f"checking it takes longer than {limits.seconds:g} s")
    except MemoryError:
        return StoppedWork(f"checking it takes more than {limits.n_bytes >> 20:,} MB of memory", may_fit_alone=True)
    except ProcessExpired as error:
        if error.exitcode in (_LACKS_MEMORY, _LACKS_MEMORY_ALONE):
            reason = f"checking it takes more than {limits.n_bytes >> 20:,} MB of memory"
            return StoppedWork(reason, may_fit_alone=error.exitcode == _LACKS_MEMORY)
        return StoppedWork(f"the process that checks it ended with status {error.exitcode}")


def _done(work: Callable[[T], R], piece: T) -> R:
    """Run a piece of work, and record how much memory earlier pieces have kept."""
    global _n_kept
    _n_kept = _n_bytes_held() - _n_at_start
    try:
        return work(piece)
    except MemoryError:
        # Near its limit, this process could not do further work.
        os._exit(_LACKS_MEMORY if _n_kept > _MUCH else _LACKS_MEMORY_ALONE)


def _n_bytes_held() -> int:
    """Return the bytes of memory that this process can write to, as the limit counts them; 0 if unknown."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("VmData:")), 0)


def _limit(n_bytes: int) -> None:
    global _n_at_start
    _n_at_start = _n_bytes_held()
    if sys.platform == "linux":
        import resource

        # Unlike RLIMIT_AS, it does not count files and reserved addresses, which would break allocators.
        resource.setrlimit(resource.RLIMIT_DATA, (n_bytes, n_bytes))


@contextmanager
def _without_main() -> Iterator[None]:
    """Hide the file of the program, so that processes that start meanwhile do not import it.

    They need none of it. Imported, a script that calls us outside of ``if __name__ == "__main__"`` would run again in
    each of them.
    """
    main = sys.modules["__main__"]
    hidden = {name: getattr(main, name) for name in ("__file__", "__spec__") if hasattr(main, name)}
    try:
        for name in hidden:
            setattr(main, name, None)
        yield
    finally:
        for name, value in hidden.items():
            setattr(main, name, value)


def _start_server(work: Callable[..., object]) -> None:
    """Start the server process from which workers are forked, unless it runs already.

    It imports what work will need: the module that defines it, and those of this project in use here.
    """
    function = work.func if isinstance(work, partial) else work
    own = (name for name in sys.modules if name.partition(".")[0] in ALL_PACKAGES and not _is_heavy(name))
    # pyarrow imports pandas when it first computes something, and intervals import scipy.special.
    forkserver.set_forkserver_preload([function.__module__, *sorted(own), "pandas", "numpy.random", "scipy.special"])
    before = os.environ.get(_BLAS_THREADS)
    # With several threads, matrix products wait forever for memory that the limit denies.
    os.environ[_BLAS_THREADS] = "1"
    try:
        forkserver.ensure_running()
    finally:
        if before is None:
            del os.environ[_BLAS_THREADS]
        else:
            os.environ[_BLAS_THREADS] = before


def _is_heavy(name: str) -> bool:
    """Return True if a module holds names of a library that no verification needs, and that takes much memory."""
    values = vars(sys.modules[name]).values()
    return any(str(getattr(value, "__module__", "")).partition(".")[0] in _HEAVY for value in values)
