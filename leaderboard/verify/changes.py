"""Finds what a pull request changes: results to verify, and everything that a submission of results must not touch."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from biasboard.ground.errors import ConfigError
from biasboard.ground.files import sha256_file
from leaderboard.verify.intake import results_in
from schemas.folders.run_folder import REGISTER, RESULT, find_runs

RESULTS = PurePosixPath("leaderboard/results")
"""Folder of accepted results in a checkout."""
DECIDING = (".github/", ".ci/", "leaderboard/keys/")
"""Paths in a checkout that decide how results are verified. A pull request that changes one may have written its own
verdicts: a workflow that a pull request starts runs in the form that the pull request gives it."""
_MOST_NAMED = 20


class Forbidden(NamedTuple):
    """A change that no submission of results may make, and the reason."""

    path: Path
    reason: str


def changes(folder: Path, since: Path) -> Iterator[Path | Forbidden]:
    """Yield the path of each ``result.json`` that was added or changed, and every forbidden change.

    Args:
        folder: A folder of results, or a git checkout that holds one.
        since: Its earlier state.

    Raises:
        ConfigError: git cannot list the files of a checkout.
    """
    if not (since / ".git").exists():
        yield from _results_changed(folder, since)
        return
    ours, theirs = _files_of(since), _files_of(folder)
    for parent in (RESULTS.parent, RESULTS):
        # git lists files and links. A link could lead to results that are here already, which would look unchanged.
        if str(parent) in theirs:
            yield Forbidden(folder / parent, f"{parent}: is a link or a file, and must be a folder of results")
            return
    changed = sorted(path for path in {*ours, *theirs} if ours.get(path) != theirs.get(path))
    others = [path for path in changed if not _is_of_result(PurePosixPath(path), {*ours, *theirs})]
    for path in others[:_MOST_NAMED]:
        what = "decides how results are verified" if path.startswith(DECIDING) else "belongs to no result"
        yield Forbidden(folder / path, f"{path}: {what}; change it in a pull request of its own")
    if len(others) > _MOST_NAMED:
        yield Forbidden(folder, f"{len(others) - _MOST_NAMED} more changed files belong to no result")
    yield from _results_changed(folder / RESULTS, since / RESULTS)


def _files_of(checkout: Path) -> Mapping[str, str]:
    """Return mode and hash of each file that git has of a checkout, by path."""
    command = ["git", "-C", str(checkout), "ls-files", "--stage", "-z"]
    try:
        listed = subprocess.run(command, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise ConfigError(
            f"{checkout}: git cannot list its files; give git checkouts as PATH and --since, or two folders of results"
        ) from error
    entries = (os.fsdecode(entry).partition("\t") for entry in listed.split(b"\0") if entry)
    return {path: entry for entry, _, path in entries}


def _is_of_result(path: PurePosixPath, files: set[str]) -> bool:
    """Return True for the register, which is compared below, and for a file beside a result that is searched."""
    if path == RESULTS / REGISTER:
        return True
    is_hidden = any(part.startswith(".") for part in path.parts)
    return path.is_relative_to(RESULTS) and not is_hidden and str(path.parent / RESULT) in files


def _results_changed(folder: Path, since: Path) -> Iterator[Path | Forbidden]:
    folders = set()
    for searched in results_in(folder) if folder.exists() else ():
        place = searched.path.parent.relative_to(folder)
        folders.add(place)
        if searched.problem is not None:
            yield Forbidden(searched.path, searched.problem)
        elif not _are_same(searched.path.parent, since / place):
            yield searched.path
    for run in find_runs(since):
        place = run.relative_to(since)
        if place not in folders:
            reason = f"{folder / place}: is gone; to withdraw a result, ask a maintainer, and it stays here"
            yield Forbidden(folder / place, reason)
    if _sha256_of(folder / REGISTER) != _sha256_of(since / REGISTER):
        yield Forbidden(folder / REGISTER, f"{folder / REGISTER}: only maintainers change the register")


def _are_same(folder: Path, other: Path) -> bool:
    names = {entry.name for entry in os.scandir(folder)}
    if not other.is_dir() or names != {entry.name for entry in os.scandir(other)}:
        return False
    return all(_sha256_of(folder / name) == _sha256_of(other / name) for name in names)


def _sha256_of(path: Path) -> str | None:
    """Return the hash of a file's bytes; None if there is no regular file."""
    return sha256_file(path) if path.is_file() and not path.is_symlink() else None
