"""How much memory and time a suite of 28 and of 279 parts takes to ask, rescore, validate and publish.

Run it with ``make bench ARGS='-k bench_suite'``. The parts are about as large as those of 279 published classification
tasks: 226 are cut off at 1,000 items, the others are spread from 304 to there. Each has 119 more items that support a
measurement.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from tests.bench.checkouts import Taken, taken
from tests.commands import REPOSITORY
from tests.worlds import copy_site

SIZES = (*(min(304 + 16 * number, 1000) for number in range(53)), *(1000,) * 226)
FEW = 28


def measured(folder: Path, sizes: tuple[int, ...]) -> dict[str, Taken]:
    command = partial(taken, REPOSITORY, "-m", BIASBOARD_PLUGINS=REPOSITORY / "tests" / "made_suite")
    dataset, runs = folder / "data" / "labels", folder / "runs"
    command("builders.labels", dataset, *sizes)
    asked = ("--backend", "baseline", "--model", "drawn", "--prompt", "shown-v1")
    found = {"run": command("evaluators", "run", "--dataset", dataset, "--out", runs, *asked)}
    (result,) = runs.rglob("result.json")
    found["rescore"] = command("evaluators", "rescore", result.parent)
    found["validate"] = command("schemas.validate", runs)
    folders = ("--runs", runs, "--results", folder / "none", "--datasets", folder / "none")
    found["board"] = command("leaderboard", "build", *folders, "--site", copy_site(folder), "--out", folder / "built")
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
            f"(ratio {of_many.peak / of_few.peak:.2f}); {of_few.cpu:.1f} s and {of_many.cpu:.1f} s of CPU",
            end="",
        )
        assert of_many.peak < 1000
        assert of_many.peak < 1.3 * of_few.peak
