"""How much memory and time a suite of 28 and of 279 parts takes to ask, rescore, validate and publish.

Run it with ``make bench ARGS='-k bench_suite'``. The parts are about as large as those of 279 published classification
tasks: 226 are cut off at 1,000 items, the others are spread from 304 to there. Each has 119 more items that support a
measurement.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.commands import REPOSITORY
from tests.worlds import copy_site

PLUGINS = REPOSITORY / "tests" / "made_suite"
SIZES = (*(min(304 + 16 * number, 1000) for number in range(53)), *(1000,) * 226)
FEW = 28


class Taken(NamedTuple):
    """What a command took."""

    seconds: float
    """Seconds of CPU."""
    peak: float
    """Largest size in memory, in MB."""


def taken(*command: str | Path) -> Taken:
    environment = {
        **os.environ,
        "BIASBOARD_PLUGINS": str(PLUGINS),
        "PYTHONPATH": str(REPOSITORY),
        "BIASBOARD_MEMORY": "off",
    }
    with subprocess.Popen(
        [sys.executable, *map(str, command)], cwd=REPOSITORY, env=environment, stdout=subprocess.DEVNULL
    ) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return Taken(used.ru_utime + used.ru_stime, used.ru_maxrss / 1000)


def measured(folder: Path, sizes: tuple[int, ...]) -> dict[str, Taken]:
    dataset, runs = folder / "data" / "labels", folder / "runs"
    taken("-m", "builders.labels", dataset, *map(str, sizes))
    asked = ("--backend", "baseline", "--model", "drawn", "--prompt", "shown-v1")
    found = {"run": taken("-m", "evaluators", "run", "--dataset", dataset, "--out", runs, *asked)}
    (result,) = runs.rglob("result.json")
    found["rescore"] = taken("-m", "evaluators", "rescore", result.parent)
    found["validate"] = taken("-m", "schemas.validate", runs)
    folders = ("--runs", runs, "--results", folder / "none", "--datasets", folder / "none")
    place = ("--site", copy_site(folder), "--out", folder / "built")
    found["board"] = taken("-m", "leaderboard", "build", *folders, *place)
    n_bytes = (result.parent / "responses.sqlite").stat().st_size
    print(f"\n{len(sizes)} parts, {sum(sizes) + 119 * len(sizes):,} items, store {n_bytes / 1e6:.0f} MB", end="")
    return found


def bench_memory_does_not_grow_with_the_parts(tmp_path: Path) -> None:
    few = measured(tmp_path / "few", SIZES[::10][:FEW])
    many = measured(tmp_path / "many", SIZES)
    for name, of_many in many.items():
        of_few = few[name]
        print(
            f"\n{name}: {of_few.peak:.0f} MB for {FEW} parts, {of_many.peak:.0f} MB for {len(SIZES)} "
            f"(ratio {of_many.peak / of_few.peak:.2f}); {of_few.seconds:.1f} s and {of_many.seconds:.1f} s of CPU",
            end="",
        )
        assert of_many.peak < 1000
        assert of_many.peak < 1.3 * of_few.peak
