"""Judges results submitted by strangers: accepted, accepted with warnings, or rejected."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

from biasboard.ground.errors import DataError
from biasboard.ground.files import sha256_file
from biasboard.ground.memory import Memory
from leaderboard.verify.entries import TEXTS_ELSEWHERE, Entry, LeftOut, Root, model_label
from leaderboard.verify.intake import results_in, strange_files
from leaderboard.verify.isolation import Limits, Stopped, isolated
from leaderboard.verify.keys import KeyBook
from leaderboard.verify.loading import verified_outcome
from leaderboard.verify.register import check_owner
from leaderboard.verify.submissions import place_for, read_submission
from schemas.documents.board import Register, Rerun
from schemas.documents.result import metric_key
from schemas.folders.run_folder import REGISTER, RESULT, find_runs

UNCOMPARED = f"its numbers rest on claims: {TEXTS_ELSEWHERE}"
"""Warning about a result without texts, if it was not compared with the complete run that has them."""
_LIMITS = Limits(n_bytes=400 << 20, seconds=600)
_N_WORKERS = 2
"""Number of results to verify at a time: so hostile ones together take less than a gigabyte."""

State: TypeAlias = Literal["accepted", "accepted with warnings", "rejected"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The outcome of the verification of one result."""

    place: str
    """Folder of the result as the user named it, which may hold any characters."""
    reason: str | None = None
    """Reason why the result is rejected; None if it is accepted."""
    warnings: tuple[str, ...] = ()
    """What readers of an accepted result should know."""
    belongs: str | None = None
    """Folder of the result, relative to the folder of all accepted results; None if it is rejected."""
    model: str | None = None
    signature: str | None = None
    provenance: str | None = None
    records_sha256: str | None = None
    result_sha256: str | None = None
    rerun: Rerun | None = None
    """Comparison with answers that the model gave to some of the items again; None if it was not asked."""
    texts_compared: bool = False
    """True if the result was made again from its texts, which are kept elsewhere."""

    @property
    def state(self) -> State:
        """The verdict as one word."""
        if self.reason is not None:
            return "rejected"
        return "accepted with warnings" if self.warnings else "accepted"


def judge(
    paths: Sequence[Path],
    keys: KeyBook,
    memory: Memory,
    *,
    advance: Callable[[int, int], None],
    since: Path | None = None,
) -> Iterator[Verdict]:
    """Verify every result at some paths, each in a process whose failure harms no other.

    Args:
        paths: Folders of results, folders that contain such folders, or the ``result.json`` of a result.
        keys: The answer keys of the datasets that the board knows.
        memory: The memory of this machine.
        advance: Function called after each result with the number of results done and of all.
        since: Earlier state of a single path; results that are the same in both are skipped, and a missing result or a
            changed register is rejected. None to judge every result.

    Yields:
        A verdict for each result, and for each path, link or folder without one, in the order of the paths. A result
        below several of the paths has one verdict.
    """
    results_of_paths = _without_repetitions(
        _results_at(path) if since is None else list(_changed(path, since)) for path in paths
    )
    pieces = [result for results in results_of_paths for result in results if isinstance(result, Path)]
    work = partial(_verdict, memory=memory, keys=keys)
    outcomes = isolated(work, pieces, _LIMITS, n_workers=max(1, min(_N_WORKERS, len(pieces))))
    n_done = 0
    for results in results_of_paths:
        for result in results:
            if isinstance(result, Verdict):
                yield result
                continue
            outcome = next(outcomes)
            n_done += 1
            advance(n_done, len(pieces))
            if isinstance(outcome, Stopped):
                yield Verdict(place=str(result.parent), reason=f"{result.parent}: {outcome.reason}")
            else:
                yield outcome


def owned(verdict: Verdict, register: Register, author: str) -> Verdict:
    """Return the verdict about a result that an author submits: rejected if the model belongs to somebody else.

    Args:
        verdict: Verdict about the result itself.
        register: The register of accepted results.
        author: Account of the author at the code host.
    """
    if verdict.belongs is None:
        return verdict
    try:
        check_owner(register, verdict.belongs, author)
    except DataError as error:
        return replace(verdict, reason=str(error))
    return verdict


