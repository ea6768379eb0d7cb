"""Runs work on untrusted files in separate processes, whose failure harms nothing else."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import TimeoutError as TimeLimitError
from concurrent.futures import wait
from contextlib import contextmanager
from functools import partial
from multiprocessing import forkserver
from pathlib import Path
from typing import NamedTuple, TypeVar

from pebble import ProcessExpired, ProcessFuture, ProcessPool

from biasboard.ground.plugins import ALL_PACKAGES

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
