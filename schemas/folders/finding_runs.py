"""Finds the folders of finished runs."""

from __future__ import annotations

import os
from pathlib import Path

from biasboard.ground.errors import DataError
from schemas.folders.run_folder import RESULT


def find_runs(folder: Path) -> list[Path]:
    """Return the folders of all finished runs in a folder and below it, sorted.

    Hidden folders, whose names begin with a dot, are skipped, because they are still being written. Links to folders
    are not followed.
    """
    found = []
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(place)] if RESULT in files else []
    return sorted(found)


def finished_runs(path: Path) -> list[Path]:
    """Return the folders of the finished runs at a path that the user gave, sorted.

    Args:
        path: The folder of a run, its ``result.json``, or a folder that contains runs at any depth.

    Raises:
        DataError: there is no finished run.
    """
    folder = path.parent if path.name == RESULT else path
    found = [folder] if (folder / RESULT).is_file() else find_runs(folder)
    if not found:
        raise DataError(f"{path}: no {RESULT} here; name the folder of a finished run")
    return found
