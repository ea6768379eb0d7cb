"""Made class probabilities of a classifier that prefers some classes, in files of every kind, and the command line."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from tests.evaluators.invoking import evaluators
from tests.evaluators.reweighting.made import Made

NAMES = ("cat", "dog", "emu", "fox")


def made(n: int = 240, seed: int = 0) -> Made:
    """Return rows, rounded as in files, in which the last class is predicted too often, and the first too seldom."""
    rng = np.random.default_rng(seed)
    targets = rng.integers(len(NAMES), size=n)
    scores = rng.normal(0, 1, (n, len(NAMES))) + np.array([-1.0, -0.3, 0.3, 1.0])
    scores[np.arange(n), targets] += 2.0
    odds = np.exp(scores)
    return Made((odds / odds.sum(axis=1, keepdims=True)).round(6), targets)


def frame(rows: Made, names: Sequence[str] = NAMES) -> pd.DataFrame:
    columns = dict(zip(names, rows.probabilities.T, strict=True))
    return pd.DataFrame({**columns, "label": [names[target] for target in rows.targets]})


def write_csv(path: Path, rows: Made, names: Sequence[str] = NAMES) -> Path:
    frame(rows, names).to_csv(path, index_label="id")
    return path


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


reweight = partial(evaluators, "reweight")


def said(*arguments: object) -> str:
    """Return what a command prints, which must end well."""
    done = reweight(*arguments)
    assert done.exit_code == 0, done.stderr
    return done.stdout


class ReadReport(NamedTuple):
    """What a file of measures says of some predictions."""

    classes: list[dict[str, str]]
    """The row of each class, with the texts of its cells."""
    measures: dict[str, str]
    """The value of each measure by its name."""

    @property
    def accuracies(self) -> list[float]:
        """The accuracy of each class that has rows."""
        return [float(row["value"]) for row in self.classes if row["value"]]


def measured(folder: Path, *arguments: object) -> dict[str, ReadReport]:
    """Return what a command measures, by the title of the rows and ``before`` or ``after``."""
    path = folder / "measures.csv"
    assert f"measures {path}" in said(*arguments, "--measures", path).splitlines()
    found: dict[str, ReadReport] = {}
    for row in read_csv(path):
        report = found.setdefault(f"{row['rows']}, {row['correction']}", ReadReport([], {}))
        if row["kind"] == "class":
            report.classes.append(row)
        else:
            report.measures[row["name"]] = row["value"]
    return found


def error(*arguments: object) -> str:
    """Return the one line of a command that must end with an error."""
    done = reweight(*arguments)
    lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert (done.exit_code, len(lines), done.stdout) == (1, 1, ""), done.stderr
    return lines[0].removeprefix("error: ")
