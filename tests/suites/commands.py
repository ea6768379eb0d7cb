"""Commands about a suite of made-up classification tasks that the repository does not know."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from schemas.documents.record import Record
from tests.commands import REPOSITORY, output_of
from tests.worlds import copy_site

PLUGINS = REPOSITORY / "tests" / "made_suite"
SIZES = (40, 30, 20, 20, 30, 30)
"""Numbers of test items of the parts."""
N_SUPPORT = 32 + 64 + 23
"""Number of other items of each part."""


def run(*arguments: str | Path, status: int = 0, **variables: str | Path) -> str:
    """Run a command of ours with the folder of plug-ins, and return what it prints."""
    return output_of(*arguments, status=status, BIASBOARD_PLUGINS=PLUGINS, **variables)


def made(folder: Path, *sizes: int) -> Path:
    run("-m", "builders.labels", folder, *map(str, sizes or SIZES))
    return folder


def ask(dataset: Path, out: Path, *options: str | Path, model: str = "lab/first-0.8", **more: Any) -> str:
    """Ask the planted model about the suite."""
    asked = ("-m", "evaluators", "run", "--dataset", dataset, "--out", out)
    return run(*asked, "--backend", "planted", "--model", model, *options, **more)


def result_in(folder: Path) -> Path:
    (found,) = folder.rglob("result.json")
    return found


def told(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def run_of(runs: Path, model: str, beginning: str = "woods-") -> Path:
    (found,) = (runs / "labels@1.0.0" / model.replace("/", "__")).glob(f"{beginning}*")
    return found


def copied(run_folder: Path, target: Path) -> Path:
    shutil.copytree(run_folder, target)
    return target


def board(*roots: Path, dataset: Path, out: Path, status: int = 0) -> str:
    """Build the board of some folders of runs, and return what is printed."""
    site = copy_site(out)
    results = roots[1] if len(roots) > 1 else out / "none"
    folders = ("--runs", roots[0], "--results", results, "--datasets", dataset.parent)
    return run("-m", "leaderboard", "build", *folders, "--site", site, "--out", out / "built", status=status)


def rows_of(built: Path, config: str) -> list[Any]:
    """Return the rows of the table of a config or suite."""
    tables = (built / "files").glob(f"labels-labels-{config}-*.parquet")
    (table,) = (path for path in tables if not path.stem.endswith("comparisons"))
    return list(pq.read_table(table).to_pylist())


def chosen(record: Record) -> str | None:
    """The label that a record has the highest probability for; None without a reading."""
    reading = record.reading
    return None if reading is None else max(zip(reading.probabilities, reading.outcomes, strict=True))[1]