def _without_repetitions(results_of_paths: Iterable[list[Path | Verdict]]) -> list[list[Path | Verdict]]:
    seen: set[Path] = set()
    kept: list[list[Path | Verdict]] = []
    for results in results_of_paths:
        kept.append([])
        for result in results:
            absolute = result.absolute() if isinstance(result, Path) else None
            if absolute is None or absolute not in seen:
                kept[-1].append(result)
            if absolute is not None:
                seen.add(absolute)
    return kept


def _results_at(path: Path) -> list[Path | Verdict]:
    if path.name == RESULT and os.path.lexists(path):
        return [path]
    if not path.is_dir():
        what = "is a file and no result" if path.exists() else "no such folder"
        return [Verdict(place=str(path), reason=f"{what}; name the folder of a finished run")]
    results = [
        searched.path if searched.problem is None else Verdict(place=str(searched.path), reason=searched.problem)
        for searched in results_in(path)
    ]
    if not results:
        return [Verdict(place=str(path), reason=f"no {RESULT} here; name the folder of a finished run")]
    return results


def _changed(path: Path, since: Path) -> Iterator[Path | Verdict]:
    """Yield the results at a path that differ from its earlier state, and verdicts on forbidden changes."""
    folders = set()
    for searched in results_in(path):
        folder = searched.path.parent.relative_to(path)
        folders.add(folder)
        if searched.problem is not None:
            yield Verdict(place=str(searched.path), reason=searched.problem)
        elif not _are_same(searched.path.parent, since / folder):
            yield searched.path
    for run in find_runs(since):
        if run.relative_to(since) not in folders:
            reason = (
                f"{path / run.relative_to(since)}: is gone; to withdraw a result, ask a maintainer, and it stays here"
            )
            yield Verdict(place=str(path / run.relative_to(since)), reason=reason)
    if _sha256_of(path / REGISTER) != _sha256_of(since / REGISTER):
        yield Verdict(place=str(path / REGISTER), reason=f"{path / REGISTER}: only maintainers change the register")


def _are_same(one: Path, other: Path) -> bool:
    names = {entry.name for entry in os.scandir(one)}
    if not other.is_dir() or names != {entry.name for entry in os.scandir(other)}:
        return False
    return all(_sha256_of(one / name) == _sha256_of(other / name) for name in names)


def _sha256_of(path: Path) -> str | None:
    """Return the hash of a file's bytes; None if there is no regular file."""
    return sha256_file(path) if path.is_file() and not path.is_symlink() else None


def _verdict(path: Path, memory: Memory, keys: KeyBook) -> Verdict:
    # Strangers write to folders of accepted results too, so nothing in them is trusted.
    root = Root(path.parent, "accepted")
    place = str(path.parent)
    outcome = verified_outcome((path, root), memory, keys)
    if isinstance(outcome, LeftOut):
        return Verdict(place=place, reason=outcome.reason.removeprefix(f"{place}{os.sep}"))
    try:
        read_submission(path)
    except (DataError, OSError) as error:
        return Verdict(place=place, reason=str(error))
    warnings = [*warnings_of(outcome)]
    if strange := strange_files(path):
        warnings.append(f"files that belong to no submission lie beside it: {', '.join(strange[:5])}; leave them out")
    return Verdict(
        place=place,
        warnings=tuple(warnings),
        belongs=place_for(outcome.result).as_posix(),
        model=model_label(outcome),
        signature=str(outcome.result.signature),
        provenance=outcome.provenance,
        records_sha256=outcome.result.records.sha256,
        result_sha256=sha256_file(path),
    )


def warnings_of(entry: Entry) -> Iterator[str]:
    """Yield everything about a valid result that readers of its numbers should know."""
    if entry.match.reason is not None:
        yield entry.match.reason
    if entry.result.model.identity is None:
        yield "the identity of its model is a claim: the result does not say what the hash was taken of"
    if entry.provenance == "claimed" and entry.claim != TEXTS_ELSEWHERE:
        yield f"its numbers rest on claims: {entry.claim}"
    if entry.result.withheld is not None:
        yield UNCOMPARED
    stored = {metric_key(metric) for metric in entry.result.metrics}
    lacking = sorted({name for name, _ in entry.metrics.keys() - stored})
    if lacking:
        yield f"metrics that it leaves out were computed from its records: {', '.join(lacking)}"
    if entry.earlier:
        names = sorted({f"{metric.name} {metric.version}" for metric in entry.earlier})
        yield f"metrics of other versions were computed again: {', '.join(names)}"
